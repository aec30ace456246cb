"""The join of a stream with the MAX or MIN of its own windows: rows worse than the best so far need not wait
for the window's end.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.types import DataType, Timestamp, is_integer
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.rules.runtime_filters import PRUNABLE
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.aggregate import Phase, WindowAggregate
from penstock.planner.logical.joins.interval_join import IntervalJoin, WindowBest
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.windows import ON_CLOSE, Windowing

_BEST = {"max": True, "min": False}
# With more windows a row hardly ever is below all of them.
_WINDOWS_MOST = 8


def window_best_filters(plan: LogicalPlan) -> LogicalPlan:
    """Have rows of a join dropped early that cannot be the MAX or MIN of a window they may join.

    The rows of one side are read by the windows of the other side, all of them, under the same watermark. So
    the final MAX of a window is never less than that of the rows which a subtask has seen. Left as it is
    where windows correct their results, and where a row without a match is emitted.
    """
    facts = PlanFacts()

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, IntervalJoin) or facts.bounded_ports(node):
            return node
        found = (_best(node, port, facts) for port in (0, 1) if node.kind in PRUNABLE[port])
        best = next((one for one in found if one is not None), None)
        return node if best is None else replace(node, best=best)

    return plan.transform(rewrite)


def _best(join: IntervalJoin, port: int, facts: PlanFacts) -> WindowBest | None:
    """Return the filter for the rows of a port, if the other side is the MAX or MIN of their windows."""
    rows, aggregated = join.inputs[port], join.inputs[1 - port]
    mine, theirs = join.time.sides[port], join.time.sides[1 - port]
    # from the join's columns down to those of the aggregate
    aggregate, places = _columns_below(aggregated, filters=True)
    if not isinstance(aggregate, WindowAggregate) or not facts.insert_only(rows):
        return None
    pairs = zip(join.left_keys, join.right_keys, strict=True)
    keys = [pair if port == 0 else pair[::-1] for pair in pairs]
    width = len(aggregate.keys) + len(aggregate.aggregates)
    # the deadlines are those of the windows' ends
    if places[theirs.time_column] != width + 1:
        return None
    source, columns = _columns_below(rows, filters=True)
    for value, result in keys:
        part = _aggregated(aggregate, places[result])
        if part is None or columns[value] is None or not _comparable(rows.schema[value].type):
            continue
        greatest, below, argument, window = part
        before = [d.offset_us for d in theirs.deadlines if d.column == theirs.time_column]
        after = [d.offset_us for d in mine.deadlines if d.column == mine.time_column]
        if (
            source == below
            and _is_read_once(source)
            and argument == columns[value]
            and window.time_column == columns[mine.time_column]
            and before
            and after
            and (min(before) + min(after)) // window.size_us < _WINDOWS_MOST
        ):
            return WindowBest(
                port,
                value,
                mine.time_column,
                window.size_us,
                window.offset_us,
                min(before),
                min(after),
                greatest,
            )
    return None


def _columns_below(node: LogicalPlan, *, filters: bool) -> tuple[LogicalPlan, tuple[int | None, ...]]:
    """Return the first node below projections, and for each column of the upper node its column there. A
    computed column has none.

    ``filters``: whether filters are passed too.
    """
    columns: tuple[int | None, ...] = tuple(range(len(node.schema)))
    while isinstance(node, Project) or (filters and isinstance(node, Filter)):
        if isinstance(node, Project):
            bare = [e.index if isinstance(e, Column) else None for e in node.expressions]
            columns = tuple(None if column is None else bare[column] for column in columns)
        node = node.input
    return node, columns


def _aggregated(
    aggregate: WindowAggregate, column: int | None
) -> tuple[bool, LogicalPlan, int, Windowing] | None:
    """Return of a MAX or MIN of TUMBLE windows whether it is MAX, the rows below the aggregate, the column it
    reads of them, and the windows over them.
    """
    if aggregate.phase is Phase.LOCAL or aggregate.emission != ON_CLOSE or aggregate.keys:
        return None
    if column is None or not column < len(aggregate.aggregates):
        return None
    call = aggregate.aggregates[column]
    # in two phases, the best of the best
    if aggregate.phase is Phase.GLOBAL:
        local = aggregate.input
        partial = call.args[0] if call.args else None
        if not isinstance(local, WindowAggregate) or not isinstance(partial, Column):
            return None
        aggregate, call = local, local.aggregates[partial.index]
    window = aggregate.window
    # each row is in one window, which is known before the others come
    if not isinstance(window, Windowing) or window.merging or window.overlapping or window.sliced:
        return None
    if call.function not in _BEST or call.filter is not None or not isinstance(call.args[0], Column):
        return None
    # a filter would hide rows from the windows that the join sees
    below, columns = _columns_below(aggregate.input, filters=False)
    argument, time = columns[call.args[0].index], columns[window.time_column]
    if argument is None or time is None:
        return None
    return _BEST[call.function], below, argument, replace(window, time_column=time)


def _is_read_once(node: LogicalPlan) -> bool:
    """Whether equal plans are one reading of a table up to its watermark, so that both branches get the same
    rows with the same lateness.
    """
    if not isinstance(node, WatermarkAssign):
        return False
    node = node.input
    while isinstance(node, Project | Filter):
        node = node.input
    return isinstance(node, Scan)


def _comparable(kind: DataType) -> bool:
    return is_integer(kind) or isinstance(kind, Timestamp)
