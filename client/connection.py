"""PEP 249 connections to an engine in this process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError
from penstock.catalog.python_connectors import PythonConnector
from penstock.catalog.python_functions import Decorated
from penstock.client import dbapi_errors
from penstock.client.cursor import Cursor
from penstock.client.dbapi_errors import NotSupportedError, client_error
from penstock.client.results.html_preview import html_table
from penstock.client.session import Session
from penstock.planner.binder.parameters import Parameters

if TYPE_CHECKING:
    from penstock.client.remote.remote_job import RemoteJob
    from penstock.client.remote.remote_session import RemoteSession
    from penstock.engine.job.job import Job
    from penstock.engine.job.metric_registry import Metric
    from penstock.planner.table_api.table import Table


def connect(
    url: str | None = None, *, settings: Mapping[str, str] | None = None, catalog: str | Path | None = None
) -> Connection:
    """Return a connection to a server, or without a URL to an engine in this process. OperationalError for a
    server that does not answer.
    """
    try:
        if url:
            if catalog is not None:
                hint = "penstock serve --catalog DIR stores the server's tables"
                message = "the catalog of a server is not in this process"
                raise PenstockError("CLI-6244", message, hint=hint, sqlstate="0A000")
            # Flight: only for programs that connect to a server
            from penstock.client.remote.remote_session import RemoteSession
            from penstock.client.remote.server_url import parse_url

            return Connection(RemoteSession(parse_url(url), settings))
        return Connection(Session(settings, catalog_dir=None if catalog is None else Path(catalog)))
    except PenstockError as error:
        raise client_error(error) from error


class Connection:
    """One session: its catalog, settings and jobs. May be shared by threads; give each thread a cursor of
    its own.
    """

    Warning = dbapi_errors.Warning
    Error = dbapi_errors.Error
    InterfaceError = dbapi_errors.InterfaceError
    DatabaseError = dbapi_errors.DatabaseError
    DataError = dbapi_errors.DataError
    OperationalError = dbapi_errors.OperationalError
    IntegrityError = dbapi_errors.IntegrityError
    InternalError = dbapi_errors.InternalError
    ProgrammingError = dbapi_errors.ProgrammingError
    NotSupportedError = dbapi_errors.NotSupportedError

    def __init__(self, session: Session | RemoteSession) -> None:
        # a server's session has the same calls
        self.session: Session = session  # type: ignore[assignment]
        # weak: a cursor that the program has dropped is not kept in memory by its connection
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()
        self._closed = False
        self._process = os.getpid()

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self._check_open()
        cursor = Cursor(self.session)
        self._cursors.add(cursor)
        return cursor

    def execute(self, sql: str, params: Parameters = ()) -> Cursor:
        """Execute one statement on a new cursor and return the cursor."""
        return self.cursor().execute(sql, params)

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> Cursor:
        """Execute a statement that gives no rows once for each row of parameters, on a new cursor."""
        return self.cursor().executemany(sql, rows)

    def executescript(self, sql: str) -> Cursor:
        """Execute statements in order, stopping at the first error; the cursor returned holds the last
        one's result.
        """
        return self.cursor().executescript(sql)

    def register(
        self,
        name: str,
        source: Any,
        *,
        time_column: str | None = None,
        delay: Any = None,
        stream: bool | None = None,
    ) -> None:
        """Make an Arrow table or reader, a pandas frame or an iterable readable as table ``name``.

        ``time_column`` becomes the event-time attribute, its watermark ``delay`` behind (a timedelta, or text
        such as '5 s'). ``stream``: read as a stream instead of a bounded table; by default so for iterators
        and wherever there is a time column. Raises ProgrammingError.
        """
        self._check_open()
        try:
            self.session.register(name, source, time_column=time_column, delay=delay, stream=stream)
        except PenstockError as error:
            raise client_error(error) from error

    def unregister(self, name: str) -> None:
        """Remove a table that ``register`` made. Raises ProgrammingError when there is none."""
        self._check_open()
        try:
            self.session.unregister(name)
        except PenstockError as error:
            raise client_error(error) from error

    def create_function(self, function: Decorated, name: str | None = None) -> None:
        """Make a function decorated with ``penstock.udf``, ``udaf``, ``udtf`` or ``ptf`` callable from SQL.
        Raises ProgrammingError.
        """
        self._check_open()
        try:
            self.session.create_function(function, name)
        except PenstockError as error:
            raise client_error(error) from error

    def create_connector(self, connector: PythonConnector, name: str | None = None) -> None:
        """Make a source or sink decorated with ``penstock.source`` or ``penstock.sink`` known to tables of
        connector ``python`` by its name. Raises ProgrammingError.
        """
        self._check_open()
        try:
            self.session.create_connector(connector, name)
        except PenstockError as error:
            raise client_error(error) from error

    def table(self, name: str) -> Table:
        """Return a table or view as a Table API object; its ``execute`` and ``insert_into`` give a cursor."""
        self._check_open()
        try:
            # a cursor for each execute, so that one table can be read twice at a time
            return self.session.table(name, self.cursor)
        except PenstockError as error:
            raise client_error(error) from error

    def jobs(self) -> Iterable[Job | RemoteJob]:
        """Return the jobs this connection has started; at a server, all its jobs."""
        return self.session.jobs()

    def metrics(self, job_id: str | None = None, like: str | None = None) -> list[Metric]:
        """Return what the jobs of this connection, or one of them, have counted; ``like`` is a LIKE
        pattern over names. ProgrammingError.
        """
        self._check_open()
        try:
            return self.session.metrics(job_id, like)
        except PenstockError as error:
            raise client_error(error) from error

    def commit(self) -> None:
        """Do nothing: every statement takes effect at once."""
        self._check_open()

    def rollback(self) -> None:
        """Raise NotSupportedError: there are no transactions."""
        raise NotSupportedError(
            "CLI-6021",
            "there are no transactions to roll back: every statement takes effect at once",
            sqlstate="0A000",
        )

    def close(self) -> None:
        """Stop queries, then the jobs of INSERT that still run: with a last checkpoint, each named on stderr.
        Release the engine. On a server only the queries are stopped.

        May be called by any thread. A program that does not close its connections has them closed when it
        ends (not by ``os._exit`` or a signal that kills). In a process forked from the one that opened it
        nothing is stopped.
        """
        if not self._closed and self._process == os.getpid():
            # before the stop, which takes time: another thread gets no new cursor meanwhile
            self._closed = True
            cursors = list(self._cursors)
            for cursor in cursors:
                # queries only: an INSERT that a thread waits for is stopped below, with its last checkpoint
                cursor.stop_query()
            self.session.close()
            for cursor in cursors:
                # after the session: close cancels, and a cancelled job takes no checkpoint
                cursor.close(leaves_jobs=self.session.leaves_jobs)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<penstock.Connection: {self._described()}>"

    def _repr_html_(self) -> str:
        """Return the connection's jobs for a notebook."""
        rows = [(job.job_id, job.name, job.state) for job in self.session.jobs()]
        return html_table([("job", ""), ("name", ""), ("state", "")], rows, self._described())

    def _described(self) -> str:
        states = [job.state for job in self.session.jobs()]
        running = sum(not state.terminal for state in states)
        jobs = f"{len(states)} job{'' if len(states) == 1 else 's'}, {running} running"
        return f"{'closed' if self._closed else 'open'}, {jobs}"

    def _check_open(self) -> None:
        if self._closed:
            raise dbapi_errors.InterfaceError("CLI-6002", "the connection is closed", sqlstate="08003")
        if self._process != os.getpid():
            raise dbapi_errors.InterfaceError(
                "CLI-6012",
                "the connection belongs to the process that this one was forked from",
                hint="call penstock.connect in this process, or start it by spawn",
                sqlstate="08003",
            )
