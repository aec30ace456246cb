"""MiniBatch: full batches held back for a moment, to be taken together with those that are ready behind
them.
"""

from __future__ import annotations

from penstock.engine.api.clock import Clock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.batch_concat import concat_batches

BATCHES_AT_ONCE = 4
_SMALL = 8
_TAKEN_WITHIN_MS = 1.0
"""Rows known to be ready are taken by the task's next step; should it be kept from that, those that are
held go on alone.
"""


class MiniBatch:
    """Batches up to ``BATCHES_AT_ONCE`` full ones, for half the buffer timeout: it is for the way to the next
    task's rows, of which this is a part.

    A batch of less than an eighth of a full one says that its producer has no more, so it holds up nothing,
    unless the task knows of rows that are ready ``behind`` it: to take them first delays nothing, and two
    small batches at once cost little more than one. Where rows would wait for the timeout behind the
    operator, ``small_ones`` wait as well: their way on is the shorter for it. What together makes no full
    batch is taken as one.
    """

    def __init__(self, options: JobOptions, clock: Clock, *, small_ones: bool = False) -> None:
        self._clock = clock
        self._timeout_ms = options.buffer_timeout_ms / 2
        self._full = options.batch_max_rows
        self.small = self._full // _SMALL
        self._least = 0 if small_ones else self.small
        self._batches: list[Batch] = []
        self._rows = 0
        self.until_ms: float | None = None

    def add(self, batch: Batch, *, behind: bool = False) -> bool:
        """Hold a batch; return whether it is time to take what is held."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= BATCHES_AT_ONCE * self._full or not (
            behind or (self._timeout_ms > 0 and batch.num_rows >= self._least)
        ):
            return True
        if self.until_ms is None:
            self.until_ms = self._clock.monotonic_ms() + (
                max(self._timeout_ms, _TAKEN_WITHIN_MS) if behind else self._timeout_ms
            )
        return False

    def take(self) -> list[Batch]:
        """Return what is held, and hold it no longer."""
        batches, rows = self._batches, self._rows
        self._batches, self._rows, self.until_ms = [], 0, None
        return concat_batches(batches) if len(batches) > 1 and rows <= self._full else batches
