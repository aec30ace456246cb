"""Whether a plan has one row at most, in all or for each value of some columns. A scalar subquery must."""

from __future__ import annotations

from collections.abc import Collection

from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.nodes import Call, Column, Expression, conjuncts
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.sort import Limit, TopN
from penstock.planner.logical.time_attributes import WatermarkAssign


def one_row_at_most(plan: LogicalPlan) -> bool:
    """Return whether a plan has at most one row. Outer columns are constants."""
    return one_row_for(plan, ())


def one_row_for(plan: LogicalPlan, columns: Collection[int]) -> bool:
    """Return whether ``columns`` are unique: they include a primary key, the group keys, or the partition of
    a Top-1. Without columns: whether there is one row at most.
    """
    match plan:
        # (VALUES 1)
        case Values(rows=rows):
            return len(rows) <= 1
        # ORDER BY .. LIMIT 1
        case TopN(limit=limit) | Limit(limit=int() as limit) if limit <= 1:
            return True
        # A table's primary key
        case Scan(table=table):
            names = [field.name.lower() for field in plan.schema]
            key = [name.lower() for name in table.primary_key]
            return bool(key) and all(name in names and names.index(name) in columns for name in key)
        # GROUP BY: the keys come first in the output; without keys there is one row
        case Aggregate(input=below, keys=keys):
            fixed = _fixed_columns(below)
            return all(n in columns or key in fixed for n, key in enumerate(keys))
        # WHERE k = 1, WHERE k = outer.k: within the filter k has one value
        case Filter(input=below):
            return one_row_for(below, {*columns, *_fixed_columns(plan)})
        # each left row once at most
        case Join(left=left, kind=JoinKind.SEMI | JoinKind.ANTI):
            return one_row_for(left, columns)
        case Join(left=left, right=right, kind=JoinKind.LEFT | JoinKind.INNER, right_keys=keys):
            width = len(left.schema)
            theirs = {*keys, *(i - width for i in columns if i >= width)}
            return one_row_for(left, {i for i in columns if i < width}) and one_row_for(right, theirs)
        # ROW_NUMBER() = 1 per partition
        case PartitionTop(partition=partition, limit=1, rank="row_number"):
            return set(partition) <= {*columns, *_fixed_columns(plan.input)}
        # Trace the columns through the projection; computed ones prove nothing.
        case Project(input=below, expressions=expressions):
            read = {e.index for i in columns for e in (expressions[i],) if isinstance(e, Column)}
            return one_row_for(below, read)
        # they never emit more rows than they read
        case WatermarkAssign() | Limit() | TopN():
            return one_row_for(plan.inputs[0], columns)
    return False


def _fixed_columns(plan: LogicalPlan) -> set[int]:
    """Return the columns of a plan that have one value in all its rows, for constant outer columns."""
    match plan:
        case Filter(input=below, predicate=predicate):
            return _fixed_columns(below) | _equated(predicate)
        case Project(input=below, expressions=expressions):
            fixed = _fixed_columns(below)
            return {i for i, e in enumerate(expressions) if isinstance(e, Column) and e.index in fixed}
        case WatermarkAssign(input=below):
            return _fixed_columns(below)
        case Join(left=left, kind=JoinKind.INNER | JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI):
            return _fixed_columns(left)
    return set()


def _equated(predicate: Expression) -> set[int]:
    """Return the columns that a condition makes equal to a constant or to an outer column."""
    fixed = set()
    for part in conjuncts(predicate):
        match part:
            case Call(function="equal", args=(Column(index=index), other) | (other, Column(index=index))) if (
                not other.columns() and is_deterministic(other)
            ):
                fixed.add(index)
    return fixed
