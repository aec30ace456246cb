"""Connecting: the right driver, the table's columns under their own names, and what does not fit the
declaration.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    DataType,
    Decimal,
    Timestamp,
    TimestampLtz,
)
from penstock.engine.connectors.database.connect import opened, opened_for_writing, stored
from penstock.engine.connectors.database.duckdb import DuckDbFile
from penstock.engine.connectors.database.sqlite import SqliteFile


def table(path: Path, kind: str, *fields: Field, name: str = "facts") -> CatalogTable:
    schema = Schema(fields)
    return CatalogTable("t", schema, schema, {"connector": kind, "table-name": name, "path": str(path)})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "facts.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE facts (Id INTEGER, small SMALLINT, u UINTEGER, b BOOLEAN, f DOUBLE, d DECIMAL(12, 3), s VARCHAR,"
            " day DATE, moment TIMESTAMP, z TIMESTAMPTZ)"
        )
    return path


def checked(path: Path, name: str, kind: DataType) -> str:
    made = table(path, "duckdb", Field(name, kind))
    database = opened(made)
    try:
        (field,) = stored(made, made.schema.fields, database)
        return field.name
    finally:
        database.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("id", INT), ("ID", BIGINT), ("small", INT), ("u", BIGINT), ("b", BOOLEAN), ("f", DOUBLE), ("d", Decimal(20, 3)),
     ("id", Decimal(20, 0)), ("s", STRING), ("day", STRING), ("day", DATE), ("moment", Timestamp(6)), ("z", TimestampLtz(6))],
    ids=str,
)  # fmt: skip
def test_a_column_is_found_by_its_name_in_any_case_when_its_type_fits(
    file: Path, name: str, kind: DataType
) -> None:
    assert checked(file, name, kind) == {"id": "Id"}.get(name.lower(), name)


@pytest.mark.parametrize(
    ("name", "kind", "hint"),
    [("u", INT, "STRING"), ("f", INT, "DOUBLE"), ("s", INT, "STRING"), ("d", DOUBLE, "DECIMAL"), ("b", INT, "BOOLEAN"),
     ("moment", TimestampLtz(6), "TIMESTAMP"), ("z", Timestamp(6), "TIMESTAMP_LTZ"), ("day", Timestamp(6), "DATE")],
    ids=str,
)  # fmt: skip
def test_a_type_that_would_lose_something_is_refused(
    file: Path, name: str, kind: DataType, hint: str
) -> None:
    with pytest.raises(PenstockError, match=f"DAT-4706.*column {name} of table t is declared") as caught:
        checked(file, name, kind)
    assert caught.value.hint == f"declare it as {hint}"


def test_what_is_not_there_is_refused_with_what_is_near(file: Path) -> None:
    with pytest.raises(PenstockError, match=r"DAT-4703.*no column momment") as caught:
        checked(file, "momment", STRING)
    assert "moment" in str(caught.value.hint)
    made = table(file, "duckdb", name="fact")
    database = opened(made)
    with pytest.raises(PenstockError, match=r'DAT-4702.*no table "fact"') as caught:
        stored(made, (), database)
    assert "facts" in str(caught.value.hint)
    database.close()


def test_the_exact_name_comes_before_one_in_another_case(tmp_path: Path) -> None:
    """PostgreSQL has columns that differ by case only."""

    class Cased:
        def columns(self, name: str) -> dict[str, str]:
            return {"A": "integer", "a": "integer", "B": "integer", "b": "integer"}

    made = table(tmp_path, "sqlite", Field("a", INT), Field("B", INT))
    assert [field.name for field in stored(made, made.schema.fields, Cased())] == ["a", "B"]  # type: ignore[arg-type]


def test_sqlite_binds_no_types_so_none_is_compared(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "f") as made:
        made.execute("CREATE TABLE facts (day TEXT)")
    declared = table(tmp_path / "f", "sqlite", Field("DAY", DATE))
    database = opened(declared)
    assert [field.name for field in stored(declared, declared.schema.fields, database)] == ["day"]
    database.close()


@pytest.mark.parametrize(("kind", "made"), [("sqlite", SqliteFile), ("duckdb", DuckDbFile)])
def test_only_a_writer_makes_a_file(tmp_path: Path, kind: str, made: type) -> None:
    path = tmp_path / "new"
    with pytest.raises(PenstockError, match=r"DAT-4701"):
        opened(table(path, kind))
    assert not path.exists()
    database = opened_for_writing(table(path, kind))
    assert type(database) is made and path.exists()
    database.close()
