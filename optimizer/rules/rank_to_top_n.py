"""A filter on a rank keeps the first rows of each partition, so only these need to be kept up to date."""

from __future__ import annotations

from penstock.planner.expressions.nodes import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
)
from penstock.planner.logical.over import RANKS, Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter

_MIRRORED = {"greater": "less", "greater_equal": "less_equal", "equal": "equal"}


def first_of_partitions(plan: LogicalPlan) -> LogicalPlan:
    """Turn a filter that bounds the one rank of an Over from above into a PartitionTop.

    An Over in time order is not changed: its ranks are final when they are emitted, so the filter above it is
    enough.
    """
    return plan.transform(_rewrite)


def _rewrite(node: LogicalPlan) -> LogicalPlan:
    match node:
        # SELECT .. (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n ..) WHERE n <= 3
        case Filter(input=Over() as over, predicate=predicate) if _ranks_alone(over):
            return _limit_rank(over, conjuncts(predicate)) or node
    return node


def _ranks_alone(over: Over) -> bool:
    return not over.timely and len(over.calls) == 1 and over.calls[0].function in RANKS


def _limit_rank(over: Over, parts: tuple[Expression, ...]) -> LogicalPlan | None:
    rank = len(over.input.schema)
    bounds = {part: bound for part in parts if (bound := _bound(part, rank)) is not None}
    # n <= 5 AND n < 4: the tightest bound.
    limit = min(bounds.values(), default=0)
    # No bound from above, or one that no rank meets.
    if limit < 1:
        return None
    top = PartitionTop(
        over.input,
        over.partition,
        over.order,
        over.calls[0].function,
        limit,
        over.names[0],
        over.window,
        over.ttl_ms,
        subtasks=over.subtasks,
    )
    # n = 3 is a Top 3 and still a filter; n = 1 is the Top 1 by itself.
    rest = tuple(part for part in parts if part not in bounds or (_is_equal(part) and bounds[part] > 1))
    return Filter(top, conjunction(rest)) if rest else top


def _is_equal(part: Expression) -> bool:
    return isinstance(part, Call) and part.function == "equal"


def _bound(part: Expression, rank: int) -> int | None:
    """Return n for a comparison that holds for no rank above n."""
    if not isinstance(part, Call) or len(part.args) != 2:
        return None
    left, right = part.args
    # 3 >= n is n <= 3.
    if isinstance(left, Literal):
        function, left, right = _MIRRORED.get(part.function, ""), right, left
    else:
        function = part.function
    column = left.arg if isinstance(left, Cast) else left
    value = right.value if isinstance(right, Literal) else None
    if (
        not isinstance(column, Column)
        or column.index != rank
        or not isinstance(value, int)
        # bool is a subclass of int.
        or isinstance(value, bool)
    ):
        return None
    return {"less": value - 1, "less_equal": value, "equal": value}.get(function)
