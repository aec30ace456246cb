"""In a plan for the bounded backend no watermark is made, so filters may go below where one would be."""

from __future__ import annotations

from penstock.optimizer.rules.push_filters import push_past_watermarks
from penstock.planner.logical import LogicalPlan


def push_filters_past_watermarks(plan: LogicalPlan) -> LogicalPlan:
    """Move filters below WatermarkAssign and on into the scan, in plans the bounded backend runs."""
    return push_past_watermarks(plan)
