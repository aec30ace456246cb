"""A wish to go on at another parallelism: the plan laid for it."""

from __future__ import annotations

from penstock.catalog.frozen import dataclass
from penstock.engine.plan_identity import PlanIdentity
from penstock.planner.physical import JobGraph


@dataclass(frozen=True)
class RescaleRequested:
    """Take a checkpoint behind which nothing happens any more, then go on from it as ``graph``, which keeps the same state."""

    graph: JobGraph
    plan: PlanIdentity
