"""Rows pushed over sockets, without Spark: order, bounds, tasks that are run again, readers that leave."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark_results import listener as listener_module
from penstock.engine.bounded.spark_results.listener import BufferedBytes, FrameQueue, RowListener
from penstock.engine.bounded.spark_results.push_task import HELLO, pushing_task
from penstock.engine.bounded.spark_results.result_rows import PushedRows
from tests.harness.patience import PATIENCE_S

pyspark = pytest.importorskip("pyspark")


class FakeContext:
    """What a task knows of itself: told by its thread."""

    here = threading.local()

    @classmethod
    def get(cls) -> FakeContext:
        return cls.here.context

    def __init__(self, partition: int, attempt: int) -> None:
        self.partitionId = lambda: partition
        self.attemptNumber = lambda: attempt
        self.taskAttemptId = lambda: partition * 100 + attempt


class Task(threading.Thread):
    """A task that pushes batches; a stop between two batches waits for ``go``."""

    def __init__(
        self,
        rows: PushedRows,
        port: int,
        partition: int,
        batches: list[pa.RecordBatch],
        attempt: int = 0,
        dies_after: int = -1,
        dies_when: threading.Event | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self.body = pushing_task("127.0.0.1", port, rows.token)
        self.context = FakeContext(partition, attempt)
        self.batches = batches
        self.dies_after = dies_after
        self.dies_when = dies_when
        self.sent = 0
        self.result: dict[str, Any] | None = None
        self.error: Exception | None = None
        self.start()

    def given(self) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(self.batches):
            if number == self.dies_after:
                assert self.dies_when is None or self.dies_when.wait(PATIENCE_S)
                raise ZeroDivisionError("the task dies")
            self.sent += 1
            yield batch

    def run(self) -> None:
        FakeContext.here.context = self.context
        try:
            (told,) = self.body(self.given())
            self.result = told.to_pylist()[0]
        except (OSError, ZeroDivisionError) as error:
            self.error = error


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "TaskContext", FakeContext)


@pytest.fixture(scope="module")
def listener() -> RowListener:
    return RowListener()


def numbers(first: int, count: int, batches: int = 1) -> list[pa.RecordBatch]:
    return [
        pa.record_batch({"n": pa.array(range(first + i * count, first + (i + 1) * count), pa.int64())})
        for i in range(batches)
    ]


def job(tasks: list[Task]) -> Any:
    """What Spark's job says: nothing until all its tasks have ended."""

    def check() -> dict[int, int] | None:
        if any(task.is_alive() for task in tasks):
            return None
        failed = [task.error for task in tasks if task.error is not None]
        if failed:
            raise failed[0]
        return {task.result["partition"]: task.result["pushed"] for task in tasks if task.result is not None}

    return check


def flat(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def test_partitions_come_in_order_whatever_order_tasks_run_in(listener: RowListener, tmp_path: Path) -> None:
    rows = PushedRows(listener, tmp_path)
    tasks = []
    for partition in (3, 1, 0, 2):
        tasks.append(
            Task(rows, listener.port, partition, numbers(partition * 100, 10, 10) if partition != 1 else [])
        )
    assert flat(rows.batches(job(tasks))) == [*range(100), *range(200, 400)]
    rows.close()


def test_who_does_not_know_the_token_is_hung_up_on(listener: RowListener, tmp_path: Path) -> None:
    rows = PushedRows(listener, tmp_path)
    with socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE_S) as wire:
        wire.sendall(HELLO.pack(b"x" * 32, 0, 0, 0))
        assert wire.recv(1) == b""
    rows.close()
    late = Task(rows, listener.port, 0, numbers(0, 5))
    late.join(PATIENCE_S)
    assert "PENSTOCK_REFUSED" in str(late.error)


def test_a_slow_reader_holds_up_the_tasks(listener: RowListener, tmp_path: Path) -> None:
    held = BufferedBytes(memory_limit=1 << 20, disk_limit=0)
    rows = PushedRows(listener, tmp_path, held)
    # 25 MB each
    tasks = [Task(rows, listener.port, partition, numbers(partition, 32_768, 100)) for partition in (0, 1)]
    reader = rows.batches(job(tasks))
    next(reader)
    for task in tasks:
        task.join(0.5)
        assert task.is_alive() and task.sent < 20
    assert held.memory + held.disk < 3 << 20
    assert sum(batch.num_rows for batch in reader) == 2 * 100 * 32_768 - 32_768
    rows.close()


def test_later_partitions_go_on_while_the_first_has_not_begun(listener: RowListener, tmp_path: Path) -> None:
    """They may hold the only slots it could run in."""
    rows = PushedRows(listener, tmp_path, BufferedBytes(memory_limit=1 << 20, disk_limit=0))
    later = Task(rows, listener.port, 1, numbers(100, 32_768, 20))
    later.join(PATIENCE_S)
    assert later.result is not None and list(tmp_path.iterdir())
    first = Task(rows, listener.port, 0, numbers(0, 10))
    assert flat(rows.batches(job([first, later])))[:11] == [*range(10), 100]
    assert not list(tmp_path.iterdir())
    rows.close()


def test_a_task_that_is_run_again_begins_anew(listener: RowListener, tmp_path: Path) -> None:
    rows = PushedRows(listener, tmp_path)
    died = Task(rows, listener.port, 1, numbers(100, 10, 3), dies_after=2)
    died.join(PATIENCE_S)
    again = Task(rows, listener.port, 1, numbers(100, 10, 3), attempt=1)
    again.join(PATIENCE_S)
    first = Task(rows, listener.port, 0, numbers(0, 10))
    assert flat(rows.batches(job([first, again]))) == [*range(10), *range(100, 130)]
    rows.close()


@pytest.mark.parametrize("whole", [False, True])
def test_rows_that_were_given_are_not_given_again(listener: RowListener, tmp_path: Path, whole: bool) -> None:
    rows = PushedRows(listener, tmp_path, whole_partitions=whole)
    read = threading.Event()
    if whole:  # the reader has nothing before the partition is whole
        read.set()
    died = Task(rows, listener.port, 0, numbers(0, 10, 3), dies_after=2, dies_when=read)
    again: list[Task] = []

    def check() -> dict[int, int] | None:
        if died.is_alive():
            return None
        if not again:
            again.append(Task(rows, listener.port, 0, numbers(0, 10, 3), attempt=1))
        return job(again)()

    if whole:  # as a job with checkpoints asks for it: nothing is given before the partition is whole
        assert flat(rows.batches(check)) == list(range(30))
    else:
        with pytest.raises(PenstockError) as caught:
            flat(rows.batches(check, read.set))
        assert (caught.value.code, caught.value.retriable) == ("BND-5010", True)
        again[0].join(PATIENCE_S)
        assert again[0].error is not None
    rows.close()


def test_the_reason_of_a_refusal_is_told_before_its_consequence(
    listener: RowListener, tmp_path: Path
) -> None:
    """The refused task fails its Spark job, and the reader may hear of that first."""
    rows = PushedRows(listener, tmp_path)

    def check() -> dict[int, int] | None:
        rows.failed(PenstockError("BND-5010", "the rows were read"))
        raise ConnectionError("PENSTOCK_REFUSED nobody takes these rows any more")

    with pytest.raises(PenstockError, match="the rows were read"):
        flat(rows.batches(check))
    rows.close()


def test_of_two_attempts_at_once_the_first_counts(listener: RowListener, tmp_path: Path) -> None:
    rows = PushedRows(listener, tmp_path, BufferedBytes(memory_limit=1 << 18, disk_limit=0))
    first = Task(rows, listener.port, 0, numbers(0, 32_768, 10))
    reader = rows.batches(job([first]))
    next(reader)
    second = Task(rows, listener.port, 0, numbers(0, 32_768, 10), attempt=1)
    second.join(0.3)
    assert second.is_alive() and second.sent == 0
    assert sum(batch.num_rows for batch in reader) == 9 * 32_768
    second.join(PATIENCE_S)
    assert second.result == {"partition": 0, "pushed": 10 * 32_768}, "it counts what it need not push"
    rows.close()


def test_a_reader_that_leaves_ends_the_tasks(listener: RowListener, tmp_path: Path) -> None:
    rows = PushedRows(listener, tmp_path, BufferedBytes(memory_limit=1 << 18, disk_limit=1 << 20))
    tasks = [Task(rows, listener.port, partition, numbers(0, 32_768, 100)) for partition in (0, 1, 2)]
    next(rows.batches(job(tasks)))
    rows.close()
    for task in tasks:
        task.join(PATIENCE_S)
        assert not task.is_alive() and task.error is not None
    assert not list(tmp_path.iterdir())


def test_rows_that_are_missing_are_noticed(listener: RowListener, tmp_path: Path) -> None:
    rows = PushedRows(listener, tmp_path)
    task = Task(rows, listener.port, 0, numbers(0, 10))
    with pytest.raises(PenstockError) as caught:
        flat(rows.batches(lambda: None if task.is_alive() else {0: 10, 1: 5}))
    assert caught.value.code == "BND-5015"
    rows.close()


def test_an_end_that_comes_too_early_is_noticed(listener: RowListener, tmp_path: Path) -> None:
    """A task's Java dies between two batches: for Arrow that is the end of its input. The partition is with
    the reader before Spark runs the task again, and the other attempt says how many rows there are.
    """
    rows = PushedRows(listener, tmp_path)
    lost, last = (Task(rows, listener.port, number, numbers(0, 10, 2)) for number in (0, 1))
    reader = rows.batches(lambda: None if again is None else job([again, last])())
    again: Task | None = None
    assert sum(next(reader).num_rows for _ in range(4)) == 40
    lost.join(PATIENCE_S)
    again = Task(rows, listener.port, 0, numbers(0, 10, 3), attempt=1)
    with pytest.raises(PenstockError) as caught:
        flat(reader)
    assert (caught.value.code, caught.value.retriable) == ("BND-5015", True)
    assert "20 of 30 rows" in caught.value.message
    rows.close()


def test_a_job_that_says_nothing_of_rows_that_came_is_noticed(listener: RowListener, tmp_path: Path) -> None:
    """Spark dies while it says how many rows there are: PySpark takes that for an empty answer."""
    rows = PushedRows(listener, tmp_path)
    task = Task(rows, listener.port, 0, numbers(0, 10))
    with pytest.raises(PenstockError) as caught:
        flat(rows.batches(lambda: None if task.is_alive() else {}))
    assert caught.value.code == "BND-5015"
    rows.close()
    cancelled = PushedRows(listener, tmp_path)
    task = Task(cancelled, listener.port, 0, numbers(0, 10))
    task.join(PATIENCE_S)
    cancelled.close()
    assert flat(cancelled.batches(dict)) == []


def test_wide_rows_are_cut_into_frames(listener: RowListener, tmp_path: Path) -> None:
    rows = PushedRows(listener, tmp_path)
    wide = pa.record_batch({"t": pa.array(["x" * 100_000] * 200)})
    task = Task(rows, listener.port, 0, [wide])
    sizes = [batch.num_rows for batch in rows.batches(job([task]))]
    assert sum(sizes) == 200 and max(sizes) <= 42
    rows.close()


def test_frames_on_disk_keep_their_order_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "SEGMENT_BYTES", 300)
    held, names = BufferedBytes(memory_limit=100, disk_limit=1 << 30), itertools.count()
    queue = FrameQueue(held, lambda: tmp_path / str(next(names)))
    frames = [bytearray([i]) * 60 for i in range(20)]
    for frame in frames:
        queue.push(frame, True)
    assert (held.memory, held.disk) == (120, 18 * 60)
    assert len(list(tmp_path.iterdir())) == 4
    assert [queue.pop() for _ in range(10)] == frames[:10]
    assert len(list(tmp_path.iterdir())) == 3
    queue.clear()
    assert (held.memory, held.disk, list(tmp_path.iterdir())) == (0, 0, [])


def test_a_full_disk_slows_the_tasks_only(tmp_path: Path) -> None:
    held = BufferedBytes(memory_limit=1, disk_limit=1 << 30)
    queue = FrameQueue(held, lambda: tmp_path / "missing" / "file")
    queue.push(bytearray(5), True)
    queue.push(bytearray(7), True)
    assert held.memory == 12 and not held.has_capacity(True)
    assert [len(queue.pop()), len(queue.pop())] == [5, 7]
