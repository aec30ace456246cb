"""The rows that window functions and ranks read: the frame of a row, and the rows ranked above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BOOLEAN, INT, Date, DayTimeInterval, Timestamp, TimestampLtz
from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    SortKey,
    conjunction,
)
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.over import RANKS, RUNNING, FrameUnit, Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, column_of
from penstock.planner.logical.sort import TopN
from penstock.planner.provenance.restrictions import (
    Restriction,
    Restrictions,
    moved,
    restrict,
    rows_like,
    widened,
)

_ROW_NUMBER = AggregateCall("row_number", (), INT, False)
_RANK = AggregateCall("rank", (), INT, False)


def rows_of_frames(node: Over, restrictions: Restrictions) -> LogicalPlan:
    """Return the rows of an OVER's input that the window functions of some of its rows read, those rows too.
    The columns are those of the input, then more.
    """
    numbered = replace(
        node, calls=(*node.calls, _ROW_NUMBER, _RANK), names=(*node.names, "row_number", "rank")
    )
    if not node.order:
        # no order: each function reads the whole partition
        numbered = node
    rows = restrict(numbered, widened(restrictions, node, numbered))
    width = len(numbered.schema)
    partition = rows_like(((column_of(numbered, key), key) for key in node.partition), width, rows)
    if not node.order:
        return restrict(numbered, (partition,))
    bounds = [_within(node, call, width) for call in node.calls]
    every = Call(BOOLEAN, True, function="or", args=tuple(bounds)) if len(bounds) > 1 else bounds[0]
    return restrict(numbered, (Restriction(conjunction((partition.condition, every)), rows),))


def _within(node: Over, call: AggregateCall, width: int) -> Expression:
    """Return whether a row is read by a function of another row, over their columns side by side. The last
    two columns of each are its row number and its rank.
    """
    number, rank = (Column(INT, False, index=width - 2 + i, name="n") for i in (0, 1))
    of_other = [replace(column, index=column.index + width) for column in (number, rank)]
    if call.function in RANKS:
        return _compare("less_equal", number, of_other[0])
    if call.function in ("lag", "lead"):
        # the rows between too: without them another row would be that far away
        distance = int(getattr(call.args[1], "value", 1))
        back, ahead = (-distance, 0) if call.function == "lag" else (0, distance)
        return _between(number, of_other[0], back, ahead)
    frame = node.frame
    if frame.unit is FrameUnit.ROWS:
        # an empty frame, such as 3 FOLLOWING of the last row: the row itself always counts
        start = None if frame.start is None else min(frame.start, 0)
        end = None if frame.end is None else max(frame.end, 0)
        return _between(number, of_other[0], start, end)
    if frame.has_distance:
        return _in_range(node, width)
    # peers are at distance 0: ranks of peers are equal
    return _between(rank, of_other[1], frame.start, frame.end)


def _in_range(node: Over, width: int) -> Expression:
    """Return whether the order key of a row is within the frame of another; NULL is with NULL only."""
    key = node.order[0]
    other = key.expression.transform(
        lambda part: replace(part, index=part.index + width) if isinstance(part, Column) else part
    )
    start, end = node.frame.start, node.frame.end
    if key.descending:
        start, end = (None if end is None else -end), (None if start is None else -start)
    parts = []
    if start is not None:
        parts.append(_compare("greater_equal", key.expression, _shifted(other, min(start, 0))))
    if end is not None:
        parts.append(_compare("less_equal", key.expression, _shifted(other, max(end, 0))))
    both = (Call(BOOLEAN, False, function="is_null", args=(side,)) for side in (key.expression, other))
    return Call(BOOLEAN, True, function="or", args=(conjunction(tuple(both)), conjunction(tuple(parts))))


def _shifted(value: Expression, distance: int) -> Expression:
    """Return an order key plus a distance: microseconds of a time, else a number."""
    kind = value.type
    if isinstance(kind, Timestamp | TimestampLtz):
        step: Expression = Literal(DayTimeInterval(), False, value=timedelta(microseconds=distance))
    elif isinstance(kind, Date):
        raise PenstockError(
            "WHY-7102",
            "EXPLAIN WHY does not know the frame of a RANGE over days",
            hint="order by CAST(day AS TIMESTAMP(3))",
            sqlstate="0A000",
        )
    else:
        step = Literal(kind, False, value=distance)
    return Call(kind, value.nullable, function="add", args=(value, step))


def rows_up_to_rank(
    node: PartitionTop | TopN,
    partition: Sequence[int],
    order: Sequence[SortKey],
    call: AggregateCall,
    restrictions: Restrictions,
) -> LogicalPlan:
    """Return the rows of a Top-N's input that are ranked no lower than some of its rows. The columns are
    those of the input, then the rank.
    """
    source = node.input
    ranked = Over(source, tuple(partition), tuple(order), RUNNING, (call,), ("rank",))
    rank = column_of(ranked, len(source.schema))
    last = node.limit + (node.offset if isinstance(node, TopN) else 0)
    first = Filter(ranked, _compare("less_equal", rank, Literal(INT, False, value=last)))
    if isinstance(node, TopN) and node.offset:
        first = Filter(first, _compare("greater", rank, Literal(INT, False, value=node.offset)))
    # the node's columns: its input's, and its rank where it shows one
    columns = tuple(column_of(ranked, i) for i in range(len(node.schema)))
    rows = restrict(first, moved(restrictions, columns, len(ranked.schema)))
    width = len(ranked.schema)
    like = rows_like(((column_of(ranked, key), key) for key in partition), width, rows)
    above = _compare("less_equal", rank, replace(rank, index=width + rank.index))
    return Join(ranked, rows, JoinKind.SEMI, (), (), conjunction((like.condition, above)))


def _between(value: Column, other: Column, start: int | None, end: int | None) -> Expression:
    parts = []
    if start is not None:
        parts.append(_compare("greater_equal", value, _plus(other, start)))
    if end is not None:
        parts.append(_compare("less_equal", value, _plus(other, end)))
    return conjunction(tuple(parts))


def _plus(column: Column, distance: int) -> Expression:
    if not distance:
        return column
    step = Literal(column.type, False, value=distance)
    return Call(column.type, column.nullable, function="add", args=(column, step))


def _compare(function: str, left: Expression, right: Expression) -> Expression:
    nullable = left.nullable or right.nullable
    return Call(BOOLEAN, nullable, function=function, args=(left, right))
