"""Rows of ours that Spark's tasks fetch: in segments, kept in a file without a name, sent over the
connections of the row listener.
"""

from __future__ import annotations

import itertools
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from penstock.engine.bounded.spark_results.listener import RowListener, TaskWire
from penstock.engine.bounded.spark_results.push_task import GO, HEADER, ROWS, pulling_task

SEGMENT_BYTES = 16 << 20
"""Of Arrow in memory: what a task holds at a time, and the least that is worth a task."""
_PIECE_BYTES = 1 << 18


class ServedRows:
    """What one query's tasks fetch of its relations; a receiver of the listener. A segment may be fetched
    any number of times, until it is closed.
    """

    def __init__(
        self, listener: Callable[[], RowListener], reached_at: Callable[[], str], scratch: Path
    ) -> None:
        """``listener`` and ``reached_at`` are asked when there is something to serve. ``scratch``: a
        directory on a disk with room for the rows.
        """
        self._listener_of, self._reached_at, self._scratch = listener, reached_at, scratch
        self._token = secrets.token_bytes(32)
        self._listener: RowListener | None = None
        self._lock = threading.Lock()
        self._segments: list[tuple[IO[bytes], int, int]] = []
        self._files: list[IO[bytes]] = []
        self._wires: list[TaskWire] = []
        self._closed = False

    def frame(self, session: Any, batches: Iterator[pa.RecordBatch], schema: Any) -> Any:
        """Return a DataFrame of batches, whose layout is that of a schema of Spark: a partition for each
        segment, in order.

        Memory holds a segment at a time. The rows are on disk when this returns, in a file nobody else can
        open.
        """
        if self._listener is None:
            self._listener = self._listener_of()
            self._listener.enter(self._token, self)
        first, size = len(self._segments), 0
        for segment in _segments(batches):
            self._append(segment, first)
            size += sum(batch.nbytes for batch in segment)
        count = len(self._segments) - first
        # Spark takes eight bytes a row for the size of a range and of what is made of it, and must not take
        # large rows for few: it would broadcast them. The filter leaves one id of each partition, and is no
        # estimate.
        step = max(1, size // 8 // max(count, 1))
        ids = session.range(first * step, (first + count) * step, 1, max(count, 1)).where(f"id % {step} = 0")
        return ids.mapInArrow(
            pulling_task(self._reached_at(), self._listener.port, self._token, step), schema
        )

    def close(self) -> None:
        """Hang up on the tasks and let the rows go."""
        if self._listener is not None:
            self._listener.leave(self._token)
        with self._lock:
            self._closed = True
            for wire in self._wires:
                wire.hang_up()
            for file in self._files:
                file.close()

    def _append(self, segment: list[pa.RecordBatch], first: int) -> None:
        """Write a segment behind those of its relation."""
        if len(self._segments) == first:
            self._files.append(tempfile.TemporaryFile(dir=self._scratch))  # noqa: SIM115  closed with the query
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            sink, segment[0].schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
        ) as writer:
            for batch in segment:
                writer.write_batch(batch)
        file, data = self._files[-1], sink.getvalue()
        begin = file.seek(0, os.SEEK_END)
        file.write(data)
        file.flush()
        self._segments.append((file, begin, data.size))

    # -- the tasks' side, in the listener's thread

    def greeted(self, wire: TaskWire) -> None:
        with self._lock:
            self._wires = [known for known in self._wires if known.connection.fileno() >= 0]
            self._wires.append(wire)
            if self._closed or not 0 <= wire.partition < len(self._segments):
                wire.hang_up()
                return
        wire.outgoing = self._pieces(*self._segments[wire.partition])

    def _pieces(self, file: IO[bytes], begin: int, size: int) -> Iterator[bytes]:
        yield GO + HEADER.pack(ROWS, size)
        for start in range(begin, begin + size, _PIECE_BYTES):
            with self._lock:  # a file that is closed meanwhile gives its number to another
                if self._closed:
                    return
                piece = os.pread(file.fileno(), min(_PIECE_BYTES, begin + size - start), start)
            yield piece

    def received(self, wire: TaskWire, kind: bytes, payload: bytearray | int) -> None:
        wire.hang_up()

    def closed(self, wire: TaskWire) -> None:
        """Nothing: what was not sent can be fetched again."""

    def failed(self, error: Exception) -> None:
        """Nothing: the task that is hung up on fetches again, and tells what is wrong if it cannot."""


def _segments(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches in groups of about a segment's size."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in itertools.chain.from_iterable(map(_slices, batches)):
        held.append(batch)
        size += batch.nbytes
        if size >= SEGMENT_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    step = max(1, batch.num_rows * SEGMENT_BYTES // max(batch.nbytes, 1))
    return (batch.slice(start, step) for start in range(0, batch.num_rows, step))
