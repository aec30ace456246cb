"""The state of a session: its names, settings, tables of the program, jobs, and the statements it has run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.catalog import Catalog
from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.connectors.spark import SPARK
from penstock.catalog.persistence.catalog_store import CatalogStore
from penstock.catalog.python_connectors import ProgramConnectors
from penstock.catalog.python_functions import PythonFunctions
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable, InferredFiles
from penstock.client.execution.materialized_view_jobs import MaterializedViewJobs
from penstock.client.execution.python_modules import PythonModules
from penstock.client.execution.session_jobs import SessionJobs, report_on_stderr, wait_for_job
from penstock.client.execution.statement_log import StatementLog
from penstock.client.execution.system_tables import session_tables
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.print_stream import PrintStream
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.connectors.in_process.late_rows import LateRows
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.connectors.in_process.result_channels import ResultChannels
from penstock.engine.connectors.python.lookup import PythonConnectors
from penstock.engine.operators.source.alignment import WatermarkAlignments

if TYPE_CHECKING:
    from penstock.client.monitoring.prometheus import MetricsServer
    from penstock.engine.api.locations import Location
    from penstock.engine.bounded.registry import BoundedBackends
    from penstock.engine.connectors.filesystem.column_inference import FileInference
    from penstock.engine.job.job import Job


class SessionFiles:
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


class SessionState:
    """The state that the statements of a session share. A statement changes it only with ``lock`` acquired.

    ``state_dir``: where jobs keep their checkpoints; None reads the setting ``execution.checkpointing.dir``.
    ``wait_for``: waits for the job of an INSERT that ends and returns a sentence about its end. ``report``:
    takes a sentence about what ``close`` stops. ``take_over``: fence off another process that has a job's
    state. ``drop_foreign_state``: start anew over a state that is of another query. ``warms_backend``: start
    Spark before a query needs it. ``checks_only``: statements change names and settings and nothing else.
    ``loading``: statements come out of a stored catalog, which may not import Python objects. ``stores``: by
    catalog, where permanent tables are written.
    """

    def __init__(self, settings: Settings, state_dir: Location | None = None) -> None:
        self.settings = settings
        self.state_dir = state_dir
        # re-entrant: a statement may run others (CREATE TABLE AS, scripts)
        self.lock = threading.RLock()
        self.modules = PythonModules(settings)
        self.catalog = Catalog(PythonFunctions(self.modules.import_stored), SessionFiles())
        self.stores: dict[str, CatalogStore] = {}
        self.loading = False
        self.checks_only = False
        self.drop_foreign_state = False
        self.take_over = False
        # once a session
        self.warms_backend = False
        self.wait_for: Callable[[Job], str] = wait_for_job
        self.report: Callable[[str], None] = report_on_stderr
        self.statement_log = StatementLog()
        self.registered = RegisteredTables()
        self.python_connectors = ProgramConnectors()
        self.alignments = WatermarkAlignments()
        self.bad_records = BadRecords()
        self.late_rows = LateRows()
        self.channels = ResultChannels()
        self.views = MaterializedViewJobs()
        self.print_stream = PrintStream()
        # a function: the services are read when the first job starts, not now
        self.jobs = SessionJobs(self._job_services, self._report)
        self.system_tables = session_tables(self.jobs, SystemClock())
        self._metrics_server: MetricsServer | None = None

    def _report(self, sentence: str) -> None:
        self.report(sentence)  # whoever reports by then

    @property
    def has_durable_jobs(self) -> bool:
        """Whether jobs keep their state beyond this process."""
        return self.state_dir is not None or bool(self.settings.get("execution.checkpointing.dir"))

    @cached_property
    def backends(self) -> BoundedBackends:
        """The bounded backends; each is started when a plan needs it."""
        # numba, duckdb, pyspark: not before a plan needs them
        from penstock.engine.bounded.registry import BoundedBackends

        return BoundedBackends(
            Services(*self._readable_tables),
            str(self.settings.get("bounded.backend")),
            self.settings,
            self.warm_backend,
        )

    @property
    def _readable_tables(self) -> tuple[object, ...]:
        """The tables of this process that queries may read."""
        return self.registered, self.bad_records, self.late_rows, self.views.tables, self.system_tables

    def _job_services(self) -> Services:
        python = PythonConnectors(self.python_connectors, self.modules.allowed, self.modules.module)
        shared = (self.print_stream, self.backends, python, self.alignments)
        return Services(self.channels, *self._readable_tables, *shared)

    def insert_jobs(self) -> list[Job]:
        """Return the jobs of INSERT and CREATE TABLE AS in the order they were started."""
        # the job of a materialized view has no end to wait for
        views = {view.job.job_id for view in self.views.by_name.values()}
        inserts = {
            job_id
            for job_id, submitted in self.jobs.submitted.items()
            # a sink number marks a SELECT, whose rows go to the client
            if submitted.sink_number is None and job_id not in views
        }
        return [job for job in self.jobs.all() if job.job_id in inserts]

    def durable_view_jobs(self) -> list[Job]:
        """Return the jobs of materialized views that keep their state beyond this process."""
        jobs = [view.job for view in self.views.by_name.values()]
        return [job for job in jobs if self.jobs.submitted[job.job_id].durable]

    def save_catalogs(self) -> None:
        """Write the catalogs that have a store."""
        # while a catalog is loaded it must not be written, and --check writes nothing
        if not self.loading and not self.checks_only:
            for store in self.stores.values():
                store.save(self.catalog)

    def warm_backend_for(self, table: CatalogTable) -> None:
        """Start Spark in the background when a new table is bounded and its queries may need Spark. The start
        takes seconds, which the user spends typing.
        """
        if (
            # a streaming query over a bounded table does not use Spark
            self.settings.get("execution.runtime-mode") != "streaming"
            and boundedness(table) is Boundedness.BOUNDED
            and Path(table.options.get("path", "")).exists()
        ):
            self.warm_backend()

    def warm_backend(self) -> None:
        """Start Spark in the background, once, in a shell whose queries may need Spark."""
        backend = str(self.settings.get("bounded.backend"))
        if not self.warms_backend or backend == "duckdb":
            return
        from penstock.engine.bounded.backend_choice import candidates

        # auto, and Spark is not installed
        if SPARK not in candidates(backend):
            return
        from penstock.engine.bounded.spark.backend import SparkBackend

        self.warms_backend = False
        if isinstance(spark := self.backends.backend(SPARK), SparkBackend):
            spark.warm()

    def serve_metrics(self, settings: Settings) -> None:
        """Serve metrics on the port ``metrics.prometheus.port``, if it is set. CLI-6031 when that port is
        not free; then nothing has changed.
        """
        port, before = int(settings.get("metrics.prometheus.port")), self._metrics_server
        # nothing changes
        if self.checks_only or port == (0 if before is None else before.port):
            return
        server = None
        if port:
            # a web server: only where one is asked for
            from penstock.client.monitoring.prometheus import MetricsServer

            server = MetricsServer(self.jobs.all, port)
        # only now: when the new port is not free, the old endpoint stays
        self.stop_metrics_server()
        self._metrics_server = server

    def stop_metrics_server(self) -> None:
        """Close the metrics endpoint, if there is one."""
        if self._metrics_server is not None:
            self._metrics_server.close()
            self._metrics_server = None

    def close(self) -> None:
        """Close the job manager and the backends that were started."""
        self.jobs.close()
        # the cached property: a session that used no backend imports none to close it
        if "backends" in self.__dict__:
            self.backends.close()
