"""GROUP BY over windows of n rows emits each window once, at its n-th row, and then forgets it."""

from __future__ import annotations

from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.nodes import Call, Cast, Column, Expression, Literal, inline
from penstock.planner.logical.aggregate import Aggregate, CountWindowAggregate, Phase
from penstock.planner.logical.over import Frame, FrameUnit, Over
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project, column_of


def fuse_count_windows(plan: LogicalPlan) -> LogicalPlan:
    """Turn an aggregate by a partition and ``(n - 1) DIV size``, n being the number of a row in that
    partition, into a CountWindowAggregate.

    The numbers are those of an Over in time over rows that are only inserted: each row has one and keeps it.
    The rule does not apply where a filter is between the two: a window's last row may be missing. Nor does it
    where GROUP BY names other columns: a group then has a part of a window.
    """
    facts = PlanFacts()
    return plan.transform(lambda node: _rewrite(node, facts))


def _rewrite(node: LogicalPlan, facts: PlanFacts) -> LogicalPlan:
    if not isinstance(node, Aggregate) or node.phase is not Phase.SINGLE:
        return node
    # SELECT k, (n - 1) DIV 10 FROM (SELECT *, COUNT(*) OVER (PARTITION BY k ..) AS n ..): keys over the Over.
    over, keys = _origins(node)
    if over is None or not _numbers_rows(over) or not facts.insert_only(over):
        return node
    # The first call's column is behind those of the Over's input.
    number = len(over.input.schema)
    sizes = [size for key in keys if (size := _window_size(key, number)) is not None]
    columns = {key.index for key in keys if isinstance(key, Column)}
    # Exactly the partition and one window number; any other key would split a window.
    if len(sizes) != 1 or columns != set(over.partition) or len(columns) + 1 != len(set(keys)):
        return node
    return CountWindowAggregate(
        node.input,
        node.keys,
        node.aggregates,
        node.names,
        sizes[0],
        ttl_ms=node.ttl_ms,
        subtasks=node.subtasks,
    )


def _origins(node: Aggregate) -> tuple[Over | None, list[Expression]]:
    """Return the Over below an aggregate and its projections, and the keys as expressions over the Over."""
    below = node.input
    keys: list[Expression] = [column_of(below, key) for key in node.keys]
    # A projection is inlined; any other node, such as a Filter, ends the search.
    while isinstance(below, Project):
        keys = [inline(key, below.expressions) for key in keys]
        below = below.input
    return (below if isinstance(below, Over) else None), keys


def _numbers_rows(over: Over) -> bool:
    """Return whether the first call of an Over is the number of a row in its partition, from 1, final when
    it is emitted.
    """
    if not over.timely or not over.calls:
        return False
    call, frame = over.calls[0], over.frame
    counts = call.function == "count" and not call.args and call.filter is None and not call.distinct
    # ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW.
    return counts and frame == Frame(FrameUnit.ROWS, None, 0)


def _window_size(key: Expression, number: int) -> int | None:
    """Return n of ``(number - 1) DIV n``, or ``None`` where the expression is another."""
    match key:
        case Call(function="div", args=(Call(function="subtract", args=(counted, one)), size)):
            first, rows = _constant(one), _constant(size)
            # Casts between integer types, which the common type of the subtraction adds.
            counted = counted.arg if isinstance(counted, Cast) else counted
            if isinstance(counted, Column) and counted.index == number and first == 1 and rows and rows > 0:
                return rows
    return None


def _constant(expression: Expression) -> int | None:
    value = expression.arg if isinstance(expression, Cast) else expression
    return value.value if isinstance(value, Literal) and isinstance(value.value, int) else None
