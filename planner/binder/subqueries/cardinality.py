"""Whether a plan has one row at most, by its very form: in all, or for each value of some of its columns."""

from __future__ import annotations

from collections.abc import Collection

from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.sort import Limit, TopN
from penstock.planner.logical.time_attributes import WatermarkAssign


def one_row_at_most(plan: LogicalPlan) -> bool:
    """Return whether a plan gives one row or none."""
    match plan:
        case Aggregate(keys=keys):
            return not keys
        case Values(rows=rows):
            return len(rows) <= 1
        case TopN(limit=limit) if limit <= 1:
            return True
        case Limit(limit=limit) if limit is not None and limit <= 1:
            return True
        case Project() | Filter() | Limit() | TopN():
            return one_row_at_most(plan.inputs[0])
    return False


def one_row_for(plan: LogicalPlan, columns: Collection[int]) -> bool:
    """Return whether no two rows share the values of ``columns``: they hold a primary key, the keys of a
    group or of a first row.
    """
    match plan:
        case Scan(table=table):
            names = [field.name.lower() for field in plan.schema]
            key = [name.lower() for name in table.primary_key]
            return bool(key) and all(name in names and names.index(name) in columns for name in key)
        case Aggregate(keys=keys):
            return bool(keys) and set(range(len(keys))) <= set(columns)
        case PartitionTop(partition=partition, limit=1, rank="row_number"):
            return set(partition) <= set(columns)
        case Project(input=below, expressions=expressions):
            read = {e.index for i in columns for e in (expressions[i],) if isinstance(e, Column)}
            return one_row_for(below, read)
        case Filter() | WatermarkAssign():
            return one_row_for(plan.inputs[0], columns)
    return one_row_at_most(plan)
