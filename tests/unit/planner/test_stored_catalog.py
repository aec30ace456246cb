"""The catalog on disk: what SHOW CREATE writes is read back as the same tables and views."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import PenstockError
from penstock.catalog.persistence.catalog_store import CatalogStore
from penstock.catalog.persistence.show_create import create_statement
from penstock.catalog.tables import CatalogTable
from tests.unit.planner.frontend import run_statements, sample_catalog

RICH = """
CREATE TABLE `a ``b` (
  id BIGINT NOT NULL, `select` STRING, nested ROW<x INT, `y z` ARRAY<MAP<STRING, DECIMAL(5, 2)>>>, span INTERVAL DAY TO SECOND,
  at TIMESTAMP_LTZ(3), file STRING METADATA FROM 'file.name' VIRTUAL, twice AS id * 2, day AS CAST(at AS DATE),
  WATERMARK FOR at AS at - INTERVAL '1' MINUTE, PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'it''s' PARTITIONED BY (`select`)
WITH ('connector' = 'filesystem', 'path' = 's3://key:S3CR3T@host/p?token=S3CR3T', 'format' = 'csv', 'csv.null-literal' = '''');
CREATE VIEW v (`from`, b) AS SELECT id, twice FROM `a ``b` WHERE `select` = ';'
"""


def filled() -> Catalog:
    catalog = sample_catalog()
    run_statements(RICH, catalog)
    return catalog


def test_round_trip(tmp_path: Path) -> None:
    catalog = filled()
    run_statements("CREATE TEMPORARY TABLE gone (a INT) WITH ('connector' = 'datagen')", catalog)
    store = CatalogStore(tmp_path / "state")
    assert store.load() == []
    store.save(catalog)
    again = Catalog()
    for statement in store.load():
        run_statements(statement, again)
    assert again.names() == [name for name in catalog.names() if name != "gone"]
    for name in again.names():
        left, right = catalog.resolve(name), again.resolve(name)
        assert left == right
        if isinstance(left, CatalogTable) and isinstance(right, CatalogTable):
            assert left.options == right.options
    assert list((tmp_path / "state").iterdir()) == [store.path]
    assert store.path.stat().st_mode & 0o077 == 0


def test_secrets_are_not_shown() -> None:
    shown = create_statement(filled().table("a `b"))
    assert "S3CR3T" not in shown
    assert "******" in shown


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"format": 2, "statements": []}', '{"format": 1}', '{"format": 1, "statements": [1]}'],
)
def test_a_file_that_is_no_catalog(tmp_path: Path, text: str) -> None:
    store = CatalogStore(tmp_path)
    store.path.write_text(text)
    with pytest.raises(PenstockError) as caught:
        store.load()
    assert caught.value.code == "SQL-1320"
    assert str(store.path) in caught.value.message


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PenstockError) as caught:
        CatalogStore(tmp_path / "file").save(filled())
    assert caught.value.code == "SQL-1321"


def test_the_old_file_stays_when_the_new_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CatalogStore(tmp_path)
    store.save(Catalog())

    def refuse(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(PenstockError, match="cannot be written"):
        store.save(filled())
    assert json.loads(store.path.read_text())["statements"] == []
