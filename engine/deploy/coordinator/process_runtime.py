"""Jobs on worker processes: it checks that a job can run there, writes the files its workers read, and leases
the workers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.connectors.registry import reads_stdin, writes_to_stdout
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import Clock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.locations import Location
from penstock.engine.api.operator import Services
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.deploy.coordinator.coordinator_services import computed_before
from penstock.engine.deploy.coordinator.job_workers import ProcessWorkers
from penstock.engine.deploy.coordinator.launcher import OwnProcesses, WorkerHost
from penstock.engine.deploy.coordinator.shared_storage_probe import leave_probe
from penstock.engine.deploy.coordinator.worker_pool import WorkerPool
from penstock.engine.deploy.protocol.codec import encode
from penstock.engine.deploy.protocol.messages import TableFile
from penstock.engine.deploy.worker.python_modules import FunctionNames
from penstock.engine.storage.local import make_private, open_private
from penstock.engine.task_manager.task_manager import IoThread
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.operator_specs import HistorySource, JobGraph

# connectors whose rows are in this process only
_ELSEWHERE = {
    "materialized": "reads a materialized view, which this process holds",
    "errors": "reads the records that could not be read, which this process holds",
    "late": "reads late rows, which this process holds",
    "state": "reads states of jobs, which this process finds",
    "system": "reads a system table, which this process holds",
}
HOSTED = "hosted"
"""The part of a job's directory that exists only while workers of Spark run the job."""
_HINT = "SET 'deployment' = 'embedded' runs it in this process"


class ProcessRuntime:
    """The worker pool of one job manager, created with the first job that needs it."""

    def __init__(self, clock: Clock, services: Services, io: IoThread, options: JobOptions) -> None:
        self._on_spark = options.deployment == "spark"
        self.pool = WorkerPool(clock, _spark_tasks(options) if self._on_spark else OwnProcesses())
        self._services = services
        self._io = io

    def state_dir(self, job_id: str) -> Path:
        """Return the checkpoint directory of a job without one of its own; it is removed with the session."""
        return self.pool.scratch / "jobs" / job_id / "state"

    def workers(
        self,
        job_id: str,
        graph: JobGraph,
        options: JobOptions,
        state: Location | None,
        post: Callable[[Any], None],
    ) -> ProcessWorkers:
        """Return the workers of a job. RUN-2912 and RUN-2913 for jobs that only this process can run."""
        check(graph, options)
        if self._on_spark:
            # Spark computes a history on the cores that the job's workers occupy: it could wait forever
            check_history(graph)
        scratch = self.pool.scratch / "jobs" / job_id
        if self._on_spark and isinstance(state, Path) and options.state_dir is not None:
            # where all machines find it, if they find anything
            state, scratch = state.absolute(), state.absolute() / HOSTED
            # files of an earlier run whose coordinator died
            shutil.rmtree(scratch, ignore_errors=True)
        tables = self._write_tables(graph, scratch)
        bounded, probe = None, None
        if self._on_spark:
            staged, zone, backend = scratch / "bounded", options.time_zone, options.bounded_backend
            bounded = computed_before(self._services, graph, staged, zone, backend)
            # only a job with files needs a directory that all machines share
            files = isinstance(state, Path) or tables or bounded.queries
            probe = leave_probe(scratch) if files else None
        return ProcessWorkers(self.pool, post, self._io, state, tables, scratch, bounded=bounded, probe=probe)

    def ended(self, job_id: str, workers: ProcessWorkers) -> None:
        """Return the workers of a job that has ended to the pool; its checkpoints can still be copied."""
        workers.close()
        shutil.rmtree(workers.scratch / "tables", ignore_errors=True)
        # a directory of the pool is removed with the session
        if workers.scratch.name == HOSTED:
            shutil.rmtree(workers.scratch, ignore_errors=True)

    def close(self) -> None:
        """End all workers."""
        self.pool.close()

    def _write_tables(self, graph: JobGraph, scratch: Path) -> tuple[TableFile, ...]:
        """Write the registered tables that a job reads to files its workers read. RUN-2912 for an iterator of
        this program.
        """
        names = {
            str(spec.node.table.options["name"])
            for chain in graph.chains
            for spec in chain.operators
            if isinstance(spec.node, Scan) and spec.node.table.connector == "registered"
        }
        files = []
        for number, name in enumerate(sorted(names)):
            table = self._services.get(RegisteredTables).source(name).table
            if table is None:
                message = f"'{name}' is an iterator of this program and cannot be read by worker processes"
                raise PenstockError(
                    "RUN-2912",
                    message,
                    hint=f"register an Arrow table or a list, or {_HINT}",
                    sqlstate="0A000",
                )
            path = scratch / "tables" / f"{number}.arrow"
            make_private(path.parent)
            # readable by this user only: rows may be confidential
            with open_private(path) as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            files.append(TableFile(name, path))
        return tuple(files)


def check_history(graph: JobGraph) -> None:
    """Refuse histories that Spark would compute while workers occupy its cores: RUN-2924."""
    for chain in graph.chains:
        for spec in chain.operators:
            if isinstance(spec.node, HistorySource) and spec.node.backend == "spark":
                message = (
                    f"the history of {spec.name} would be computed by Spark, whose cores the job's own "
                    "workers hold: it could wait for ever"
                )
                raise PenstockError(
                    "RUN-2924",
                    message,
                    hint="SET 'bounded.backend' = 'duckdb', or another deployment",
                    sqlstate="0A000",
                )


def _spark_tasks(options: JobOptions) -> WorkerHost:
    # pyspark and ssl: not before a job is to run on Spark
    from penstock.engine.deploy.spark.launcher import SparkTasks

    return SparkTasks(options.cluster)


def _is_of_program(table: CatalogTable) -> bool:
    # a name without a module: one that the program has registered
    return table.connector == "python" and "." not in table.options["name"]


def check(graph: JobGraph, options: JobOptions) -> None:
    """Refuse jobs that cannot run in other processes. RUN-2912 for rows of this process, RUN-2913 for Python
    functions a worker cannot import.
    """
    for chain in graph.chains:
        for spec in chain.operators:
            why = _ELSEWHERE.get(spec.node.table.connector) if isinstance(spec.node, Scan) else None
            if isinstance(spec.node, Scan | Sink) and spec.node.table and _is_of_program(spec.node.table):
                why = "is read or written by Python code of this program, which no module has"
            if isinstance(spec.node, Scan) and reads_stdin(spec.node.table):
                why = "reads stdin, which this process has"
            if isinstance(spec.node, Sink) and spec.node.table and writes_to_stdout(spec.node.table):
                why = "writes to stdout, which this process has"
            if why is not None and isinstance(spec.node, Scan | Sink) and spec.node.table is not None:
                raise PenstockError(
                    "RUN-2912",
                    f"{spec.node.table.name} {why}: worker processes cannot",
                    hint=_HINT,
                    sqlstate="0A000",
                )
    # a trial run: raises for functions that no worker can import
    encode(graph, FunctionNames(options.python_modules).name)
