"""Connects to a table's database and compares the table's columns with the declared ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    String,
    Timestamp,
    TimestampLtz,
    is_integer,
)
from penstock.engine.connectors.database.database import Database, WritableDatabase

# Ranks of integer types. A column fits a declared type of the same rank or a higher one.
_WIDTHS = {"TINYINT": 1, "SMALLINT": 2, "INT": 3, "BIGINT": 4}
# by the database's name of a type; an unsigned one needs the next signed type
_INTEGERS = {
    "tinyint": 1,
    "utinyint": 2,
    "smallint": 2,
    "usmallint": 3,
    "integer": 3,
    "int": 3,
    "uinteger": 4,
    "bigint": 4,
}
# the database's types that are read as each declared type without loss
_KINDS: dict[type[DataType], frozenset[str]] = {
    Boolean: frozenset({"boolean"}),
    Float: frozenset({"real", "float"}),
    Double: frozenset({"real", "float", "double precision", "double"}),
    Decimal: frozenset({"numeric", "decimal", *_INTEGERS}),
    Binary: frozenset({"bytea", "blob"}),
    Date: frozenset({"date"}),
    Timestamp: frozenset({"timestamp without time zone", "timestamp", "timestamp_s", "timestamp_ms"}),
    TimestampLtz: frozenset({"timestamp with time zone"}),
}
# what to declare instead, for the hint
_NAMES = {
    "boolean": "BOOLEAN",
    "real": "FLOAT",
    "float": "FLOAT",
    "double precision": "DOUBLE",
    "double": "DOUBLE",
    "numeric": "DECIMAL",
    "decimal": "DECIMAL",
    "bytea": "BYTES",
    "blob": "BYTES",
    "date": "DATE",
    "timestamp with time zone": "TIMESTAMP_LTZ",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
} | dict.fromkeys(("timestamp without time zone", "timestamp", "timestamp_s", "timestamp_ms"), "TIMESTAMP")


def opened_for_writing(table: CatalogTable) -> WritableDatabase:
    """Return a new connection that may write."""
    return opened(table, writes=True)


def opened(table: CatalogTable, *, writes: bool = False) -> WritableDatabase:
    """Return a new connection to the database of a table. DAT-4700 without its driver, DAT-4701 when it
    cannot be reached.
    """
    if table.connector == "postgres":
        from penstock.engine.connectors.database.postgres import PostgresConnection

        name, word = option(table, "username"), option(table, "password")
        return PostgresConnection(
            table.options["url"],
            None if name is None else str(name),
            None if word is None else str(word),
            writes=writes,
        )
    if table.connector == "sqlite":
        from penstock.engine.connectors.database.sqlite import SqliteFile

        return SqliteFile(table.options["path"], writes=writes)
    from penstock.engine.connectors.database.duckdb import DuckDbFile

    return DuckDbFile(table.options["path"], writes=writes)


def stored(table: CatalogTable, fields: Sequence[Field], database: Database) -> tuple[Field, ...]:
    """Return fields under the names their columns have in the database. DAT-4702 for no table, DAT-4703 for
    no column, DAT-4706 for another type.
    """
    name = table.options["table-name"]
    columns = database.columns(name)
    if not columns:
        hint = did_you_mean(name, database.tables(), others=True) or "it has no tables"
        message = f'table {table.name}: the database has no table "{name}"'
        raise PenstockError("DAT-4702", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42P01")
    # of columns that differ by case only the first wins
    folded: dict[str, str] = {column.lower(): column for column in reversed(columns)}
    matched = []
    for field in fields:
        # the exact name before one in another case
        known = field.name if field.name in columns else folded.get(field.name.lower())
        if known is None:
            message = f'table {table.name}: table "{name}" of the database has no column {field.name}'
            near = did_you_mean(field.name, list(columns), others=True)
            raise PenstockError("DAT-4703", message, hint=near, kind=Kind.EXTERNAL, sqlstate="42703")
        # SQLite's declared types bind no value: each value is tested when it is read
        if table.connector != "sqlite":
            _check(table, field, columns[known])
        matched.append(field.renamed(known))
    return tuple(matched)


def _check(table: CatalogTable, field: Field, kind: str) -> None:
    # numeric(10,2) -> numeric
    plain = re.sub(r"\(.*?\)", "", kind.lower()).strip()
    # every type of a database has a text form
    if isinstance(field.type, String):
        return
    fits = (
        # 9: no integer at all
        _INTEGERS.get(plain, 9) <= _WIDTHS[str(field.type)]
        if is_integer(field.type)
        else plain in _KINDS[type(field.type)]
    )
    if not fits:
        message = (
            f"column {field.name} of table {table.name} is declared {field.type}, in the database it is "
            f"{kind}"
        )
        hint = f"declare it as {_NAMES.get(plain, 'STRING')}"
        raise PenstockError("DAT-4706", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42804")
