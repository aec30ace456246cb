"""Rows of ours that Spark's tasks fetch. They are stored as segments in an unnamed file and sent over the row
listener's connections.
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
"""Bytes of Arrow in memory: what a task buffers at a time, and the smallest work worth a task."""
_PIECE_BYTES = 1 << 18


class ServedRows:
    """The relations of one query, served to its tasks; a receiver of the listener. A segment may be fetched
    any number of times until it is closed.
    """

    def __init__(
        self, listener: Callable[[], RowListener], reached_at: Callable[[], str], scratch: Path
    ) -> None:
        """``listener`` and ``reached_at`` are called on the first relation. ``scratch``: a directory on a
        disk with enough space for the rows.
        """
        self._listener_of, self._reached_at, self._scratch = listener, reached_at, scratch
        self._token = secrets.token_bytes(32)
        self._listener: RowListener | None = None
        self._lock = threading.Lock()
        # (file, offset, size) by segment number
        self._segments: list[tuple[IO[bytes], int, int]] = []
        self._files: list[IO[bytes]] = []
        self._wires: list[TaskWire] = []
        self._closed = False

    def frame(self, session: Any, batches: Iterator[pa.RecordBatch], schema: Any) -> Any:
        """Return a DataFrame of batches in the layout of a Spark schema: one partition per segment, in order.

        Memory holds one segment at a time. When this returns, the rows are on disk, in a file no one else can
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
        """Disconnect the tasks and delete the rows."""
        if self._listener is not None:
            self._listener.leave(self._token)
        with self._lock:
            self._closed = True
            for wire in self._wires:
                wire.hang_up()
            for file in self._files:
                file.close()

    def _append(self, segment: list[pa.RecordBatch], first: int) -> None:
        """Append a segment to those of its relation."""
        # the first segment of a relation: one file a relation, unnamed, so it disappears with the process
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
            # a task of a query that has ended, or a number without a segment
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
        """Nothing: unsent segments can be fetched again."""

    def failed(self, error: Exception) -> None:
        """Nothing: the disconnected task fetches again, and reports the error if it cannot."""


def _segments(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches in groups of about a segment's size."""
    segment: list[pa.RecordBatch] = []
    size = 0
    for batch in itertools.chain.from_iterable(map(_slices, batches)):
        segment.append(batch)
        size += batch.nbytes
        if size >= SEGMENT_BYTES:
            yield segment
            segment, size = [], 0
    if segment:
        yield segment


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    # one large batch is cut, because a segment must fit in a task's memory
    step = max(1, batch.num_rows * SEGMENT_BYTES // max(batch.nbytes, 1))
    return (batch.slice(start, step) for start in range(0, batch.num_rows, step))
