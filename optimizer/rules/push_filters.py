"""Filters go as far upstream as they can without changing the answer.

In a plan for the bounded backend no watermark is made, so filters may go below where one would be.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.connectors.registry import connector_of
from penstock.planner.expressions.expression_properties import (
    is_movable,
    reads_only,
    without,
)
from penstock.planner.expressions.nodes import conjunction, conjuncts
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.plan import Conditions, LogicalPlan
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign


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
        # WHERE and HAVING.
        case Filter(input=inner, predicate=predicate):
            placed = push_parts(inner, conjuncts(predicate), past_watermarks)
            return node if placed == node else placed
        # .. ON a.k = b.k AND a.x > 3
        case BinaryJoin(residual=residual) if residual is not None:
            return _push_condition(node, conjuncts(residual), past_watermarks)
    return node


def push_parts(node: LogicalPlan, parts: Conditions, past_watermarks: bool = False) -> LogicalPlan:
    """Return the rows of a node for which every part is TRUE, each part tested as far upstream as it may
    be.
    """
    if not parts:
        return node
    match node:
        case Filter(input=inner, predicate=predicate):
            # The inner filter's parts first: they may guard those above from values that raise.
            tested = conjuncts(predicate)
            return push_parts(inner, tested + without(parts, tested), past_watermarks)
        # The source tests what it can.
        case Scan():
            return _into_scan(node, parts)
        # A dropped row would not advance the watermark.
        case WatermarkAssign() if not past_watermarks:
            return Filter(node, conjunction(parts))
    # Each node answers which parts pass to which input, over that input's columns.
    stay, below = node.pass_filters(parts)
    inputs = tuple(
        push_parts(child, down, past_watermarks) for child, down in zip(node.inputs, below, strict=True)
    )
    rebuilt = node.with_inputs(inputs) if any(below) else node
    return Filter(rebuilt, conjunction(stay)) if stay else rebuilt


# The sides of a join into which a one-sided part of its ON condition may move: those whose rows are dropped,
# not padded with NULLs, when they match nothing.
_ON = (
    frozenset({JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI}),
    frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}),
)


def _push_condition(node: BinaryJoin, parts: Conditions, past_watermarks: bool) -> LogicalPlan:
    """Move the one-sided parts of an ON condition to the side where dropping rows early loses no padded
    row.
    """
    stay, inputs = parts, []
    for side, kinds, columns in zip(node.inputs, _ON, node.side_columns(), strict=True):
        read = columns.keys() if node.kind in kinds else ()
        # A part without columns, such as a parameter, says nothing of one side.
        down = tuple(p for p in stay if p.columns() and reads_only(p, read) and is_movable(p))
        stay = without(stay, down)
        inputs.append(push_parts(side, tuple(part.remap(dict(columns)) for part in down), past_watermarks))
    if stay == parts:
        return node
    return replace(node, left=inputs[0], right=inputs[1], residual=conjunction(stay) if stay else None)


def _into_scan(node: Scan, parts: Conditions) -> LogicalPlan:
    down = (
        tuple(part for part in parts if is_movable(part)) if connector_of(node.table).pushes_filters else ()
    )
    stay = without(parts, down)
    if down:
        # A scan may have a filter already.
        known = () if node.predicate is None else conjuncts(node.predicate)
        node = replace(node, predicate=conjunction(known + tuple(part for part in down if part not in known)))
    return Filter(node, conjunction(stay)) if stay else node


def push_filters_past_watermarks(plan: LogicalPlan) -> LogicalPlan:
    """Move filters below WatermarkAssign and on into the scan, in plans the bounded backend runs."""
    return push_past_watermarks(plan)
