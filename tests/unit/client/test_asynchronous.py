"""penstock.aio: waits are awaited, the event loop is never blocked, and a cancelled task's job has ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import penstock
import penstock.aio
from penstock.client.connection import Connection
from penstock.engine.job.job_state import JobState
from tests.harness.connections import WAYS, url_of
from tests.harness.patience import PATIENCE_S

T = TypeVar("T")
DUCKDB = {"bounded.backend": "duckdb"}


Program = Callable[[penstock.aio.AsyncConnection], Coroutine[Any, Any, T]]


def run_at(way: str, program: Program[T]) -> T:
    async def main() -> T:
        async with penstock.aio.connect(url_of(way), settings=DUCKDB) as connection:
            return await asyncio.wait_for(program(connection), PATIENCE_S)

    return asyncio.run(main())


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest) -> Callable[[Program[Any]], Any]:
    """Run a program over a connection in process, and over one to a server."""
    return partial(run_at, request.param)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.005)


class Gate:
    """Rows that come when the event loop opens the gate: a loop that is blocked never does."""

    def __init__(self) -> None:
        self.asked, self.opened = threading.Event(), threading.Event()

    def rows(self) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": [1]})
        self.asked.set()
        self.opened.wait(PATIENCE_S)
        yield pa.RecordBatch.from_pydict({"a": [2]})

    @property
    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), self.rows())


ENDLESS = "CREATE TABLE endless (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')"


def test_rows(run: Callable[[Program[Any]], Any]) -> None:
    async def program(connection: penstock.aio.AsyncConnection) -> None:
        await connection.register("t", pa.table({"a": [1, 2, 3]}))
        cursor = await connection.execute("SELECT a FROM t WHERE a > :least ORDER BY a", {"least": 0})
        assert await cursor.fetchone() == (1,)
        assert await cursor.fetchmany(1) == [(2,)]
        assert [row async for row in cursor] == [(3,)]
        assert cursor.rowcount == 3
        async with connection.execute("SELECT a FROM t") as other:
            assert (await other.arrow()).num_rows == 3
        assert repr(other) == "<penstock.aio.AsyncCursor: closed>"
        assert [
            batch.num_rows async for batch in (await connection.execute("SELECT a FROM t")).batches()
        ] == [3]
        with pytest.raises(penstock.ProgrammingError, match="does not exist"):
            await connection.execute("SELECT b FROM t")
        assert "1 job" in repr(connection) or "0 jobs" in repr(connection)

    run(program)


def test_rows_of_parameters(run: Callable[[Program[Any]], Any], tmp_path: Path) -> None:
    async def program(connection: penstock.aio.AsyncConnection) -> list[tuple[Any, ...]]:
        await connection.execute(
            f"CREATE TABLE kept (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/kept', 'format' = 'csv')"
        )
        written = await connection.executemany("INSERT INTO kept VALUES (?)", [(1,), (2,)])
        assert written.rowcount == 2
        return await (await connection.execute("SELECT a FROM kept ORDER BY a")).fetchall()

    assert run(program) == [(1,), (2,)]


def test_changes(run: Callable[[Program[Any]], Any]) -> None:
    async def program(connection: penstock.aio.AsyncConnection) -> None:
        await connection.execute(ENDLESS)
        async with connection.execute("SELECT COUNT(*) AS n FROM endless") as cursor:
            with pytest.raises(penstock.NotSupportedError) as caught:
                await cursor.fetchone()
            assert caught.value.code == "CLI-6009"
            ops = []
            async for op, (_,) in cursor.changes():
                ops.append(op)
                if len(ops) == 3:
                    break
        assert ops == ["+I", "-U", "+U"]
        assert cursor.job is not None
        await until(lambda: cursor.job is not None and cursor.job.state.terminal)

    run(program)


def test_the_event_loop_runs_while_a_row_is_awaited() -> None:
    gate = Gate()

    async def program(connection: penstock.aio.AsyncConnection) -> None:
        await connection.register("slow", gate.reader, stream=True)
        cursor = await connection.execute("SELECT a FROM slow")
        assert await cursor.fetchone() == (1,)
        second = asyncio.create_task(cursor.fetchone())
        await until(gate.asked.is_set)
        # other statements run meanwhile
        assert await (await connection.execute("SELECT 1")).fetchall() == [(1,)]
        assert not second.done()
        gate.opened.set()
        assert await second == (2,)
        assert await cursor.fetchone() is None

    run_at("in process", program)


@pytest.mark.parametrize("read", ["rows", "changes", "fetchone"])
def test_a_cancelled_task_has_stopped_its_job(run: Callable[[Program[Any]], Any], read: str) -> None:
    async def program(connection: penstock.aio.AsyncConnection) -> None:
        await connection.execute(ENDLESS)
        cursor = await connection.execute("SELECT a FROM endless")
        assert cursor.job is not None and not cursor.job.state.terminal
        seen = []

        async def reads() -> None:
            match read:
                case "rows":
                    async for row in cursor:
                        seen.append(row)
                case "changes":
                    async for change in cursor.changes():
                        seen.append(change)
                case _:
                    while True:
                        seen.append(await cursor.fetchone())

        task = asyncio.create_task(reads())
        await until(lambda: len(seen) > 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cursor.job.state.terminal
        # the cursor is of use still
        await cursor.execute("SELECT 1")
        assert await cursor.fetchall() == [(1,)]

    run(program)


def test_a_cancelled_insert_writes_nothing(tmp_path: Path) -> None:
    gate = Gate()

    async def program(connection: penstock.aio.AsyncConnection) -> None:
        await connection.register("slow", gate.reader, stream=True)
        await connection.execute(
            f"CREATE TABLE t (a BIGINT) WITH ('connector'='filesystem','path'='{tmp_path}','format'='csv')"
        )
        insert: Awaitable[Any] = asyncio.ensure_future(
            connection.cursor().execute("INSERT INTO t SELECT a FROM slow")
        )
        await until(gate.asked.is_set)
        (job,) = connection.jobs()
        insert.cancel()  # type: ignore[attr-defined]
        # not before the job has ended: its last row would come, and it could finish first
        await until(lambda: job.state.terminal)
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await insert
        assert job.state is JobState.CANCELED
        assert not list(tmp_path.glob("*.csv"))

    run_at("in process", program)


def test_closing_the_connection_ends_an_iteration() -> None:
    async def main() -> None:
        connection = await penstock.aio.connect(settings=DUCKDB)
        await connection.execute(ENDLESS)
        cursor = await connection.execute("SELECT a FROM endless WHERE a < 0")
        reading = asyncio.create_task(cursor.fetchone())
        await asyncio.sleep(0)
        await connection.close()
        assert await asyncio.wait_for(reading, PATIENCE_S) is None
        with pytest.raises(penstock.InterfaceError, match="closed"):
            connection.cursor()

    asyncio.run(main())


def test_a_cancelled_connect_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def close(connection: Connection) -> None:
        closed.append(connection)

    monkeypatch.setattr(Connection, "close", close)

    async def main() -> None:
        connecting = asyncio.ensure_future(penstock.aio.connect(settings=DUCKDB).__aenter__())
        await asyncio.sleep(0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    asyncio.run(main())
    assert len(closed) == 1
