"""Columns nobody reads are neither decoded, computed, sent nor kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.catalog.schema import Schema
from penstock.catalog.types import Array, Binary, DataType, Map, Row, String
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression
from penstock.planner.logical.aggregate import Aggregate, Phase, WindowAggregate
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.joins.interval_join import IntervalJoin, JoinTime
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, select_columns
from penstock.planner.logical.scan import BoundedInput, Scan, Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.sort import Limit, Sort
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.window_table import LateMark, WindowTable
from penstock.planner.logical.windows import AttachedWindow, Windowing

Needed = frozenset[int]
Pruned = tuple[LogicalPlan, dict[int, int]]  # the node, and where each needed column went


def prune_columns(plan: LogicalPlan) -> LogicalPlan:
    """Carry what each node needs of its inputs down to the scans, which read only that."""
    if isinstance(plan, StatementSet | Sink):
        return plan.with_inputs(tuple(prune_columns(child) for child in plan.inputs))
    return _in_order(plan, list(range(len(plan.schema))), plan.schema.names)


def _in_order(node: LogicalPlan, columns: list[int], names: list[str] | None = None) -> LogicalPlan:
    """Return exactly these columns of a node, in this order."""
    pruned, positions = _prune(node, frozenset(columns))
    return select_columns(pruned, [positions[i] for i in columns], names)


def _narrow(node: LogicalPlan, needed: Iterable[int]) -> Pruned:
    """Return a node that gives the needed columns and no other: what goes over an edge or into state
    carries nothing along.
    """
    columns = sorted(needed) or [_cheapest(node.schema)]
    return _in_order(node, columns), {old: new for new, old in enumerate(columns)}


def _cheapest(schema: Schema) -> int:
    """The column to keep where only the number of rows matters."""
    return min(range(len(schema)), key=lambda i: (_weight(schema[i].type), i))


def _weight(kind: DataType) -> int:
    return 2 if isinstance(kind, Array | Map | Row) else 1 if isinstance(kind, String | Binary) else 0


def _reads(expressions: Iterable[Expression | None]) -> Needed:
    return frozenset().union(*(e.columns() for e in expressions if e is not None))


def _prune(node: LogicalPlan, needed: Needed) -> Pruned:
    match node:
        case Scan():
            return _prune_scan(node, needed)
        case Values():
            columns = sorted(needed) or ([_cheapest(node.schema)] if len(node.schema) else [])
            rows = tuple(tuple(row[i] for i in columns) for row in node.rows)
            return Values(rows, node.row_schema.select(tuple(columns))), {
                old: new for new, old in enumerate(columns)
            }
        case BoundedInput(plan=inner) if node.readers == 1:
            pruned, positions = _narrow(inner, needed)
            return BoundedInput(pruned), positions
        case Filter(input=inner, predicate=predicate):
            child, positions = _prune(inner, needed | predicate.columns())
            return Filter(child, predicate.remap(positions)), positions
        case Project():
            return _prune_project(node, needed)
        case Unnest():
            return _prune_unnest(node, needed)
        case WatermarkAssign(input=inner, time_column=time, watermark=watermark):
            child, positions = _prune(inner, needed | {time} | watermark.columns())
            return WatermarkAssign(child, positions[time], watermark.remap(positions)), positions
        case ProcessingTime(input=inner, time_column=time):
            child, positions = _prune(inner, needed | {time})
            return ProcessingTime(child, positions[time]), positions
        case LateMark(input=inner, window=window):
            width = len(inner.schema)
            child, positions = _prune(
                inner, frozenset(i for i in needed if i < width) | _reads_of_window(window)
            )
            moved = positions | {width + i: len(child.schema) + i for i in range(3)}
            return replace(node, input=child, window=_move_window(window, positions)), moved
        case WindowTable():
            return _prune_window_table(node, needed)
        case Aggregate(phase=Phase.SINGLE) | WindowAggregate(phase=Phase.SINGLE):
            return _prune_aggregate(node, needed)
        case Over():
            return _prune_over(node, needed)
        case PartitionTop():
            return _prune_partition_top(node, needed)
        case BinaryJoin():
            return _prune_join(node, needed)
        case TemporalJoin():
            return _prune_temporal_join(node, needed)
        case LookupJoin():
            return _prune_lookup_join(node, needed)
        case Union(branches=branches):
            pruned_branches = [_narrow(branch, needed) for branch in branches]
            return Union(tuple(branch for branch, _ in pruned_branches)), pruned_branches[0][1]
        case Sort(input=inner, keys=keys):
            child, positions = _prune(inner, needed | _reads(key.expression for key in keys))
            return Sort(
                child, tuple(replace(key, expression=key.expression.remap(positions)) for key in keys)
            ), positions
        case Limit(input=inner) | Emit(input=inner):
            child, positions = _prune(inner, needed)
            return replace(node, input=child), positions
    # A node that reads every column (TopN breaks ties by all of them) or whose columns are fixed.
    whole = node.with_inputs(tuple(_in_order(child, list(range(len(child.schema)))) for child in node.inputs))
    return whole, {i: i for i in range(len(whole.schema))}


def _prune_scan(node: Scan, needed: Needed) -> Pruned:
    reads = needed | _reads([node.predicate])
    keep = sorted(reads) or [_cheapest(node.schema)]
    positions = {old: new for new, old in enumerate(keep)}
    predicate = None if node.predicate is None else node.predicate.remap(positions)
    return Scan(node.table, tuple(node.columns[i] for i in keep), predicate), positions


def _prune_project(node: Project, needed: Needed) -> Pruned:
    keep = sorted(needed)
    if not keep and node.expressions:
        plain = [i for i, e in enumerate(node.expressions) if isinstance(e, Column)]
        keep = [plain[0] if plain else 0]
    child, positions = _prune(node.input, _reads(node.expressions[i] for i in keep))
    expressions = tuple(node.expressions[i].remap(positions) for i in keep)
    return Project(child, expressions, tuple(node.names[i] for i in keep)), {
        old: new for new, old in enumerate(keep)
    }


def _prune_unnest(node: Unnest, needed: Needed) -> Pruned:
    """The array itself is read, but seldom kept beside its elements."""
    width, last = len(node.keep), len(node.keep) + len(node.gives)
    kept = [i for i in range(width) if i in needed]
    given = [i for i in range(width, last) if i in needed]
    numbered = node.ordinality and last in needed
    if not kept and not given and not numbered:
        given = [width] if node.gives else []
        numbered = not node.gives and node.ordinality
    before, tested = (
        len(node.input.schema),
        frozenset[int]() if node.condition is None else node.condition.columns(),
    )
    of_input = frozenset(i for i in tested if i < before)
    child, positions = _prune(
        node.input, frozenset(node.keep[i] for i in kept) | _reads(node.call.args) | of_input
    )
    call = node.call.map(lambda arg: arg.remap(positions))
    moved = {**positions, **{i: i - before + len(child.schema) for i in tested - of_input}}
    condition = None if node.condition is None else node.condition.remap(moved)
    keep, gives = tuple(positions[node.keep[i]] for i in kept), tuple(node.gives[i - width] for i in given)
    pruned = Unnest(child, call, keep, gives, node.outer, numbered, condition)
    order = [*kept, *given, *([last] if numbered else [])]
    return pruned, {old: new for new, old in enumerate(order)}


def _prune_window_table(node: WindowTable, needed: Needed) -> Pruned:
    width = len(node.input.schema)
    child, positions = _prune(
        node.input, frozenset(i for i in needed if i < width) | _reads_of_window(node.window)
    )
    moved = dict(positions)
    moved.update({width + i: len(child.schema) + i for i in range(3)})
    return WindowTable(child, _move_window(node.window, positions)), moved


def _reads_of_window(window: Windowing) -> Needed:
    return frozenset({window.time_column, *window.partition_keys})


def _move_window(window: Windowing, positions: dict[int, int]) -> Windowing:
    keys = tuple(positions[key] for key in window.partition_keys)
    return replace(window, time_column=positions[window.time_column], partition_keys=keys)


def _prune_aggregate(node: Aggregate | WindowAggregate, needed: Needed) -> Pruned:
    """Keys make the groups and stay; aggregates nobody reads go (one stays where there are no keys, to
    stand for the row).
    """
    width = len(node.keys)
    keep = [i for i in range(len(node.aggregates)) if width + i in needed]
    if not keep and not node.keys and node.aggregates and isinstance(node, Aggregate):
        keep = [0]
    aggregates = tuple(node.aggregates[i] for i in keep)
    reads = frozenset(node.keys) | _reads(e for call in aggregates for e in (*call.args, call.filter))
    if isinstance(node, WindowAggregate):
        window = node.window
        reads |= (
            {window.start_column, window.end_column}
            if isinstance(window, AttachedWindow)
            else _reads_of_window(window)
        )
    child, positions = _narrow(node.input, reads)
    pruned = _rebuild_aggregate(node, child, positions, aggregates, tuple(node.names[i] for i in keep))
    moved = {i: i for i in range(width)} | {width + old: width + new for new, old in enumerate(keep)}
    if isinstance(node, WindowAggregate):
        moved |= {width + len(node.aggregates) + i: width + len(keep) + i for i in range(3)}
    return pruned, moved


def _rebuild_aggregate(
    node: Aggregate | WindowAggregate,
    child: LogicalPlan,
    positions: dict[int, int],
    aggregates: tuple[AggregateCall, ...],
    names: tuple[str, ...],
) -> LogicalPlan:
    keys = tuple(positions[key] for key in node.keys)
    calls = tuple(call.map(lambda expression: expression.remap(positions)) for call in aggregates)
    if isinstance(node, Aggregate):
        return Aggregate(child, keys, calls, names, ttl_ms=node.ttl_ms)
    window: Windowing | AttachedWindow
    if isinstance(node.window, AttachedWindow):
        window = AttachedWindow(positions[node.window.start_column], positions[node.window.end_column])
    else:
        window = _move_window(node.window, positions)
    return WindowAggregate(child, window, keys, calls, names, emission=node.emission)


def _prune_over(node: Over, needed: Needed) -> Pruned:
    """Calls nobody reads go, and with the last of them the node, unless it drops rows without a time."""
    width = len(node.input.schema)
    keep = [i for i in range(len(node.calls)) if width + i in needed] or ([0] if node.timely else [])
    if not keep:
        return _prune(node.input, needed)
    kept = replace(node, calls=tuple(node.calls[i] for i in keep), names=tuple(node.names[i] for i in keep))
    reads = (
        frozenset(i for i in needed if i < width)
        | frozenset(node.partition)
        | _reads(key.expression for key in node.order)
    )
    reads |= _reads(e for call in kept.calls for e in (*call.args, call.filter)) | _bounds_of(node.window)
    child, positions = _narrow(node.input, range(width) if kept.breaks_ties else reads)
    order = tuple(replace(key, expression=key.expression.remap(positions)) for key in node.order)
    calls = tuple(call.map(lambda expression: expression.remap(positions)) for call in kept.calls)
    partition, window = tuple(positions[key] for key in node.partition), _moved_window(node.window, positions)
    pruned = replace(kept, input=child, partition=partition, order=order, calls=calls, window=window)
    return pruned, positions | {width + old: len(child.schema) + new for new, old in enumerate(keep)}


def _prune_partition_top(node: PartitionTop, needed: Needed) -> Pruned:
    width = len(node.input.schema)
    reads = (
        frozenset(i for i in needed if i < width)
        | frozenset(node.partition)
        | _reads(key.expression for key in node.order)
    )
    child, positions = _narrow(
        node.input, range(width) if node.rank == "row_number" else reads | _bounds_of(node.window)
    )
    order = tuple(replace(key, expression=key.expression.remap(positions)) for key in node.order)
    partition, window = tuple(positions[key] for key in node.partition), _moved_window(node.window, positions)
    shown = node.rank_name if width in needed else None
    pruned = PartitionTop(child, partition, order, node.rank, node.limit, shown, window, node.ttl_ms)
    return pruned, positions | ({} if shown is None else {width: len(child.schema)})


def _bounds_of(window: AttachedWindow | None) -> Needed:
    return frozenset() if window is None else frozenset({window.start_column, window.end_column})


def _moved_window(window: AttachedWindow | None, positions: dict[int, int]) -> AttachedWindow | None:
    return (
        None
        if window is None
        else AttachedWindow(positions[window.start_column], positions[window.end_column])
    )


def _prune_join(node: BinaryJoin, needed: Needed) -> Pruned:
    width = len(node.left.schema)
    reads = needed | _reads([node.residual])
    of_left, of_right = (
        (side.columns() for side in node.time.sides)
        if isinstance(node, IntervalJoin)
        else (frozenset(), frozenset())
    )
    of_right = frozenset({node.build_time}) if isinstance(node, SnapshotJoin) else of_right
    left, left_positions = _narrow(node.left, {i for i in reads if i < width} | set(node.left_keys) | of_left)
    right, right_positions = _narrow(
        node.right, {i - width for i in reads if i >= width} | set(node.right_keys) | of_right
    )
    moved = left_positions | {width + old: len(left.schema) + new for old, new in right_positions.items()}
    changed: dict[str, object] = {
        "left": left,
        "right": right,
        "left_keys": tuple(left_positions[key] for key in node.left_keys),
        "right_keys": tuple(right_positions[key] for key in node.right_keys),
        "residual": None if node.residual is None else node.residual.remap(moved),
        "pruned": None,
    }
    if isinstance(node, IntervalJoin):
        changed["time"] = JoinTime(
            node.time.left.moved(left_positions), node.time.right.moved(right_positions)
        )
    if isinstance(node, SnapshotJoin):
        changed["build_time"] = right_positions[node.build_time]
    pruned = replace(node, **changed)  # type: ignore[arg-type]  # the names are fields of this join
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        moved = left_positions
    return pruned, moved


def _prune_temporal_join(node: TemporalJoin, needed: Needed) -> Pruned:
    width = len(node.left.schema)
    reads = needed | _reads([node.residual])
    left, of_left = _narrow(node.left, {i for i in reads if i < width} | {*node.left_keys, node.left_time})
    right, of_right = _narrow(
        node.right, {i - width for i in reads if i >= width} | {*node.right_keys, node.right_time, *node.ties}
    )
    moved = of_left | {width + old: len(left.schema) + new for old, new in of_right.items()}
    keys = tuple(of_left[key] for key in node.left_keys), tuple(of_right[key] for key in node.right_keys)
    residual = None if node.residual is None else node.residual.remap(moved)
    times, ties = (
        (of_left[node.left_time], of_right[node.right_time]),
        tuple(of_right[tie] for tie in node.ties),
    )
    return TemporalJoin(left, right, node.kind, *keys, *times, ties, residual), moved


def _prune_lookup_join(node: LookupJoin, needed: Needed) -> Pruned:
    width = len(node.left.schema)
    reads = needed | _reads([node.residual])
    left, of_left = _narrow(node.left, {i for i in reads if i < width} | {*node.left_keys})
    scan, of_scan = _prune_scan(
        node.scan, frozenset(i - width for i in reads if i >= width) | frozenset(node.right_keys)
    )
    assert isinstance(scan, Scan)
    moved = of_left | {width + old: len(left.schema) + new for old, new in of_scan.items()}
    residual = None if node.residual is None else node.residual.remap(moved)
    keys = tuple(of_left[key] for key in node.left_keys), tuple(of_scan[key] for key in node.right_keys)
    return LookupJoin(left, scan, node.kind, *keys, residual), moved
