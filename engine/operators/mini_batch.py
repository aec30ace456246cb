"""The mini-batch buffer: full batches are buffered for a moment and processed together with those ready
behind them.
"""

from __future__ import annotations

from penstock.engine.api.clock import Clock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.batch_concat import concat_batches

# so many full batches are processed together at most
BATCHES_AT_ONCE = 8
FEW_AT_ONCE = 2
"""So many where more would gain nothing: their rows are wide, or hardly two of them change the same group."""
_WIDE_BYTES = 16 << 20
"""With so many bytes buffered, ``FEW_AT_ONCE`` full batches are enough."""
# a batch with less than this part of a full one is small
_SMALL = 8
_SMALL_PARTIALS = 64
"""The same of partial results: there are few of them however many rows come."""
_TAKEN_WITHIN_MS = 1.0
"""Rows known to be ready are processed by the task's next step. When that is delayed, the buffered rows are
processed alone after this time.
"""


class MiniBatch:
    """Buffers up to ``at_once`` full batches, fewer of wide rows, for half the buffer timeout: the other
    half is the exchange's behind it.

    A batch below an eighth of a full one means that its producer has no more, so it is processed at once. An
    exception are rows known to be ready ``behind`` it: two small batches together cost little more than one.
    With ``small_ones`` small batches are buffered too, for an operator whose output would wait for the
    timeout anyway. With ``partials`` fewer rows are a small batch. Batches that together make no full one are
    concatenated.
    """

    def __init__(
        self, options: JobOptions, clock: Clock, *, small_ones: bool = False, partials: bool = False
    ) -> None:
        self._clock = clock
        self._timeout_ms = options.buffer_timeout_ms / 2
        self._full = options.batch_max_rows
        self.small = self._full // (_SMALL_PARTIALS if partials else _SMALL)
        self._least = 0 if small_ones else self.small
        self._batches: list[Batch] = []
        self._rows = self._bytes = 0
        self.at_once = BATCHES_AT_ONCE
        self.until_ms: float | None = None

    def add(self, batch: Batch, *, behind: bool = False) -> bool:
        """Buffer a batch; return whether the buffer must be processed now."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.rows.nbytes
        # enough rows, or nothing to wait for: no rows are known to be ready, and the batch is small
        at_once = FEW_AT_ONCE if self._bytes >= _WIDE_BYTES else self.at_once
        if self._rows >= at_once * self._full or not (
            behind or (self._timeout_ms > 0 and batch.num_rows >= self._least)
        ):
            return True
        if self.until_ms is None:
            self.until_ms = self._clock.monotonic_ms() + (
                max(self._timeout_ms, _TAKEN_WITHIN_MS) if behind else self._timeout_ms
            )
        return False

    def take(self) -> list[Batch]:
        """Return what is buffered, and empty the buffer."""
        self._rows, self.until_ms = 0, None
        return self._take()

    def take_early(self) -> list[Batch]:
        """Return what is buffered if it makes a batch that is not small, else nothing. Its rows still count
        until ``take``.
        """
        rows = sum(batch.num_rows for batch in self._batches)
        return self._take() if rows >= self._full // _SMALL else []

    def extend(self, ms: float) -> None:
        """Buffer so much longer: the time in which rows of ``take_early`` were processed. They would be
        processed behind the timeout otherwise, so none is later for it.
        """
        if self.until_ms is not None:
            self.until_ms += ms

    def _take(self) -> list[Batch]:
        batches, self._batches, self._bytes = self._batches, [], 0
        # small batches become one; full ones are not worth the copy
        small = len(batches) > 1 and sum(batch.num_rows for batch in batches) <= self._full
        return concat_batches(batches) if small else batches
