"""The LOCAL phase of a split unbounded aggregate: one partial row per key and batch, before the exchange. Keeps nothing between batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.elements import Batch
from engine.job_options import JobOptions
from engine.operator import Operator, Output
from engine.state.accumulators import Accumulators
from engine.state.key_index import KeyIndex
from planner.physical import GroupAggregateSpec


class LocalAggregateOperator(Operator):
    """Aggregates each batch on its own."""

    def __init__(self, spec: GroupAggregateSpec, options: JobOptions) -> None:
        self._keys = spec.keys
        self._schema = spec.schema.to_arrow()
        self._index = KeyIndex([spec.input_schema.to_arrow().field(key).type for key in spec.keys])
        self._accumulators = Accumulators(spec.aggregates, spec.insert_only, options.time_zone)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        index = self._index
        slots = index.lookup_or_insert([batch.rows.column(key) for key in self._keys], batch.num_rows)
        self._accumulators.reserve(index.capacity)
        self._accumulators.add(slots, batch.rows, batch.weights)
        groups = np.arange(len(index))
        rows = pa.RecordBatch.from_arrays(index.keys(groups) + self._accumulators.results(groups), schema=self._schema)
        self._accumulators.clear(groups)
        index.remove(groups)
        out.collect(Batch(rows))
