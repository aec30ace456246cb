"""PEP 249 cursors: one statement's result at a time, as rows, Arrow, pandas, batches or changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError, out_of_memory
from penstock.client.dbapi_errors import (
    DataError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    client_error,
)
from penstock.client.results.result import Result
from penstock.client.results.result_stream import new_rows
from penstock.engine.api.clock import SystemClock
from penstock.planner.binder.parameters import Parameters

if TYPE_CHECKING:
    from penstock.catalog.schema import Schema
    from penstock.client.session import Session
    from penstock.engine.job.job import Job
    from penstock.planner.logical.plan import LogicalPlan

Row = tuple[Any, ...]
# an asynchronous fetch that is cancelled leaves its thread waiting for at most this long
_POLL_S = 0.1


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

    Rows of a result that ends are final. Of an endless result that changes, each new version of a row comes
    when it is known; only ``changes`` has what it replaces.
    """

    arraysize = 1
    lastrowid = None

    def __init__(self, session: Session) -> None:
        self._session = session
        self._result: Result | None = None
        self._waiting: Job | None = None
        self._rows: deque[Row] = deque()
        self._taken = 0
        self._rowcount = -1
        self._closed = False
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

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> Cursor:
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

    def run_plan(self, plan: LogicalPlan) -> Cursor:
        """Run a bound plan of the Table API."""
        self._renew()
        with self._errors():
            self._set_result(self._session.run_plan(plan, self._hold))
        return self

    # -- what came of it

    @property
    def result(self) -> Result:
        """The result of the last execute; InterfaceError when there is none."""
        self._check_open()
        if self._result is None:
            raise InterfaceError(
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
        return self.result.job

    @property
    def note(self) -> str | None:
        """What a statement without rows did, in a sentence."""
        return self.result.note

    # -- rows

    def fetchone(self) -> Row | None:
        """Return the next row, waiting for it; None only at the end of a result that ends."""
        rows = self._fetch(1, None)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None, timeout: float | None = None) -> list[Row]:
        """Return up to ``size`` rows; after ``timeout`` seconds what there is, the result staying open."""
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
        rows = list(self._rows)
        self._rows.clear()
        return rows

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __aiter__(self) -> Cursor:
        return self

    async def __anext__(self) -> Row:
        import asyncio  # not for programs that never wait this way

        while True:
            # in a thread: waiting for a row must not block the event loop
            rows = await asyncio.to_thread(self._fetch, 1, _POLL_S)
            if rows:
                return rows[0]
            if self._rows_result().ended and not self._rows:
                raise StopAsyncIteration

    # -- Arrow, pandas, changes

    def fetch_arrow_table(self, timeout: float | None = None, limit: int | None = None) -> pa.Table:
        """Return all rows as an Arrow table; an endless result asks for ``timeout`` or ``limit``."""
        with self._errors():
            return self._rows_result().final_rows(timeout, limit)

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
        schema = self._rows_result().arrow_schema
        return pa.RecordBatchReader.from_batches(schema, self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield rows as Arrow batches as they come (final rows of a changing result that ends)."""
        result = self._rows_result()
        with self._errors():
            yield from result.batches()

    def changes(self, timeout: float | None = None) -> Iterator[pa.RecordBatch]:
        """Yield every change in order as Arrow batches whose first column ``op`` is +I, -U, +U or -D;
        ``timeout``: end when silent so long.
        """
        result = self._rows_result()
        with self._errors():
            yield from result.changes(timeout)

    # -- end

    def cancel(self) -> None:
        """Stop the query, from any thread; a waiting fetch returns. The job of an INSERT is cancelled
        while ``execute`` waits for it.
        """
        # read once: execute may set it to None between a test and the call
        waiting = self._waiting
        if waiting is not None:
            waiting.cancel()
        self.stop_query()

    def stop_query(self) -> None:
        """Stop the query only; an INSERT that is waited for is stopped by its session."""
        if self._result is not None:
            self._result.cancel()

    def close(self) -> None:
        """Stop the query and close the cursor."""
        if not self._closed:
            self.cancel()
            self._closed = True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing (PEP 249)."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing (PEP 249)."""

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- inside

    def _errors(self):  # type: ignore[no-untyped-def]  # a context manager
        return _as_client_errors(self.cancel)

    def _hold(self, job: Job | None) -> None:
        self._waiting = job

    def _set_result(self, result: Result) -> None:
        self._result, self._rowcount = result, result.rowcount

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("CLI-6002", "the cursor is closed", sqlstate="24000")

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
        with self._errors():
            self._fill(result, size, timeout)
        # fewer than asked at the end and at a timeout
        rows = [self._rows.popleft() for _ in range(min(size, len(self._rows)))]
        self._taken += len(rows)
        return rows

    def _load(self, result: Result, timeout: float | None, limit: int | None) -> None:
        """Read all there is, or up to a limit."""
        table = result.final_rows(timeout, None if limit is None else max(0, limit - len(self._rows)))
        self._rows.extend(_tuples(table))
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
                    self._rows.extend(_tuples(table))
                    self._rowcount = len(self._rows)
            return
        deadline = None if timeout is None else self._clock.monotonic_ms() + timeout * 1000
        while len(self._rows) < size:
            left_s = None if deadline is None else max(0.0, (deadline - self._clock.monotonic_ms()) / 1000)
            batch = result.next(left_s)
            if batch is None:
                break
            # insert-only, or endless: a retraction is not a row of PEP 249
            self._rows.extend(_tuples(new_rows(batch)))
        if result.ended:
            self._rowcount = self._taken + len(self._rows)


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


def _tuples(rows: pa.Table | pa.RecordBatch) -> list[Row]:
    """Return rows as Python tuples, as PEP 249 demands. DataError for a date that Python has no object
    for.
    """
    return list(
        zip(
            *(_values(field, column) for field, column in zip(rows.schema, rows.columns, strict=True)),
            strict=True,
        )
    )


def _values(field: pa.Field, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    try:
        # the whole column at once: Arrow converts it without a Python loop
        return column.to_pylist()
    except UnicodeDecodeError as error:
        message = f'column "{field.name}" holds a text that is no UTF-8'
        hint = "fetch_arrow_table() and batches() return its bytes; in Spark make_valid_utf8(column) mends it"
        raise DataError("CLI-6014", message, hint=hint, sqlstate="22021") from error
    except (OverflowError, ValueError) as error:
        message = f'column "{field.name}" holds a value beyond what Python has objects for (years 1 to 9999)'
        hint = "fetch_arrow_table() and batches() give it, or CAST the column to STRING"
        raise DataError("CLI-6011", message, hint=hint, sqlstate="22008") from error
