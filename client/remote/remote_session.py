"""The session of a server: what a Connection and its cursors run on when they are given a URL."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.settings import Settings
from penstock.client.execution.pending_statement import HoldJob, hold_no_job
from penstock.client.remote.abandonable_call import AbandonableCall
from penstock.client.remote.flight_channel import FlightChannel
from penstock.client.remote.protocol import StatementRequest, decode_answer
from penstock.client.remote.remote_job import RemoteJob
from penstock.client.remote.remote_names import fetch_binder, fetch_names
from penstock.client.remote.remote_stream import RemoteStream
from penstock.client.remote.server_url import ServerUrl
from penstock.client.remote.uploads import upload_command, upload_rows
from penstock.client.remote.wire_errors import WireError
from penstock.client.results.result import Result
from penstock.client.results.result_stream import ResultStream, TableStream
from penstock.client.statements.dispatch import LocatedStatement, parse_statements
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.threads import close_at_exit, closed
from penstock.engine.job.metric_registry import Metric
from penstock.planner.binder.parameters import Parameters
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.statements.nodes import ExecuteStatementSet, Explain, Insert, Query

if TYPE_CHECKING:
    from penstock.catalog.catalog import Catalog
    from penstock.planner.table_api.execution import NewCursor
    from penstock.planner.table_api.table import Table

SqlText = Callable[[], str]
_FRESH_MS = 1_000.0


class RemoteSession:
    """Runs statements in a session of a server. Any thread may call it; statements are sent as text.

    Closing it stops its queries. Jobs of INSERT and materialized views continue at the server.
    """

    leaves_jobs = True
    is_remote = True

    def __init__(self, url: ServerUrl, settings: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._channel = FlightChannel(url)
        self._numbers = itertools.count(1)
        # before the number: two clients of one session have statements of different ids
        self._prefix = secrets.token_hex(6)
        self._running: RunningStatement | None = None
        self._settings = RemoteSettings(self)
        self._catalog: Catalog | None = None
        self._fetched_ms = 0.0
        self._clock = SystemClock()
        self._channel.open({**url.settings, **(settings or {})})
        close_at_exit(self.close)
        if url.catalog is not None:
            self.execute(f"USE CATALOG {_quoted(url.catalog)}")
        if url.database is not None:
            self.execute(f"USE {_quoted(url.database)}")

    @property
    def catalog(self) -> Catalog:
        """A copy of the server's names, at most a second old: completion reads them at every key."""
        return self._fetch()

    @property
    def settings(self) -> Settings:
        """A copy of the session's settings; ``set`` sets them at the server."""
        self._fetch()
        return self._settings

    def _fetch(self, most_ms: float = _FRESH_MS) -> Catalog:
        now_ms = self._clock.monotonic_ms()
        if self._catalog is None or now_ms - self._fetched_ms > most_ms:
            self._catalog, values = fetch_names(self._channel)
            self._settings.replace(values)
            self._fetched_ms = now_ms
        return self._catalog

    def cancel_running(self) -> None:
        """Cancel the statement that a thread waits for, if there is one."""
        running = self._running
        if running is not None:
            running.cancel()

    def parse(self, sql: str, file: str | None = None) -> list[LocatedStatement]:
        """Return the statements of a text; raises the first syntax error with its position."""
        return parse_statements(sql, file)

    def execute(self, sql: str, params: Parameters = (), hold: HoldJob = hold_no_job) -> Result:
        """Execute the one statement of a text; see ``Session.execute``."""
        return self._execute(sql, params, hold, lambda error: error.raised(sql))

    def run(
        self, statement: LocatedStatement, params: Parameters = (), hold: HoldJob = hold_no_job
    ) -> Result:
        """Run one parsed statement; see ``Session.run``. Errors have their position in its text."""

        def locate(error: WireError) -> PenstockError:
            # of the whole text, of which the server has this statement
            return error.raised().with_source(statement.source, statement.offset)

        return self._execute(statement.text, params, hold, locate)

    def explain(self, statement: LocatedStatement) -> Result:
        """Return the plans of a query or insert instead of running it; any other statement is run."""
        if isinstance(statement.node, Query | Insert | ExecuteStatementSet):
            text = f"EXPLAIN {statement.text}"
            node = Explain((), statement.node)
            # the caret stands in the text as the user wrote it
            moved = statement.offset - len("EXPLAIN ")
            statement = replace(statement, node=node, text=text, offset=moved)
        return self.run(statement)

    def run_plan(self, bound: LogicalPlan, hold: HoldJob, sql: SqlText) -> Result:
        """Run a plan of the Table API, which is sent as its text."""
        return self._execute(sql(), (), hold, lambda error: error.raised())

    def _execute(
        self, sql: str, params: Parameters, hold: HoldJob, locate: Callable[[WireError], PenstockError]
    ) -> Result:
        statement_id = f"{self._prefix}-{next(self._numbers)}"
        command = StatementRequest(sql, params, statement_id).encoded()
        # in a thread: Ctrl-C is handled while the main thread waits, and not inside of gRPC
        call = AbandonableCall(
            partial(self._channel.flight_info, command, locate), lambda info: None, "penstock-remote-call"
        )
        # from here another thread can cancel what this one waits for
        running = self._running = RunningStatement(self._channel, statement_id)
        hold(running)  # type: ignore[arg-type]  # a job as far as it is cancelled
        try:
            info = call.result(lambda: False)
        except KeyboardInterrupt:
            running.cancel()
            raise
        finally:
            hold(None)
            self._running = None
        # it may have changed names or settings
        self._catalog = None
        answer = decode_answer(info.app_metadata)
        job = None if answer.job is None else RemoteJob(self._channel, *answer.job)
        stream: ResultStream = TableStream()
        if len(answer.shape.schema):
            stream = RemoteStream(self._channel, info.endpoints[0].ticket, locate)
        # errors of its rows are located by the stream
        return Result(answer.shape, stream, job, answer.note, answer.rowcount)  # type: ignore[arg-type]

    # -- tables and names

    def register(
        self,
        name: str,
        source: Any,
        *,
        time_column: str | None = None,
        delay: Any = None,
        stream: bool | None = None,
    ) -> None:
        """Upload rows into a table of the session. CLI-6244 for what only this process can compute."""
        rows = upload_rows(name, source)
        command = upload_command(name, time_column, delay, stream)
        self._channel.upload(command, rows)

    def unregister(self, name: str) -> None:
        """Remove an uploaded table."""
        self._channel.action("penstock.unregister", {"name": name})

    def create_function(self, function: Any, name: str | None = None) -> None:
        """Refuse: CLI-6244."""
        raise _local(
            "a Python function", "CREATE FUNCTION f AS 'module.name' names one that the server can import"
        )

    def create_connector(self, connector: Any, name: str | None = None) -> None:
        """Refuse: CLI-6244."""
        raise _local("a Python connector", "'connector' = 'python' names one that the server can import")

    def table(self, name: str, new_cursor: NewCursor | None = None) -> Table:
        """Return a table or view as a Table API object, which sends its query as text."""
        from penstock.planner.table_api.table import open_table  # the fluent API: for programs that use it

        return open_table(name, fetch_binder(self._channel), new_cursor)

    # -- jobs

    def jobs(self) -> list[RemoteJob]:
        """Return the jobs of the server in the order they were started."""
        found = self._channel.action("penstock.jobs", {})["jobs"]
        return [RemoteJob(self._channel, facts["id"], facts["name"]) for facts in found]

    def metrics(self, job_id: str | None = None, like: str | None = None) -> list[Metric]:
        """Return what jobs have counted."""
        words = {"job": job_id, "like": like}
        return [Metric(**values) for values in self._channel.action("penstock.metrics", words)["metrics"]]

    def close(self) -> None:
        """End the session: its queries stop. A server that has gone is not waited for."""
        closed(self.close)
        try:
            self._channel.action_bytes("CloseSession", b"")
        # the server has gone, and the session with it; or it was closed there
        except PenstockError as error:
            if not error.sqlstate.startswith(("08", "57")):
                raise
        finally:
            self._channel.close()


class RemoteSettings(Settings):
    """The settings of a session of a server."""

    def __init__(self, session: RemoteSession) -> None:
        super().__init__({})
        self._session = session

    def set(self, key: str, text: str, span: Span | None = None, *, key_span: Span | None = None) -> None:
        """Set a setting at the server, and here."""
        name, value = key.replace("'", "''"), text.replace("'", "''")
        self._session.execute(f"SET '{name}' = '{value}'")
        super().set(key, text, span, key_span=key_span)

    def replace(self, values: Mapping[str, str]) -> None:
        """Take over what the server has."""
        self.reset(None)
        for key, text in values.items():
            super().set(key, text)


class RunningStatement:
    """A statement that has no answer yet: what ``Cursor.cancel`` cancels."""

    def __init__(self, channel: FlightChannel, statement_id: str) -> None:
        self._channel = channel
        self._statement_id = statement_id

    def cancel(self) -> None:
        """Cancel it at the server; the waiting call gets the error."""
        self._channel.action("penstock.cancel", {"id": self._statement_id})


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _local(what: str, hint: str) -> PenstockError:
    message = f"{what} is in this process, and the server runs in another"
    return PenstockError("CLI-6244", message, hint=hint, sqlstate="0A000")
