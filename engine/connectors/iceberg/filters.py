"""The part of a scan's filter that the library tests: on partitions, on statistics of files, and on rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.catalog.schema import Field
from penstock.catalog.types import DATE, STRING, DataType, is_integer
from penstock.engine.connectors.database.database import Condition
from penstock.engine.connectors.database.scan import conditions_of
from penstock.planner.expressions.nodes import Expression

_CLASSES = {
    "=": "EqualTo",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "IN": "In",
    "IS NULL": "IsNull",
    "IS NOT NULL": "NotNull",
}


def row_filter(predicate: Expression | None, fields: Sequence[Field]) -> Any:
    """Return the library's expression; its TRUE when nothing can be tested.

    Only types that both compare alike: integers, dates and texts.
    """
    from pyiceberg import expressions

    tests = [_test(condition, expressions) for condition in conditions_of(predicate, fields, _tested)]
    if not tests:
        return expressions.AlwaysTrue()
    return tests[0] if len(tests) == 1 else expressions.And(*tests)


def _tested(kind: DataType, operator: str) -> bool:
    return operator in _CLASSES and (is_integer(kind) or kind in (DATE, STRING))


def _test(condition: Condition, expressions: Any) -> Any:
    test = getattr(expressions, _CLASSES[condition.operator])
    name = condition.column.name
    if condition.operator == "IN":
        return test(name, list(condition.values))
    return test(name, *condition.values)
