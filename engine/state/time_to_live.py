"""When entries of a state expire: by the clock (LastWrites), by event time (Deadlines), by window
(PartitionEnds).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.api.clock import Clock
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.state.frozen_arrays import FrozenViews
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.state_snapshot import WRITTEN

EXPIRED, ABSENT = "expired", "retractions_of_expired"
# No entry: nothing is due.
_NEVER = np.iinfo(np.int64).max
# Write times are rounded up to a hundredth of the TTL, so the live entries are scanned at most that often in
# it.
_PARTS = 100


class LastWrites(Mapped):
    """Wall-clock milliseconds by id, rounded up to a hundredth of ``ttl_ms``, so that entries are scanned at
    most a hundred times per TTL.

    An entry is due between ``ttl_ms`` and a hundredth more after its last write. A clock that goes back is
    ignored until it has caught up.
    """

    MAPPED = ("_written",)

    def __init__(self, ttl_ms: int, clock: Clock) -> None:
        self.ttl_ms = ttl_ms
        self._clock = clock
        self._grain = max(1, ttl_ms // _PARTS)
        self._views = FrozenViews()
        # The latest clock reading: a clock that goes back is ignored.
        self._now_ms = 0
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._written = np.zeros(64, np.int64)
        # No live entry is older. Touching an old entry leaves it too low, which costs a scan, not a result.
        self._oldest = _NEVER

    @property
    def memory(self) -> int:
        """The bytes of memory in use."""
        return self._written.nbytes

    def touch(self, ids: np.ndarray, capacity: int) -> None:
        """Note that entries are written now; ids are below ``capacity``."""
        if ids.size:
            self._advance(self._clock.wall_ms())
            # Rounded up to the next multiple of the grain.
            self._note(ids, np.int64(-(-self._now_ms // self._grain) * self._grain), capacity)

    def restore(self, ids: np.ndarray, written_ms: np.ndarray, capacity: int) -> None:
        """Note when entries were written; of one that is named more than once the last time counts."""
        if ids.size:
            # By id: the latest of the times named.
            latest = np.zeros(int(ids.max()) + 1, np.int64)
            np.maximum.at(latest, ids, written_ms)
            self._note(ids, latest[ids], capacity)

    def at_least(self, ids: np.ndarray, written_ms: np.ndarray, capacity: int) -> None:
        """Note that entries were written at these times, or later where a later time was noted."""
        self._written = grown(self._written, capacity) if self._written.size < capacity else self._written
        # Both times are named for each id, and ``restore`` uses the later one.
        self.restore(np.append(ids, ids), np.append(written_ms, self._written[ids]), capacity)

    def _note(self, ids: np.ndarray, written_ms: np.ndarray | np.int64, capacity: int) -> None:
        if self._written.size < capacity:
            self._written = grown(self._written, capacity)
        self._views.save(ids)
        self._written[ids] = written_ms
        self._oldest = min(self._oldest, int(np.min(written_ms)))

    def of(self, ids: np.ndarray) -> np.ndarray:
        """Return when entries were written, int64."""
        return self._written[ids]

    def freeze(self) -> Callable[[np.ndarray | None], Callable[[np.ndarray], np.ndarray]]:
        """Return when entries were written, by id, as it is now. It is copied later: for ascending ids, whose
        positions then count, or for ``None`` of all.
        """
        frozen = self._views.freeze([self._written], self._written.size)

        def of(ids: np.ndarray | None) -> Callable[[np.ndarray], np.ndarray]:
            (written,) = frozen.copies(ids)
            return lambda at: written[at]

        return of

    def due(self, now_ms: int, live: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the live ids that have expired; the caller removes them."""
        self._advance(now_ms)
        # the oldest entry has not expired: no scan
        if self._oldest == _NEVER or self._now_ms < self._oldest + self.ttl_ms:
            return np.zeros(0, np.int64)
        ids = live()
        written = self._written[ids]
        over = written + self.ttl_ms <= self._now_ms
        left = written[~over]
        # Exact again, since all live entries were scanned.
        self._oldest = int(left.min()) if left.size else _NEVER
        return ids[over]

    def _advance(self, now_ms: int) -> None:
        self._now_ms = max(self._now_ms, now_ms)


def restore_lives(writes: LastWrites, ids: np.ndarray, part: pa.Table, capacity: int) -> None:
    """Restore the write times of entries; a snapshot may have several rows of one entry. Where the state had
    no TTL, entries count as written now.
    """
    written = written_column(part)
    if written is None:
        writes.touch(ids, capacity)
    else:
        writes.at_least(ids, written, capacity)


def written_column(part: pa.Table) -> np.ndarray | None:
    """Return the write times of a snapshot's entries, ``None`` where the state had no TTL."""
    return numbers_of(part.column(WRITTEN)) if WRITTEN in part.column_names else None


# Pieces below this size are merged with their neighbours; larger ones would be copied too often.
_MERGED_BELOW = 16_384


class Deadlines:
    """Pairs (time, number) in pieces sorted by time, so that the due pairs are the heads of pieces. Small
    pieces are merged with their neighbours.

    Designed for times that are added in bulk and almost in order. A pair may be stale when it is due: the
    caller checks it.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, times_us: np.ndarray, numbers: np.ndarray) -> None:
        """Add pairs (int64 each)."""
        if not times_us.size:
            return
        self._pieces.append(_sorted(times_us, numbers))
        # Merging only neighbours that are small, or not twice as large as the next: a pair is copied a few
        # times.
        while len(self._pieces) > 1 and self._pieces[-2][0].size < min(
            2 * self._pieces[-1][0].size, _MERGED_BELOW
        ):
            (later_times, later), (times, earlier) = self._pieces.pop(), self._pieces.pop()
            self._pieces.append(
                _sorted(np.concatenate([times, later_times]), np.concatenate([earlier, later]))
            )

    def due(self, time_us: int) -> tuple[np.ndarray, np.ndarray]:
        """Remove and return all pairs with a time before ``time_us``: times and numbers, in no order."""
        times, numbers, pieces_left = [], [], []
        for at, which in self._pieces:
            # Sorted, so the due pairs are the head of the piece.
            count = int(np.searchsorted(at, time_us)) if at[0] < time_us else 0
            times.append(at[:count])
            numbers.append(which[:count])
            if count < at.size:
                pieces_left.append((at[count:], which[count:]))
        self._pieces = pieces_left
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *times]), np.concatenate([none, *numbers])


def _sorted(times_us: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Rows mostly come in the order of their times. To look takes a tenth of the time of sorting them again.
    # Copied, for a view would keep the memory of the column that the times are from.
    if bool((times_us[:-1] <= times_us[1:]).all()):
        return times_us.copy(), numbers.copy()
    order = np.argsort(times_us, kind="stable")
    return times_us[order], numbers[order]


class PartitionEnds:
    """Ends of windows by the slot of their partition, microseconds. Derived from the rows: after a restore
    their ends are noted again.
    """

    def __init__(self) -> None:
        # By slot: the end of the partition's window.
        self._ends = np.zeros(0, np.int64)
        # No live end is earlier; a watermark before it needs no scan.
        self._first = MAX_WATERMARK_US

    def note(self, slots: np.ndarray, ends: np.ndarray, capacity: int) -> None:
        """Note the ends of the windows of slots (all below ``capacity``)."""
        if capacity > self._ends.size:
            self._ends = grown(self._ends, capacity)
        self._ends[slots] = ends
        if ends.size:
            self._first = min(self._first, int(ends.min()))

    def due(self, live: np.ndarray, watermark_us: int) -> np.ndarray:
        """Return those of the live slots whose window has ended, by end; called with all of them."""
        if self._first > watermark_us:
            return live[:0]
        ends = self._ends[live]
        ended = ends <= watermark_us
        # no scan until the earliest end left
        # All live slots were asked, so this is exact.
        self._first = int(ends[~ended].min(initial=MAX_WATERMARK_US))
        return live[ended][np.argsort(ends[ended], kind="stable")]
