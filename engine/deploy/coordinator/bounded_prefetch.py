"""Bounded subplans computed before a job's workers are asked for: once these hold all cores of Spark, its
queries would wait for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedResult, Emit
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.storage.staged_rows import StagedRows, stage
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import JobGraph, OperatorSpec


class BoundedBefore:
    """Rows of bounded subplans as staged files, by the operators that give them."""

    def __init__(
        self, queries: Mapping[str, OperatorSpec[BoundedInput, OperatorFacts]], directory: Path
    ) -> None:
        self.queries = queries
        self._directory = directory

    def run(self, operator_id: str, staging: Path | None) -> BoundedResult:
        """Give the rows again, as a backend's ``run`` does."""
        staged = StagedRows(self._directory / operator_id)

        def produce(emit: Emit) -> None:
            for batch in (staged if staging is None else stage(staging, staged.batches())).batches():
                if not emit(batch):
                    return

        return BoundedResult(self.queries[operator_id].node.plan.schema, produce, lambda: None)


def computed_before(services: Services, graph: JobGraph, directory: Path, time_zone: str) -> BoundedBefore:
    """Compute the bounded subplans of a job that Spark computes, and return when their rows are staged.
    Raises what their queries raise.
    """
    specs = [
        spec for chain in graph.chains for spec in chain.operators if isinstance(spec.node, BoundedInput)
    ]
    queries = {}
    for spec in specs:
        backend = services.get(BoundedBackends).for_plan(spec.node.plan)
        if backend.name != "spark":
            continue
        queries[spec.operator_id] = spec
        result = backend.run(spec.node.plan, staging_dir=directory / spec.operator_id, time_zone=time_zone)
        try:
            result.wait()  # until all is staged: rows come only then
            result.poll()
        finally:
            result.close()
    return BoundedBefore(queries, directory)
