"""A REST catalog over the wire: tables are created, appended to and replaced by key, each epoch once, whatever the
network loses. A conflict is tried again, an earlier run is fenced off, a server that comes back is used again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog
from penstock.engine.connectors.iceberg.source import IcebergSource
from tests.harness.http_server import Answered, Asked
from tests.harness.iceberg_rest import RestCatalog, is_commit, rest_catalog
from tests.unit.engine.connectors.delta.delta_files import read_from, request, rows, upserts
from tests.unit.engine.connectors.iceberg.iceberg_files import (
    WRITER,
    catalog_options,
    declared,
    target,
    there,
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[RestCatalog]:
    with rest_catalog(tmp_path) as running:
        yield running


def in_it(catalog: RestCatalog, **how: Any) -> CatalogTable:
    table = declared(catalog.path, **how)
    kept = {key: value for key, value in table.options.items() if key not in catalog_options(catalog.path)}
    return replace(table, options={**kept, **catalog.options})


def lose_answers(catalog: RestCatalog, *lost: Answered) -> list[Answered]:
    """Give these answers in place of those of the next commits, which are done all the same."""
    left = list(lost)

    def lose(asked: Asked, answer: Answered) -> Answered:
        return left.pop(0) if left and is_commit(asked) else answer

    catalog.after = lose
    return left


def test_epochs_are_appended_once_and_earlier_runs_fenced_off(catalog: RestCatalog) -> None:
    table = in_it(catalog, partitioned_by=("v",))
    one = target(table)
    for _ in range(2):
        one.commit(WRITER, 1, rows(1, 2))
    later = target(table)
    with pytest.raises(PenstockError, match="STA-3504"):
        one.commit(WRITER, 2, rows(3))
    assert later.last_committed(WRITER) == 1
    later.commit(WRITER, 2, rows(3))
    assert there(catalog.path) == [(1, "v1"), (2, "v2"), (3, "v3")]
    source = IcebergSource(request(replace(table, options={**table.options, "scan.mode": "full"})))
    assert sorted(key for _, key, _ in read_from(source, *source.splits())[0]) == [1, 2, 3]


def test_upserts_and_a_conflict(catalog: RestCatalog) -> None:
    one = target(in_it(catalog, key=("k",)))
    one.commit(WRITER, 1, upserts(k1="a", k2="b"))
    real, tries = one._commit, []

    def overtaken(*args: Any) -> None:
        tries.append(1)
        if len(tries) == 1:
            # a stranger commits between the look and the commit
            stranger = opened_catalog(catalog.options).load_table("db.t")
            with stranger.transaction() as change:
                change.append(stranger.scan().to_arrow().slice(0, 0))
            assert stranger.metadata.snapshots
        real(*args)

    one._commit = overtaken  # type: ignore[method-assign]
    one.commit(WRITER, 2, upserts(k1="new", k2=None, k3="c"))
    assert len(tries) == 2
    assert there(catalog.path) == [(1, "new"), (3, "c")]


@pytest.mark.parametrize(
    "lost",
    [
        Answered(status=500),
        Answered(status=502),
        Answered(status=503),
        Answered(status=504),
        Answered(broken=True),
    ],
    ids=["500", "502", "503", "504", "cut"],
)
def test_an_answer_that_is_lost_doubles_no_row(catalog: RestCatalog, lost: Answered) -> None:
    one = target(in_it(catalog))
    left = lose_answers(catalog, lost)
    with pytest.raises(PenstockError) as raised:
        one.commit(WRITER, 1, rows(1, 2))
    assert (raised.value.code, raised.value.retriable, left) == ("DAT-5303", True, [])
    # the sink calls it again
    one.commit(WRITER, 1, rows(1, 2))
    one.commit(WRITER, 2, rows(3))
    assert there(catalog.path) == [(1, "v1"), (2, "v2"), (3, "v3")]


def test_a_server_that_is_busy_away_or_back(tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as catalog:
        one, port = target(in_it(catalog)), catalog.server.port
        catalog.after = lambda asked, answer: Answered(status=429)
        with pytest.raises(PenstockError) as busy:
            one.commit(WRITER, 1, rows(1))
    with pytest.raises(PenstockError) as away:
        one.commit(WRITER, 1, rows(1))
    assert [error.value.code for error in (busy, away)] == ["DAT-5303"] * 2
    assert busy.value.retriable and away.value.retriable
    with rest_catalog(tmp_path, port):
        one.commit(WRITER, 1, rows(1))
    assert there(tmp_path) == [(1, "v1")]


def test_who_may_not_is_not_tried_again_and_secrets_are_not_shown(catalog: RestCatalog) -> None:
    wrong = {"catalog-type": "rest", "uri": catalog.uri, "catalog.token": "hush-wrong-token"}
    with pytest.raises(PenstockError) as refused:
        opened_catalog(wrong)
    assert (refused.value.code, refused.value.retriable) == ("DAT-5304", False)
    assert "hush" not in str(refused.value)
    tokens = f"{catalog.uri}/v1/oauth/tokens"
    client = {"catalog.credential": catalog.secret, "catalog.oauth2-server-uri": tokens}
    exchanged = opened_catalog({"catalog-type": "rest", "uri": catalog.uri, **client})
    assert exchanged.list_namespaces() == []


def test_statements(catalog: RestCatalog) -> None:
    options = ", ".join(f"'{key}' = '{value}'" for key, value in catalog.options.items())
    with penstock.connect(settings={"table.dml-sync": "true", "bounded.backend": "duckdb"}) as connection:
        connection.execute(f"CREATE CATALOG ice WITH ('type' = 'iceberg', {options})")
        connection.execute("CREATE TABLE ice.db.t (k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED)")
        connection.execute("INSERT INTO ice.db.t VALUES (1, 'a'), (2, 'b')")
        connection.execute("INSERT INTO ice.db.t VALUES (2, 'new')")
        assert connection.execute("SELECT * FROM ice.db.t ORDER BY k").fetchall() == [(1, "a"), (2, "new")]
        assert connection.execute("SHOW TABLES IN ice.db").fetchall() == [("t", "iceberg", "bounded", "no")]
        connection.execute("DROP TABLE ice.db.t")
        assert connection.execute("SHOW TABLES IN ice.db").fetchall() == []
