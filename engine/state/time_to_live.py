"""LastWrites: when each entry of a state was last written by the clock, and which have lived longer than
they may since.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.api.clock import Clock
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.state_snapshot import WRITTEN

EXPIRED, ABSENT = "expired", "retractions_of_expired"
_NEVER = np.iinfo(np.int64).max
_PARTS = 100


class LastWrites(Mapped):
    """Wall-clock milliseconds by id, rounded up to a hundredth of ``ttl_ms``, so that all entries are looked
    through at most a hundred times in it.

    An entry is due between ``ttl_ms`` and a hundredth more after its last write. A clock that goes back
    stands still here until it has caught up.
    """

    MAPPED = ("_written",)

    def __init__(self, ttl_ms: int, clock: Clock) -> None:
        self.ttl_ms = ttl_ms
        self._clock = clock
        self._grain = max(1, ttl_ms // _PARTS)
        self._now_ms = 0
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._written = np.zeros(64, np.int64)
        self._oldest = _NEVER

    @property
    def memory(self) -> int:
        """Bytes held."""
        return self._written.nbytes

    def touch(self, ids: np.ndarray, capacity: int) -> None:
        """Note that entries are written now; ids are below ``capacity``."""
        if ids.size:
            self._advance(self._clock.wall_ms())
            self._note(ids, np.int64(-(-self._now_ms // self._grain) * self._grain), capacity)

    def restore(self, ids: np.ndarray, written_ms: np.ndarray, capacity: int) -> None:
        """Note when entries were written; of one that is named more than once the last time counts."""
        if ids.size:
            latest = np.zeros(int(ids.max()) + 1, np.int64)
            np.maximum.at(latest, ids, written_ms)
            self._note(ids, latest[ids], capacity)

    def at_least(self, ids: np.ndarray, written_ms: np.ndarray, capacity: int) -> None:
        """Note that entries were written then, or later when that is known."""
        self._written = grown(self._written, capacity) if self._written.size < capacity else self._written
        self.restore(np.append(ids, ids), np.append(written_ms, self._written[ids]), capacity)

    def _note(self, ids: np.ndarray, written_ms: np.ndarray | np.int64, capacity: int) -> None:
        if self._written.size < capacity:
            self._written = grown(self._written, capacity)
        self._written[ids] = written_ms
        self._oldest = min(self._oldest, int(np.min(written_ms)))

    def of(self, ids: np.ndarray) -> np.ndarray:
        """Return when entries were written, int64."""
        return self._written[ids]

    def due(self, now_ms: int, live: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the ids among the live ones that have lived long enough; the caller forgets them."""
        self._advance(now_ms)
        if self._oldest == _NEVER or self._now_ms < self._oldest + self.ttl_ms:
            return np.zeros(0, np.int64)
        ids = live()
        written = self._written[ids]
        over = written + self.ttl_ms <= self._now_ms
        left = written[~over]
        self._oldest = int(left.min()) if left.size else _NEVER
        return ids[over]

    def _advance(self, now_ms: int) -> None:
        self._now_ms = max(self._now_ms, now_ms)


def restore_lives(writes: LastWrites, ids: np.ndarray, part: pa.Table, capacity: int) -> None:
    """Note when entries that several rows of a snapshot tell of were written; those of a state that lived
    for ever begin to age.
    """
    written = written_column(part)
    if written is None:
        writes.touch(ids, capacity)
    else:
        writes.at_least(ids, written, capacity)


def written_column(part: pa.Table) -> np.ndarray | None:
    """Return when the entries of a snapshot were written, ``None`` for one of a state that lived for ever."""
    return numbers_of(part.column(WRITTEN)) if WRITTEN in part.column_names else None
