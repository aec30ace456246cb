"""INSERT OVERWRITE, UPDATE, DELETE and MERGE: a job writes beside a table's rows, and its end replaces
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.catalog.connectors.filesystem import object_scheme
from penstock.catalog.schema import Schema
from penstock.client.execution.planned_query import PlannedQuery
from penstock.client.execution.session_state import SessionState
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import TableStream
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.operator_specs import JobGraph

if TYPE_CHECKING:
    from penstock.catalog.tables import CatalogTable
    from penstock.engine.api.job_options import JobOptions
    from penstock.engine.api.locations import Location
    from penstock.engine.connectors.filesystem.overwrite import ReplacementDirectory
    from penstock.engine.connectors.row_replacement.replaced_table import ReplacedTable
    from penstock.engine.connectors.row_replacement.staged_overwrite import StagedOverwrite

# in the directory of the state: the new rows of lakehouse tables
_STAGED = ".penstock.overwrites"


def overwrites(query: PlannedQuery) -> bool:
    """Return whether a query's sink replaces what its table has."""
    return isinstance(query.plan, Sink) and query.plan.overwrite is not None


def submit_overwrite(query: PlannedQuery, state: SessionState, options: JobOptions) -> Result:
    """Submit the job of a statement that replaces rows. The statement waits for the job's end, which
    replaces the old ones.

    The job keeps no state beyond its end: what a process that dies has written is deleted, and the
    statement run again.
    """
    sink = query.plan
    assert isinstance(sink, Sink) and sink.table is not None and sink.overwrite is not None
    assert query.graph is not None
    replacement = _replacement(sink, query.bound, options.state_dir)
    # executors look for the state of their job first: those that do not see the directory of the new rows
    # would write them where nobody looks
    state_dir = replacement.state_dir if options.deployment == "spark" else None
    try:
        graph = _written_to(query.graph, replacement.table)
        job = state.jobs.manager.submit(graph, replace(options, state_dir=state_dir, savepoint=None))
    except BaseException:
        replacement.discard()
        raise
    return replace(
        Result(Shape(Schema(())), TableStream(), job),
        undo=lambda error, job: replacement.discard(),
        publish=replacement.publish,
    )


def finish_interrupted_overwrites(query: PlannedQuery) -> None:
    """Finish what a program that died had begun to replace in the tables of files a job will write to."""
    for sink in query.plan.walk():
        table = sink.table if isinstance(sink, Sink) else None
        if table is None or table.connector != "filesystem" or not table.partitioned_by:
            continue
        if object_scheme(table.options.get("path", "")) is None:
            from penstock.engine.connectors.filesystem.overwrite import finish_interrupted

            finish_interrupted(table)


def _replacement(
    sink: Sink, bound: LogicalPlan, state_dir: Location | None
) -> ReplacementDirectory | StagedOverwrite:
    # they lock and write files: the engine is loaded for a job only
    from penstock.engine.metrics.operator_metrics import OperatorMetrics

    assert sink.table is not None and sink.overwrite is not None
    table, constants = sink.table, dict(sink.overwrite)
    if table.connector == "filesystem" and sink.changes is None:
        from penstock.engine.connectors.filesystem.overwrite import ReplacementDirectory

        return ReplacementDirectory(table, constants, read=_reads(bound, table) or None)
    from penstock.engine.connectors.row_replacement.staged_overwrite import StagedOverwrite
    from penstock.engine.connectors.row_replacement.staged_row_changes import StagedRowChanges

    # machines share the directory of the state, if they share any
    within = state_dir / _STAGED if isinstance(state_dir, Path) else None
    opened: Callable[[], ReplacedTable]
    target = table if sink.changes is None else sink.changes.table
    if table.connector == "filesystem":
        from penstock.engine.connectors.filesystem.replaced_files import ReplacedFiles

        opened = partial(ReplacedFiles, target)
    elif table.connector == "delta":
        from penstock.engine.connectors.delta.target import DeltaTarget

        opened = partial(DeltaTarget, target, OperatorMetrics(), merges=False)
    else:
        from penstock.engine.connectors.iceberg.target import IcebergTarget

        opened = partial(IcebergTarget, target, OperatorMetrics(), merges=False)
    if sink.changes is not None:
        return StagedRowChanges(sink.changes, table, opened, within)
    return StagedOverwrite(table, constants, opened, within, reads=_reads(bound, table))


def _reads(plan: LogicalPlan, table: CatalogTable) -> bool:
    """Whether a plan reads a table, by this name or by another one of the same place."""
    return any(isinstance(node, Scan) and _at_one_location(table, node.table) for node in plan.walk())


def _at_one_location(written: CatalogTable, read: CatalogTable) -> bool:
    to, of = _location(written), _location(read)
    # part of the files, such as day/*.csv, or a directory with more of them
    if written.connector == read.connector == "filesystem" and "://" not in to[1] + of[1]:
        target, source = Path(to[1]), Path(re.split(r"[*?\[]", of[1], maxsplit=1)[0])
        return source.is_relative_to(target) or target.is_relative_to(source)
    return to == of


def _location(table: CatalogTable) -> tuple[str, ...]:
    options = table.options
    if table.connector in ("delta", "filesystem"):
        path = options.get("table-path", options.get("path", ""))
        # a URL is compared as it is written
        return (table.connector, path.rstrip("/") if "://" in path else str(Path(path).resolve()))
    # a catalog may be reached by two URLs: then its tables count as others
    return (table.connector, options.get("uri", ""), options.get("table-name", ""))


def _written_to(graph: JobGraph, table: CatalogTable) -> JobGraph:
    """Return a job with its sink's table in another directory."""

    def moved(spec: Any) -> Any:
        if not isinstance(spec.node, Sink):
            return spec
        return replace(spec, node=replace(spec.node, table=table, overwrite=None, changes=None))

    chains = tuple(replace(chain, operators=tuple(map(moved, chain.operators))) for chain in graph.chains)
    return replace(graph, chains=chains)
