"""The filter before the MAX or MIN of windows, or before a join with it: rows worse than the best so far of
their windows are dropped before they travel or are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import truths
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, ListState, Operator, Output
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.join.runtime_filter import GIVEN_UP, PRUNED
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.physical.operator_specs import OperatorSpec
from penstock.planner.physical.window_best_filter import WindowBestFilter

# rows of a batch that are in more windows than this are not filtered
_WINDOWS_MOST = 1024

# as of a runtime filter: judged after so many rows, it must have dropped this share of them
_TRIED_ROWS = 100_000
_LEAST_SHARE = 0.2

_WORST = -(2**63)


class WindowBestFilterOperator(Operator, ListState):
    """Keeps the best value of each window among the rows on time that this subtask has seen. The aggregate
    counts all of them, so the final value of a window is as good or better.

    Only rows on time are dropped: the join counts and reports those that are late. Once the input was idle,
    the watermark of the aggregate may be ahead of this subtask's. A row that is on time here may be late
    there, so every row passes from then on.
    """

    def __init__(self, spec: OperatorSpec[WindowBestFilter, OperatorFacts], options: JobOptions) -> None:
        self._node = spec.node.best
        self._watermark_us = MIN_WATERMARK_US
        # by the window's number: window n ends at (n + 1) * size + offset
        self._best: dict[int, int] = {}
        self._was_idle = False
        self._tested = self._dropped = 0
        self._stopped = False

    def open(self, context: Context) -> None:
        self._metrics = context.metrics

    def list_states(self) -> dict[str, ListState]:
        return {"idle": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        # values are not kept: after a restore more rows pass until new ones are known
        return [{"was_idle": self._was_idle}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self._was_idle = any(item["was_idle"] for item in items)

    def on_idle(self, out: Output) -> None:
        self._was_idle = True
        self._best.clear()

    def on_watermark(self, time_us: int, out: Output) -> None:
        self._watermark_us = time_us
        # rows on time are not before the watermark: earlier windows are joined no more
        first = self._first_joined(time_us)
        for number in [number for number in self._best if number < first]:
            del self._best[number]

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        passing = None if self._was_idle or self._stopped else self._passing(batch)
        if passing is None:
            out.collect(batch)
            return
        self._judge(batch.num_rows, batch.num_rows - passing.size)
        if passing.size == batch.num_rows:
            out.collect(batch)
        elif passing.size:
            out.collect(batch.take(passing))

    def _judge(self, tested: int, dropped: int) -> None:
        if dropped:
            self._metrics.count(PRUNED, dropped)
        if self._tested >= _TRIED_ROWS:
            return
        self._tested += tested
        self._dropped += dropped
        # windows of few rows: the test costs more than the rows it saves
        if self._tested >= _TRIED_ROWS and self._dropped < _LEAST_SHARE * self._tested:
            self._stopped = True
            self._best.clear()
            self._metrics.count(GIVEN_UP)

    def _first_joined(self, time_us: int) -> int:
        """Return the number of the first window that a row of a time may join."""
        node = self._node
        return -((node.before_us + node.offset_us - time_us) // node.size_us) - 1

    def _last_joined(self, time_us: int) -> int:
        """Return the number of the last window that a row of a time may join."""
        node = self._node
        return (time_us + node.after_us - node.offset_us) // node.size_us - 1

    def _passing(self, batch: Batch) -> np.ndarray | None:
        """Return the positions of the rows that pass, None for all."""
        times = col.words(batch.rows.column(self._node.time_column))
        values = col.words(batch.rows.column(self._node.value_column))
        # bitwise NOT reverses the order of all integers
        values = values if self._node.greatest else ~values
        timely = self._timely(batch, times)
        own_times, own = (times, values) if timely is None else (times[timely], values[timely])
        if not own.size or not self._note(own_times, own):
            return None
        first = self._first_joined(int(own_times.min()))
        last = self._last_joined(int(own_times.max()))
        if not 0 <= last - first < 2 * _WINDOWS_MOST:
            return None
        limits = np.array([self._best.get(number, _WORST) for number in range(first, last + 1)])
        # most rows are below every window of the batch; only the others are compared with their own
        candidates = values >= limits.min()
        if timely is not None:
            candidates |= ~timely
        at = np.flatnonzero(candidates)
        reached = values[at] >= self._limits_of(times[at], limits, first)
        return at[reached if timely is None else reached | ~timely[at]]

    def _timely(self, batch: Batch, times: np.ndarray) -> np.ndarray | None:
        """Return which rows are on time and have a time and a value, None for all."""
        reached = self._watermark_us if batch.behind is None else np.maximum(batch.behind, self._watermark_us)
        # the end of a window is on time until the watermark reaches it
        timely = times > reached if self._node.attached else times >= reached
        for column in (self._node.time_column, self._node.value_column):
            array: pa.Array = batch.rows.column(column)
            if array.null_count:
                timely &= truths(array.is_valid())
        return None if timely.all() else timely

    def _note(self, times: np.ndarray, values: np.ndarray) -> bool:
        """Take the best values of a batch in; return whether its windows were few enough."""
        numbers = (times - self._node.offset_us) // self._node.size_us
        first, last = int(numbers.min()), int(numbers.max())
        if last - first >= _WINDOWS_MOST:
            return False
        if first == last:
            found = [int(values.max())]
        else:
            best = np.full(last - first + 1, _WORST, np.int64)
            np.maximum.at(best, numbers - first, values)
            found = best.tolist()
        for number, value in enumerate(found, first):
            self._best[number] = max(value, self._best.get(number, _WORST))
        return True

    def _limits_of(self, times: np.ndarray, limits: np.ndarray, first: int) -> np.ndarray:
        """Return of each time the least best value of the windows it may join."""
        node = self._node
        low = -((node.before_us + node.offset_us - times) // node.size_us) - 1
        high = (times + node.after_us - node.offset_us) // node.size_us - 1
        least = np.full(times.size, 2**63 - 1, np.int64)
        for step in range((node.before_us + node.after_us) // node.size_us + 1):
            number = high - step
            # late rows are outside the limits; the caller lets them pass
            own = limits[np.clip(number - first, 0, limits.size - 1)]
            least = np.where(number >= low, np.minimum(least, own), least)
        # a time that joins no window is the join's to judge
        least[low > high] = _WORST
        return least
