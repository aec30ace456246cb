"""Nodes that do nothing are dropped."""

from __future__ import annotations

from penstock.planner.expressions.nodes import TRUE, Column
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sort import Limit, Sort, TopN


def remove_redundant(plan: LogicalPlan) -> LogicalPlan:
    """Drop projections that give their input, filters that keep all, limits that cut nothing, and orders
    nobody sees; flatten unions.
    """
    return plan.transform(_rewrite)


def _rewrite(node: LogicalPlan) -> LogicalPlan:
    match node:
        # All columns in their order under their own names.
        case Project(input=inner) if _is_identity(node):
            return inner
        case Filter(input=inner, predicate=predicate) if predicate == TRUE:
            return inner
        # LIMIT ALL.
        case Limit(input=inner, limit=None, offset=0):
            return inner
        # LIMIT 0: nothing below runs.
        case Limit(limit=0) | TopN(limit=0):
            return Values((), node.schema)
        # Nodes that lose the order of their inputs: an ORDER BY below them does nothing.
        case Aggregate() | WindowAggregate() | BinaryJoin() | Union() | Sort() | TopN():
            return _flat(node.with_inputs(tuple(_unordered(child) for child in node.inputs)))
    return node


def _is_identity(node: Project) -> bool:
    positions = [e.index if isinstance(e, Column) else None for e in node.expressions]
    return positions == list(range(len(node.input.schema))) and list(node.names) == node.input.schema.names


def _unordered(node: LogicalPlan) -> LogicalPlan:
    """An order is lost in aggregates, joins, unions and other orders, so nobody sees it."""
    return node.input if isinstance(node, Sort) else node


def _flat(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Union) or not any(isinstance(branch, Union) for branch in node.branches[1:]):
        return _flat_head(node)
    # Only one level: transform rewrites inputs first, so branches are flat already.
    rest = tuple(
        inner
        for branch in node.branches[1:]
        for inner in (branch.branches if isinstance(branch, Union) else (branch,))
    )
    return _flat_head(Union((node.branches[0], *rest)))


def _flat_head(node: LogicalPlan) -> LogicalPlan:
    """A union whose first branch is a union takes over its branches (and so its names)."""
    if isinstance(node, Union) and isinstance(node.branches[0], Union):
        return Union(node.branches[0].branches + node.branches[1:])
    return node
