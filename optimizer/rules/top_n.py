"""ORDER BY under LIMIT becomes a node that keeps only the first rows."""

from __future__ import annotations

from planner.logical import Limit, LogicalPlan, Sort, TopN


def top_n(plan: LogicalPlan) -> LogicalPlan:
    """Replace Limit over Sort by TopN, which never holds more than it must."""
    return plan.transform(_rewrite)


def _rewrite(node: LogicalPlan) -> LogicalPlan:
    match node:
        case Limit(input=Sort(input=inner, keys=keys), limit=limit, offset=offset) if limit is not None:
            return TopN(inner, keys, limit, offset)
    return node
