"""Late row markers: they mark the rows that are late for every window they fall in, as the window operator
above decides it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.expressions.datum import nulls_of, values_of
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.session_state import SessionWindowState
from penstock.engine.state.rows.event_time_buffer import RowsBehind, less
from penstock.engine.windowing import window_arithmetic
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.window_table import LateMark
from penstock.planner.physical.operator_specs import OperatorSpec


class LateRowMarkerOperator(Operator):
    """Decides by the watermark of the row's own split, or its own watermark; no operator above has a later
    one.
    """

    def __init__(self, spec: OperatorSpec[LateMark, OperatorFacts], options: JobOptions) -> None:
        self._window = spec.node.window
        self._lateness_us = spec.node.lateness_us
        self._schema = spec.schema.to_arrow()
        self._watermark_us = MIN_WATERMARK_US

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        column = batch.rows.column(self._window.time_column)
        times = values_of(column)
        bounds = self._reached(batch)
        # a row is late up to this time: the watermark less the allowed lateness
        reach = less(bounds, self._lateness_us)
        # SESSION: the row alone would be a session from its time to its time plus the gap
        if self._window.merging:
            ends, late = times + self._window.size_us, times < reach
        else:
            # TUMBLE, HOP, CUMULATE: late once the last of the row's windows has ended
            ends = window_arithmetic.last_window_end(
                window_arithmetic.slice_end(times, self._window), self._window
            )
            late = ends <= reach
        # a row with a NULL time is in no window, and never late
        missing = nulls_of(column)
        self._mark(batch, late if missing is None else late & ~missing, ends, missing, bounds, out)

    def _reached(self, batch: Batch) -> np.ndarray:
        # the later of two watermarks: that of the row's split just before the row, and the operator's own
        return (
            np.full(batch.num_rows, self._watermark_us)
            if batch.behind is None
            else np.maximum(batch.behind, self._watermark_us)
        )

    def _mark(
        self,
        batch: Batch,
        late: np.ndarray,
        ends: np.ndarray,
        missing: np.ndarray | None,
        bounds: np.ndarray,
        out: Output,
    ) -> None:
        kind = self._schema[-1].type
        # three columns: whether late, the end of the last window, the watermark (NULL before the first)
        marks = [
            array_of(late),
            array_of(ends, missing).view(kind),
            array_of(bounds, bounds == MIN_WATERMARK_US).view(kind),
        ]
        out.collect(
            batch.with_rows(pa.RecordBatch.from_arrays([*batch.rows.columns, *marks], schema=self._schema))
        )

    def on_watermark(self, time_us: int, out: Output) -> None:
        self._watermark_us = time_us


class SessionLateRowMarkerOperator(LateRowMarkerOperator):
    """The same for append-only sessions: which have ended is known from the rows before."""

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        keys, groups = self._window.partition_keys, context.key_groups.max_parallelism
        # the input's columns: all but the three marks
        self._input = pa.schema(list(self._schema)[:-3])
        self._sessions = SessionWindowState(
            [self._input.field(key).type for key in keys], Accumulators((), True, "UTC"), groups
        )
        self._behind = RowsBehind(self._input, keys, self._window.time_column, groups)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"sessions": self._sessions, "behind": self._behind}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # rows with a NULL time are marked as not late; RowsBehind would drop and count them
        timeless = batch.rows.column(self._window.time_column).is_null()
        if timeless.true_count:
            super().on_batch(batch.filter(timeless), port, out)
            batch = batch.filter(pc.invert(timeless))
        # rows behind a watermark are buffered: whether their session had ended is known at a later watermark
        batch = self._behind.timely(batch, self._watermark_us, self._lateness_us, self._metrics)
        if batch.num_rows:
            ends = self._ends(batch.rows)
            # rows that are not behind extend or merge sessions; none of them is late
            self._sessions.open(self._keys(batch.rows), ends - self._window.size_us, ends)
            self._mark(batch, np.zeros(ends.size, np.bool_), ends, None, self._reached(batch), out)
        self._count_entries()

    def _keys(self, rows: pa.RecordBatch) -> list[pa.Array]:
        return [rows.column(key) for key in self._window.partition_keys]

    def _ends(self, rows: pa.RecordBatch) -> np.ndarray:
        """When the session of each row would end without any other row near."""
        return values_of(rows.column(self._window.time_column)) + self._window.size_us

    def _count_entries(self) -> None:
        self._metrics.state_entries = len(self._sessions) + len(self._behind)

    def on_watermark(self, time_us: int, out: Output) -> None:
        # rows whose turn has come: every row with an earlier time has come; session -1 means late
        turns = self._behind.turns(time_us)
        if turns is not None:
            rows, gap_us = turns.batch.rows, self._window.size_us
            ends, ended_us = self._ends(rows), less(turns.reached, self._lateness_us)
            sessions = self._sessions.open_in_turn(self._keys(rows), ends - gap_us, gap_us, ended_us)
            self._mark(
                Batch(rows, turns.batch.weights, turns.reached), sessions < 0, ends, None, turns.reached, out
            )
        # no row that is accepted can touch these sessions any more; the maximum prevents an underflow
        over = self._sessions.ended(max(time_us, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us)
        if over.size:
            self._sessions.remove(over)
        self._count_entries()
        # last: until here rows were compared with the watermark before
        super().on_watermark(time_us, out)
