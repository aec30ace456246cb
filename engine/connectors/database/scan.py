"""A scan of a database table in batches. Filters that the database can test are pushed down to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import DataType
from penstock.engine.connectors.database.connect import opened, stored
from penstock.engine.connectors.database.database import Condition, Database, Select
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal, conjuncts

_OPERATORS = {"equal": "=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
# constant < column is column > constant
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# a longer IN list is tested here: statements have limits, and the text would be long
_MAX_VALUES = 500

Pushes = Callable[[DataType, str], bool]


def conditions_of(
    predicate: Expression | None, fields: Sequence[Field], pushes: Pushes
) -> tuple[Condition, ...]:
    """Return the conjuncts of a predicate over ``fields`` that the database can test."""
    conditions = [_condition(part, fields) for part in conjuncts(predicate)] if predicate is not None else []
    return tuple(c for c in conditions if c is not None and pushes(c.column.type, c.operator))


def _condition(part: Expression, fields: Sequence[Field]) -> Condition | None:
    if not isinstance(part, Call) or not part.args:
        return None
    # three forms: column IS [NOT] NULL, column IN (constants), column op constant
    first, others = part.args[0], part.args[1:]
    if part.function in ("is_null", "is_not_null") and isinstance(first, Column):
        return Condition(fields[first.index], "IS NULL" if part.function == "is_null" else "IS NOT NULL")
    if part.function == "in" and isinstance(first, Column) and len(others) <= _MAX_VALUES:
        # x IN (1, NULL) is never FALSE: not pushed, nor lists with expressions or casts
        values = tuple(arg.value for arg in others if isinstance(arg, Literal) and arg.value is not None)
        whole = len(values) == len(others) and all(arg.type == first.type for arg in others)
        return Condition(fields[first.index], "IN", values) if whole and values else None
    operator = _OPERATORS.get(part.function)
    if operator is None or len(others) != 1:
        return None
    left, right = first, others[0]
    # 3 < a  ->  a > 3
    if isinstance(left, Literal):
        left, right, operator = right, left, _FLIPPED[operator]
    if (
        isinstance(left, Column)
        and isinstance(right, Literal)
        and right.value is not None
        # a database would compare values of two types by its own rule
        and left.type == right.type
    ):
        return Condition(fields[left.index], operator, (right.value,))
    return None


def select_of(
    table: CatalogTable, columns: tuple[int, ...], predicate: Expression | None, database: Database
) -> Select:
    """Return the SELECT for a scan: the requested columns, and the conjuncts of the predicate that the
    database can test.
    """
    fields = stored(table, [table.source_schema[index] for index in columns], database)
    return Select(table.options["table-name"], fields, conditions_of(predicate, fields, database.pushes))


def scanned(
    table: CatalogTable, columns: tuple[int, ...], predicate: Expression | None
) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns from one consistent state of a table, under their declared names. Rows may
    still fail the predicate.
    """
    database = opened(table)
    try:
        select = select_of(table, columns, predicate, database)
        schema = table.source_schema.select(columns).to_arrow()
        # names of the database back to the declared ones
        for batch in database.rows(select):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema) if columns else batch
    finally:
        database.close()


def scan_text(table: CatalogTable, columns: tuple[int, ...], predicate: Expression | None) -> str:
    """Return the SQL of a scan."""
    database = opened(table)
    try:
        return database.text(select_of(table, columns, predicate, database))
    finally:
        database.close()
