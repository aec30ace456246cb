"""A session: parses statements and runs them one at a time. The stages of a query are in
``QueryPipeline.run``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError, SourceText
from penstock.catalog.persistence.catalog_store import CatalogStore
from penstock.catalog.python_connectors import PythonConnector
from penstock.catalog.python_functions import Decorated
from penstock.catalog.types import DataType
from penstock.client.execution.access_control import AccessControl, CheckedFiles, CheckedStates
from penstock.client.execution.job_ends import start_or_finish, stop_jobs
from penstock.client.execution.pending_statement import HoldJob, hold_no_job
from penstock.client.execution.prepared_statement import PreparedStatement, RepeatedQueries
from penstock.client.execution.query_pipeline import QueryPipeline
from penstock.client.execution.session_settings import is_engine_setting
from penstock.client.execution.session_state import SessionState
from penstock.client.results.result import Result
from penstock.client.statements.dispatch import LocatedStatement, load_catalog, parse_statements, run_located
from penstock.client.statements.functions import register_function
from penstock.client.statements.show import read_metrics
from penstock.engine.api.threads import close_at_exit, closed
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.parameters import Parameters
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.parser.scanner import escape_strings
from penstock.planner.statements.nodes import CreateTableAs, ExecuteStatementSet, Explain, Insert, Query

if TYPE_CHECKING:
    from penstock.client.execution.engine_state import EngineState
    from penstock.client.execution.recorded_jobs import RecordedJob
    from penstock.engine.api.locations import Location
    from penstock.engine.job.job import Job
    from penstock.engine.job.metric_registry import Metric
    from penstock.planner.table_api.execution import NewCursor
    from penstock.planner.table_api.table import Table


# a table or view, a function, a catalog or database
NAME_IS_TAKEN = ("SQL-1302", "SQL-1330", "SQL-1352")


class Session:
    """Runs statements one at a time, whichever thread calls. Results and jobs are independent of it
    afterwards.

    ``catalog_dir``: where permanent tables and views are stored; None keeps them in memory. ``state_dir``:
    where jobs keep their checkpoints; None reads the setting ``execution.checkpointing.dir``. ``engine``: a
    shared engine, whose catalog, jobs and backends other sessions use too; else it has one of its own.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        state_dir: Location | None = None,
        catalog_dir: Path | None = None,
        engine: EngineState | None = None,
    ) -> None:
        self.state = SessionState(settings or {}, state_dir, engine)
        self.settings = self.state.settings
        self.catalog = self.state.catalog
        self.pipeline = QueryPipeline(self.state)
        self._repeated = RepeatedQueries(self.prepare, self.state)
        # the engine and its catalog are there, and whoever made it closes it
        if engine is not None:
            return
        # a program that never closes its session: its jobs still take their last checkpoint
        self.state.jobs.on_first_job = lambda: close_at_exit(self.close)
        self.state.serve_metrics(self.settings)
        # last: the stored statements run in this session, with its settings
        if catalog_dir is not None:
            load_catalog(self.state, self.pipeline, CatalogStore(catalog_dir))

    def restrict(self, access: AccessControl) -> None:
        """Let statements do only what ``access`` allows. Once, before the first statement."""
        self.state.access = access
        # the columns of a file or state are read while a statement is bound
        self.catalog.files = CheckedFiles(self.catalog.files, access)
        self.catalog.states = CheckedStates(self.catalog.states, access)

    def parse(self, sql: str, file: str | None = None) -> list[LocatedStatement]:
        """Return the statements of a text; raises the first syntax error with its position. With
        ``sql.string-escapes`` the text is first written without it.
        """
        escapes = self.settings.get("sql.string-escapes") == "backslash"
        return parse_statements(escape_strings(sql) if escapes else sql, file)

    def execute(self, sql: str, params: Parameters = (), hold: HoldJob = hold_no_job) -> Result:
        """Execute the one statement of a text; ``params`` are the values of its placeholders. Raises
        CLI-6005 for several statements or none.
        """
        if params and (prepared := self._repeated.find(sql)) is not None:
            return prepared.execute(params, hold)
        return self.run(self.parse_one(sql), params, hold)

    def parse_one(self, sql: str) -> LocatedStatement:
        """Return the one statement of a text. Raises CLI-6005 for several statements or none."""
        statements = self.parse(sql)
        if len(statements) != 1:
            message = (
                "there is no statement to execute"
                if not statements
                else f"execute takes one statement, here are {len(statements)}"
            )
            hint = "executescript runs several" if statements else None
            raise PenstockError("CLI-6005", message, hint=hint, source=SourceText(sql))
        return statements[0]

    def prepare(
        self, sql: str, types: Sequence[DataType | None] = (), otherwise: Sequence[DataType | None] = ()
    ) -> PreparedStatement:
        """Prepare the one statement of a text; ``types`` are those of its first parameters, as far as the
        caller knows them, ``otherwise`` those where the statement asks for none. Raises CLI-6005, and what
        binding raises.
        """
        statement = self.parse_one(sql)
        return PreparedStatement(
            self.state, self.pipeline, statement, partial(self.run, statement), types, otherwise
        )

    def run(
        self,
        statement: LocatedStatement,
        params: Parameters = (),
        hold: HoldJob = hold_no_job,
        run: Callable[[], Result] | None = None,
    ) -> Result:
        """Run one parsed statement; every error has its position in the text. An INSERT whose sources all
        end runs to its end. ``hold`` is called with what can be cancelled before each wait, and with None
        after it. ``run`` runs the plan of a prepared statement.
        """
        # under the lock, unlike the wait below: other threads run statements during the wait
        with self.state.cancellable(hold):
            result = run_located(self.state, self.pipeline, statement, params, run)
        # the job of a SELECT ends with its result, that of a materialized view with its DROP
        if not isinstance(statement.node, Insert | ExecuteStatementSet | CreateTableAs) or result.job is None:
            return result
        try:
            with self.state.in_use():
                return start_or_finish(self.state, result, hold)
        # BaseException: an interrupted CREATE TABLE AS drops its table as well
        except BaseException as error:
            with self.state.lock:
                result.undo(error, result.job)
            if isinstance(error, PenstockError):
                raise statement.locate(error) from error
            raise

    def explain(self, statement: LocatedStatement) -> Result:
        """Return the plans of a query or insert instead of running it; any other statement is run."""
        node = statement.node
        if isinstance(node, Query | Insert | ExecuteStatementSet):
            node = Explain((), node)
        return self.run(replace(statement, node=node))

    def run_plan(self, bound: LogicalPlan, hold: HoldJob, sql: Callable[[], str]) -> Result:
        """Run a bound plan that ends in a Sink, as the Table API makes them; its text is not needed here."""
        with self.state.cancellable(hold), self.state.lock:
            # a plan has no text: without this the job would be recorded with the statement before it
            self.state.statement_log.begin("", ())
            result = self.pipeline.start(self.pipeline.plan(self.state.views.pin(bound)))
        return result if result.has_rows or result.job is None else start_or_finish(self.state, result, hold)

    def resume(self, job: RecordedJob) -> Result:
        """Run a recorded job's statements again in this fresh session, over its state directory. Return
        the result of the job's own statement. STA-3054 when they contain secrets.
        """
        from penstock.engine.checkpoint.job_directory import refuse_withheld  # the engine: not before a job

        record = job.record
        # the record has no statements: they contain secrets
        if record.withheld:
            raise refuse_withheld(job.job_id)
        # what the caller has set overrules the record
        is_shared = self.state.shares_engine
        for key, text in record.settings:
            if not self.settings.is_set(key) and not (is_shared and is_engine_setting(key)):
                self.settings.set(key, text)
        # return as soon as the job runs, also where its sources end
        self.settings.set("table.dml-sync", "false")
        for statement in record.statements:
            try:
                self.execute(statement)
            except PenstockError as error:
                # the stored catalog has that name, by the same statement
                if error.code not in NAME_IS_TAKEN or not self.state.engine.stores:
                    raise
        # the next job with state takes this id, and so the directory: set just before its statement
        self.state.resume_as = job.job_id
        own = self.parse_one(record.statement)
        # CREATE TABLE AS: the stored catalog has the table, and the job that fills it goes on
        node = own.node
        if isinstance(node, CreateTableAs) and self.catalog.find(node.table.name.text) is not None:
            own = replace(own, node=Insert(node.table.name, node.query))
        try:
            return self.run(own)
        finally:
            self.state.resume_as = None

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

        with self.state.lock:
            register(
                self.catalog,
                self.state.registered,
                name,
                source,
                registered_name=self.state.registered_name,
                time_column=time_column,
                delay=delay,
                stream=stream,
            )

    def unregister(self, name: str) -> None:
        """Remove a registered table; see ``penstock.client.table_registration``."""
        from penstock.client.table_registration import unregister

        with self.state.lock:
            unregister(self.catalog, self.state.registered, name)

    def create_function(self, function: Decorated, name: str | None = None) -> None:
        """Make a decorated Python function callable from SQL. Raises SQL-1330 for a name of the language
        and SQL-1334 for an undecorated function.
        """
        with self.state.lock:
            register_function(self.state, function, name)

    def create_connector(self, connector: PythonConnector, name: str | None = None) -> None:
        """Make a decorated Python source or sink known to tables of connector ``python`` by its name. Raises
        DAT-5605 for an undecorated object.
        """
        with self.state.lock:
            self.state.python_connectors.register(connector, name)

    def table(self, name: str, new_cursor: NewCursor | None = None) -> Table:
        """Return a table or view as a Table API object, which runs its plans on new cursors."""
        from penstock.planner.table_api.table import open_table  # the fluent API: for programs that use it

        with self.state.lock:
            return open_table(name, Binder(self.catalog, self.settings), new_cursor)

    @property
    def leaves_jobs(self) -> bool:
        """Whether ``close`` leaves the jobs of INSERT running: other sessions have the engine too."""
        return self.state.shares_engine

    @property
    def is_remote(self) -> bool:
        """Whether it is a session of a server: no."""
        return False

    def metrics(self, job_id: str | None = None, like: str | None = None) -> list[Metric]:
        """Return what jobs have counted. CLI-6030 for a job that is not there."""
        return read_metrics(self.state, job_id, like)

    def jobs(self) -> list[Job]:
        """Return the jobs of the engine in the order they were started."""
        return self.state.jobs.all()

    def close(self) -> None:
        """Stop the running jobs in order: jobs of INSERT take a last checkpoint, and ``state.report``
        names them. Then release the engine. A session of a shared engine stops its queries only.
        """
        if self.state.shares_engine:
            # without the lock: a statement that waits must not delay the end of the others
            self.state.close_queries()
            return
        with self.state.lock:
            # first: the endpoint reads the jobs that are stopped next
            self.state.engine.stop_metrics_server()
            # not again at the end of the process
            closed(self.close)
            try:
                stop_jobs(self.state)
            finally:
                self.state.close()
