"""Record writers: they send the rows of a chain's last operator to the input channels of the next chain, by
edge kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.clock import Clock
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.stream_elements import (
    Barrier,
    Batch,
    Element,
    EndOfInput,
    Idle,
    LatencyMarker,
    Watermark,
)
from penstock.engine.exchange.batch_concat import concat_batches
from penstock.engine.exchange.channel import ProducerChannel
from penstock.engine.exchange.channel_state import EdgeTarget
from penstock.planner.logical.distribution import Broadcast, Edge, Forward, Partition, Shuffle

_RUN_ROWS = 64
"""A batch is cut into slices where they have so many rows on average; shorter ones cost more than a copy."""
_RUN_SAMPLE = 256
"""Rows whose order says whether the whole order is worth a look."""
_PIECES_BYTES = 4 << 20
"""A target's pieces of so many bytes are sent, however few their rows are: wide ones would fill memory until
the timeout, and a copy would join them.
"""


class RecordWriter:
    """Writes to the channels of one edge; ``targets`` are in subtask order. This base class passes every
    batch to its only target.

    ``edge_target``: where the rows go, on an edge whose rows a barrier may overtake; ``None`` where barriers
    are always aligned.
    """

    edge_target: EdgeTarget | None = None

    def __init__(self, targets: Sequence[ProducerChannel]) -> None:
        self._targets = tuple(targets)
        # the target of the last latency marker
        self._marked = -1

    @property
    def deadline_ms(self) -> float | None:
        """When buffered rows must be sent, monotonic milliseconds; ``None`` when nothing is buffered."""
        return None

    @property
    def blocked(self) -> bool:
        """Whether some target has no credit."""
        for target in self._targets:  # noqa: SIM110  asked at every step: any() takes twice as long
            if target.full:
                return True
        return False

    def write(self, batch: Batch) -> None:
        """Write rows."""
        self._targets[0].put(batch)

    def flush(self) -> None:
        """Send what is buffered."""

    def control(self, element: Element) -> None:
        """Send what is buffered, then the element to every target."""
        # rows first: a watermark or an aligned barrier never overtakes a row
        self.flush()
        for target in self._targets:
            target.put(element)
            if isinstance(element, Barrier):
                failpoint("W3")

    def mark(self, marker: LatencyMarker) -> None:
        """Put a latency marker behind the rows for one target, each in turn. One for all would multiply with
        every exchange.
        """
        self._marked = (self._marked + 1) % len(self._targets)
        self._targets[self._marked].put(marker)

    def barrier(self, barrier: Barrier, now_ms: float) -> list[Element]:
        """Send what is buffered, then a barrier: ahead of the buffered elements if it may overtake now.
        Return the overtaken elements that were not sent.
        """
        # aligned: the barrier is sent behind all rows
        if self.edge_target is None or now_ms < barrier.overtakes_at_ms:
            self.control(barrier)
            return []
        self.flush()
        overtaken = []
        for target in self._targets:
            overtaken += target.overtake(barrier)
            failpoint("W3")
        return overtaken

    def has_buffered(self, barrier: Barrier) -> bool:
        """Whether a barrier that may overtake is still buffered here on some channel."""
        return self.edge_target is not None and any(target.has_buffered(barrier) for target in self._targets)

    def overtake_buffered(self, barrier: Barrier) -> list[Element]:
        """Move a buffered barrier ahead of all else; return the elements it overtook."""
        return [
            element
            for target in self._targets
            if target.has_buffered(barrier)
            for element in target.overtake(barrier)
        ]


class ShuffleWriter(RecordWriter):
    """Round-robin: whole batches to the targets in turn."""

    def __init__(self, targets: Sequence[ProducerChannel], first: int = 0) -> None:
        super().__init__(targets)
        # each producer begins with another target, so that the first batches do not all go to one
        self._next = first % len(self._targets)

    def write(self, batch: Batch) -> None:
        self._targets[self._next].put(batch)
        self._next = (self._next + 1) % len(self._targets)


class BroadcastWriter(RecordWriter):
    """Broadcast: every batch to every target."""

    def write(self, batch: Batch) -> None:
        for target in self._targets:
            target.put(batch)


class PartitionWriter(RecordWriter):
    """Hash partitioning: each row goes to the subtask that owns its key group. Small pieces are buffered per
    target.

    A target's pieces are sent when they hold ``max_rows`` or are large; all of them when the oldest is
    ``timeout_ms`` old (0: at once).
    """

    def __init__(
        self,
        targets: Sequence[ProducerChannel],
        keys: tuple[int, ...],
        max_parallelism: int,
        clock: Clock,
        max_rows: int,
        timeout_ms: float,
    ) -> None:
        from penstock.engine.kernels.partition import partition

        # numba: only jobs that exchange rows pay for it
        from penstock.engine.kernels.stable_hash import stable_hash

        super().__init__(targets)
        self._keys = keys
        self._max_parallelism = max_parallelism
        self._clock = clock
        self._max_rows = max_rows
        self._timeout_ms = timeout_ms
        # by target: pieces not sent yet, their rows and bytes, and the latency markers behind them
        self._pieces: list[list[Batch]] = [[] for _ in self._targets]
        self._rows = [0] * len(self._targets)
        self._bytes = [0] * len(self._targets)
        self._markers: list[list[LatencyMarker]] = [[] for _ in self._targets]
        self._deadline_ms: float | None = None
        self._hash, self._partition = stable_hash, partition

    @property
    def deadline_ms(self) -> float | None:
        return self._deadline_ms

    def write(self, batch: Batch) -> None:
        columns = [batch.rows.column(key) for key in self._keys]
        order, offsets = self._partition(self._hash(columns), len(self._targets), self._max_parallelism)
        counts = np.diff(offsets)
        # All rows for one target: no copy. Common with few keys, and with one subtask.
        whole = int(counts.argmax())
        if counts[whole] == batch.num_rows:
            self._buffer(whole, [batch])
        # Rows that come grouped, as those of windows do, are cut where the target changes: no copy either.
        elif (starts := _runs(order, offsets)) is not None:
            cut: dict[int, list[Batch]] = {}
            for first, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
                owner = int(np.searchsorted(offsets, first, side="right")) - 1
                cut.setdefault(owner, []).append(batch.slice(int(order[first]), end - first))
            for owner, pieces in cut.items():
                self._buffer(owner, pieces)
        else:
            ordered = batch.take(order)
            # slices of one sorted copy, not one take per target
            for target in np.flatnonzero(counts):
                self._buffer(int(target), [ordered.slice(int(offsets[target]), int(counts[target]))])
        # buffer timeout 0: lowest latency, smallest batches
        if self._timeout_ms <= 0:
            self.flush()

    def flush(self) -> None:
        for target in range(len(self._targets)):
            self._ship(target)
        self._deadline_ms = None

    def control(self, element: Element) -> None:
        # Rows and what follows them are put together: a consumer that sleeps is woken once for both.
        for target in range(len(self._targets)):
            self._ship(target, element)
            if isinstance(element, Barrier):
                failpoint("W3")
        self._deadline_ms = None

    def mark(self, marker: LatencyMarker) -> None:
        self._marked = (self._marked + 1) % len(self._targets)
        # behind the rows it measures
        if self._pieces[self._marked]:
            self._markers[self._marked].append(marker)
        else:
            self._targets[self._marked].put(marker)

    def _buffer(self, target: int, pieces: list[Batch]) -> None:
        self._pieces[target] += pieces
        for piece in pieces:
            self._rows[target] += piece.num_rows
            self._bytes[target] += piece.size_bytes
        if self._rows[target] >= self._max_rows or self._bytes[target] >= _PIECES_BYTES:
            self._ship(target)
            if not any(self._rows):
                self._deadline_ms = None
        elif self._deadline_ms is None:
            self._deadline_ms = self._clock.monotonic_ms() + self._timeout_ms

    def _ship(self, target: int, *behind: Element) -> None:
        """Send the pieces of a target with the markers behind them, and what follows these."""
        pieces, markers = self._pieces[target], self._markers[target]
        elements: list[Element] = [*(concat_batches(pieces) if pieces else ()), *markers, *behind]
        self._pieces[target], self._markers[target] = [], []
        self._rows[target] = self._bytes[target] = 0
        if elements:
            self._targets[target].put_all(elements)


def _runs(order: np.ndarray, offsets: np.ndarray) -> list[int] | None:
    """Return where each run of neighbouring rows of one target starts in an order, ``None`` when runs are
    short.
    """
    most = order.size // _RUN_ROWS
    # most orders are refused by their first rows, before all of it is read
    if np.count_nonzero(np.diff(order[:_RUN_SAMPLE]) != 1) > min(most, _RUN_SAMPLE // _RUN_ROWS):
        return None
    breaks = np.flatnonzero(np.diff(order) != 1) + 1
    if breaks.size > most:
        return None
    starts = np.union1d(offsets[:-1], breaks)
    # a last target without rows starts behind them all
    return [int(start) for start in starts if start < order.size]


class TaskOutput:
    """All record writers of a task: each element goes to every edge. ``bytes_out``: about how many bytes of
    rows were written.
    """

    def __init__(self, writers: Sequence[RecordWriter]) -> None:
        self._writers = tuple(writers)
        self.bytes_out = 0

    @property
    def is_end(self) -> bool:
        """Whether the task has no outgoing edge: rows leave the job here."""
        return not self._writers

    @property
    def blocked(self) -> bool:
        """Whether some channel has no credit."""
        for writer in self._writers:  # noqa: SIM110  as above
            if writer.blocked:
                return True
        return False

    def ship_due(self, now_ms: float) -> float | None:
        """Send what was buffered long enough; return when the next buffered rows fall due, or ``None``."""
        earliest = None
        for writer in self._writers:
            deadline = writer.deadline_ms
            if deadline is None:
                continue
            if deadline <= now_ms:
                writer.flush()
            elif earliest is None or deadline < earliest:
                earliest = deadline
        return earliest

    def flush(self) -> None:
        """Send what is buffered."""
        for writer in self._writers:
            writer.flush()

    def collect(self, batch: Batch) -> None:
        """Write rows to every edge."""
        if self._writers:
            self.bytes_out += batch.size_bytes
        for writer in self._writers:
            writer.write(batch)

    def watermark(self, time_us: int) -> None:
        """Forward a watermark."""
        self._control(Watermark(time_us))

    def marker(self, marker: LatencyMarker) -> None:
        """Forward a latency marker, behind the buffered rows."""
        for writer in self._writers:
            writer.mark(marker)

    def idle(self) -> None:
        """Forward that the task is idle."""
        self._control(Idle())

    def barrier(self, barrier: Barrier, now_ms: float) -> list[tuple[EdgeTarget, list[Element]]]:
        """Forward a barrier; return the overtaken elements that were not sent, by the target of their
        edge.
        """
        return [
            (writer.edge_target, overtaken)
            for writer in self._writers
            if (overtaken := writer.barrier(barrier, now_ms)) and writer.edge_target is not None
        ]

    def has_buffered(self, barrier: Barrier) -> bool:
        """Whether a barrier that may overtake is still buffered here."""
        return barrier.overtakes_at_ms < float("inf") and any(
            writer.has_buffered(barrier) for writer in self._writers
        )

    def overtake_buffered(self, barrier: Barrier) -> list[tuple[EdgeTarget, list[Element]]]:
        """Move a buffered barrier ahead of all else; return the elements it overtook, by the target of their
        edge.
        """
        return [
            (writer.edge_target, writer.overtake_buffered(barrier))
            for writer in self._writers
            if writer.edge_target is not None
        ]

    def end(self) -> None:
        """Forward the end of input."""
        self._control(EndOfInput())

    def _control(self, element: Element) -> None:
        for writer in self._writers:
            writer.control(element)


def record_writer(
    edge: Edge,
    targets: Sequence[ProducerChannel],
    *,
    subtask: int,
    max_parallelism: int,
    clock: Clock,
    max_rows: int,
    timeout_ms: float,
    edge_target: EdgeTarget | None = None,
) -> RecordWriter:
    """Return the writer of an edge kind for one producing subtask; ``targets`` are its channels in the
    order of target subtasks.
    """
    writer: RecordWriter
    # hash: several targets and a key
    if isinstance(edge, Partition) and len(targets) > 1 and edge.keys:
        writer = PartitionWriter(
            targets, edge.keys, max_parallelism, clock=clock, max_rows=max_rows, timeout_ms=timeout_ms
        )
    # a copied side of a join: every target gets every row
    elif isinstance(edge, Broadcast):
        writer = BroadcastWriter(targets)
    # rebalance
    elif isinstance(edge, Shuffle) and len(targets) > 1:
        writer = ShuffleWriter(targets, subtask)
    # one target: nothing to distribute
    elif isinstance(edge, Forward | Partition | Shuffle):
        writer = RecordWriter(targets)
    else:
        raise PenstockError(
            "INT-9013", f"no record writer for edge {edge.sign}", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    writer.edge_target = edge_target
    return writer
