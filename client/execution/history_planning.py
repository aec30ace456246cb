"""WITH HISTORY: what a job loads before it reads live, up to which positions, and its EXPLAIN text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.settings import Settings
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.connectors.filesystem.listing import FileSplit
from penstock.engine.connectors.registry import source_connector
from penstock.optimizer.history_subplans import HistoryPart, history_parts
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.explain.explain import explain
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import HistoryOption
from penstock.planner.physical.history_job_graph import Loaded, history_graph, loaded
from penstock.planner.physical.operator_specs import HistorySource, JobGraph, OperatorSpec
from penstock.planner.sql_generator.support import AUTO, DUCKDB, speaks

if TYPE_CHECKING:
    from penstock.catalog.tables import CatalogTable
    from penstock.engine.bounded.backend_choice import BackendChoice
    from penstock.engine.bounded.registry import BoundedBackends


@dataclass(frozen=True)
class History:
    """The parts of a job that are loaded as history, and their backend. ``graph`` reads the positions when
    it is called.
    """

    backend: str
    parts: tuple[Loaded, ...]
    live: JobGraph

    def graph(self) -> JobGraph:
        """Return the plan of the first deployment, over all splits there are now. DAT-41xx where a table
        has no files.
        """
        return history_graph(self.live, self.parts, self.backend, _current_splits)


def plan_history(
    option: HistoryOption,
    plan: LogicalPlan,
    graph: JobGraph,
    facts: PlanFacts,
    settings: Settings,
    choose: Callable[[list[CatalogTable]], BackendChoice],
) -> History:
    """Return the parts of a planned job that are loaded as history. SQL-1715 where that could differ from
    a replay. ``choose`` returns the backend that ``auto`` chooses for some tables.
    """
    backend = option.backend or str(settings.get("bounded.backend"))
    # one backend loads the whole history, so it is chosen before the parts are cut
    if backend == AUTO:
        # workers on Spark hold its cores: RUN-2924
        hosted = settings.get("deployment") == "spark"
        sources = [node.table for node in plan.walk() if isinstance(node, Scan)]
        backend = DUCKDB if hosted else choose(sources).name
    parts = history_parts(plan, facts, option, lambda part: speaks(part, backend))
    return History(backend, tuple(_plan_part(part, facts, settings) for part in parts), graph)


def _plan_part(part: HistoryPart, facts: PlanFacts, settings: Settings) -> Loaded:
    return loaded(part.live, part.rows, part.timing, facts, settings)


def _current_splits(source: Scan) -> tuple[str, ...]:
    # only for splits(), which lists the files
    request = ScanRequest(source.table, source.columns, source.predicate, 65_536, SystemClock(), Services())
    return tuple(source_connector(request).splits())


def history_text(history: History, backends: Callable[[], BoundedBackends]) -> str:
    """Return the history's parts as text: the backend, the last file, and the text the backend would run."""
    specs = [
        spec
        for chain in history.graph().chains
        for spec in chain.operators
        if isinstance(spec.node, HistorySource)
    ]
    return "\n\n".join(_part_text(spec, backends()) for spec in specs)


def _part_text(spec: OperatorSpec[HistorySource, OperatorFacts], backends: BoundedBackends) -> str:
    # a set: one file may have several splits
    files = sorted({(split.path, split.size) for split in map(FileSplit.parse, spec.node.splits)})
    last = f", the last {files[-1][0].rpartition('/')[2]} of {files[-1][1]:,} bytes" if files else ""
    times = "; event times are read first, and files with late rows as a stream" if spec.node.timing else ""
    by = "read by penstock's operators" if spec.node.backend is None else f"computed by {spec.node.backend}"
    head = f"{spec.name} up to {len(files)} file{'' if len(files) == 1 else 's'}{last}, {by}{times}:"
    if spec.node.backend is None:
        return f"{head}\n{explain(spec.node.plan)}"
    text = backends.backend(spec.node.backend).explain(spec.node.plan)
    return f"{head}\n{explain(spec.node.plan)}\n{text}"
