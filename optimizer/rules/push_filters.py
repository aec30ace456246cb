"""Filters go as far upstream as they can without changing the answer.

In a plan for the bounded backend no watermark is made, so filters may go below where one would be.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.connectors.registry import connector_of
from penstock.optimizer.properties.column_substitution import inline
from penstock.optimizer.properties.expression_properties import is_deterministic, is_movable, may_raise
from penstock.planner.expressions.nodes import Expression, conjunction, conjuncts
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sort import Sort
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import Windowing

Parts = tuple[Expression, ...]


def push_filters(plan: LogicalPlan) -> LogicalPlan:
    """Move each ANDed part of a filter or join condition below projections, windows, unions, aggregates, join
    sides, and into scans.

    A filter stays above WatermarkAssign: rows it drops still move event time. A part that may raise only
    moves where it meets the same rows.
    """
    return plan.transform(lambda node: _rewrite(node, past_watermarks=False))


def push_past_watermarks(plan: LogicalPlan) -> LogicalPlan:
    """Move filters as ``push_filters`` does and below WatermarkAssign too: for plans that no watermark
    runs through.
    """
    return plan.transform(lambda node: _rewrite(node, past_watermarks=True))


def _rewrite(node: LogicalPlan, past_watermarks: bool) -> LogicalPlan:
    match node:
        case Filter(input=inner, predicate=predicate):
            placed = place(inner, conjuncts(predicate), past_watermarks)
            return node if placed == node else placed
        case BinaryJoin(residual=residual) if residual is not None:
            return _push_condition(node, conjuncts(residual), past_watermarks)
    return node


def place(node: LogicalPlan, parts: Parts, past_watermarks: bool = False) -> LogicalPlan:
    """Return the rows of a node for which every part is TRUE, each part tested as far upstream as it may
    be.
    """
    if not parts:
        return node
    match node:
        case Filter(input=inner, predicate=predicate):
            return place(inner, conjuncts(predicate) + _rest(parts, conjuncts(predicate)), past_watermarks)
        case Scan():
            return _into_scan(node, parts)
        case WatermarkAssign() if not past_watermarks:
            return Filter(node, conjunction(parts))
    stay, below = _route(node, parts)
    inputs = tuple(
        place(child, down, past_watermarks) for child, down in zip(node.inputs, below, strict=True)
    )
    rebuilt = node.with_inputs(inputs) if any(below) else node
    return Filter(rebuilt, conjunction(stay)) if stay else rebuilt


def _route(node: LogicalPlan, parts: Parts) -> tuple[Parts, tuple[Parts, ...]]:
    """Return the parts that must stay above a node, and for each input the parts (over its columns) that
    may go below.
    """
    match node:
        case Project():
            return _through_project(node, parts)
        case WindowTable():
            down = _in_turn(parts, _window_free(node))
            return _rest(parts, down), (down,)
        case Unnest(keep=keep):
            down = tuple(
                part
                for part in parts
                if part.columns() and _reads_only(part, set(range(len(keep)))) and is_movable(part)
            )
            return _rest(parts, down), (tuple(part.remap(dict(enumerate(keep))) for part in down),)
        case WatermarkAssign() | Sort() | Emit():
            return (), (parts,)
        case ProcessingTime(input=inner, time_column=time):
            down = _in_turn(parts, set(range(len(inner.schema))) - {time})
            return _rest(parts, down), (down,)
        case Union(branches=branches):
            down = tuple(part for part in parts if is_movable(part))
            return _rest(parts, down), (down,) * len(branches)
        case Aggregate() | WindowAggregate():
            down = tuple(
                part
                for part in parts
                if part.columns() and _reads_only(part, _whole_groups(node)) and is_movable(part)
            )
            return _rest(parts, down), (tuple(part.remap(dict(enumerate(node.keys))) for part in down),)
        case Over() | PartitionTop():
            down = tuple(
                part
                for part in parts
                if part.columns() and _reads_only(part, set(node.partition)) and is_movable(part)
            )
            return _rest(parts, down), (down,)
        case MatchRecognize(partition=keys, all_rows=all_rows):
            places = {key: key for key in keys} if all_rows else dict(enumerate(keys))
            down = tuple(
                part
                for part in parts
                if part.columns() and _reads_only(part, set(places)) and is_movable(part)
            )
            return _rest(parts, down), (tuple(part.remap(places) for part in down),)
        case BinaryJoin():
            return _through_join(node, parts)
        case TemporalJoin(left=left):
            down = tuple(
                p
                for p in parts
                if p.columns() and _reads_only(p, set(range(len(left.schema)))) and is_movable(p)
            )
            return _rest(parts, down), (down, ())
        case LookupJoin(left=left):
            down = tuple(
                p
                for p in parts
                if p.columns() and _reads_only(p, set(range(len(left.schema)))) and is_movable(p)
            )
            return _rest(parts, down), (down,)
    return parts, ((),) * len(node.inputs)


def _rest(parts: Parts, taken: Parts) -> Parts:
    return tuple(part for part in parts if part not in taken)


def _reads_only(part: Expression, columns: set[int]) -> bool:
    return is_deterministic(part) and part.columns() <= columns


def _in_turn(parts: Parts, columns: set[int]) -> Parts:
    """The parts that read only these columns; one that may raise not before an earlier one that stays, for
    it may be guarded by it.
    """
    down: list[Expression] = []
    for turn, part in enumerate(parts):
        if _reads_only(part, columns) and (len(down) == turn or not may_raise(part)):
            down.append(part)
    return tuple(down)


def _window_free(node: WindowTable) -> set[int]:
    """The columns a filter may read to go below a window function: not the window's; where rows make the
    windows (SESSION) only its keys.
    """
    if node.window.merging:
        return set(node.window.partition_keys)
    return set(range(len(node.input.schema)))


def _whole_groups(node: Aggregate | WindowAggregate) -> set[int]:
    """The output columns a filter may read to go below an aggregate, because it then drops whole groups:
    the keys (SESSION: only sessions' own).
    """
    keys = set(range(len(node.keys)))
    if isinstance(node, WindowAggregate) and isinstance(node.window, Windowing) and node.window.merging:
        return {i for i in keys if node.keys[i] in node.window.partition_keys}
    return keys


def _through_project(node: Project, parts: Parts) -> tuple[Parts, tuple[Parts, ...]]:
    steady = {i for i, expression in enumerate(node.expressions) if is_deterministic(expression)}
    down = _in_turn(parts, steady)
    return _rest(parts, down), (tuple(inline(part, node.expressions) for part in down),)


# Which sides of a join a condition on one side's columns may move into: above the join (WHERE) and in it
# (ON).
_WHERE_LEFT = frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI})
_WHERE_RIGHT = frozenset({JoinKind.INNER, JoinKind.RIGHT})
_ON_LEFT = frozenset({JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI})
_ON_RIGHT = frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI})


def _through_join(node: BinaryJoin, parts: Parts) -> tuple[Parts, tuple[Parts, ...]]:
    return _by_side(node, parts, node.kind in _WHERE_LEFT, node.kind in _WHERE_RIGHT)


def _by_side(
    node: BinaryJoin, parts: Parts, to_left: bool, to_right: bool
) -> tuple[Parts, tuple[Parts, ...]]:
    width = len(node.left.schema)
    left_side = set(range(width))
    right_side = set(range(width, width + len(node.right.schema)))
    left = tuple(p for p in parts if to_left and p.columns() and _reads_only(p, left_side) and is_movable(p))
    right = tuple(
        p for p in parts if to_right and p.columns() and _reads_only(p, right_side) and is_movable(p)
    )
    shifted = tuple(part.remap({i: i - width for i in right_side}) for part in right)
    return _rest(_rest(parts, left), right), (left, shifted)


def _push_condition(node: BinaryJoin, parts: Parts, past_watermarks: bool) -> LogicalPlan:
    """Move the one-sided parts of an ON condition to the side where dropping rows early loses no padded
    row.
    """
    stay, (left, right) = _by_side(node, parts, node.kind in _ON_LEFT, node.kind in _ON_RIGHT)
    if not left and not right:
        return node
    return replace(
        node,
        left=place(node.left, left, past_watermarks),
        right=place(node.right, right, past_watermarks),
        residual=conjunction(stay) if stay else None,
    )


def _into_scan(node: Scan, parts: Parts) -> LogicalPlan:
    down = (
        tuple(part for part in parts if is_movable(part)) if connector_of(node.table).pushes_filters else ()
    )
    stay = _rest(parts, down)
    if down:
        known = () if node.predicate is None else conjuncts(node.predicate)
        node = replace(node, predicate=conjunction(known + tuple(part for part in down if part not in known)))
    return Filter(node, conjunction(stay)) if stay else node


def push_filters_past_watermarks(plan: LogicalPlan) -> LogicalPlan:
    """Move filters below WatermarkAssign and on into the scan, in plans the bounded backend runs."""
    return push_past_watermarks(plan)
