"""Replicate rows: the last column of a row is a count, which becomes its weight (INTERSECT ALL, EXCEPT
ALL).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.datum import values_of
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.set_operations import Repeat
from penstock.planner.physical.operator_specs import OperatorSpec


class ReplicateRowsOperator(Operator):
    """A row of weight w whose last column is n is emitted without that column, with weight w·n."""

    def __init__(self, spec: OperatorSpec[Repeat, OperatorFacts], options: JobOptions) -> None:
        self._schema = spec.schema.to_arrow()

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # (a, 3) becomes (a) with weight 3; a count of 0 becomes a weight of 0, which is no row
        counts = values_of(batch.rows.column(batch.rows.num_columns - 1)).astype(np.int64)
        weights = counts if batch.weights is None else batch.weights * counts
        rows = pa.RecordBatch.from_arrays(batch.rows.columns[:-1], schema=self._schema)
        out.collect(Batch(rows, None if (weights == 1).all() else weights, batch.behind))
