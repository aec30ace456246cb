"""The state of a session: its settings, names, statements, and the engine that runs them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.connectors.spark import SPARK
from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.client.execution.access_control import AccessControl, FullAccess
from penstock.client.execution.engine_jobs import report_on_stderr, wait_for_job
from penstock.client.execution.engine_state import EngineState
from penstock.client.execution.pending_statement import HoldJob, PendingStatement
from penstock.client.execution.session_settings import SessionSettings
from penstock.client.execution.statement_log import StatementLog
from penstock.client.results.session_memory import SessionMemory
from penstock.engine.api.clock import SystemClock

if TYPE_CHECKING:
    from penstock.client.results.result_stream import BackendStream, JobStream, ResultStream
    from penstock.engine.api.locations import Location
    from penstock.engine.bounded.registry import BoundedBackends
    from penstock.engine.job.job import Job
    from penstock.planner.statements.nodes import Statement


class SessionState:
    """The state of one session over an engine: one of its own, or one that is shared. A statement changes it
    only with ``lock`` acquired; the lock serialises the statements of this session alone.

    ``state_dir``: where jobs keep their checkpoints; None reads the setting
    ``execution.checkpointing.dir``. ``wait_for``: waits for the job of an INSERT that ends and returns a
    sentence about its end. ``report``: takes a sentence about what ``close`` stops. ``access``: what
    statements may do. ``take_over``: fence off another process that has a job's state. ``resume_as``: the
    id under which the next job continues. ``drop_foreign_state``: start anew over a state that is of
    another query. ``warms_backend``: start Spark before a query needs it. ``checks_only``: statements
    change names and settings and nothing else. ``loading``: statements come out of a stored catalog,
    which may not import Python objects. ``admit``: entered with each statement, which it may refuse.
    ``max_results``: how many results are read at once, 0 for any number. ``memory``: what they take.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        state_dir: Location | None = None,
        engine: EngineState | None = None,
    ) -> None:
        # an engine that was handed in has sessions besides this one
        self.shares_engine = engine is not None
        self.settings = Settings(dict(settings)) if engine is None else SessionSettings(engine, settings)
        if engine is None:
            engine = EngineState(self.settings, state_dir, report=self._report, on_small=self.warm_backend)
        self.engine = engine
        self.state_dir = engine.state_dir
        # 0: the session that has its engine to itself
        self.number = engine.next_session_number() if self.shares_engine else 0
        # re-entrant: a statement may run others (CREATE TABLE AS, scripts)
        self.lock = threading.RLock()
        self.catalog = engine.catalog.for_session() if self.shares_engine else engine.catalog
        self.loading = False
        self.checks_only = False
        self.drop_foreign_state = False
        self.take_over = False
        self.resume_as: str | None = None
        # once a session
        self.warms_backend = False
        self.wait_for: Callable[[Job], str] = wait_for_job
        self.report: Callable[[str], None] = report_on_stderr
        self.access: AccessControl = FullAccess()
        self.statement_log = StatementLog(keeps_names=not self.shares_engine)
        self.admit: Callable[[Statement], AbstractContextManager[None]] = lambda node: nullcontext()
        self.max_results = 0
        self.memory = SessionMemory()
        self._clock = SystemClock()
        self._used_ms = self._clock.monotonic_ms()
        self._executing = 0
        # weak: a result that nobody reads any more ends by itself
        self._streams: weakref.WeakSet[ResultStream] = weakref.WeakSet()
        self._streams_lock = threading.Lock()
        # each thread has a statement of its own
        self._own = threading.local()
        # its queries end, also those that are being planned
        self.is_closed = False
        # whether the statement that is executed was cancelled; whoever can cancel one says so
        self.is_cancelled: Callable[[], bool] = lambda: False
        # of the engine; the names are those that statements use
        self.modules = engine.modules
        self.registered = engine.registered
        self.python_connectors = engine.python_connectors
        self.bad_records = engine.bad_records
        self.channels = engine.channels
        self.views = engine.views
        self.system_tables = engine.system_tables
        self.print_stream = engine.print_stream
        self.jobs = engine.jobs

    def _report(self, sentence: str) -> None:
        self.report(sentence)  # whoever reports by then

    @property
    def backends(self) -> BoundedBackends:
        """The bounded backends of the engine."""
        return self.engine.backends

    @property
    def has_durable_jobs(self) -> bool:
        """Whether jobs keep their state beyond this process."""
        return self.state_dir is not None or bool(self.settings.get("execution.checkpointing.dir"))

    def registered_name(self, full_name: str) -> str:
        """Return the name under which a table of the program is registered: two sessions of one engine may
        have tables of one name.
        """
        return f"{full_name}#{self.number}" if self.number else full_name

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
            self.engine.save_catalogs()

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
        """Serve metrics on the port of the settings; a session of a shared engine has no port of its own."""
        if not self.checks_only and not self.shares_engine:
            self.engine.serve_metrics(settings)

    @contextmanager
    def executing(self, node: Statement) -> Iterator[None]:
        """Execute a statement inside: admitted, with the lock of the session, and never idle meanwhile."""
        with self.admit(node), self.in_use(), self.lock:
            yield

    @contextmanager
    def cancellable(self, hold: HoldJob) -> Iterator[None]:
        """Inside, what this thread waits for can be cancelled by whoever has what ``hold`` gets."""
        before = getattr(self._own, "statement", None)
        statement = self._own.statement = PendingStatement()
        hold(statement)
        try:
            yield
        finally:
            hold(None)
            self._own.statement = before

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the session from being idle inside."""
        with self._streams_lock:
            self._executing += 1
        try:
            yield
        finally:
            with self._streams_lock:
                self._executing -= 1
                self._used_ms = self._clock.monotonic_ms()

    def is_abandoned(self) -> bool:
        """Whether nobody waits for the statement that this thread executes."""
        statement: PendingStatement | None = getattr(self._own, "statement", None)
        return self.is_closed or self.is_cancelled() or (statement is not None and statement.is_cancelled)

    @property
    def idle_since_ms(self) -> float | None:
        """When the session was used last, by the monotonic clock; None while it is in use."""
        with self._streams_lock:
            is_read = any(not stream.ended for stream in self._streams)
        if is_read or self._executing:
            # the time begins with the end of what is read
            self._used_ms = self._clock.monotonic_ms()
            return None
        return self._used_ms

    def add_stream(self, stream: JobStream | BackendStream) -> None:
        """Close the stream of a result with the session, at once when the session has been closed. CLI-6205
        when the session reads too many results.
        """
        with self._streams_lock:
            reading = sum(not each.ended for each in self._streams) if self.max_results else 0
            is_closed = self.is_closed
            is_refused = bool(self.max_results) and reading >= self.max_results
            if not is_refused:
                self._streams.add(stream)
                self.memory.add_stream(stream)
        if is_closed or is_refused:
            stream.close()
        if is_refused:
            raise PenstockError(
                "CLI-6205",
                f"the session reads {reading} results at once, which is its limit",
                hint="read a result to its end or close its cursor",
                sqlstate="53400",
            )

    def close_queries(self) -> None:
        """Stop what computes results of this session, and drop its temporary names."""
        with self._streams_lock:
            self.is_closed = True
            streams = list(self._streams)
        for stream in streams:
            stream.close()
        for relation in self.catalog.temporary():
            if isinstance(relation, CatalogTable) and relation.connector == "registered":
                self.registered.unregister(relation.options["name"])

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()
