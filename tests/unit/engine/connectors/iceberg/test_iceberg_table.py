"""Opening Iceberg tables: what is missing, what may pass, and what is never shown."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.iceberg import iceberg_table
from penstock.engine.connectors.iceberg.iceberg_table import (
    arrow_schema,
    opened,
    opened_catalog,
    partition_columns,
    refused,
)
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.connectors.iceberg.iceberg_files import catalog_options, declared, loaded, target


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    table = declared(tmp_path)
    with pytest.raises(PenstockError, match="DAT-5301"):
        opened(table, opened_catalog(table.options))


def test_a_catalog_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        opened_catalog(
            {
                "catalog-type": "rest",
                "uri": "http://user:hush@127.0.0.1:1",
                "catalog.token": "hush-hush",
            }
        )
    assert (raised.value.code, raised.value.retriable) == ("DAT-5303", True)
    assert "hush" not in f"{raised.value} {raised.value.detail}"


def test_two_programs_that_make_one_catalog_at_once_both_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable

    both_look = threading.Barrier(2)
    create, found = SqlCatalogBaseTable.metadata.create_all, list[object]()

    def create_tables(catalog: SqlCatalog) -> None:
        if not both_look.broken:
            # neither finds the tables, and both create them: a check of the first statement is too late
            with contextlib.suppress(threading.BrokenBarrierError):
                both_look.wait(PATIENCE_S)
            both_look.abort()
            create(catalog.engine, checkfirst=False)
        create(catalog.engine)

    monkeypatch.setattr(SqlCatalog, "create_tables", create_tables)

    def open_it() -> None:
        try:
            found.append(opened_catalog(catalog_options(tmp_path)).list_namespaces())
        except PenstockError as error:
            found.append(error)

    programs = [threading.Thread(target=open_it) for _ in range(2)]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    assert found == [[], []]


def test_errors_that_may_pass() -> None:
    assert refused("t", "read", OSError("reset")).code == "DAT-5303"
    assert refused("t", "read", ValueError("odd")).detail == "ValueError: odd"


def test_columns_and_transforms(tmp_path: Path) -> None:
    target(declared(tmp_path))
    table = loaded(tmp_path)
    with table.update_spec() as spec:
        spec.add_field("k", "bucket[8]")
    assert partition_columns(table) == ("bucket[8](k)",)
    assert arrow_schema(table).names == ["k", "v"]


def test_without_the_library_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(iceberg_table.__dict__["__builtins__"], "__import__", _no_library)
    with pytest.raises(PenstockError, match="DAT-5300") as raised:
        iceberg_table.library()
    assert raised.value.hint == "pip install 'penstock[iceberg]'"
    assert pa.__version__


def _no_library(name: str, *args: Any, **more: Any) -> Any:
    raise ImportError(name)
