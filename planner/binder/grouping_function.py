"""GROUPING(..): which keys of a grouping set are left out, as a node that lives while the select list is
bound.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BIGINT
from penstock.planner.expressions.nodes import Call, Expression, Literal

GROUPING = frozenset({"grouping", "grouping_id"})


@dataclass(frozen=True)
class GroupingMark(Expression):
    """One bit per key, the last key's the lowest: 1 where the row's grouping set leaves the key out. No
    keys: all of GROUP BY.
    """

    keys: tuple[Expression, ...] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.keys

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, keys=children)

    def __str__(self) -> str:
        return f"grouping({', '.join(map(str, self.keys))})"


def bits(marks: list[Expression]) -> Expression:
    """Return a number whose bits are the marks, the last one's the lowest."""
    total: Expression = Literal(BIGINT, False, value=0)
    for place, mark in enumerate(marks):
        total = mark if place == 0 else Call(BIGINT, False, function="add", args=(_doubled(total), mark))
    return total


def _doubled(number: Expression) -> Expression:
    return Call(BIGINT, False, function="multiply", args=(number, Literal(BIGINT, False, value=2)))
