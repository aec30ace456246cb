"""The pushed rows of one query, emitted in order of partition with bounded memory; and the listeners of this
process that receive them.

The first partition is the one that is read now. Its task has at most four frames pending, any other two, and
all together sixteen before others wait. Frames are buffered in memory, then on disk.

When the disk is full too, all tasks but the first's wait. As long as the first has not begun, the others
continue: they may occupy the only slots it could run in.

What it buys, by ``python -m bench.spark.results --rows 10000000`` in turn with pyspark's ``toArrow()``: the
first batch after 0.7 s against 12 to 14 s. The client takes 283 to 300 MB against 638 to 669, and an
early close ends the job. What it costs: 0.51 M rows/s against 0.72 to 0.86, 0.53 M rows per
cpu-second against 0.74 to 0.88.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.bounded.spark_results.listener import BufferedBytes, FrameQueue, RowListener, TaskWire
from penstock.engine.bounded.spark_results.push_task import END, GO, THERE
from penstock.engine.network.admission import ROW_LISTENERS

# credits: of any task, of the task that is read now, of all together
_OWED_EACH, _OWED_FIRST, _OWED_ALL = 2, 4, 16
_LOOK_S = 0.25


class _Partition:
    """One partition: its attempt's connection, its number of rows once complete, and whether the reader has
    had some.
    """

    def __init__(self, queue: FrameQueue) -> None:
        self.queue = queue
        self.wire: TaskWire | None = None
        self.waiting: list[TaskWire] = []
        self.rows: int | None = None
        # once rows of a partition are with the reader, another attempt cannot begin again
        self.handed = False


class PushedRows:
    """Receives the rows of one query from its tasks."""

    def __init__(
        self,
        listener: RowListener,
        scratch: Path,
        held: BufferedBytes | None = None,
        *,
        whole_partitions: bool = False,
    ) -> None:
        """``scratch``: the directory of frames that do not fit in memory.

        ``whole_partitions``: emit a partition only once it is complete, while the buffers last. Its task may
        then be run again.
        """
        self.token = secrets.token_bytes(32)
        self.held = held or BufferedBytes()
        self._listener = listener
        self._scratch = scratch
        self._whole = whole_partitions
        self._files = itertools.count()
        self._changed = threading.Condition()
        self._partitions: dict[int, _Partition] = {}
        # the partition that is read now; all before it are complete
        self._first = 0
        self._wires: list[TaskWire] = []
        self._error: Exception | None = None
        self._closed = False
        listener.enter(self.token, self)

    def batches(
        self, check: Callable[[], Mapping[int, int] | None], came: Callable[[], None] = lambda: None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of all partitions, in order.

        ``check`` is polled while no frame is there. It returns the rows of each partition once the job has
        ended and ``None`` before; it raises the job's error. ``came`` is called for each batch.
        """
        counts: Mapping[int, int] | None = None
        while True:
            with self._changed:
                # under the lock only for the queue: the frame is decoded outside
                frame = self._next(counts)
            if frame is not None:
                came()
                yield pa.ipc.open_stream(pa.py_buffer(frame)).read_next_batch()
                continue
            # the job has ended and every partition was emitted
            if counts is not None and self._is_past(counts):
                with self._changed:
                    self._check_counts(counts)
                return
            counts = self._checked(check) if counts is None else counts
            if counts is None:
                with self._changed:
                    self._changed.wait_for(self._has_progress, _LOOK_S)

    def _checked(self, check: Callable[[], Mapping[int, int] | None]) -> Mapping[int, int] | None:
        """Return the result of ``check``. If we refused a task, raise our reason rather than the failure of
        its Spark job.
        """
        try:
            return check()
        except Exception:
            with self._changed:
                # our reason explains the failure of the job better than Spark's text
                if self._error is not None:
                    raise self._error from None
            raise

    def close(self) -> None:
        """Disconnect all tasks and drop their frames."""
        self._listener.leave(self.token)
        with self._changed:
            self._closed = True
            for wire in self._wires:
                wire.hang_up()
            for partition in self._partitions.values():
                partition.queue.clear()
            self._changed.notify_all()

    # -- the reader's side

    def _has_progress(self) -> bool:
        first = self._partitions.get(self._first)
        return (
            self._error is not None
            or self._closed
            or (first is not None and (self._is_due(first) or first.rows is not None))
        )

    def _is_due(self, first: _Partition) -> bool:
        """Whether a frame may be emitted now."""
        return len(first.queue) > 0 and (
            not self._whole or first.rows is not None or not self.held.has_capacity(True)
        )

    def _next(self, counts: Mapping[int, int] | None) -> bytearray | None:
        """Return the next frame, ``None`` when there is none now."""
        if self._error is not None:
            raise self._error
        # emit a frame of the first partition, or go to the next partition when it is complete
        while not self._closed:
            first = self._partitions.get(self._first)
            if first is not None and self._is_due(first):
                frame = first.queue.pop()
                first.handed = True
                self._ask_for_more()
                return frame
            # A partition without rows may never connect: the job's counts say that it is complete.
            ended = first is not None and first.rows is not None
            if not ended and (counts is None or self._is_past(counts)):
                return None
            self._check_rows(self._first, first, counts)
            self._first += 1
            self._ask_for_more()
        return None

    def _is_past(self, counts: Mapping[int, int]) -> bool:
        return self._closed or self._first > max(counts, default=-1)

    def _check_counts(self, counts: Mapping[int, int]) -> None:
        """Check all partitions against a finished job, also those that were emitted before it ended.

        A task whose Java dies may send its end too early, because Arrow takes the end of the input for the
        end of the rows. Spark runs that task again, and the attempt that succeeds has counted them all.
        """
        # the reader has left: not every partition is there
        if self._closed:
            return
        for number, partition in self._partitions.items():
            self._check_rows(number, partition, counts)

    @staticmethod
    def _check_rows(number: int, partition: _Partition | None, counts: Mapping[int, int] | None) -> None:
        """Check that a partition has the rows its task reports. BND-5015."""
        pushed = 0 if partition is None else partition.rows or 0
        wanted = pushed if counts is None else counts.get(number, 0)
        if pushed != wanted:
            raise PenstockError(
                "BND-5015",
                f"partition {number} of Spark's rows came with {pushed} of {wanted} rows",
                hint="run the query again; a task of Spark was lost while it sent them",
                kind=Kind.EXTERNAL,
                retriable=True,
                sqlstate="58000",
            )

    # -- the tasks' side, in the listener's thread

    def greeted(self, wire: TaskWire) -> None:
        with self._changed:
            # forget closed connections, so that close() touches each open one once
            self._wires = [known for known in self._wires if known.connection.fileno() >= 0]
            self._wires.append(wire)
            partition = self._partitions.setdefault(
                wire.partition, _Partition(FrameQueue(self.held, self._new_file))
            )
            # four cases: nobody reads, already complete, another attempt runs, this attempt may begin
            if self._closed:
                wire.hang_up()
            elif partition.rows is not None:
                wire.say(THERE)
            elif partition.wire is not None:
                partition.waiting.append(wire)  # Spark runs the task twice: the first continues
            else:
                self._begin(partition, wire)
            self._changed.notify_all()

    def received(self, wire: TaskWire, kind: bytes, payload: bytearray | int) -> None:
        with self._changed:
            partition = self._partitions[wire.partition]
            # an attempt that was replaced may still have frames in transit
            if self._closed or partition.wire is not wire:
                wire.hang_up()
                return
            if isinstance(payload, bytearray):
                wire.owed -= 1
                partition.queue.push(payload, wire.partition == self._first)
            # complete: attempts that waited behind this one need not send anything
            elif kind == END:
                partition.rows, partition.wire = payload, None
                wire.hang_up()
                for other in partition.waiting:
                    other.say(THERE)
                partition.waiting.clear()
            self._ask_for_more()
            if wire.partition == self._first:
                self._changed.notify_all()

    def closed(self, wire: TaskWire) -> None:
        with self._changed:
            partition = self._partitions[wire.partition]
            if wire in partition.waiting:
                partition.waiting.remove(wire)
            # the attempt died before its end: the next that waits begins from the first row
            if partition.wire is wire:
                partition.wire = None
                if partition.waiting and not self._closed:
                    self._begin(partition, partition.waiting.pop(0))
            self._ask_for_more()
            self._changed.notify_all()

    def failed(self, error: Exception) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def _begin(self, partition: _Partition, wire: TaskWire) -> None:
        """Accept an attempt's rows from their beginning. BND-5010 when the reader has already had rows of an
        earlier attempt.
        """
        if partition.handed:
            message = (
                f"Spark runs partition {wire.partition} of a query again after the reader received "
                "its first rows"
            )
            hint = (
                "run the query again; INSERT INTO a table, or a query of a job with checkpoints, "
                "survives this"
            )
            self._error = PenstockError(
                "BND-5010", message, hint=hint, kind=Kind.EXTERNAL, retriable=True, sqlstate="58000"
            )
            wire.hang_up()
            return
        # frames of an attempt that died, none of which the reader has had
        partition.queue.clear()
        partition.wire = wire
        wire.say(GO)
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        """Grant credits, to the lowest partitions first."""
        # in order of partition: credits go first to the task that the reader waits for
        running = sorted(
            (w for w in (p.wire for p in self._partitions.values()) if w is not None),
            key=lambda wire: wire.partition,
        )
        owed = sum(wire.owed for wire in running)
        first_runs = bool(running) and running[0].partition == self._first
        for wire in running:
            first = wire.partition == self._first
            mine = _OWED_FIRST if first else _OWED_EACH
            # the first task is never limited by the sum: it could not finish behind the others
            while wire.owed < mine and (first or owed < _OWED_ALL) and self._may_ask(wire, first, first_runs):
                wire.credit(1)
                owed += 1

    def _may_ask(self, wire: TaskWire, first: bool, first_runs: bool) -> bool:
        # While the first task has not begun, the others continue in spite of full buffers: they may occupy
        # the slots it needs.
        if self.held.has_capacity(first) or (not first and not first_runs):
            return True
        # buffers are full: the first still gets a few frames, else nobody could proceed
        return first and len(self._partitions[wire.partition].queue) + wire.owed < _OWED_FIRST

    def _new_file(self) -> Path:
        return self._scratch / f"frames-{next(self._files)}"


class PushListeners:
    """The listeners of this process, one per address, each created by the first query that needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[tuple[str, int], RowListener] = {}

    def at(self, bind: str, port: int) -> RowListener:
        """Return the listener at an address; port 0 is any. BND-5014 when the address is not available."""
        with self._lock:
            if (bind, port) not in self._listeners:
                try:
                    self._listeners[bind, port] = RowListener(bind, port)
                except OSError as error:
                    message = f"rows of Spark cannot be received at {bind}:{port}: {error.strerror or error}"
                    hint = (
                        "SET 'spark.results.bind' and 'spark.results.port' to an address of this "
                        "machine that is free"
                    )
                    raise PenstockError(
                        "BND-5014", message, hint=hint, kind=Kind.USER, sqlstate="08001"
                    ) from error
                ROW_LISTENERS.append(self._listeners[bind, port].admission)
            return self._listeners[bind, port]


LISTENERS = PushListeners()
