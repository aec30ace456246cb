"""A session: one catalog, one set of settings, the jobs it started. The road of a query is
``Session.run_query``.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.catalog.catalog import Catalog
from penstock.catalog.connectors.registry import Boundedness, boundedness
from penstock.catalog.errors import PenstockError, SourceText
from penstock.catalog.object_path import ObjectPath
from penstock.catalog.persistence.catalog_store import CatalogStore
from penstock.catalog.python_functions import PythonFunction, PythonFunctions
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.client.job_ends import (
    HoldJob,
    hold_no_job,
    start_or_finish,
    stop_jobs,
    tell_stderr,
    wait_for_job,
)
from penstock.client.job_submission import Road, Started, Switches, backend_result, submit
from penstock.client.located_statements import PlacedStatement, placed_statements
from penstock.client.python_modules import PythonModules
from penstock.client.result import Result
from penstock.client.statement_log import Spoken
from penstock.client.statements.dispatch import run_statement
from penstock.client.statements.functions import register_function
from penstock.client.statements.materialized_views import RunningViews
from penstock.engine.api.operator import Services
from penstock.engine.api.threads import close_at_exit, closed
from penstock.engine.connectors.in_process.bad_record_store import BadRecords
from penstock.engine.connectors.in_process.late_row_store import LateRows
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.connectors.in_process.result_channels import ResultChannels
from penstock.engine.connectors.print_stream import PrintStream
from penstock.optimizer.bounded_subplans import choose_runtime, optimize_sharing
from penstock.optimizer.exchange_placement import lay_edges
from penstock.optimizer.history_subplans import no_stream, wish_of
from penstock.optimizer.optimizer import Observer, optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.sink_validation import check_order, check_sinks
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.size_limits import check_plan
from penstock.planner.logical.plan import LogicalPlan, Sink
from penstock.planner.physical.physical_planner import plan_job
from penstock.planner.sql_generator.support import speaks
from penstock.planner.statements.nodes import (
    CreateTableAs,
    ExecuteStatementSet,
    Explain,
    Insert,
    Query,
    Subscribe,
)

if TYPE_CHECKING:
    from penstock.client.monitoring.http_server import MetricsServer
    from penstock.engine.bounded.backend import BoundedBackends
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_manager import JobManager
    from penstock.planner.table_api.table import Table


class Session:
    """Composes the floors. Statements are run one at a time, whichever thread asks; results and jobs then
    live on their own.

    ``catalog_dir``: where permanent tables and views are kept; None keeps them for the life of the session.
    ``state_dir``: where jobs keep their checkpoints; None asks the setting ``execution.checkpointing.dir``.
    ``wait_for``: how the job of an INSERT that ends is waited for, giving a sentence about its end. ``tell``:
    where is said what ``close`` stops. ``take_over``: fence off another process that has a job's state.
    ``adopting``: the id the next job goes on under. ``spoken``: what was said so far. ``drop_foreign_state``:
    start anew over a state that is of another query. ``warms_backend``: start Spark before a query needs it.
    ``started``: what the jobs of this session were made of, by id. ``heard``: the jobs of whose end somebody
    is told already. ``checks_only``: statements change its names and settings and nothing else. ``loading``:
    statements come out of a stored catalog, whose names of Python objects are not to be trusted.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        state_dir: Path | None = None,
        catalog_dir: Path | None = None,
    ) -> None:
        self.settings = Settings(dict(settings or {}))
        self.modules = PythonModules(self.settings)
        self.catalog = Catalog(PythonFunctions(self.modules.import_stored))
        self.loading = False
        self.checks_only = False
        self.state_dir = state_dir
        self.drop_foreign_state = False
        self.take_over = False
        self.adopting: str | None = None
        self.spoken = Spoken()
        self.warms_backend = False
        self.wait_for: Callable[[Job], str] = wait_for_job
        self.tell: Callable[[str], None] = tell_stderr
        self.registered = RegisteredTables()
        self.bad_records = BadRecords()
        self.late_rows = LateRows()
        self.channels = ResultChannels()
        self.views = RunningViews()
        self.print_stream = PrintStream()
        self._lock = threading.RLock()
        self._results = itertools.count(1)
        self._names: Counter[str] = Counter()
        self.started: dict[str, Started] = {}
        self.heard: set[str] = set()
        self._job_manager: JobManager | None = None
        self._metrics_server: MetricsServer | None = None
        self.serve_metrics(self.settings)
        self.stores: dict[str, CatalogStore] = {}
        if catalog_dir is not None:
            self.open_store(CatalogStore(catalog_dir))

    # -- the road of a query

    def run_query(
        self, statement: Query | Insert | ExecuteStatementSet, params: Sequence[Any] = ()
    ) -> Result:
        """Take a parsed query or insert the whole road, from names to rows."""
        return self.start(self.plan(self.bind(statement, params)))

    def bind(
        self, statement: Query | Subscribe | Insert | ExecuteStatementSet, params: Sequence[Any] = ()
    ) -> LogicalPlan:
        """Resolve names and types: a query's plan ends in the client, an insert's in its table."""
        return self.views.pinned(self._bound(statement, params))

    def _bound(
        self, statement: Query | Subscribe | Insert | ExecuteStatementSet, params: Sequence[Any]
    ) -> LogicalPlan:
        binder = Binder(self.catalog, self.settings)
        match statement:
            case Query():
                return Sink(binder.bind_query(statement, params), None)
            case Subscribe(query=query):
                return Sink(binder.bind_query(query, params, follows=True), None)
            case Insert():
                return binder.bind_insert(statement, params)
            case ExecuteStatementSet():
                return binder.bind_statement_set(statement, params)

    def plan(
        self,
        bound: LogicalPlan,
        observer: Observer | None = None,
        *,
        mode: str | None = None,
        backend: str | None = None,
    ) -> Road:
        """Optimize a bound plan, choose who runs it, lay its edges, cut it into chains. ``mode`` and
        ``backend`` overrule the settings.
        """
        check_plan(bound, self.settings)
        switches = Switches.of(self.settings, mode, backend)

        def spoken(part: LogicalPlan) -> bool:
            return speaks(part, switches.backend)

        optimized = optimize_sharing(
            bound, switches.mode, disabled=switches.disabled_rules, observer=observer, speaks=spoken
        )
        runtime, chosen = choose_runtime(optimized, switches.mode, speaks=spoken)
        wish = wish_of(bound)
        shape = max(2, switches.parallelism) if self.keeps_state or wish is not None else switches.parallelism
        # history has no scans to prune
        disabled = switches.disabled_rules if wish is None else (*switches.disabled_rules, "runtime_filters")
        plan = optimize(chosen, disabled=disabled, runtime=runtime, parallelism=shape, observer=observer)
        if runtime == "batch":
            if wish is not None:
                raise no_stream(wish)
            return Road(bound, plan, switches)
        facts = PlanFacts(state_ttl_ms=int(self.settings.get("table.exec.state.ttl")))
        check_sinks(plan, facts)
        laid = lay_edges(plan, switches.parallelism, facts=facts)
        check_order(laid, facts)
        graph = plan_job(
            laid,
            facts,
            parallelism=switches.parallelism,
            max_parallelism=switches.max_parallelism,
            settings=self.settings,
        )
        if wish is None:
            return Road(bound, plan, switches, facts, laid, graph)
        # it lists files: only where a history is wanted
        from penstock.client.history_planning import planned_history

        return Road(
            bound,
            plan,
            switches,
            facts,
            laid,
            graph,
            planned_history(wish, laid, graph, facts, self.settings),
        )

    def start(self, road: Road) -> Result:
        """Run what was planned: on the bounded backend, or as a job of our own runtime."""
        return backend_result(road, self.backends) if road.graph is None else submit(road, self)

    @property
    def keeps_state(self) -> bool:
        """Whether jobs outlive the process: then their plans have one shape at every parallelism, so that
        they can go on at another.
        """
        return self.state_dir is not None or bool(self.settings.get("execution.checkpointing.dir"))

    # -- statements

    def parse(self, sql: str, file: str | None = None) -> list[PlacedStatement]:
        """Return the statements of a text; raises the first syntax error with its place."""
        return placed_statements(sql, file)

    def execute(self, sql: str, params: Sequence[Any] = (), hold: HoldJob = hold_no_job) -> Result:
        """Execute the one statement of a text, ``params`` taking the places of its ``?``. Raises CLI-6005
        for several statements or none.
        """
        statements = self.parse(sql)
        if len(statements) != 1:
            message = (
                "there is no statement to execute"
                if not statements
                else f"execute takes one statement, here are {len(statements)}"
            )
            raise PenstockError(
                "CLI-6005",
                message,
                hint="executescript runs several" if statements else None,
                source=SourceText(sql),
            )
        return self.run(statements[0], params, hold)

    def run(
        self, statement: PlacedStatement, params: Sequence[Any] = (), hold: HoldJob = hold_no_job
    ) -> Result:
        """Run one parsed statement; every error carries its place in the text. An INSERT whose sources all
        end is run to its end.

        ``hold`` is given the job while it is waited for, then None, so that another thread can cancel it.
        """
        try:
            with self._lock:
                self.spoken.begin(statement.text, params)
                result = run_statement(self, statement.node, params)
                self.spoken.done(statement.node, statement.text)
            result.place = statement.place
            starts = (
                isinstance(statement.node, Insert | ExecuteStatementSet | CreateTableAs)
                and result.job is not None
            )
            return self._start_or_undo(result, hold) if starts else result
        except PenstockError as error:
            raise statement.place(error) from error

    def _start_or_undo(self, result: Result, hold: HoldJob) -> Result:
        try:
            return start_or_finish(self, result, hold)
        except BaseException as error:
            with self._lock:
                result.undo(error, result.job)
            raise

    def explain(self, statement: PlacedStatement) -> Result:
        """Return the plans of a query or insert instead of running it; any other statement is run."""
        node = statement.node
        if isinstance(node, Query | Insert | ExecuteStatementSet):
            node = Explain((), node)
        return self.run(replace(statement, node=node))

    # -- tables of the program

    def register(
        self,
        name: str,
        source: Any,
        *,
        time_column: str | None = None,
        delay: Any = None,
        stream: bool | None = None,
    ) -> None:
        """Make a table of the program readable under a name; see ``penstock.client.table_registration``."""
        from penstock.client.table_registration import register

        with self._lock:
            register(
                self.catalog,
                self.registered,
                name,
                source,
                time_column=time_column,
                delay=delay,
                stream=stream,
            )

    def create_function(self, function: PythonFunction, name: str | None = None) -> None:
        """Make a decorated Python function callable from SQL; raises SQL-1330 for a name of the language
        and SQL-1334 for an undecorated function.
        """
        with self._lock:
            register_function(self, function, name)

    def table(self, name: str, run: Callable[[LogicalPlan], Any] | None = None) -> Table:
        """Return a table or view as a Table API object; ``run`` takes its finished plans (by default
        ``run_plan``).
        """
        from penstock.planner.table_api.table import open_table  # the fluent way in: for programs that use it

        with self._lock:
            return open_table(name, Binder(self.catalog, self.settings), run or self.run_plan)

    def run_plan(self, bound: LogicalPlan, hold: HoldJob = hold_no_job) -> Result:
        """Run a bound plan that ends in a Sink, as the Table API makes them."""
        with self._lock:
            result = self.start(self.plan(self.views.pinned(bound)))
        return result if result.has_rows or result.job is None else start_or_finish(self, result, hold)

    # -- what runs

    def declared(self, table: CatalogTable) -> None:
        """Learn of a new table: where a user sits, Spark is started in the background as soon as there is
        a bounded table to read.
        """
        wanted = (
            self.warms_backend
            and self.settings.get("bounded.backend") == "spark"
            and self.settings.get("execution.runtime-mode") != "streaming"
        )
        if (
            wanted
            and boundedness(table) is Boundedness.BOUNDED
            and Path(table.options.get("path", "")).exists()
        ):
            from penstock.engine.bounded.spark.backend import SparkBackend

            self.warms_backend = False
            if isinstance(spark := self.backends.backend("spark"), SparkBackend):
                spark.warm()

    def open_store(self, store: CatalogStore) -> None:
        """Fill a catalog from its store, and from now on keep it there."""
        here, outer = self.catalog.current, self.loading
        self.catalog.current, self.loading = ObjectPath(store.catalog), True
        try:
            for statement in store.load():
                self.execute(statement)
        finally:
            self.catalog.current, self.loading = here, outer
        self.stores[store.catalog] = store

    def keep_catalogs(self) -> None:
        """Write down what was changed in the catalogs that are kept."""
        if not self.loading and not self.checks_only:
            for store in self.stores.values():
                store.save(self.catalog)

    @cached_property
    def backends(self) -> BoundedBackends:
        """The bounded backends; each is started when a plan needs it."""
        # numba, duckdb, pyspark: not before a plan needs them
        from penstock.engine.bounded.backend import BoundedBackends

        return BoundedBackends(Services(*self._tables), settings=self.settings)

    @property
    def _tables(self) -> tuple[object, ...]:
        """What holds rows in this process that queries may read."""
        return self.registered, self.bad_records, self.late_rows, self.views.tables

    @property
    def job_manager(self) -> JobManager:
        """The job manager of this process, started by the first job."""
        with self._lock:
            if self._job_manager is None:
                # the runtime and its kernels: not before a job needs them
                from penstock.engine.job.job_manager import JobManager

                self._job_manager = JobManager(
                    Services(self.channels, *self._tables, self.print_stream, self.backends)
                )
                close_at_exit(self.close)
            return self._job_manager

    def next_result_number(self) -> int:
        """Return a number no other result of this session has."""
        return next(self._results)

    def job_id_for(self, name: str, state_dir: Path) -> str:
        """Return the id under which a job of that name keeps its state: the same one in the next process
        that runs the same statements.
        """
        # it reads checkpoints: the engine is not loaded before a job starts
        from penstock.client.recorded_jobs import job_id_of

        if self.adopting is not None:
            job_id, self.adopting = self.adopting, None
            return job_id
        self._names[name] += 1
        return job_id_of(state_dir, name, self._names[name])

    def give_back_id(self, name: str, job_id: str) -> None:
        """Let the next job of a name have the id that was made for one that was refused: only with it the
        state that is there is found.
        """
        if job_id.endswith(f"-{self._names[name]}"):
            self._names[name] -= 1

    def jobs(self) -> list[Job]:
        """Return the jobs of this session in the order they were started."""
        return [] if self._job_manager is None else self._job_manager.jobs()

    def filling_jobs(self) -> list[Job]:
        """Return the jobs of INSERT and CREATE TABLE AS in the order they were started."""
        views = {filling.job.job_id for filling in self.views.fillings.values()}
        started = {
            job_id
            for job_id, made in self.started.items()
            if made.sink_number is None and job_id not in views
        }
        return [job for job in self.jobs() if job.job_id in started]

    def serve_metrics(self, settings: Settings) -> None:
        """Answer on the port ``metrics.prometheus.port`` says, if it says one. CLI-6031 when that port is
        not to be had; then nothing has changed.
        """
        port, before = int(settings.get("metrics.prometheus.port")), self._metrics_server
        if self.checks_only or port == (0 if before is None else before.port):
            return
        serving = None
        if port:
            # a web server: only where one is asked for
            from penstock.client.monitoring.http_server import MetricsServer

            serving = MetricsServer(self.jobs, port)
        if before is not None:
            before.close()
        self._metrics_server = serving

    def close(self) -> None:
        """Stop what runs, in order: jobs of INSERT take a last checkpoint, and ``tell`` says which they
        were. Then release the engine.
        """
        with self._lock:
            if self._metrics_server is not None:
                self._metrics_server.close()
            if self._job_manager is not None:
                closed(self.close)
                try:
                    stop_jobs(self)
                finally:
                    self._job_manager.close()
            if "backends" in self.__dict__:
                self.backends.close()
