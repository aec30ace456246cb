"""A connector is declared in one place: its own files name it, and two lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import CONNECTORS, boundedness, check_column, metadata_keys
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.connectors.registry import SINKS, SOURCES

ROOT = Path(__file__).parents[4]
PRODUCT = ("catalog", "client", "engine", "optimizer", "penstock", "planner", "repl")
OWN_FILES = {"catalog/connectors/generated.py", "engine/connectors/generated/nexmark_source.py"}
LISTS = {"catalog/connectors/registry.py", "engine/connectors/registry.py"}


def test_a_connector_is_named_by_its_own_files_and_two_lists() -> None:
    naming = {
        str(file.relative_to(ROOT))
        for folder in PRODUCT
        for file in (ROOT / folder).rglob("*.py")
        if "nexmark" in file.read_text(encoding="utf-8").lower()
    }
    assert naming == OWN_FILES | LISTS


def test_every_declared_connector_has_the_factories_it_promises() -> None:
    elsewhere = {"postgres", "sqlite", "duckdb", "spark", "shared"}  # scanned by bounded backends
    assert {c.name for c in CONNECTORS.values() if c.source} - elsewhere == set(SOURCES)
    assert {c.name for c in CONNECTORS.values() if c.sink} - {"spark", "materialized"} == set(SINKS)


def _table(**options: str) -> CatalogTable:
    schema = Schema((Field("a", BIGINT),))
    return CatalogTable("t", schema, schema, {k.replace("_", "."): v for k, v in options.items()})


def test_a_declaration_says_whether_rows_end() -> None:
    assert boundedness(_table(connector="nexmark")) is Boundedness.UNBOUNDED
    assert boundedness(_table(connector="nexmark", events_num="9")) is Boundedness.REPLAY
    assert boundedness(_table(connector="datagen", fields_a_end="9")) is Boundedness.REPLAY
    assert boundedness(_table(connector="filesystem", path="x.csv")) is Boundedness.BOUNDED
    assert boundedness(_table(connector="print")) is Boundedness.BOUNDED


def test_a_declaration_checks_columns_and_lists_metadata() -> None:
    check_column({"connector": "print"}, Field("anything", STRING), None)
    check_column({"connector": "nexmark", "table": "bid"}, Field("price", BIGINT), None)
    with pytest.raises(PenstockError) as refused:
        check_column({"connector": "nexmark", "table": "bid"}, Field("prize", BIGINT), None)
    assert refused.value.code == "SQL-1510"
    assert metadata_keys("DATAGEN") == {"row": BIGINT}
    assert metadata_keys("no such connector") == {}
