"""Stream elements: everything that travels through a channel, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, is_true
from penstock.engine.api.cached_property import cached_property
from penstock.engine.api.row_pieces import LIMITS, copies_at_once, cut_pairs, row_sizes, widest_row

# before any watermark, and the end of time
MIN_WATERMARK_US = -(2**63)
MAX_WATERMARK_US = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows with signed weights: a piece of a changelog as a Z-set.

    ``rows``: an Arrow record batch. ``weights``: int64 per row, +n inserts n times, -n retracts n times.
    ``None`` means +1 for every row: the append-only path pays nothing. ``behind``: int64 microseconds per
    row, the watermark of the row's own split just before it. It is set only when some row of the batch is
    late for its split (its time < that watermark). ``None`` means no row is late for its split. Lateness is
    decided row by row, so batch boundaries never change a result. ``origin`` is the split's ordinal in its
    source task, meaningful up to the watermark generator.
    """

    rows: pa.RecordBatch
    weights: np.ndarray | None = None
    behind: np.ndarray | None = None
    origin: int = 0

    @property
    def num_rows(self) -> int:
        """The number of (weighted) rows."""
        return self.rows.num_rows

    @cached_property
    def size_bytes(self) -> int:
        """About how much memory the rows take, exact unless they are a slice of less than 64 bytes a row;
        measured once.

        A slice shares its columns with others: only where those look too large for it is the slow exact
        measure worth its time.
        """
        size = self.rows.get_total_buffer_size()
        return size if size <= 4096 + 64 * self.rows.num_rows else self.rows.nbytes

    def with_rows(self, rows: pa.RecordBatch) -> Batch:
        """Return the batch with other columns for the same rows."""
        return Batch(rows, self.weights, self.behind, self.origin)

    def filter(self, mask: pa.BooleanArray) -> Batch:
        """Return the rows whose mask is TRUE (NULL counts as FALSE)."""
        rows = self.rows.filter(mask)
        if self.weights is None and self.behind is None:
            return Batch(rows, origin=self.origin)
        keep = is_true(mask)
        return Batch(
            rows,
            None if self.weights is None else self.weights[keep],
            None if self.behind is None else self.behind[keep],
            self.origin,
        )

    def take(self, indices: np.ndarray) -> Batch:
        """Return the rows at positions (int64), in that order."""
        rows = self.rows.take(array_of(indices))
        weights = None if self.weights is None else self.weights[indices]
        return Batch(rows, weights, None if self.behind is None else self.behind[indices], self.origin)

    def repeated(self) -> Batch:
        """Return each row as many times as its weight, without weights. No weight may be negative."""
        if self.weights is None:
            return self
        whole = self.take(np.repeat(np.arange(self.num_rows), self.weights))
        return Batch(whole.rows, None, whole.behind, whole.origin)

    def single_rows(self) -> Iterator[Batch]:
        """Yield each row as many times as its weight, without weights, in pieces that may be emitted at once.
        No weight may be negative.
        """
        if self.weights is None:
            yield from self.pieces()
            return
        for piece in self.copies(copies_at_once(self.weights, self.rows)):
            yield piece.repeated()

    def pieces(self) -> Iterator[Batch]:
        """Yield the batch in slices that may be emitted at once, none when it is empty."""
        # the usual batch is one piece
        if 0 < self.num_rows <= LIMITS.piece_rows and self.size_bytes <= LIMITS.piece_bytes:
            yield self
            return
        for first, last in cut_pairs(self.num_rows, widest_row(self.rows), partial(row_sizes, self.rows)):
            yield self if last - first == self.num_rows else self.slice(first, last - first)

    def copies(self, most: int) -> Iterator[Batch]:
        """Yield the batch in pieces whose weights sum to at most ``most``, signs aside. A row of a great
        weight becomes several of smaller ones.
        """
        if self.weights is None or int(np.abs(self.weights).sum()) <= most:
            yield self
            return
        # change number k belongs to the first row whose `ends` is above k; a piece is changes start .. stop
        ends = np.cumsum(np.abs(self.weights))
        for start in range(0, int(ends[-1]), most):
            stop = min(start + most, int(ends[-1]))
            first, last = (
                np.searchsorted(ends, start, side="right"),
                np.searchsorted(ends, stop, side="left") + 1,
            )
            weights = self.weights[first:last]
            # the part of each row's weight that is in this piece
            within = np.minimum(ends[first:last], stop) - np.maximum(
                ends[first:last] - np.abs(weights), start
            )
            yield replace(self.slice(int(first), int(last - first)), weights=np.sign(weights) * within)

    def slice(self, offset: int, length: int) -> Batch:
        """Return a zero-copy piece of the batch."""
        end = offset + length
        weights = None if self.weights is None else self.weights[offset:end]
        return Batch(
            self.rows.slice(offset, length),
            weights,
            None if self.behind is None else self.behind[offset:end],
            self.origin,
        )


@dataclass(frozen=True)
class Watermark:
    """No later row has a time below ``time_us`` (microseconds), late rows aside: windows with end <= time_us
    may close.
    """

    time_us: int


@dataclass(frozen=True)
class Barrier:
    """A checkpoint barrier: rows before it belong to checkpoint ``checkpoint_id``, rows after it do not.

    ``then_stop``: nothing follows it, neither rows nor watermarks. ``overtakes_at_ms``: from this time on
    (monotonic milliseconds of this process) it may overtake rows, which become channel state. Between
    processes the remaining time travels.
    """

    checkpoint_id: int
    then_stop: bool = False
    overtakes_at_ms: float = float("inf")


@dataclass(frozen=True)
class Idle:
    """The channel is idle until its next watermark: it does not hold back the merged watermark."""


@dataclass(frozen=True)
class EndOfInput:
    """Nothing follows on this channel."""


@dataclass(frozen=True)
class LatencyMarker:
    """Measures latency: it flows with the rows. ``source`` is the name of the operator it left at
    ``marked_ms`` (monotonic).
    """

    source: str
    marked_ms: float


Element = Batch | Watermark | Barrier | Idle | EndOfInput | LatencyMarker
