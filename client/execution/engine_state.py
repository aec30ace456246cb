"""The state of an engine, which its sessions share: the catalog, jobs, backends and tables of the process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from penstock.catalog.catalog import Catalog
from penstock.catalog.python_connectors import ProgramConnectors
from penstock.catalog.python_functions import PythonFunctions
from penstock.catalog.settings import Settings
from penstock.catalog.tables import InferredFiles
from penstock.client.execution.engine_jobs import EngineJobs, report_on_stderr
from penstock.client.execution.job_states import JobStates
from penstock.client.execution.materialized_view_jobs import MaterializedViewJobs
from penstock.client.execution.python_modules import PythonModules
from penstock.client.execution.system_tables import session_tables
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.print_stream import PrintStream
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.connectors.in_process.late_rows import LateRows
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.connectors.in_process.result_channels import ResultChannels
from penstock.engine.connectors.in_process.state_tables import StateTables
from penstock.engine.connectors.python.lookup import PythonConnectors
from penstock.engine.job.job_state import JobState
from penstock.engine.operators.source.alignment import WatermarkAlignments

if TYPE_CHECKING:
    from penstock.client.monitoring.prometheus import MetricsServer
    from penstock.engine.api.locations import Location
    from penstock.engine.bounded.registry import BoundedBackends
    from penstock.engine.connectors.filesystem.column_inference import FileInference


ENDED_JOBS = 200
"""How many ended jobs an engine of many sessions still shows."""


class StoredCatalog(Protocol):
    """Where the permanent names of one catalog are stored."""

    catalog: str

    def load(self) -> list[str]:
        """Return the statements that make the catalog again, in order."""

    def save(self, catalog: Catalog) -> None:
        """Write the permanent names, all or nothing."""


class InferredColumns:
    """Infers the columns of files; DuckDB and the readers are imported with the first."""

    @cached_property
    def _inference(self) -> FileInference:
        from penstock.engine.connectors.filesystem.column_inference import FileInference

        return FileInference()

    def format(self, path: str) -> str:
        """Return the format of the files of a path."""
        return self._inference.format(path)

    def columns(self, options: Mapping[str, str]) -> InferredFiles:
        """Return the columns of a filesystem table with these options."""
        return self._inference.columns(options)


class EngineState:
    """What the sessions of a process share. Its parts have locks of their own, which no statement holds while
    it plans, waits or runs.

    ``settings``: those of the process; a session that has the engine to itself has the same object.
    ``state_dir``: where jobs keep their checkpoints. ``report``: takes a sentence about jobs. ``on_small``:
    called before DuckDB runs a query because its inputs are small. ``stores``: by catalog, where permanent
    names are written. ``is_shared``: sessions come and go, and the engine is closed after the last.
    """

    def __init__(
        self,
        settings: Settings,
        state_dir: Location | None = None,
        *,
        report: Callable[[str], None] = report_on_stderr,
        on_small: Callable[[], None] = lambda: None,
        is_shared: bool = False,
    ) -> None:
        self.settings = settings
        self.state_dir = state_dir
        self.is_shared = is_shared
        self._on_small = on_small
        self.modules = PythonModules(settings)
        functions = PythonFunctions(self.modules.import_stored)
        self.catalog = Catalog(functions, InferredColumns(), threading.RLock())
        self.stores: dict[str, StoredCatalog] = {}
        self.registered = RegisteredTables()
        self.python_connectors = ProgramConnectors()
        self.alignments = WatermarkAlignments()
        self.bad_records = BadRecords()
        self.late_rows = LateRows()
        self.channels = ResultChannels()
        self.views = MaterializedViewJobs()
        self.print_stream = PrintStream()
        # a function: the services are read when the first job starts, not now
        self.jobs = EngineJobs(self._job_services, report, takes_new_ids=is_shared)
        self.system_tables = session_tables(self.jobs, SystemClock())
        states = JobStates(self.jobs, state_dir)
        self.catalog.states = states
        self.state_tables = StateTables(states.read)
        self._session_numbers = itertools.count(1)
        # its owners: who creates the backends, who writes the files of the catalogs
        self._backends_lock = threading.Lock()
        self._backends: BoundedBackends | None = None
        self._save_lock = threading.Lock()
        self._metrics_lock = threading.Lock()
        self._metrics_server: MetricsServer | None = None

    def next_session_number(self) -> int:
        """Return a number that no other session of this engine has."""
        return next(self._session_numbers)

    @property
    def backends(self) -> BoundedBackends:
        """The bounded backends; each is started when a plan needs it."""
        with self._backends_lock:
            if self._backends is None:
                # numba, duckdb, pyspark: not before a plan needs them
                from penstock.engine.bounded.registry import BoundedBackends

                self._backends = BoundedBackends(
                    Services(*self._readable_tables),
                    str(self.settings.get("bounded.backend")),
                    self.settings,
                    self._on_small,
                )
            return self._backends

    @property
    def _readable_tables(self) -> tuple[object, ...]:
        """The tables of this process that queries may read."""
        of_program = (self.registered, self.bad_records, self.late_rows, self.views.tables)
        return *of_program, self.system_tables, self.state_tables

    def _job_services(self) -> Services:
        python = PythonConnectors(self.python_connectors, self.modules.allowed, self.modules.module)
        shared = (self.print_stream, self.backends, python, self.alignments)
        return Services(self.channels, *self._readable_tables, *shared)

    def save_catalogs(self) -> None:
        """Write the catalogs that have a store."""
        # one writer at a time, and each writes what there is by then: the last file has all changes
        with self._save_lock:
            for store in tuple(self.stores.values()):
                store.save(self.catalog)

    def forget_ended_jobs(self) -> None:
        """Forget the oldest jobs that have ended, in an engine that many sessions use: their number has no
        bound. The state of those that have finished is removed; that of others may be of use.
        """
        if not self.is_shared:
            return
        views = {view.job.job_id for view in list(self.views.by_name.values())}
        for job, submitted in self.jobs.forget_ended(ENDED_JOBS, views):
            self.catalog.forget_late_rows(job.job_id)
            self.late_rows.forget(job.job_id)
            # finished and not stopped: no process ever resumes it
            if submitted.durable and job.state is JobState.FINISHED and not job.stopped:
                self.remove_state(job.job_id)

    def remove_state(self, job_id: str) -> None:
        """Remove the checkpoints of a job that has finished."""
        if self.state_dir is not None:
            from penstock.engine.storage.locations import remove  # not before a job has state

            remove(self.state_dir / job_id)

    def serve_metrics(self, settings: Settings) -> None:
        """Serve metrics on the port ``metrics.prometheus.port``, if it is set. CLI-6031 when that port is
        not free; then nothing has changed.
        """
        port = int(settings.get("metrics.prometheus.port"))
        with self._metrics_lock:
            before = self._metrics_server
            # nothing changes
            if port == (0 if before is None else before.port):
                return
            server = None
            if port:
                # a web server: only where one is asked for
                from penstock.client.monitoring.prometheus import MetricsServer

                server = MetricsServer(self.jobs.all, port)
            self._metrics_server = server
        # only now: when the new port is not free, the old endpoint stays
        if before is not None:
            before.close()

    def stop_metrics_server(self) -> None:
        """Close the metrics endpoint, if there is one."""
        with self._metrics_lock:
            server, self._metrics_server = self._metrics_server, None
        if server is not None:
            server.close()

    def close(self) -> None:
        """Close the job manager and the backends that were started."""
        self.jobs.close()
        with self._backends_lock:
            backends = self._backends
        # an engine that used no backend imports none to close it
        if backends is not None:
            backends.close()
