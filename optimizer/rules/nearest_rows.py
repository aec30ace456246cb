"""The first row of each outer value in a join becomes a join with the nearest row, which stores no pairs."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    DataType,
    Decimal,
    Time,
    Timestamp,
    TimestampLtz,
)
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.nodes import Call, Column, Expression, inline
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.joins.nearest_join import NearestJoin
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project

# By comparison of left and right: is the greatest right value the nearest, and do equal ones match?
_COMPARISONS = {
    "greater": (True, True),
    "greater_equal": (True, False),
    "less": (False, True),
    "less_equal": (False, False),
}
_NUMBERS = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE)
_WORD_DIGITS = 18
_MIRRORED = {
    "greater": "less",
    "greater_equal": "less_equal",
    "less": "greater",
    "less_equal": "greater_equal",
}


def nearest_rows(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``row_number() = 1 per l.k, l.v by r.v DESC`` over ``l JOIN r ON l.k = r.k AND r.v <= l.v`` into a
    NearestJoin.

    ASOF JOIN and a correlated ``ORDER BY .. LIMIT 1`` are bound to it. The rule applies where l has one row
    of each partition, and values are numbers of up to 18 digits, dates or times.
    """
    facts = PlanFacts()
    return plan.transform(lambda node: _rewrite(node, facts, _has_words))


def nearest_rows_on_backends(plan: LogicalPlan) -> LogicalPlan:
    """As ``nearest_rows``, for a plan that a bounded backend runs: values may be texts and any decimals, too.

    A Top-1 over pairs is quadratic for each key there as well.
    """
    facts = PlanFacts()
    return plan.transform(lambda node: _rewrite(node, facts, _is_sorted_by_backends))


def _rewrite(node: LogicalPlan, facts: PlanFacts, fits: Callable[[DataType], bool]) -> LogicalPlan:
    if not isinstance(node, PartitionTop) or node.rank != "row_number" or node.limit != 1:
        return node
    if node.window is not None or node.ttl_ms or node.rank_name is not None:
        return node
    below = node.input
    shown = _columns(below) if isinstance(below, Project) else None
    join = below.input if isinstance(below, Project) else below
    if not isinstance(join, Join) or join.kind is not JoinKind.INNER or join.ttl_ms or not join.left_keys:
        return node
    width = len(join.left.schema)
    # The partition and the order as columns of left ++ right.
    positions = shown if isinstance(below, Project) else list(range(len(below.schema)))
    if positions is None or (compared := _compared(join.residual, width)) is None:
        return node
    left_value, right_value, latest, strict = compared
    order: list[tuple[int, bool, bool]] = []
    for key in node.order:
        if not isinstance(key.expression, Column):
            return node
        order.append((positions[key.expression.index], key.descending, key.nulls_first))
    # A right key of the partition is the left key that it equals.
    lefts = {width + right: left for left, right in zip(join.left_keys, join.right_keys, strict=True)}
    partition = {lefts.get(positions[key], positions[key]) for key in node.partition}
    if not order or order[0][:2] != (width + right_value, latest) or any(key >= width for key in partition):
        return node
    if any(column < width for column, *_ in order):
        return node
    # One left row of each partition, told apart by the keys and the value.
    unique = frozenset({*join.left_keys, left_value})
    if not partition >= unique or not any(key <= unique for key in facts.unique_keys(join.left)):
        return node
    kind = join.left.schema[left_value].type
    if kind != join.right.schema[right_value].type or not fits(kind):
        return node
    # Behind the order all columns break ties, in their order.
    ties = dict.fromkeys(column - width for column in positions if column >= width)
    nearest = NearestJoin(
        join.left,
        join.right,
        join.kind,
        join.left_keys,
        join.right_keys,
        values=(left_value, right_value),
        latest=latest,
        strict=strict,
        order=tuple((column - width, down, nulls_first) for column, down, nulls_first in order[1:]),
        ties=tuple(ties),
        subtasks=join.subtasks or node.subtasks,
    )
    return below.with_inputs((nearest,)) if isinstance(below, Project) else nearest


def _columns(project: Project) -> list[int] | None:
    """Return the columns that a projection shows; ``None`` where it computes any."""
    found = [
        inline(Column(f.type, f.nullable, index=i), project.expressions) for i, f in enumerate(project.schema)
    ]
    return (
        [one.index for one in found if isinstance(one, Column)]
        if all(isinstance(one, Column) for one in found)
        else None
    )


def _compared(residual: Expression | None, width: int) -> tuple[int, int, bool, bool] | None:
    """Return the values compared, whether the greatest right one is nearest, and whether equal ones match."""
    if not isinstance(residual, Call) or residual.function not in _COMPARISONS:
        return None
    first, second = residual.args
    if not isinstance(first, Column) or not isinstance(second, Column):
        return None
    if first.index < width <= second.index:
        return first.index, second.index - width, *_COMPARISONS[residual.function]
    if second.index < width <= first.index:
        return second.index, first.index - width, *_COMPARISONS[_MIRRORED[residual.function]]
    return None


def _has_words(kind: DataType) -> bool:
    """Return whether values are stored as integers of 64 bits that sort as they do."""
    if isinstance(kind, Decimal):
        return kind.precision <= _WORD_DIGITS
    return kind in _NUMBERS or isinstance(kind, Time | Timestamp | TimestampLtz)


def _is_sorted_by_backends(kind: DataType) -> bool:
    return kind in (STRING, BINARY) or isinstance(kind, Decimal) or _has_words(kind)
