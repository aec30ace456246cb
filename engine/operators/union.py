"""UNION ALL: rows of every port are forwarded as they come."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.set_operations import Union
from penstock.planner.physical.operator_specs import OperatorSpec


class UnionOperator(Operator):
    """The ports agree in types; the column names are those of the first."""

    def __init__(self, spec: OperatorSpec[Union, OperatorFacts], options: JobOptions) -> None:
        self._schema = spec.schema.to_arrow()

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # the usual case is one comparison, without a new batch
        if batch.rows.schema.equals(self._schema):
            out.collect(batch)
        else:
            out.collect(batch.with_rows(pa.RecordBatch.from_arrays(batch.rows.columns, schema=self._schema)))
