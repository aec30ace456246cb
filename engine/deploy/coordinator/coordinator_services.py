"""The coordinator's side of the services that tasks in workers use: results, printed lines, late rows, bad
records, views, bounded queries. Bounded queries on Spark are run and staged before the workers occupy its
cores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from penstock.engine.api.operator import Services
from penstock.engine.api.print_stream import PrintStream
from penstock.engine.api.threads import EngineThread
from penstock.engine.bounded.backend import BoundedResult, Emit
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.connectors.in_process.late_rows import LateRows
from penstock.engine.connectors.in_process.materialized_views import MaterializedTables
from penstock.engine.connectors.in_process.result_channels import ResultChannels
from penstock.engine.deploy.protocol.error_codec import SentError
from penstock.engine.deploy.protocol.messages import (
    BadRecordsSeen,
    BoundedDemand,
    BoundedRows,
    BoundedWanted,
    LateRowsSeen,
    Printed,
    ResultCredit,
    ResultEnded,
    ResultRows,
    ViewBegun,
    ViewCompleted,
    ViewStaged,
)
from penstock.engine.storage.staged_rows import StagedRows, stage
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import HistorySource, JobGraph, OperatorSpec

# hides the latency of an acknowledgement, and bounds what a slow task makes a worker buffer
BATCHES_AHEAD = 4
Reply = Callable[[Any], None]


class JobStores:
    """Serves one deployment's tasks; ``take`` does not block."""

    def __init__(
        self,
        services: Services,
        graph: JobGraph,
        job_id: str,
        attempt: int,
        time_zone: str,
        before: BoundedBefore | None = None,
        backend: str = "",
    ) -> None:
        """``before``: bounded subplans whose rows are staged already. ``backend``: what computes the others,
        "": the default.
        """
        self._backend = backend or None
        self._services = services
        self._before = before
        self._job_id = job_id
        self._attempt = attempt
        self._time_zone = time_zone
        specs = [spec for chain in graph.chains for spec in chain.operators]
        self._bounded = {
            spec.operator_id: spec for spec in specs if isinstance(spec.node, BoundedInput | HistorySource)
        }
        self._queries: dict[tuple[int, int], RunningQuery] = {}

    def take(self, worker: int, body: Any, reply: Reply) -> None:
        """Act on a message of a worker's task; ``reply`` answers that worker's tasks."""
        services = self._services
        match body:
            # a collect sink: rows for the client, acknowledged when it has read them
            case ResultRows(operator_id, batch):
                channel = services.get(ResultChannels).channel(operator_id)
                if not channel.offer(batch, lambda: reply(ResultCredit(operator_id, 1))):
                    reply(ResultCredit(operator_id, 1))  # nobody reads it: do not slow the job
            # the end of one collect subtask; the client sees the end of all
            case ResultEnded(operator_id, subtask, parallelism):
                services.get(ResultChannels).channel(operator_id).subtask_ended(subtask, parallelism)
            # a print sink writes to this process's output
            case Printed(text):
                services.get(PrintStream).write(text)
            # rows for <job>$late and <table>$errors
            case LateRowsSeen(operator, rows, watermarks, ends):
                services.get(LateRows).add(self._job_id, operator, rows, watermarks, ends)
            case BadRecordsSeen(table, records):
                services.get(BadRecords).add(table, list(records))
            # a materialized view: initial rows, then changes per checkpoint, published when it is durable
            case ViewBegun(view, subtask, parallelism, rows):
                services.get(MaterializedTables).contents(view).begin(
                    self._attempt, subtask, parallelism, list(rows)
                )
            case ViewStaged(view, checkpoint_id, changes):
                services.get(MaterializedTables).contents(view).stage(checkpoint_id, list(changes))
            case ViewCompleted(view, checkpoint_id):
                services.get(MaterializedTables).contents(view).complete(checkpoint_id)
            # queries are numbered per worker
            case BoundedWanted(query, operator_id, staging, splits):
                self._queries[worker, query] = RunningQuery(
                    query, partial(self._start, operator_id, staging, splits), reply
                )
            # a batch was read, or the task has closed the query, which may have ended already
            case BoundedDemand(query, closed):
                running = self._queries.get((worker, query))
                if running is not None:
                    running.acknowledge(closed=closed)

    def _start(self, operator_id: str, staging: Path | None, splits: tuple[str, ...]) -> BoundedResult:
        # staged before the workers took Spark's cores
        if self._before is not None and operator_id in self._before.queries:
            return self._before.run(operator_id, staging)
        spec, backends = self._bounded[operator_id], self._services.get(BoundedBackends)
        # a history over the splits that the worker names
        if isinstance(spec.node, HistorySource):
            return backends.run_history(spec, splits, time_zone=self._time_zone)
        return backends.for_plan(spec.node.plan, self._backend).run(
            spec.node.plan, staging_dir=staging, time_zone=self._time_zone
        )

    def close(self) -> None:
        """End the queries that still run."""
        for query in list(self._queries.values()):
            query.acknowledge(closed=True)


class RunningQuery:
    """One bounded query. A thread sends its rows, at most ``BATCHES_AHEAD`` batches ahead of the task that
    reads them.
    """

    def __init__(self, query: int, start: Callable[[], BoundedResult], reply: Reply) -> None:
        self._query = query
        self._start = start
        self._reply = reply
        self._credit = threading.Semaphore(BATCHES_AHEAD)
        self._closed = False
        EngineThread(target=self._run, name="bounded-rows").start()

    def acknowledge(self, *, closed: bool) -> None:
        """The task has read a batch, or (``closed``) needs no more."""
        self._closed = self._closed or closed
        # wakes the thread also when the query is closed, so that it ends
        self._credit.release()

    def _run(self) -> None:
        try:
            result = self._start()
            try:
                for rows in result:
                    self._credit.acquire()
                    # the task needs no more: ``result.close`` below cancels the query
                    if self._closed:
                        return
                    self._reply(BoundedRows(self._query, rows))
            finally:
                result.close()
            self._reply(BoundedRows(self._query, ended=True))
        except BaseException as cause:  # noqa: BLE001 - told to the task that wants the rows
            self._reply(BoundedRows(self._query, error=SentError.of(cause, "bounded query")))


class BoundedBefore:
    """Rows of bounded subplans in staged files, by the operators that read them."""

    def __init__(
        self, queries: Mapping[str, OperatorSpec[BoundedInput, OperatorFacts]], directory: Path
    ) -> None:
        self.queries = queries
        self._directory = directory

    def run(self, operator_id: str, staging: Path | None) -> BoundedResult:
        """Return the staged rows, as a backend's ``run`` does."""
        staged = StagedRows(self._directory / operator_id)

        def produce(emit: Emit) -> None:
            # a source that stages its own copy reads it again after a restart
            for batch in (staged if staging is None else stage(staging, staged.batches())).batches():
                if not emit(batch):
                    return

        return BoundedResult(self.queries[operator_id].node.plan.schema, produce, lambda: None)


def computed_before(
    services: Services, graph: JobGraph, directory: Path, time_zone: str, name: str = ""
) -> BoundedBefore:
    """Run the bounded subplans of a job that Spark computes, and return once their rows are staged. Raises
    the errors of their queries.
    """
    specs = [
        spec for chain in graph.chains for spec in chain.operators if isinstance(spec.node, BoundedInput)
    ]
    queries = {}
    for spec in specs:
        backend = services.get(BoundedBackends).for_plan(spec.node.plan, name or None)
        # other backends run in this process, beside the workers
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
