"""Expressions seen from the other side of a projection, and plans put into another column order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.planner.expressions.nodes import Column, Expression, SortKey
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sort import Sort, TopN
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.unnest import Unnest


def inline(expression: Expression, definitions: Sequence[Expression]) -> Expression:
    """Return an expression over a projection's output as one over its input, given what the projection
    computes.
    """
    return expression.transform(lambda node: definitions[node.index] if isinstance(node, Column) else node)


def column_of(plan: LogicalPlan, index: int) -> Column:
    """Return a reference to a column of a node's output."""
    field = plan.schema[index]
    return Column(field.type, field.nullable, index=index, name=field.name)


def select_columns(
    plan: LogicalPlan, indexes: Sequence[int], names: Sequence[str] | None = None
) -> LogicalPlan:
    """Return the named positions of a node in that order; the node itself when that changes nothing."""
    schema = plan.schema
    wanted = tuple(names) if names is not None else tuple(schema[i].name for i in indexes)
    if list(indexes) == list(range(len(schema))) and list(wanted) == schema.names:
        return plan
    return Project(plan, tuple(column_of(plan, i) for i in indexes), wanted)


def map_expressions(node: LogicalPlan, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
    """Return a node with each of its expressions replaced by what ``rewrite`` makes of the whole
    expression; the node itself if none changes.
    """
    match node:
        case Filter(predicate=predicate):
            return _changed(node, predicate=rewrite(predicate))
        case Project(expressions=expressions):
            return _changed(node, expressions=tuple(map(rewrite, expressions)))
        case WatermarkAssign(watermark=watermark):
            return _changed(node, watermark=rewrite(watermark))
        case Aggregate(aggregates=aggregates) | WindowAggregate(aggregates=aggregates):
            return _changed(node, aggregates=tuple(call.map(rewrite) for call in aggregates))
        case BinaryJoin(residual=residual) if residual is not None:
            return _changed(node, residual=rewrite(residual))
        case LookupJoin(scan=scan, residual=residual):
            changed = _changed(scan, predicate=None if scan.predicate is None else rewrite(scan.predicate))
            return _changed(node, scan=changed, residual=None if residual is None else rewrite(residual))
        case Scan(predicate=predicate) if predicate is not None:
            return _changed(node, predicate=rewrite(predicate))
        case Sort(keys=keys) | TopN(keys=keys):
            return _changed(node, keys=_map_keys(keys, rewrite))
        case Over(order=order, calls=calls):
            return _changed(
                node, order=_map_keys(order, rewrite), calls=tuple(call.map(rewrite) for call in calls)
            )
        case Unnest(call=call, condition=condition):
            return _changed(
                node, call=call.map(rewrite), condition=None if condition is None else rewrite(condition)
            )
        case PartitionTop(order=order):
            return _changed(node, order=_map_keys(order, rewrite))
    return node


def _map_keys(keys: Sequence[SortKey], rewrite: Callable[[Expression], Expression]) -> tuple[SortKey, ...]:
    return tuple(replace(key, expression=rewrite(key.expression)) for key in keys)


def _changed(node: LogicalPlan, **fields: object) -> LogicalPlan:
    same = all(getattr(node, name) == value for name, value in fields.items())
    return node if same else replace(node, **fields)  # type: ignore[arg-type]  # the names are fields of this node, as matched above
