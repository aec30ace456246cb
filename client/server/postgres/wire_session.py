"""The session of one client: takes its messages one by one and sends what they lead to. It does no I/O: it is
handed a connection to send by, and blocks where a slow client makes that block.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.catalog.errors import PenstockError
from penstock.client.cursor import Cursor
from penstock.client.server.postgres import backend_messages as backend
from penstock.client.server.postgres import frontend_messages as frontend
from penstock.client.server.postgres.copy_input import CopyInput
from penstock.client.server.postgres.copy_output import CopyWriter
from penstock.client.server.postgres.cursor_statements import DeclaredCursors
from penstock.client.server.postgres.executions import (
    Execution,
    QueryStatement,
    TableStatement,
    WireStatement,
)
from penstock.client.server.postgres.parameter_values import parameter_value
from penstock.client.server.postgres.row_output import BINARY, TEXT, RowEncoder, result_formats
from penstock.client.server.postgres.row_reader import RowReader, Watch
from penstock.client.server.postgres.session_errors import (
    MOST_OBJECTS,
    already_exists,
    cancelled,
    failed_transaction,
    moved,
    no_portal,
    no_values,
    timed_out,
    too_many,
)
from penstock.client.server.postgres.session_parameters import REPORTED, ZONE_SETTING, SessionParameters
from penstock.client.server.postgres.sql_words import split_statements
from penstock.client.server.postgres.statement_compiler import StatementCompiler
from penstock.client.server.postgres.wire_types import wire_type
from penstock.client.server.server_sessions import ServerSession

NOTICE_AFTER_S = 5.0
ENDLESS = (
    "this result is endless, and most clients show nothing before its end",
    "psql: \\set FETCH_COUNT 20; other clients: DECLARE c CURSOR FOR .., then FETCH 20 FROM c; "
    "or COPY (..) TO STDOUT, which sends each row at once",
)
_SKIPPED = (frontend.Parse, frontend.Bind, frontend.DescribeRequest, frontend.Execute, frontend.Close)
_SEND_BYTES = 1 << 16  # small messages are sent together up to this many bytes


class ClientConnection(Protocol):
    """The connection of a client."""

    def send(self, data: bytes | memoryview) -> None:
        """Send bytes, waiting while the client does not read. Raises ConnectionError once it is gone."""

    def monotonic_ms(self) -> float:
        """Return the time."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call a function later, in a thread of its own; return what cancels that."""


@dataclass
class Portal:
    """A statement (None: an empty text) with its values. ``execution`` is there from its first Execute on."""

    statement: WireStatement | None
    values: Sequence[object]
    formats: tuple[int, ...]
    execution: Execution | None = None
    encoder: RowEncoder | None = None

    @property
    def is_at_hand(self) -> bool:
        """Whether closing it waits for nothing."""
        return self.execution is None or self.execution.at_hand

    def close(self) -> None:
        """Stop what computes its rows."""
        if self.execution is not None and self.execution.reader is not None:
            self.execution.reader.cancel()


@dataclass
class NamedStatement:
    """A prepared statement: what Parse has made, None of an empty text."""

    statement: WireStatement | None
    oids: tuple[int, ...]


class WireSession:
    """``handle`` takes one message and returns when it is done; one thread at a time calls it. ``cancel`` may
    be called by any thread.
    """

    def __init__(self, session: ServerSession, connection: ClientConnection, startup: dict[str, str]) -> None:
        self.server_session = session
        self._connection = connection
        self._out = bytearray()
        self._statements: dict[str, NamedStatement] = {}
        self._portals: dict[str, Portal] = {}
        self._copy: CopyInput | None = None
        self._copy_is_simple = False
        self._skips = False
        self._has_failed = False
        self._has_noticed = False
        self._is_simple = self._holds = False
        self._lock = threading.Lock()
        self._cancelled: PenstockError | None = None
        self._running: Cursor | None = None
        self._is_busy = False
        self._stop_timer: Callable[[], None] | None = None
        self.process = 0
        self.in_transaction = False
        self.has_written = False
        self.cursors = DeclaredCursors()
        self.settings = session.connection.session.settings
        self.parameters = SessionParameters(self.settings, startup)
        self.watch: Watch = self
        session.connection.session.state.is_cancelled = lambda: self._cancelled is not None
        self._compiler = StatementCompiler(self, startup)

    # -- what readers and statements ask of it

    def monotonic_ms(self) -> float:
        return self._connection.monotonic_ms()

    def check(self) -> None:
        """Raise the error of a statement that was cancelled."""
        if self._cancelled is not None:
            raise self._cancelled

    def idle(self, reader: RowReader) -> None:
        """Tell a client that waits for the end of an endless result what to write instead, once."""
        if self._is_simple and not self._has_noticed and reader.elapsed_s >= NOTICE_AFTER_S:
            self._has_noticed = True
            self._notice(*ENDLESS)
            self.flush()

    def new_cursor(self) -> Cursor:
        """Return a cursor for a statement that starts now; cancelling the session cancels it."""
        cursor = self.server_session.connection.cursor()
        with self._lock:
            self._running = cursor
        self.check()
        return cursor

    def forget_statements(self, name: str | None) -> None:
        if name is None:
            self._statements.clear()
        else:
            self._statements.pop(name, None)

    def report(self, name: str) -> None:
        if (shown := REPORTED.get(name.lower())) is not None:
            self._put(backend.parameter_status(shown, self.parameters.get(name)))

    def use(self, database: str) -> bool:
        return self._compiler.use(database)

    @property
    def zone(self) -> str:
        """The time zone that instants are written in."""
        return self.settings.text(ZONE_SETTING)

    # -- the owner's side

    def open(self, process: int, key: int) -> None:
        """Send what follows a successful authentication."""
        self.process = process
        for name, shown in REPORTED.items():
            self._put(backend.parameter_status(shown, self.parameters.get(name)))
        self._put(backend.backend_key(process, key))
        self._ready()

    def cancel(self, error: PenstockError | None = None, *, leaves_jobs: bool = False) -> None:
        """Cancel the statement that runs. ``leaves_jobs``: not the job of an INSERT that is waited for."""
        with self._lock:
            if not self._is_busy:
                return
            self._cancelled = self._cancelled or error or cancelled()
            running = self._running
        if running is not None:
            (running.stop_query if leaves_jobs else running.cancel)()

    def close(self) -> None:
        """Stop everything that the session runs, but jobs."""
        self.cancel(leaves_jobs=True)
        if self._copy is not None:
            self._copy.fail("the connection was closed")
        self.server_session.close()

    def handle(self, message: frontend.Message) -> None:
        """Do what a message asks. Errors of statements are sent; ConnectionError means that the client is
        gone.
        """
        with self._lock:
            self._cancelled, self._running, self._is_busy = None, None, True
        try:
            self._dispatch(message)
        finally:
            with self._lock:
                self._is_busy, self._running = False, None
            # of the whole message: also the rows of a statement count
            if self._stop_timer is not None:
                self._stop_timer()
                self._stop_timer = None

    def handle_now(self, message: frontend.Message) -> bool:
        """Handle a message of a point query as ``handle`` does, if it waits for nothing; return whether it
        did. What it sends waits for ``flush``, so that the answers of several messages go together.
        """
        # of a statement before
        self._cancelled = None
        if self._copy is not None or not self._is_at_hand(message):
            return False
        self._holds = True
        try:
            self._dispatch(message)
        finally:
            self._holds = False
        return True

    def _is_at_hand(self, message: frontend.Message) -> bool:
        # up to Sync nothing is looked at
        if self._skips and not isinstance(message, frontend.Sync):
            return isinstance(message, _SKIPPED)
        match message:
            case frontend.Bind(portal=name, statement=of):
                named, old = self._statements.get(of), self._portals.get(name)
                return named is not None and _is_point(named.statement) and (old is None or old.is_at_hand)
            case frontend.Execute(portal=name):
                return (portal := self._portals.get(name)) is not None and self._begin_now(portal)
            case frontend.Sync():
                return all(portal.is_at_hand for portal in self._portals.values())
            case frontend.Parse(sql=sql, oids=oids):
                return not self._has_failed and self._compiler.known(sql, oids) is not None
            case frontend.DescribeRequest():
                return True
        return False

    def _begin_now(self, portal: Portal) -> bool:
        """Start a point query whose rows are at hand; return whether its Execute waits for nothing."""
        statement = portal.statement
        if portal.execution is not None or not isinstance(statement, QueryStatement):
            return portal.execution is not None and portal.execution.at_hand
        try:
            portal.execution = statement.start_now(portal.values)
        except PenstockError as error:
            # the Execute is skipped, as all up to Sync
            self._skips = True
            self._fail(error)
            return True
        portal.encoder = statement.encoder(portal.formats, self.zone)
        return portal.execution is not None

    def flush(self) -> None:
        """Send what is buffered."""
        if self._out:
            data, self._out = bytes(self._out), bytearray()
            self._connection.send(data)

    # -- messages

    def _dispatch(self, message: frontend.Message) -> None:
        if self._copy is not None and self._copy_message(self._copy, message):
            return
        match message:
            case frontend.SimpleQuery(sql=sql):
                self._simple(sql)
            case frontend.Sync():
                self._skips = False
                self._ready()
            case frontend.Flush():
                self.flush()
            # what is left of a COPY that has failed
            case frontend.CopyData() | frontend.CopyDone() | frontend.CopyFail():
                pass
            case _ if not self._skips:
                self._extended(message)

    def _extended(self, message: frontend.Message) -> None:
        # an error is sent once; everything up to Sync is skipped
        try:
            match message:
                case frontend.Parse():
                    self._parse(message)
                case frontend.Bind():
                    self._bind(message)
                case frontend.DescribeRequest(kind=kind, name=name):
                    self._describe(kind, name)
                case frontend.Execute(portal=name, rows=rows):
                    self._execute(name, rows)
                case frontend.Close(kind=kind, name=name):
                    self._close(kind, name)
                case _:
                    raise frontend.violation(f"{type(message).__name__} is not served")
        except PenstockError as error:
            self._skips = True
            self._fail(error)

    def _simple(self, sql: str) -> None:
        """Run the statements of a text, stopping at the first error."""
        pieces = split_statements(sql)
        if not pieces:
            self._put(backend.EMPTY_QUERY)
        self._is_simple, self._has_noticed = True, False
        try:
            for offset, text in pieces:
                try:
                    self._run_simple(text)
                except PenstockError as error:
                    self._fail(error, offset)
                    break
                # the rest of the text is not run: psql sends COPY .. FROM STDIN alone
                if self._copy is not None:
                    return
        finally:
            self._is_simple = False
        self._ready()

    def _run_simple(self, sql: str) -> None:
        statement = self._compile(sql, None)
        if statement.parameters:
            raise no_values()
        execution = self._start(statement, ())
        if execution is None:
            return
        reader = execution.reader
        if reader is not None and execution.copies is None and not execution.discards:
            formats = (BINARY if execution.binary else TEXT,) * len(reader.schema)
            self._put(backend.row_description(reader.schema, formats))
            self._rows(execution, RowEncoder(reader.schema, formats, self.zone), execution.most)
        elif reader is not None:
            self._rows(execution, None, execution.most)
        self._complete(execution)

    def _compile(self, sql: str, oids: Sequence[int] | None) -> WireStatement:
        if self._has_failed and not self._compiler.ends_transaction(sql):
            raise failed_transaction()
        return self._compiler.compile(sql, oids)

    # -- the extended protocol

    def _parse(self, message: frontend.Parse) -> None:
        if message.name and message.name in self._statements:
            raise already_exists("prepared statement", message.name)
        if len(self._statements) >= MOST_OBJECTS:
            raise too_many("prepared statements")
        kept = None if self._has_failed else self._compiler.known(message.sql, message.oids)
        statement = self._parsed(message) if kept is None else kept
        self._statements[message.name] = NamedStatement(statement, message.oids)
        self._put(backend.PARSE_COMPLETE)

    def _parsed(self, message: frontend.Parse) -> WireStatement | None:
        pieces = split_statements(message.sql)
        if len(pieces) > 1:
            raise PenstockError(
                "CLI-6260",
                f"a prepared statement is one statement, here are {len(pieces)}",
                hint="send them one by one, or by the simple protocol",
                sqlstate="42601",
            )
        if not pieces:
            return None
        offset, text = pieces[0]
        try:
            statement = self._compile(text, message.oids)
        except PenstockError as error:
            raise moved(error, message.sql, offset) from error
        self._compiler.keep(message.sql, message.oids, statement)
        return statement

    def _bind(self, message: frontend.Bind) -> None:
        named = self._find_statement(message.statement)
        if message.portal and message.portal in self._portals:
            raise already_exists("portal", message.portal)
        if (old := self._portals.pop(message.portal, None)) is not None:
            old.close()
        if len(self._portals) >= MOST_OBJECTS:
            raise too_many("portals")
        statement = named.statement
        kinds = () if statement is None else statement.parameters
        if len(message.values) != len(kinds):
            raise frontend.violation(f"{len(message.values)} values are bound to {len(kinds)} parameters")
        forms = result_formats(message.formats, len(kinds))
        values = [
            parameter_value(raw, kind, self._oid(named, i), binary=form == BINARY, zone=self.zone)
            for i, (raw, kind, form) in enumerate(zip(message.values, kinds, forms, strict=True))
        ]
        schema = None if statement is None else statement.schema
        formats = (
            result_formats(message.result_formats, 0 if schema is None else len(schema)) if schema else ()
        )
        self._portals[message.portal] = Portal(statement, values, formats)
        self._put(backend.BIND_COMPLETE)

    def _oid(self, named: NamedStatement, position: int) -> int:
        oid = named.oids[position] if position < len(named.oids) else 0
        assert named.statement is not None
        own = _own_oids(named.statement)
        oid = oid or (0 if own is None else own.get(f"${position + 1}", 0))
        return oid or wire_type(named.statement.parameters[position]).oid

    def _describe(self, kind: str, name: str) -> None:
        if kind == "S":
            named = self._find_statement(name)
            count = 0 if named.statement is None else len(named.statement.parameters)
            self._put(backend.parameter_description([self._oid(named, i) for i in range(count)]))
            self._put_columns(named.statement, None)
            return
        if (portal := self._portals.get(name)) is not None:
            self._put_columns(portal.statement, portal)
            return
        # a cursor of SQL is a portal too
        self._put_columns(self.cursors.find(name, None).statement, None)

    def _put_columns(self, statement: WireStatement | None, portal: Portal | None) -> None:
        schema = None if statement is None else statement.schema
        if statement is None or schema is None:
            self._put(backend.NO_DATA)
            return
        formats = (TEXT,) * len(schema) if portal is None else portal.formats
        self._put(backend.row_description(schema, formats, _own_oids(statement)))

    def _execute(self, name: str, rows: int) -> None:
        if (portal := self._portals.get(name)) is None:
            raise no_portal(name)
        if portal.statement is None:
            self._put(backend.EMPTY_QUERY)
            return
        if portal.execution is None:
            execution = self._start(portal.statement, portal.values)
            if execution is None:
                return
            portal.execution = execution
            if execution.reader is not None and execution.copies is None and not execution.discards:
                portal.encoder = RowEncoder(execution.reader.schema, portal.formats, self.zone)
        execution = portal.execution
        most = execution.most if not rows else rows if execution.most is None else min(rows, execution.most)
        if execution.reader is not None and self._rows(execution, portal.encoder, most):
            self._put(backend.PORTAL_SUSPENDED)
            return
        self._complete(execution)

    def _close(self, kind: str, name: str) -> None:
        if kind == "S":
            self._statements.pop(name, None)
        elif (portal := self._portals.pop(name, None)) is not None:
            portal.close()
        self._put(backend.CLOSE_COMPLETE)

    def _find_statement(self, name: str) -> NamedStatement:
        if (named := self._statements.get(name)) is None:
            raise PenstockError(
                "CLI-6260",
                f'prepared statement "{name}" does not exist',
                hint="send Parse first; DISCARD ALL and DEALLOCATE forget statements",
                sqlstate="26000",
            )
        return named

    def _close_portals(self) -> None:
        for portal in self._portals.values():
            portal.close()
        self._portals.clear()

    # -- running

    def _start(self, statement: WireStatement, values: Sequence[object]) -> Execution | None:
        """Start a statement. None: it reads the client's rows from here on."""
        timeout_s = self.parameters.statement_timeout_s
        if timeout_s is not None and self._stop_timer is None:
            error = timed_out(timeout_s)
            self._stop_timer = self._connection.call_later(timeout_s, lambda: self.cancel(error))
        try:
            execution = statement.start(values)
            if isinstance(execution, CopyInput):
                self._copy, self._copy_is_simple = execution, self._is_simple
                self.has_written = True
                self._put(execution.response())
                self.flush()
                return None
            self.check()
        except PenstockError:
            # an INSERT that is cancelled ends with an error of its own
            self.check()
            raise
        self.has_written = self.has_written or self._compiler.writes(execution.tag)
        return execution

    def _rows(self, execution: Execution, encoder: RowEncoder | None, most: int | None) -> bool:
        """Send rows of a portal; return whether it is suspended because ``most`` were sent."""
        reader = execution.reader
        assert reader is not None
        writer = None
        if execution.copies is not None:
            writer = CopyWriter(reader.schema, execution.copies, self.zone)
            self._put(writer.begin())
            self.flush()
        sent = 0
        while most is None or sent < most:
            batch = reader.take(None if most is None else most - sent, execution.timeout_s)
            if batch is None:
                break
            sent += batch.num_rows
            execution.sent += batch.num_rows
            if writer is not None:
                writer.send(batch, self._send_rows)
            elif encoder is not None:
                encoder.send(batch, self._send_rows)
            # rows of an endless result are sent as they come
            if reader.is_endless:
                self.flush()
            elif reader.ended:
                break
        if writer is not None:
            self._put(writer.end())
        return most is not None and sent >= most and execution.most is None

    def _send_rows(self, data: bytes | memoryview) -> None:
        self.check()
        self._out += data
        if len(self._out) >= _SEND_BYTES:
            self.flush()

    def _complete(self, execution: Execution) -> None:
        for note in execution.notes:
            self._notice(note)
        self._put(backend.command_complete(execution.command_tag))

    # -- COPY FROM STDIN

    def _copy_message(self, copy: CopyInput, message: frontend.Message) -> bool:
        """Take a message of a COPY FROM STDIN; return whether it was one."""
        try:
            match message:
                case frontend.CopyData(payload=payload):
                    copy.append(payload)
                    return True
                case frontend.CopyDone():
                    written = copy.finish()
                    self._copy = None
                    self._put(backend.command_complete(f"COPY {max(0, written)}"))
                case frontend.CopyFail(reason=reason):
                    self._copy = None
                    raise copy.fail(reason)
                # allowed in the middle, and without meaning there
                case frontend.Flush() | frontend.Sync() if not self._copy_is_simple:
                    return True
                case _:
                    self._copy = None
                    copy.fail("another message came")
                    raise frontend.violation(f"{type(message).__name__} comes in the middle of a COPY")
        except PenstockError as error:
            self._copy = None
            self._skips = not self._copy_is_simple
            self._fail(error)
        if self._copy_is_simple:
            self._ready()
        return True

    # -- output

    def _put(self, data: bytes) -> None:
        self._out += data
        if len(self._out) >= _SEND_BYTES:
            self.flush()

    def _notice(self, sentence: str, hint: str | None = None) -> None:
        if not self.parameters.is_silent:
            self._put(backend.notice(sentence, hint))

    def _fail(self, error: PenstockError, offset: int = 0) -> None:
        self._has_failed = self.in_transaction
        self._put(backend.error_response(error, offset))

    def _ready(self) -> None:
        # the end of a transaction: without BEGIN that of the statement
        if not self.in_transaction:
            self._has_failed = False
            self._close_portals()
        state = backend.FAILED if self._has_failed else backend.IN_TRANSACTION
        self._put(backend.ready(state if self.in_transaction else backend.IDLE))
        if not self._holds:
            self.flush()


def _is_point(statement: WireStatement | None) -> bool:
    return isinstance(statement, QueryStatement) and statement.is_point_query


def _own_oids(statement: WireStatement) -> Mapping[str, int] | None:
    return statement.oids if isinstance(statement, TableStatement) else None
