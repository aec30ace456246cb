"""PEP 249 cursors: one statement's result at a time, as rows, Arrow, pandas, batches or changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError, out_of_memory
from penstock.client.dbapi_errors import (
    InterfaceError,
    NoResultError,
    NotSupportedError,
    ProgrammingError,
    client_error,
)
from penstock.client.results.html_preview import PREVIEW_ROWS, html_table
from penstock.client.results.result import Result
from penstock.client.results.result_stream import new_rows, op_rows
from penstock.client.results.row_buffer import Row, RowBuffer, tuples
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.stream_elements import Batch
from penstock.planner.binder.parameters import Parameters

if TYPE_CHECKING:
    from penstock.catalog.schema import Schema
    from penstock.client.execution.pending_statement import Cancellable
    from penstock.client.execution.prepared_statement import PreparedStatement
    from penstock.client.remote.remote_session import RemoteSession
    from penstock.client.session import Session
    from penstock.engine.job.job import Job
    from penstock.planner.logical.plan import LogicalPlan


_MOST_LINES = 10_000  # of an EXPLAIN in a notebook


@contextmanager
def _as_client_errors(on_interrupt: Callable[[], None]) -> Iterator[None]:
    """Turn the engine's errors into the ten classes; on Ctrl-C cancel first."""
    try:
        yield
    except KeyboardInterrupt:
        on_interrupt()
        raise
    except PenstockError as error:
        # the engine's error is of a PEP 249 class already when it was raised by the client itself
        raised = client_error(error)
        if raised is error:
            raise
        raise raised from error
    except MemoryError as error:
        raise client_error(out_of_memory(error, "hold the rows of the result")) from error


class Cursor:
    """A PEP 249 cursor over one result at a time. One thread at a time uses it; any may call ``cancel``.

    Rows of a result that ends are final. An endless result whose rows are updated is read by ``changes``.
    """

    arraysize = 1
    lastrowid = None

    def __init__(self, session: Session | RemoteSession) -> None:
        self._session = session
        self._result: Result | None = None
        self._waiting: Cancellable | None = None
        self._rows = RowBuffer()
        self._taken = 0
        self._rowcount = -1
        self._closed = False
        self._process = os.getpid()
        self._clock = SystemClock()

    # -- execute

    def execute(self, sql: str, params: Parameters = ()) -> Cursor:
        """Execute one statement. ``params`` are the values of its ``?`` in order, or a dict for ``:name``.

        A query returns at once, also when its result never ends. An INSERT (or CREATE TABLE AS) whose
        sources all end has ended when this returns: its rows are committed, and ``rowcount`` is their
        number. One that reads an endless stream returns its ``job``. The setting ``table.dml-sync``
        overrides this.
        """
        # PEP 249: a new execute closes the result before it
        self._renew()
        # a string is a sequence too: "ab" would be the values 'a' and 'b'
        if isinstance(params, str | bytes) or not isinstance(params, Sequence | Mapping):
            raise ProgrammingError(
                "CLI-6008",
                f"parameters are a sequence or a dict of values, not a {type(params).__name__}",
                hint="pass a tuple such as (1, 'x') for ?, or a dict such as {\"a\": 1} for :a",
                sqlstate="07001",
            )
        with self._errors():
            # _hold: an INSERT that is waited for can be cancelled from another thread
            self._set_result(self._session.execute(sql, params, self._hold))
        return self

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> Cursor:
        """Execute a statement that gives no rows once per row of parameters; ProgrammingError for a query."""
        written = 0
        for params in rows:
            self.execute(sql, params)
            # one statement of unknown count makes the sum unknown
            written = -1 if written < 0 or self._rowcount < 0 else written + self._rowcount
            if self._result is not None and self._result.has_rows:
                self._renew()
                raise ProgrammingError(
                    "CLI-6004",
                    "executemany accepts only statements that return no rows",
                    hint="call execute for each query",
                )
        self._rowcount = written
        return self

    def executescript(self, sql: str) -> Cursor:
        """Execute statements in order, stopping at the first error; what is left is the last one's result."""
        self._renew()
        with self._errors():
            for statement in self._session.parse(sql):
                # only the last result stays open: an endless query before it is stopped
                if self._result is not None:
                    self._result.close()
                self._set_result(self._session.run(statement, hold=self._hold))
        return self

    def run_prepared(self, prepared: PreparedStatement, params: Parameters = ()) -> Cursor:
        """Execute a statement that ``Session.prepare`` made; see ``execute``."""
        self._renew()
        with self._errors():
            self._set_result(prepared.execute(params, self._hold))
        return self

    def run_plan(self, plan: LogicalPlan, sql: Callable[[], str]) -> Cursor:
        """Run a bound plan of the Table API; ``sql`` returns its text, which a server gets."""
        self._renew()
        with self._errors():
            self._set_result(self._session.run_plan(plan, self._hold, sql))
        return self

    # -- what came of it

    @property
    def result(self) -> Result:
        """The result of the last execute; NoResultError (an InterfaceError) when there is none."""
        self._check_open()
        if self._result is None:
            raise NoResultError(
                "CLI-6001",
                "nothing has been executed on this cursor",
                hint="call execute first",
                sqlstate="24000",
            )
        return self._result

    @property
    def description(self) -> list[tuple[str, pa.DataType, None, None, None, None, bool]] | None:
        """Name, Arrow type and nullability of each column, or None for a statement that gives no rows."""
        if self._result is None or not self._result.has_rows:
            return None
        arrow = self._result.arrow_schema
        return [
            (f.name, arrow.field(i).type, None, None, None, None, f.nullable)
            for i, f in enumerate(self._result.schema)
        ]

    @property
    def schema(self) -> Schema:
        """The columns with their SQL types and time attributes."""
        return self.result.schema

    @property
    def change_mode(self) -> str:
        """``append``, ``upsert`` or ``retract``: whether rows of this result may be retracted."""
        return self.result.shape.change_mode

    @property
    def rowcount(self) -> int:
        """The number of rows once all are fetched, or that an INSERT has written (-1 if it was restarted);
        else -1.
        """
        return self._rowcount

    @property
    def job(self) -> Job | None:
        """The job the statement started, or None."""
        return None if self._result is None else self._result.job

    @property
    def note(self) -> str | None:
        """What a statement without rows did, in a sentence; else None."""
        return None if self._result is None else self._result.note

    # -- rows

    def fetchone(self) -> Row | None:
        """Return the next row, waiting for it; None only at the end of a result that ends.
        NotSupportedError for an endless result whose rows are updated: read ``changes``.
        """
        rows = self._fetch(1, None)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None, timeout: float | None = None) -> list[Row]:
        """Return up to ``size`` rows; after ``timeout`` seconds what there is, the result staying open.
        NotSupportedError for an endless result whose rows are updated: read ``changes``.
        """
        return self._fetch(self.arraysize if size is None else size, timeout)

    def fetchall(self, timeout: float | None = None, limit: int | None = None) -> list[Row]:
        """Return all remaining rows; an endless result needs ``timeout`` or ``limit`` (else
        NotSupportedError). After a timeout before the end the rows are those that hold so far.
        """
        result = self._rows_result()
        # a known count: everything has been read before, only the buffered rows are left
        if self._rowcount < 0:
            with self._errors():
                self._load(result, timeout, limit)
        return self._rows.take(len(self._rows) if limit is None else limit)

    def buffered_row(self) -> Row | None:
        """Return the next row if it has been read already, without waiting for one."""
        return None if not self._rows else self._fetch(1, 0)[0]

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    # -- Arrow, pandas, changes

    def fetch_arrow_table(self, timeout: float | None = None, limit: int | None = None) -> pa.Table:
        """Return all remaining rows as an Arrow table; an endless result asks for ``timeout`` or
        ``limit``.
        """
        result = self._rows_result()
        before = self._take_arrow(limit)
        # a known count: everything has been read before
        if self._rowcount >= 0 or (limit is not None and before.num_rows >= limit):
            return before
        with self._errors():
            rows = result.final_rows(timeout, None if limit is None else limit - before.num_rows)
        self._taken += rows.num_rows
        if result.ended:
            self._rowcount = self._taken
        return pa.concat_tables([before, rows]) if before.num_rows else rows

    def fetch_df(self, timeout: float | None = None, limit: int | None = None) -> Any:
        """Return all rows as a pandas frame; an endless result asks for ``timeout`` or ``limit``. Raise
        CLI-6022 without pandas.
        """
        with _optional("pandas"):
            import pandas  # noqa: F401
        return self.fetch_arrow_table(timeout, limit).to_pandas()

    def df(self, timeout: float | None = None, limit: int | None = None) -> Any:
        """Return all rows as a pandas frame, by DuckDB's name for it. Raise CLI-6022 without pandas."""
        return self.fetch_df(timeout, limit)

    def arrow(self, timeout: float | None = None, limit: int | None = None) -> pa.Table:
        """Return all rows as an Arrow table, by DuckDB's name for it."""
        return self.fetch_arrow_table(timeout, limit)

    def pl(self, timeout: float | None = None, limit: int | None = None) -> Any:
        """Return all rows as a polars frame. Raise CLI-6022 without polars."""
        with _optional("polars"):
            import polars
        return polars.from_arrow(self.fetch_arrow_table(timeout, limit))

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """Return a reader of the rows as they come, for libraries that take Arrow's streams. Of a changing
        result that ends it has the final rows.
        """
        result = self._rows_result()
        _refuse_updates(result)
        schema = result.arrow_schema
        return pa.RecordBatchReader.from_batches(schema, self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield rows as Arrow batches as they come (final rows of a changing result that ends).
        NotSupportedError for an endless result whose rows are updated: read ``change_batches``.
        """
        result = self._rows_result()
        _refuse_updates(result)
        yield from self._take_arrow().to_batches()
        # a known count: everything has been read before
        if self._rowcount < 0:
            with self._errors():
                yield from result.batches()

    def changes(self, timeout: float | None = None) -> Iterator[tuple[str, Row]]:
        """Yield every change in order as ``(op, row)``, where ``op`` is +I, -U, +U or -D; ``timeout``: end
        when silent so long.
        """
        for batch in self.change_batches(timeout):
            with self._errors():
                rows = tuples(batch)
            for op, *row in rows:
                yield op, tuple(row)

    def change_batches(self, timeout: float | None = None) -> Iterator[pa.RecordBatch]:
        """Yield every change in order as Arrow batches, with ``op`` as their first column; ``timeout``: end
        when silent so long.
        """
        result = self._rows_result()
        for batch in self._take_arrow().to_batches():
            yield batch if result.shape.subscribed else op_rows(Batch(batch), None)
        with self._errors():
            yield from result.changes(timeout)

    # -- end

    def cancel(self) -> None:
        """Stop the query, from any thread; a waiting fetch returns. The job of an INSERT is cancelled
        while ``execute`` waits for it.
        """
        # read once: execute may set it to None between a test and the call
        waiting = self._waiting
        if waiting is not None and self._process == os.getpid():
            waiting.cancel()
        self.stop_query()

    def stop_query(self) -> None:
        """Stop the query only; an INSERT that is waited for is stopped by its session."""
        if self._result is not None and self._process == os.getpid():
            self._result.cancel()

    def close(self, *, leaves_jobs: bool = False) -> None:
        """Stop the query and close the cursor. ``leaves_jobs``: not the job of an INSERT that is waited
        for.
        """
        if not self._closed:
            if leaves_jobs:
                self.stop_query()
            else:
                self.cancel()
            self._closed = True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing (PEP 249)."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing (PEP 249)."""

    def __enter__(self) -> Cursor:
        return self

    def __repr__(self) -> str:
        return f"<penstock.Cursor: {self._described()}>"

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook. They stay unread; of an endless result none are read."""
        result = None if self._closed else self._result
        if result is None or not result.has_rows:
            return f"<p>{escape(self._described())}</p>"
        # lines of EXPLAIN: all of them
        if result.shape.verbatim:
            self._fill(result, _MOST_LINES, None)
            return f"<pre>{escape(chr(10).join(str(row[0]) for row in self._rows.first(_MOST_LINES)))}</pre>"
        if result.shape.finite:
            with self._errors():
                self._fill(result, PREVIEW_ROWS + 1, None)
        rows = self._rows.first(PREVIEW_ROWS)
        return html_table([(f.name, str(f.type)) for f in result.schema], rows, self._preview_note(result))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- inside

    def _errors(self):  # type: ignore[no-untyped-def]  # a context manager
        return _as_client_errors(self.cancel)

    def _hold(self, job: Cancellable | None) -> None:
        self._waiting = job

    def _set_result(self, result: Result) -> None:
        self._result, self._rowcount = result, result.rowcount

    def _described(self) -> str:
        if self._closed or self._result is None:
            return "closed" if self._closed else "nothing executed"
        return self._result.described

    def _preview_note(self, result: Result) -> str:
        if not result.shape.finite:
            return result.shape.nature
        if len(self._rows) > PREVIEW_ROWS:
            return f"the first {PREVIEW_ROWS} rows; df() or fetchall() returns all"
        return f"{len(self._rows)} row{'' if len(self._rows) == 1 else 's'}"

    def _take_arrow(self, limit: int | None = None) -> pa.Table:
        """Return rows that were read and not fetched."""
        rows = self._rows.take_arrow(limit)
        if rows is None:
            # empty_table of a schema would import pandas
            return pa.Table.from_batches([], self.result.arrow_schema)
        self._taken += rows.num_rows
        return rows

    def _check_open(self) -> None:
        if self._closed:
            raise NoResultError("CLI-6002", "the cursor is closed", hint="open another", sqlstate="24000")
        if self._process != os.getpid():
            raise NoResultError(
                "CLI-6012",
                "the cursor belongs to the process that this one was forked from",
                hint="call penstock.connect in this process, or start it by spawn",
                sqlstate="24000",
            )

    def _renew(self) -> None:
        self._check_open()
        self.cancel()
        self._result = None
        self._rows.clear()
        self._taken = 0
        self._rowcount = -1

    def _rows_result(self) -> Result:
        result = self.result
        if not result.has_rows:
            raise InterfaceError("CLI-6003", "the statement returned no rows", sqlstate="24000")
        return result

    def _fetch(self, size: int, timeout: float | None) -> list[Row]:
        result = self._rows_result()
        _refuse_updates(result)
        with self._errors():
            self._fill(result, size, timeout)
        # fewer than asked at the end and at a timeout
        rows = self._rows.take(size)
        self._taken += len(rows)
        return rows

    def _load(self, result: Result, timeout: float | None, limit: int | None) -> None:
        """Read all there is, or up to a limit."""
        table = result.final_rows(timeout, None if limit is None else max(0, limit - len(self._rows)))
        self._rows.add(table)
        if result.ended:
            # all rows are here: those fetched before, and those in the buffer
            self._rowcount = self._taken + len(self._rows)

    def _fill(self, result: Result, size: int, timeout: float | None) -> None:
        """Read until ``size`` rows are buffered, the time is up, or the end."""
        # rows change until the end: nothing is returned before it
        if result.shape.folds and result.shape.finite:
            if self._rowcount < 0:
                table = result.final_rows(timeout)
                if result.ended:
                    self._rows.add(table)
                    self._rowcount = len(self._rows)
            return
        deadline = None if timeout is None else self._clock.monotonic_ms() + timeout * 1000
        while len(self._rows) < size:
            left_s = None if deadline is None else max(0.0, (deadline - self._clock.monotonic_ms()) / 1000)
            batch = result.next(left_s)
            if batch is None:
                break
            self._rows.add(new_rows(batch))
        if result.ended:
            self._rowcount = self._taken + len(self._rows)


def _refuse_updates(result: Result) -> None:
    """Refuse to return rows one by one where later ones replace them."""
    if (why := result.shape.why_not_by_row) is not None:
        raise NotSupportedError(
            "CLI-6009",
            why,
            hint="iterate over changes(), which gives (op, row); fetchall(timeout=) returns the rows so far",
            sqlstate="0A000",
        )


@contextmanager
def _optional(library: str) -> Iterator[None]:
    """Refuse a fetch whose library is not installed, before any row is read."""
    try:
        yield
    except ImportError as error:
        raise NotSupportedError(
            "CLI-6022",
            f"{library} is not installed, and the rows were asked for as its frame",
            hint=f"pip install {library}, or call fetch_arrow_table()",
            sqlstate="0A000",
        ) from error
