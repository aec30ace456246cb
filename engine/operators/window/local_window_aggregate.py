"""The LOCAL phase of a split window aggregate: one partial row per key and slice, before the exchange."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.operators.aggregate.local_aggregate import ReductionMonitor
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.aggregate_inputs import RowPartials
from penstock.engine.state.groups.window_state import WindowState
from penstock.engine.windowing.window_assigner import AssignedRows, WindowAssigner
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.windows import Windowing
from penstock.planner.physical.operator_specs import OperatorSpec

# partials buffered at most, in full batches
_FULL_BATCHES = 4


class LocalWindowAggregateOperator(Operator):
    """Buffers the partials of a slice until the watermark reaches its end: until then no window operator
    needs them.

    All are emitted before a barrier (so there is no state), before Idle, and when there are many. Rows that
    are late for some windows of their slice have partials of their own, marked by ``Batch.behind``. Where
    aggregation does not pay, each row is forwarded as a partial. With early results partials are emitted at
    every tick.
    """

    def __init__(self, spec: OperatorSpec[WindowAggregate, OperatorFacts], options: JobOptions) -> None:
        assert isinstance(spec.node.window, Windowing)
        self._window = spec.node.window
        self._emission = spec.node.emission
        self._keys = spec.node.keys
        self._schema = spec.schema.to_arrow()
        self._key_types = [spec.node.input.schema.to_arrow().field(key).type for key in spec.node.keys]
        self._accumulators = Accumulators(spec.node.aggregates, spec.facts.insert_only, options.time_zone)
        self._partials = RowPartials(spec.node.aggregates, options.time_zone)
        self._reduction = ReductionMonitor()
        self._buffered_rows = 0
        self._entries_max = _FULL_BATCHES * options.batch_max_rows
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._rows = WindowAssigner(self._window, context.metrics, self._emission.lateness_us)
        self._state = WindowState(self._window, self._key_types, self._accumulators)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # late rows are dropped and counted here, not once more behind the exchange
        assigned = self._rows.assign(batch, self._watermark_us)
        if not assigned.ends.size:
            return
        # buffered partials first, so that no row overtakes an earlier one of its key
        if assigned.batch.weights is None and not self._reduction.pays():
            self._flush(out)
            self._pass(assigned, out)
            return
        self._buffered_rows += assigned.ends.size
        self._state.add([assigned.batch.rows.column(key) for key in self._keys], assigned)
        # EMIT CHANGES without an interval: a result may not wait for the watermark
        if len(self._state) >= self._entries_max or (self._emission.early and not self._emission.every_us):
            self._flush(out)

    def on_watermark(self, time_us: int, out: Output) -> None:
        # Partials of complete slices leave before the watermark: the chain forwards it after this call.
        slices, ends, _ = self._state.slices()
        self._emit_slices(slices[ends <= time_us], out)
        self._watermark_us = time_us

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        if self._emission.early:
            self._flush(out)

    def on_idle(self, out: Output) -> None:
        # from Idle on the other channels alone advance the watermark: buffered partials would then be late
        self._flush(out)

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self._flush(out)

    def on_end(self, out: Output) -> None:
        self._flush(out)

    def _flush(self, out: Output) -> None:
        self._emit_slices(self._state.slices()[0], out)

    def _emit_slices(self, slices: np.ndarray, out: Output) -> None:
        """Emit the partials of slices and drop them."""
        if not slices.size:
            return
        state = self._state
        buffered = len(state)
        _, entries = state.entries_of(slices)
        columns = state.keys.keys(state.key_slots(entries)) + self._accumulators.results(entries)
        batch = self._batch(columns, state.ends_of(entries), state.missed(entries))
        state.remove(slices)
        # input rows are counted for all slices together, so a slice's share is an estimate
        rows = self._buffered_rows * entries.size // buffered
        self._buffered_rows -= rows
        self._reduction.saw(rows, entries.size)
        out.collect(batch)

    def _pass(self, assigned: AssignedRows, out: Output) -> None:
        """Emit rows as partials of their own."""
        rows = assigned.batch.rows
        columns = [rows.column(key) for key in self._keys] + self._partials.columns(rows)
        out.collect(self._batch(columns, assigned.ends, assigned.missed))

    def _batch(self, columns: list[pa.Array], ends: np.ndarray, missed: np.ndarray | None) -> Batch:
        behind = None
        # The end of the last window the row has missed. The window operator counts from it, less the
        # lateness, that the first `missed` windows are over for this partial.
        if missed is not None and missed.any():
            behind = np.where(
                missed > 0,
                self._emission.lateness_us + ends + (missed - 1) * self._window.slice_us,
                MIN_WATERMARK_US,
            )
        times = array_of(ends).view(self._schema.field(len(columns)).type)
        return Batch(pa.RecordBatch.from_arrays([*columns, times], schema=self._schema), behind=behind)
