"""The LOCAL phase of a split window aggregate: one partial row per key and slice, before the exchange."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.operators.aggregate.local_aggregate import ReductionMonitor
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.aggregate_inputs import RowPartials
from penstock.engine.state.groups.pane_groups import PaneGroups
from penstock.engine.windowing.window_assigner import AssignedRows, WindowAssigner
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.windows import Windowing
from penstock.planner.physical.operator_specs import OperatorSpec

# partials buffered at most, in full batches
_FULL_BATCHES = 4


class LocalWindowAggregateOperator(Operator):
    """Buffers partials until the watermark reaches the end of their first slice: until then no window
    operator needs any.

    All are emitted before a barrier (so there is no state), before Idle, and when there are many. A row that
    is late for some windows of its slice is a partial of its own, marked by ``Batch.behind``. So is each row
    where aggregation does not pay. With early results partials are emitted at every tick.
    """

    def __init__(self, spec: OperatorSpec[WindowAggregate, OperatorFacts], options: JobOptions) -> None:
        assert isinstance(spec.node.window, Windowing)
        self._window = spec.node.window
        self._emission = spec.node.emission
        self._keys = spec.node.keys
        self._schema = spec.schema.to_arrow()
        self._groups = PaneGroups(
            [spec.node.input.schema.to_arrow().field(key).type for key in spec.node.keys],
            self._window.slice_us,
        )
        self._accumulators = Accumulators(spec.node.aggregates, spec.facts.insert_only, options.time_zone)
        self._partials = RowPartials(spec.node.aggregates, options.time_zone)
        self._reduction = ReductionMonitor()
        self._buffered_rows = 0
        # the end of the first slice with a buffered partial
        self._first_end = MAX_WATERMARK_US
        self._groups_max = _FULL_BATCHES * options.batch_max_rows
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._rows = WindowAssigner(self._window, context.metrics, self._emission.lateness_us)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # late rows are dropped and counted here, not once more behind the exchange
        assigned = self._rows.assign(batch, self._watermark_us)
        if not assigned.ends.size:
            return
        rows = assigned.batch.rows
        if assigned.batch.weights is None and not self._reduction.pays(
            [rows.column(key) for key in self._keys], rows.num_rows
        ):
            # buffered partials first, so that no row overtakes an earlier one of its key
            self._flush(out)
            self._pass(assigned, out)
            return
        if assigned.missed is not None:
            self._pass(_those(assigned, assigned.missed > 0), out)
            assigned = _those(assigned, assigned.missed == 0)
        if not self._add(assigned):
            # slices too far from the buffered ones, or too far from each other
            self._flush(out)
            if not self._add(assigned):
                self._reduction.saw(assigned.ends.size, assigned.ends.size)
                self._pass(assigned, out)
        # EMIT CHANGES without an interval: a result may not wait for the watermark
        if len(self._groups) >= self._groups_max or (self._emission.early and not self._emission.every_us):
            self._flush(out)

    def on_watermark(self, time_us: int, out: Output) -> None:
        # All partials leave before the watermark that ends a slice: the chain forwards it after this call.
        if self._first_end <= time_us:
            self._flush(out)
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

    def _add(self, assigned: AssignedRows) -> bool:
        """Add rows to their partials; return False when their slices do not fit beside the buffered ones."""
        rows = assigned.batch.rows
        if not assigned.ends.size:
            return True
        ends = assigned.ends[:1] if assigned.one_slice else assigned.ends
        groups = self._groups.number([rows.column(key) for key in self._keys], rows.num_rows, ends)
        if groups is None:
            return False
        self._accumulators.reserve(len(self._groups))
        self._accumulators.add(groups, rows, assigned.batch.weights)
        self._buffered_rows += rows.num_rows
        self._first_end = min(self._first_end, int(ends.min()))
        return True

    def _flush(self, out: Output) -> None:
        """Emit all buffered partials and drop them."""
        if not len(self._groups):
            return
        every = np.arange(len(self._groups))
        keys, ends = self._groups.groups()
        batch = self._batch(keys + self._accumulators.results(every), ends, None)
        self._accumulators.clear(every)
        self._groups.clear()
        self._reduction.saw(self._buffered_rows, every.size)
        self._buffered_rows, self._first_end = 0, MAX_WATERMARK_US
        out.collect(batch)

    def _pass(self, assigned: AssignedRows, out: Output) -> None:
        """Emit rows as partials of their own."""
        rows, weights = assigned.batch.rows, assigned.batch.weights
        if not rows.num_rows:
            return
        columns = [rows.column(key) for key in self._keys]
        columns += self._partials.columns(rows) if weights is None else self._weighted(rows, weights)
        out.collect(self._batch(columns, assigned.ends, assigned.missed))

    def _weighted(self, rows: pa.RecordBatch, weights: np.ndarray) -> list[pa.Array]:
        """Return the aggregates of rows that count several times, for each of them alone."""
        alone = np.arange(rows.num_rows)
        accumulators = self._accumulators.fresh()
        accumulators.reserve(rows.num_rows)
        accumulators.add(alone, rows, weights)
        return accumulators.results(alone)

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


def _those(assigned: AssignedRows, mask: np.ndarray) -> AssignedRows:
    """Return the rows that a mask marks; there are no attached windows here."""
    assert assigned.missed is not None
    kept = np.flatnonzero(mask)
    return AssignedRows(assigned.batch.take(kept), assigned.ends[kept], None, assigned.missed[kept])
