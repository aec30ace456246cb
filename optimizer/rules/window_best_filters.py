"""The MAX or MIN of windows, and the join of a stream with that of its own windows: rows worse than the best
so far need neither travel nor wait for the window's end.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.types import DataType, Timestamp, is_integer
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.rules.runtime_filters import PRUNABLE
from penstock.planner.expressions.nodes import Call, Column, Expression, conjuncts
from penstock.planner.logical.aggregate import Phase, WindowAggregate
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.windows import ON_CLOSE, AttachedWindow, WindowBest, Windowing

_BEST = {"max": True, "min": False}
# Conditions under which a row joins no MAX, or no MIN, that is better than itself; and read from the right.
_REACHES = {True: "greater_equal", False: "less_equal"}
_FLIPPED = {"greater_equal": "less_equal", "less_equal": "greater_equal"}
# With more windows a row hardly ever is below all of them.
_WINDOWS_MOST = 8


def window_best_filters(plan: LogicalPlan) -> LogicalPlan:
    """Have rows dropped early that cannot be the MAX or MIN of their window, before that aggregate and before
    a join with it.

    The rows of one side are read by the windows of the other side, all of them, under the same watermark. So
    the final MAX of a window is never less than that of the rows which a subtask has seen. Left as it is
    where windows correct their results, and where a row without a match is emitted.
    """
    facts = PlanFacts()

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        if isinstance(node, WindowAggregate):
            best = _attached_best(node, facts)
        elif isinstance(node, IntervalJoin) and not facts.bounded_ports(node):
            ports = [port for port in (0, 1) if node.kind in PRUNABLE[port]]
            found = (make(node, port, facts) for make in (_best, _best_of_attached) for port in ports)
            best = next((one for one in found if one is not None), None)
        else:
            return node
        return node if best is None else replace(node, best=best)

    return plan.transform(rewrite)


def _attached_best(aggregate: WindowAggregate, facts: PlanFacts) -> WindowBest | None:
    """Return the filter for the rows of an aggregate that is nothing but the MAX or MIN of windows which
    windows below have emitted.
    """
    window = aggregate.window
    if aggregate.phase is not Phase.SINGLE or aggregate.emission != ON_CLOSE or aggregate.keys:
        return None
    if not isinstance(window, AttachedWindow) or len(aggregate.aggregates) != 1:
        return None
    call = aggregate.aggregates[0]
    value = call.args[0] if call.args else None
    if call.function not in _BEST or call.filter is not None or not isinstance(value, Column):
        return None
    below, columns = _columns_below(aggregate.input, filters=True)
    own = _emitted_once(below)
    if own is None or not facts.insert_only(aggregate.input) or not _comparable(value.type):
        return None
    assert isinstance(below, WindowAggregate)
    bounds = (columns[window.start_column], columns[window.end_column])
    if bounds != _bounds(below):
        return None
    return WindowBest.of_attached(0, value.index, window.end_column, own, _BEST[call.function])


def _best_of_attached(join: IntervalJoin, port: int, facts: PlanFacts) -> WindowBest | None:
    """Return the filter for the rows of a port that windows have emitted, if the other side is the MAX or MIN
    of all rows of the same windows, and a row must reach it.
    """
    rows, aggregated = join.inputs[port], join.inputs[1 - port]
    aggregate, places = _columns_below(aggregated, filters=True)
    if not isinstance(aggregate, WindowAggregate) or aggregate.best is None or not aggregate.best.attached:
        return None
    # a filter below the aggregate would hide rows from it that the join sees
    source, taken = _columns_below(aggregate.input, filters=False)
    below, columns = _columns_below(rows, filters=True)
    if below != source or not isinstance(source, WindowAggregate) or not facts.insert_only(rows):
        return None
    own, best = _emitted_once(source), aggregate.best
    pairs = [pair if port == 0 else pair[::-1] for pair in _pairs(join)]
    ends = [mine for mine, theirs in pairs if places[theirs] == 2 and columns[mine] == _bounds(source)[1]]
    # the aggregate's one result is its first column, its window's bounds follow
    values = [mine for mine, theirs in pairs + _reaching(join, port, best.greatest) if places[theirs] == 0]
    value = next((mine for mine in values if columns[mine] == taken[best.value_column]), None)
    if own is None or not ends or value is None or columns[value] is None:
        return None
    return WindowBest.of_attached(port, value, ends[0], own, best.greatest)


def _pairs(join: IntervalJoin) -> list[tuple[int, int]]:
    return list(zip(join.left_keys, join.right_keys, strict=True))


def _reaching(join: IntervalJoin, port: int, greatest: bool) -> list[tuple[int, int]]:
    """Return the pairs of columns, of a port and of the other side, where a match must be at least as great
    as the other side's value, or as small for a MIN.
    """
    width, found = len(join.left.schema), []
    for part in () if join.residual is None else conjuncts(join.residual):
        left, function, right = _comparison(part)
        if left is None or right is None:
            continue
        # columns of the right side are behind those of the left one
        if (left >= width) == (right >= width):
            continue
        if (left < width) != (port == 0):
            left, right, function = right, left, _FLIPPED.get(function, function)
        if function == _REACHES[greatest]:
            found.append((left - width if port else left, right if port else right - width))
    return found


def _comparison(part: Expression) -> tuple[int | None, str, int | None]:
    """Return the columns that a condition compares, and how; None where it compares something else."""
    if not isinstance(part, Call) or len(part.args) != 2:
        return None, "", None
    left, right = (arg.index if isinstance(arg, Column) else None for arg in part.args)
    return left, part.function, right


def _emitted_once(node: LogicalPlan) -> Windowing | None:
    """Return the windows of an aggregate that emits each of them once, when it ends; None for all else."""
    if not isinstance(node, WindowAggregate) or not isinstance(node.window, Windowing):
        return None
    whole = node.phase is not Phase.LOCAL and node.emission == ON_CLOSE and not node.window.merging
    return node.window if whole else None


def _bounds(aggregate: WindowAggregate) -> tuple[int, int]:
    """Return the positions of the bounds of an aggregate's windows."""
    start = len(aggregate.keys) + len(aggregate.aggregates)
    return start, start + 1


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
