"""Database rows copied as they are: a plan that only reads one table of a database needs no backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock.catalog.connectors.registry import is_in_database
from penstock.engine.bounded.backend import BoundedResult, Emit
from penstock.engine.connectors.database.scan import scan_text, scanned
from penstock.engine.expressions.compiler import compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.storage.staged_rows import stage
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import Scan


def copies(plan: LogicalPlan) -> bool:
    """Return whether a plan only reads columns of a table of a database."""
    # SELECT b, a FROM t: reordered columns are still a copy
    if isinstance(plan, Project) and all(isinstance(expression, Column) for expression in plan.expressions):
        plan = plan.input
    return isinstance(plan, Scan) and is_in_database(plan.table)


class CopyingBackend:
    """Runs plans that are one Scan. The database filters columns and rows; conditions it cannot test are
    tested here.
    """

    name = "copy"

    def run(
        self,
        plan: LogicalPlan,
        *,
        staging_dir: Path | None = None,
        time_zone: str = "UTC",
        memory_bytes: int = 0,
    ) -> BoundedResult:
        def produce(emit: Emit) -> None:
            batches = _filtered_batches(plan, time_zone)
            if staging_dir is not None:
                # durable first, as for any other backend
                batches = stage(staging_dir, batches).batches()
            for batch in batches:
                if not emit(batch):
                    return

        return BoundedResult(plan.schema, produce, _at_the_next_batch)

    def explain(self, plan: LogicalPlan) -> str:
        scan = _scan(plan)
        return scan_text(scan.table, scan.columns, scan.predicate)

    def close(self) -> None:
        """Nothing outlives a query."""


def _at_the_next_batch() -> None:
    """Nothing: a copy ends at its next batch, once no one reads it."""


def _scan(plan: LogicalPlan) -> Scan:
    scan = plan.input if isinstance(plan, Project) else plan
    assert isinstance(scan, Scan)
    return scan


def _filtered_batches(plan: LogicalPlan, time_zone: str) -> Iterator[pa.RecordBatch]:
    scan, schema = _scan(plan), plan.schema.to_arrow()
    # positions in the scan; None for SELECT of all its columns
    chosen = (
        [e.index for e in plan.expressions if isinstance(e, Column)] if isinstance(plan, Project) else None
    )
    # the whole predicate is tested again: a database leaves out only what it is sure about
    keep = None if scan.predicate is None else compile_predicate(scan.predicate, EvaluationContext(time_zone))
    for batch in scanned(scan.table, scan.columns, scan.predicate):
        passing = batch if keep is None else batch.filter(keep(batch))
        yield (
            pa.RecordBatch.from_arrays([passing.column(i) for i in chosen], schema=schema)
            if chosen
            else passing
        )
