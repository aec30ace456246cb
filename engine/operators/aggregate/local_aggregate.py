"""The LOCAL phase of a two-phase aggregate without windows: partial rows per key before the exchange. It has
no state at a barrier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.mini_batch import MiniBatch
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.aggregate_inputs import RowPartials
from penstock.engine.state.index.key_index import KeyIndex
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.physical.operator_specs import OperatorSpec

# trials in a row that did not halve the rows, before a pause
_TRIALS = 2

# a smaller trial says little about the keys of the stream
_FEWEST_ROWS = 1024

# batches forwarded as they are between two trials: the keys of a stream may change
_PAUSE_BATCHES = 128

_LEAST_AT_ONCE = 8192
"""With timeout 0 a batch of so many rows is aggregated, alone. On two slots, over 1,000 keys, that takes as
much processor time as to exchange its rows. With 32,768 rows it takes a quarter less, with 1,024 a tenth
more.
"""

# a batch of so many rows is sampled before its trial, by two samples of so many rows
_SAMPLED_ROWS = 1 << 15
_SAMPLE = 1 << 12
_LEAST_REPEATS = 128
"""Of a sample one row in so many must have the key of another one. Rows that a trial halves have about twice
as many repeats in a sample of a full batch.
"""


class ReductionMonitor:
    """Decides whether partial aggregation pays: it must at least halve the rows. After two trials that did
    not, it pauses for a while before the next. A large batch whose keys hardly repeat is a failed trial
    before it is aggregated.
    """

    def __init__(self) -> None:
        self._failed = 0
        self._pause = 0
        # whether the last trial halved the rows
        self._proved = False

    def pays(self, keys: Sequence[pa.Array], num_rows: int) -> bool:
        """Return whether to aggregate the next batch."""
        if self._pause:
            self._pause -= 1
            return False
        if self._proved or num_rows < _SAMPLED_ROWS or not keys or _repeats(keys, num_rows):
            return True
        self.saw(num_rows, num_rows)
        return False

    def saw(self, rows_in: int, rows_out: int) -> None:
        """Record a trial; a small one is ignored."""
        if rows_in < _FEWEST_ROWS:
            return
        self._proved = rows_out * 2 <= rows_in
        self._failed = 0 if self._proved else self._failed + 1
        # after a pause one more failed trial starts the next pause
        if self._failed >= _TRIALS:
            self._pause, self._failed = _PAUSE_BATCHES, _TRIALS - 1


def _repeats(keys: Sequence[pa.Array], num_rows: int) -> bool:
    """Return whether keys repeat: in some neighbouring rows, or in rows from all over the batch."""
    from penstock.engine.kernels.stable_hash import stable_hash

    first = (num_rows - _SAMPLE) // 2
    # hashed: without any period that the keys may have
    spread = np.unique(stable_hash([array_of(np.arange(_SAMPLE))]) % np.uint64(num_rows)).astype(np.int64)
    for sample in ([key.slice(first, _SAMPLE) for key in keys], [key.take(array_of(spread)) for key in keys]):
        hashes = stable_hash(sample)
        if (hashes.size - np.unique(hashes).size) * _LEAST_REPEATS >= hashes.size:
            return True
    return False


class LocalAggregateOperator(Operator):
    """Aggregates the rows of half the buffer timeout, however few: otherwise they would wait for the
    exchange.

    Where aggregation does not pay, each row is forwarded as a partial of its own. With timeout 0 so are small
    batches: aggregating them costs more here than behind the exchange.
    """

    def __init__(self, spec: OperatorSpec[Aggregate, PartitionFacts], options: JobOptions) -> None:
        self._keys = spec.node.keys
        self._schema = spec.schema.to_arrow()
        self._index = KeyIndex([spec.node.input.schema.to_arrow().field(key).type for key in spec.node.keys])
        self._accumulators = Accumulators(spec.node.aggregates, spec.facts.insert_only, options.time_zone)
        self._partials = RowPartials(spec.node.aggregates, options.time_zone)
        self._reduction = ReductionMonitor()
        self._options = options

    def open(self, context: Context) -> None:
        self._buffered = MiniBatch(self._options, context.clock, small_ones=True)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # One partial a row: COUNT(*) is 1, SUM(x) is x. Only for insertions, and when nothing is buffered.
        if batch.weights is None and self._buffered.until_ms is None and not self._pays(batch):
            columns = [batch.rows.column(key) for key in self._keys] + self._partials.columns(batch.rows)
            out.collect(Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema)))
        elif self._buffered.add(batch):
            self.release(out)

    def _pays(self, batch: Batch) -> bool:
        """Whether to aggregate a batch here."""
        rows = batch.num_rows
        # a job with small batches has fewer rows that are worth it
        least = 0 if self._options.buffer_timeout_ms > 0 else min(_LEAST_AT_ONCE, self._buffered.small)
        return rows >= least and self._reduction.pays([batch.rows.column(key) for key in self._keys], rows)

    def buffered_until_ms(self) -> float | None:
        return self._buffered.until_ms

    def release(self, out: Output) -> None:
        # one partial per key over all buffered rows; then the state is empty again
        batches = self._buffered.take()
        if not batches:
            return
        index, accumulators = self._index, self._accumulators
        # Ids that ascend are close together in each flush: 0.20 s of 9 million rows were hashing them.
        keys = [[batch.rows.column(key) for key in self._keys] for batch in batches]
        index.expect(keys)
        for batch, columns in zip(batches, keys, strict=True):
            slots = index.lookup_or_insert(columns, batch.num_rows)
            accumulators.reserve(index.capacity)
            accumulators.add(slots, batch.rows, batch.weights)
        # the index was empty before, so its slots are 0, 1, 2, ...
        groups = np.arange(len(index))
        rows = pa.RecordBatch.from_arrays(
            index.keys(groups) + accumulators.results(groups), schema=self._schema
        )
        accumulators.clear(groups)
        index.remove(groups)
        # every flush is a trial
        self._reduction.saw(sum(batch.num_rows for batch in batches), groups.size)
        out.collect(Batch(rows))

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self.release(out)

    def on_end(self, out: Output) -> None:
        self.release(out)
