"""Connections and cursors of asyncio: those of PEP 249, whose waits are awaited.

A call that may wait runs in a thread, and a row that has been read already needs none. The event loop is
never blocked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import pyarrow as pa

from penstock.catalog.python_connectors import PythonConnector
from penstock.catalog.python_functions import Decorated
from penstock.client import connection as blocking
from penstock.client import cursor as blocking_cursor
from penstock.client.results.row_buffer import Row, tuples
from penstock.engine.api.threads import EngineThread
from penstock.planner.binder.parameters import Parameters

if TYPE_CHECKING:
    from penstock.catalog.schema import Schema
    from penstock.client.remote.remote_job import RemoteJob
    from penstock.engine.job.job import Job

T = TypeVar("T")

# buffered rows after which an iteration lets other tasks run
_ROWS_AT_ONCE = 256
# how often a call that is being cancelled is cancelled again: it may not have started its job yet
_AGAIN_S = 0.05
# the longest wait for the job of a cancelled query
_END_S = 30.0


def connect(
    url: str | None = None, *, settings: Mapping[str, str] | None = None, catalog: str | Path | None = None
) -> Opening[AsyncConnection]:
    """Return a connection to an engine in this process, or to the server of a URL: ``await connect()`` or
    ``async with connect()``.
    """
    return Opening(_connect(url, settings, catalog))


async def _connect(
    url: str | None, settings: Mapping[str, str] | None, catalog: str | Path | None
) -> AsyncConnection:
    opened: list[blocking.Connection] = []

    def call() -> None:
        opened.append(blocking.connect(url, settings=settings, catalog=catalog))

    try:
        await in_thread(call)
    except asyncio.CancelledError:
        for connection in opened:
            await in_thread(connection.close)
        raise
    return AsyncConnection(opened[0])


class Closeable(Protocol):
    """What ``async with`` closes."""

    async def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Closeable)


class Opening(Generic[C]):
    """A connection or cursor that is being opened: awaited, or entered by ``async with``, which closes it."""

    def __init__(self, coroutine: Coroutine[Any, Any, C]) -> None:
        self._coroutine = coroutine
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._coroutine
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.close()


class AsyncConnection:
    """One session: its catalog, settings and jobs. Tasks may share it; give each a cursor of its own."""

    def __init__(self, connection: blocking.Connection) -> None:
        self._connection = connection

    def cursor(self) -> AsyncCursor:
        """Return a new cursor."""
        return AsyncCursor(self._connection.cursor())

    def execute(self, sql: str, params: Parameters = ()) -> Opening[AsyncCursor]:
        """Execute one statement on a new cursor: ``await`` returns it, ``async with`` closes it too."""
        return Opening(self.cursor().execute(sql, params))

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> Opening[AsyncCursor]:
        """Execute a statement that gives no rows once for each row of parameters, on a new cursor."""
        return Opening(self.cursor().executemany(sql, rows))

    def executescript(self, sql: str) -> Opening[AsyncCursor]:
        """Execute statements in order, stopping at the first error; the cursor has the last one's result."""
        return Opening(self.cursor().executescript(sql))

    async def register(
        self,
        name: str,
        source: Any,
        *,
        time_column: str | None = None,
        delay: Any = None,
        stream: bool | None = None,
    ) -> None:
        """Make an Arrow table, a pandas frame or an iterable readable as table ``name``."""
        call = partial(
            self._connection.register, name, source, time_column=time_column, delay=delay, stream=stream
        )
        await in_thread(call)

    async def unregister(self, name: str) -> None:
        """Remove a table that ``register`` made. Raises ProgrammingError when there is none."""
        await in_thread(partial(self._connection.unregister, name))

    async def create_connector(self, connector: PythonConnector, name: str | None = None) -> None:
        """Make a decorated Python source or sink known to tables by its name."""
        await in_thread(partial(self._connection.create_connector, connector, name))

    async def create_function(self, function: Decorated, name: str | None = None) -> None:
        """Make a decorated Python function callable from SQL."""
        await in_thread(partial(self._connection.create_function, function, name))

    def jobs(self) -> Iterable[Job | RemoteJob]:
        """Return the jobs this connection has started."""
        return self._connection.jobs()

    async def close(self) -> None:
        """Stop queries, then the jobs of INSERT, with a last checkpoint. Release the engine."""
        await in_thread(self._connection.close)

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._connection).replace("penstock.", "penstock.aio.Async", 1)

    def _repr_html_(self) -> str:
        """Return the connection's jobs for a notebook."""
        return self._connection._repr_html_()


class AsyncCursor:
    """A cursor over one result at a time; one task at a time uses it.

    A task that is cancelled while it awaits a call stops the query: when the task ends, its job has ended.
    """

    def __init__(self, cursor: blocking_cursor.Cursor) -> None:
        self._cursor = cursor
        self._rows_at_once = 0

    # -- execute

    async def execute(self, sql: str, params: Parameters = ()) -> AsyncCursor:
        """Execute one statement. A query returns at once; an INSERT whose sources all end has ended then."""
        await self._call(partial(self._cursor.execute, sql, params))
        return self

    async def executemany(self, sql: str, rows: Iterable[Parameters]) -> AsyncCursor:
        """Execute a statement that gives no rows once per row of parameters."""
        await self._call(partial(self._cursor.executemany, sql, rows))
        return self

    async def executescript(self, sql: str) -> AsyncCursor:
        """Execute statements in order, stopping at the first error; what is left is the last one's result."""
        await self._call(partial(self._cursor.executescript, sql))
        return self

    # -- what came of it

    @property
    def description(self) -> list[tuple[str, pa.DataType, None, None, None, None, bool]] | None:
        """Name, Arrow type and nullability of each column, or None for a statement that gives no rows."""
        return self._cursor.description

    @property
    def schema(self) -> Schema:
        """The columns with their SQL types and time attributes."""
        return self._cursor.schema

    @property
    def change_mode(self) -> str:
        """``append``, ``upsert`` or ``retract``: whether rows of this result may be retracted."""
        return self._cursor.change_mode

    @property
    def rowcount(self) -> int:
        """The number of rows once all are fetched, or that an INSERT has written; else -1."""
        return self._cursor.rowcount

    @property
    def job(self) -> Job | RemoteJob | None:
        """The job the statement started, or None."""
        return self._cursor.job

    @property
    def note(self) -> str | None:
        """What a statement without rows did, in a sentence; else None."""
        return self._cursor.note

    # -- rows

    async def fetchone(self) -> Row | None:
        """Return the next row; None only at the end of a result that ends."""
        row = self._cursor.buffered_row()
        return await self._call(self._cursor.fetchone) if row is None else row

    async def fetchmany(self, size: int | None = None, timeout: float | None = None) -> list[Row]:
        """Return up to ``size`` rows; after ``timeout`` seconds what there is, and the query still runs."""
        return await self._call(partial(self._cursor.fetchmany, size, timeout))

    async def fetchall(self, timeout: float | None = None, limit: int | None = None) -> list[Row]:
        """Return all remaining rows; an endless result needs ``timeout`` or ``limit``."""
        return await self._call(partial(self._cursor.fetchall, timeout, limit))

    def __aiter__(self) -> AsyncCursor:
        return self

    async def __anext__(self) -> Row:
        # buffered rows need no thread, and so no other task would run
        self._rows_at_once += 1
        if self._rows_at_once >= _ROWS_AT_ONCE:
            self._rows_at_once = 0
            await asyncio.sleep(0)
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    # -- Arrow, frames, changes

    async def arrow(self, timeout: float | None = None, limit: int | None = None) -> pa.Table:
        """Return all remaining rows as an Arrow table."""
        return await self._call(partial(self._cursor.arrow, timeout, limit))

    async def df(self, timeout: float | None = None, limit: int | None = None) -> Any:
        """Return all remaining rows as a pandas frame. CLI-6022 without pandas."""
        return await self._call(partial(self._cursor.df, timeout, limit))

    async def pl(self, timeout: float | None = None, limit: int | None = None) -> Any:
        """Return all remaining rows as a polars frame. CLI-6022 without polars."""
        return await self._call(partial(self._cursor.pl, timeout, limit))

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield rows as Arrow batches as they come."""
        found = self._cursor.batches()
        while (batch := await self._call(partial(next, found, None))) is not None:
            yield batch

    async def changes(self, timeout: float | None = None) -> AsyncIterator[tuple[str, Row]]:
        """Yield every change in order as ``(op, row)``; ``timeout``: end when silent so long."""
        found = self._cursor.change_batches(timeout)
        while (rows := await self._call(partial(_next_rows, found))) is not None:
            for op, *row in rows:
                yield op, tuple(row)

    # -- end

    async def cancel(self) -> None:
        """Stop the query, and wait for the end of its job."""
        await in_thread(self._stop)

    async def close(self) -> None:
        """Stop the query and close the cursor."""
        await in_thread(self._cursor.close)

    async def __aenter__(self) -> AsyncCursor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._cursor).replace("penstock.", "penstock.aio.Async", 1)

    # -- inside

    async def _call(self, call: Callable[[], T]) -> T:
        return await in_thread(call, self._stop)

    def _stop(self) -> None:
        """Stop the query. The job of an INSERT that does not wait for it runs on."""
        self._cursor.cancel()
        job = self._cursor.job
        if job is not None and self._cursor.description is not None:
            job.wait(_END_S)


def _next_rows(found: Iterator[pa.RecordBatch]) -> list[Row] | None:
    batch = next(found, None)
    return None if batch is None else tuples(batch)


async def in_thread(call: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Return what a call returns, waiting for it in a thread. If this task is cancelled, ``stop`` is called
    until the call has returned, and once more.
    """
    future = _start(call)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            if stop is not None:
                await _start(stop)
            await asyncio.wait([future], timeout=_AGAIN_S)
        # what the call has started in the meantime
        if stop is not None:
            await _start(stop)
        # asyncio reports an error that nobody has looked at
        if not future.cancelled():
            future.exception()
        raise


def _start(call: Callable[[], T]) -> asyncio.Future[T]:
    """Start a call in a thread, and return the future of its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001  the awaiting task raises it
            error = raised
        # a loop that is closed by now refuses the call: nobody waits
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, result, error)

    EngineThread(run, "penstock-await").start()
    return future
