"""Which data files a scan may leave out: its filter as a test of partitions and of the log's statistics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from penstock.catalog.schema import Field
from penstock.catalog.types import DATE, STRING, DataType, is_integer
from penstock.engine.connectors.database.scan import conditions_of
from penstock.planner.expressions.nodes import Expression

_OPERATORS = ("=", "<", "<=", ">", ">=")


def file_test(predicate: Expression | None, fields: Sequence[Field]) -> str | None:
    """Return the part of a filter that the library can test on whole files, ``None`` when there is none.

    Only types whose statistics order as our comparisons do: integers, dates and texts.
    """
    tests = [
        f'"{condition.column.name}" {condition.operator} {_literal(condition.values[0])}'
        for condition in conditions_of(predicate, fields, _tested)
    ]
    return " AND ".join(tests) or None


def _tested(kind: DataType, operator: str) -> bool:
    return operator in _OPERATORS and (is_integer(kind) or kind in (DATE, STRING))


def _literal(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"
