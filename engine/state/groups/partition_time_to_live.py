"""PartitionLives: how long what has passed of partitions in time is kept, when none of their rows come."""

from __future__ import annotations

import numpy as np

from penstock.engine.api.clock import Clock
from penstock.engine.state.groups.partition_accumulators import PartitionTotals
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.state.time_to_live import LastWrites


class PartitionLives:
    """Passed rows and totals of a partition live ``ttl_ms`` after a row of it came or passed (0: for
    ever). Rows that wait do not expire.
    """

    def __init__(self, ttl_ms: int, clock: Clock) -> None:
        self.writes = LastWrites(ttl_ms, clock) if ttl_ms else None

    def touch(self, slots: np.ndarray, capacity: int) -> None:
        """Note that rows of partitions have passed."""
        if self.writes is not None:
            self.writes.touch(slots, capacity)

    def expire(self, now_ms: int, keys: KeyIndex, rows: TimedRows, totals: PartitionTotals) -> np.ndarray:
        """Forget what has lived long enough; return the partitions, those that rows still wait in
        included, each of which something was kept of.
        """
        if self.writes is None:
            return np.zeros(0, np.int64)
        over = self.writes.due(now_ms, keys.live_slots)
        if not over.size:
            return over
        totals.reserve()
        kept = over[(rows.passed.counts(over) > 0) | (totals.rows[over] > 0)]
        _, ids = rows.passed.expand(over)
        rows.forget(ids, ids[:0])
        totals.clear(over)
        self.writes.touch(over, keys.capacity)
        return kept
