"""INSERT of many rows of parameters as one job: the rows are an Arrow table that the INSERT selects from."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.catalog.types import DataType, Map, to_arrow
from penstock.client.sqlalchemy.column_types import NestedValue
from penstock.planner.parser.type_parser import parse_type

if TYPE_CHECKING:
    from penstock.client.connection import Connection
    from penstock.client.cursor import Cursor

# what SQLAlchemy compiles for an INSERT of one row
_ONE_ROW = re.compile(r"(INSERT INTO .+\)) VALUES \((.*)\)", re.DOTALL)
# a parameter, by itself or as the JSON of a nested value
_PARAMETER = re.compile(r"from_json\(\?, '((?:[^']|'')*)'\)|\?")
_NUMBERS = itertools.count(1)


def insert_rows(
    connection: Connection, cursor: Cursor, statement: str, rows: Sequence[Sequence[Any]]
) -> bool:
    """Insert all rows by one job, and return whether that was possible. It is not where the statement has
    another form, the values of a column have no common type, or an INSERT does not wait for its job: the
    caller then inserts row by row.
    """
    # the rows are unregistered when this returns, so that the job must have ended
    if connection.session.settings.get("table.dml-sync") == "false":
        return False
    parts = _ONE_ROW.fullmatch(statement.strip())
    parameters = [] if parts is None else list(_PARAMETER.finditer(parts[2]))
    if parts is None or len(rows) < 2 or not parameters or len(parameters) != len(rows[0]):
        return False
    try:
        columns = [
            _array(values, found[1])
            for values, found in zip(zip(*rows, strict=True), parameters, strict=True)
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return False
    names = [f"p{number}" for number in range(len(columns))]
    fields = [
        # a column of no NULL may go into a NOT NULL column
        pa.field(name, column.type, nullable=column.null_count > 0)
        for name, column in zip(names, columns, strict=True)
    ]
    table = f"penstock_rows_{next(_NUMBERS)}"
    unused = iter(names)
    selected = _PARAMETER.sub(lambda _: next(unused), parts[2])
    connection.register(table, pa.Table.from_arrays(columns, schema=pa.schema(fields)), stream=False)
    try:
        cursor.execute(f"{parts[1]} SELECT {selected} FROM {table}")
    finally:
        connection.unregister(table)
    return True


def _array(values: Sequence[Any], type_text: str | None) -> pa.Array:
    """Return the values of one parameter as Arrow: of their own type, or of the nested type of a text."""
    if type_text is None:
        return pa.array(values)
    kind = parse_type(type_text.replace("''", "'"))
    return pa.array([_nested(value, kind) for value in values], to_arrow(kind))


def _nested(value: NestedValue | None, kind: DataType) -> Any:
    if value is None:
        return None
    return list(value.value.items()) if isinstance(kind, Map) else value.value
