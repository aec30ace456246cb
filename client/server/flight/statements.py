"""The statements of one client: prepared ones, those that run, and the results that wait for a DoGet.

A statement runs when its FlightInfo is asked for, once, because drivers do not fetch what has no rows. Only a
SELECT waits for the DoGet.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.execution.pending_statement import Cancellable, PendingStatement
from penstock.client.execution.prepared_statement import PreparedStatement
from penstock.client.remote.abandonable_call import AbandonableCall
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import TableStream, change_schema
from penstock.client.server.flight.limits import FlightLimits
from penstock.client.server.flight.result_batches import ReaderForm, ResultBatches
from penstock.engine.api.clock import Clock

if TYPE_CHECKING:
    from penstock.client.remote.protocol import StatementRequest
    from penstock.client.session import Session

_QUERIES = ("SELECT", "SUBSCRIBE")
IsOver = Callable[[], bool]


@dataclass
class BoundPrepared:
    """A prepared statement with the rows of values that its client has bound."""

    statement: PreparedStatement
    rows: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass
class Ticket:
    """What a DoGet returns: ``open_result`` starts a SELECT, or returns the result of a statement that has
    run.

    ``made_ms``: of a result that has been started, after which it waits for its reader only so long.
    """

    schema: pa.Schema
    form: ReaderForm
    open_result: Callable[[IsOver], Result]
    started: Result | None = None
    made_ms: float = 0.0


class Statements:
    """The statements of one session. Its methods may be called from any thread of gRPC."""

    def __init__(self, session: Session, clock: Clock, limits: FlightLimits, stopping: IsOver) -> None:
        self._session = session
        self._clock = clock
        self._limits = limits
        self._stopping = stopping
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._prepared: dict[bytes, BoundPrepared] = {}
        self._tickets: dict[bytes, Ticket] = {}
        # by ticket: a result that is being read; several, where a ticket is read again
        self._reading: dict[bytes, list[ResultBatches]] = {}
        # by the id that our own client gave: what its statement waits for, None where it does not wait
        self._running: dict[str, Cancellable | None] = {}
        self._cancelled: set[str] = set()

    @property
    def is_busy(self) -> bool:
        """Whether a result is open or a statement runs."""
        return bool(self._reading or self._running)

    # -- prepared statements

    def prepare(self, sql: str) -> tuple[bytes, PreparedStatement]:
        """Prepare a statement. CLI-6233 for too many that are open."""
        if len(self._prepared) >= self._limits.prepared:
            hint = "close statements that are no longer used"
            message = f"the session has {self._limits.prepared} prepared statements, which is the most"
            raise PenstockError("CLI-6233", message, hint=hint, sqlstate="53400")
        statement = self._session.prepare(sql)
        handle = f"p{next(self._numbers)}".encode()
        self._prepared[handle] = BoundPrepared(statement)
        return handle, statement

    def prepared(self, handle: bytes) -> BoundPrepared:
        """Return an open prepared statement. CLI-6230 when there is none."""
        found = self._prepared.get(handle)
        if found is None:
            raise _unknown("prepared statement", "prepare it again")
        return found

    def close_prepared(self, handle: bytes) -> None:
        """Forget a prepared statement, if it is there."""
        self._prepared.pop(handle, None)

    # -- statements of stock clients

    def start(self, prepared: BoundPrepared, is_over: IsOver) -> tuple[bytes, pa.Schema]:
        """Run a statement, or get a SELECT ready. Return its ticket and the columns of its rows."""
        statement, rows = prepared.statement, prepared.rows
        if statement.kind not in _QUERIES:
            finished = self._run_once(statement, rows, is_over)
            return self._ticket(Ticket(finished.shape.schema.to_arrow(), ReaderForm.ROWS, finished.open))
        if len(rows) > 1:
            hint = "bind one row of values for a query, and execute it once for each"
            raise PenstockError("CLI-6236", f"{len(rows)} rows of values are bound to a query", hint=hint)
        assert statement.schema is not None
        arrow, values = statement.schema.to_arrow(), rows[0] if rows else ()
        # an endless result whose rows are updated means something only as changes
        changes = statement.emits_changes
        form = ReaderForm.CHANGES if changes or statement.kind == "SUBSCRIBE" else ReaderForm.ROWS
        columns = change_schema(arrow) if changes else arrow
        return self._ticket(Ticket(columns, form, partial(_executed, statement, values)))

    def update(self, prepared: BoundPrepared, is_over: IsOver) -> int:
        """Run a statement that returns no rows. Return the number of rows it wrote, -1 where that is not
        known. CLI-6236 for a query.
        """
        if prepared.statement.kind in _QUERIES:
            hint = "execute it as a query"
            raise PenstockError("CLI-6236", "a query was sent as an update", hint=hint)
        return self._run_once(prepared.statement, prepared.rows, is_over).rowcount

    def _run_once(
        self, statement: PreparedStatement, rows: Sequence[tuple[Any, ...]], is_over: IsOver
    ) -> FinishedStatement:
        """Run a statement once for each row of values, or once. Return its last result, with the rows of all
        that were written.
        """

        def run() -> FinishedStatement:
            written = 0
            for values in rows or [()]:
                result = statement.execute(values)
                # one statement of unknown count makes the sum unknown
                written = -1 if written < 0 or result.rowcount < 0 else written + result.rowcount
            fetched = result.final_rows() if result.has_rows else pa.table({})
            return FinishedStatement(Shape(result.schema), fetched, written)

        call = AbandonableCall(run, lambda finished: None, "penstock-flight-statement")
        return call.result(lambda: is_over() or self._stopping())

    # -- statements of our own client

    def run(self, request: StatementRequest, is_over: IsOver) -> tuple[bytes, Result]:
        """Run a statement of our own client. Return the ticket of its rows, and its result. It is cancelled
        by ``cancel`` with the client's id, also while it waits for its job.
        """
        with self._lock:
            self._running[request.statement_id] = None

        def hold(job: Cancellable | None) -> None:
            with self._lock:
                self._running[request.statement_id] = job
                cancelled = request.statement_id in self._cancelled
            if cancelled and job is not None:
                job.cancel()

        call = AbandonableCall(
            partial(self._session.execute, request.sql, request.params, hold),
            Result.close,
            "penstock-flight-statement",
        )
        try:
            result = call.result(lambda: is_over() or self._stopping())
        finally:
            with self._lock:
                self._running.pop(request.statement_id, None)
                cancelled = request.statement_id in self._cancelled
                self._cancelled.discard(request.statement_id)
        if cancelled:
            result.close()
        ticket = Ticket(
            result.stream_schema,
            ReaderForm.WEIGHTED,
            lambda is_over: result,
            result,
            self._clock.monotonic_ms(),
        )
        return self._ticket(ticket, request.statement_id)[0], result

    def cancel(self, statement_id: str) -> bool:
        """Cancel a statement of our own client, or its result. Return whether there was one."""
        with self._lock:
            job, waits = self._running.get(statement_id), statement_id in self._running
            if waits:
                self._cancelled.add(statement_id)
        if job is not None:
            job.cancel()
        return self.cancel_ticket(statement_id.encode()) or waits

    # -- results

    def read(self, handle: bytes, is_over: IsOver) -> tuple[pa.Schema, ResultBatches]:
        """Return the columns of a ticket and its messages. A SELECT starts here; it is read again from the
        start by a second call. CLI-6230 for a ticket that is not known, or was of a result that only one can
        read.
        """
        with self._lock:
            ticket = self._tickets.get(handle)
            if ticket is None:
                raise _unknown("ticket", "run the statement again")
            # our own client's result is one stream: a second reader would get half of its rows
            if ticket.form is ReaderForm.WEIGHTED:
                del self._tickets[handle]
            batches = ResultBatches(
                ticket.open_result,
                ticket.form,
                is_over,
                self._limits.message_bytes,
                partial(self._forget_reader, handle),
            )
            self._reading.setdefault(handle, []).append(batches)
        return ticket.schema, batches

    def cancel_ticket(self, handle: bytes, reason: PenstockError | None = None) -> bool:
        """Stop the results that are read by a ticket, and forget it. Return whether it was there. Their
        readers get ``reason``.
        """
        with self._lock:
            ticket, readers = self._tickets.pop(handle, None), list(self._reading.get(handle, ()))
        for batches in readers:
            batches.end(reason or _stopped("the query was cancelled", "57014"))
        if ticket is not None and ticket.started is not None:
            ticket.started.close()
        return ticket is not None or bool(readers)

    def drop_unread(self) -> None:
        """Stop the started results that nobody has come for in time: their client has ended."""
        before_ms = self._clock.monotonic_ms() - self._limits.unread_s * 1e3
        with self._lock:
            unread = [
                handle
                for handle, ticket in self._tickets.items()
                if ticket.started is not None and ticket.made_ms < before_ms
            ]
        for handle in unread:
            self.cancel_ticket(handle)

    def close(self) -> None:
        """Stop every result and forget everything. The jobs of INSERT go on."""
        closing = self._stopping()
        reason = _stopped("the server closes" if closing else "the session was closed", "57P01")
        with self._lock:
            handles = {*self._tickets, *self._reading}
            self._prepared.clear()
        for handle in handles:
            self.cancel_ticket(handle, reason)

    def _forget_reader(self, handle: bytes, batches: ResultBatches) -> None:
        with self._lock:
            readers = [each for each in self._reading.pop(handle, ()) if each is not batches]
            if readers:
                self._reading[handle] = readers

    def _ticket(self, ticket: Ticket, name: str | None = None) -> tuple[bytes, pa.Schema]:
        handle = (name or f"t{next(self._numbers)}").encode()
        with self._lock:
            self._tickets[handle] = ticket
            # the oldest go: a client that asks and never fetches must not fill the memory
            oldest = [] if len(self._tickets) <= self._limits.tickets else [next(iter(self._tickets))]
        for each in oldest:
            self.cancel_ticket(each)
        return handle, ticket.schema


@dataclass(frozen=True)
class FinishedStatement:
    """A statement that has run, with all its rows: those of SHOW or EXPLAIN are few."""

    shape: Shape
    rows: pa.Table
    rowcount: int

    def open(self, is_over: IsOver) -> Result:
        """Return its rows for one more reader."""
        return Result(self.shape, TableStream(self.rows), rowcount=self.rowcount)


def _executed(statement: PreparedStatement, values: tuple[Any, ...], is_over: IsOver) -> Result:
    """Start a SELECT, whose wait for the first state of a view ends with its client."""

    def hold(waiting: Cancellable | None) -> None:
        if isinstance(waiting, PendingStatement):
            waiting.is_over = is_over

    return statement.execute(values, hold)


def _stopped(why: str, sqlstate: str) -> PenstockError:
    hint = "run the statement again; a server that closes is connected to again"
    return PenstockError("CLI-6237", why, hint=hint, kind=Kind.EXTERNAL, sqlstate=sqlstate)


def _unknown(noun: str, hint: str) -> PenstockError:
    return PenstockError("CLI-6230", f"there is no such {noun} in this session", hint=hint, sqlstate="26000")
