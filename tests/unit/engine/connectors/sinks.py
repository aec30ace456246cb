"""What tests of sinks share: changes of two columns, and a sink operator over a connector."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import INT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyGroups, Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.sink import SinkOperator
from tests.harness.operator_specs import sink_spec
from tests.harness.reading import table_of

COLUMNS = {"k": INT, "v": STRING}


def changes(*rows: tuple[int | None, str | None, int]) -> Batch:
    keys, values, weights = zip(*rows, strict=True)
    return Batch(
        pa.record_batch({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.string())}),
        np.array(weights),
    )


def sink(
    table: CatalogTable | None,
    services: Services,
    *,
    key: tuple[int, ...] | None = None,
    subtask: int = 0,
    parallelism: int = 1,
    schema: Schema | None = None,
) -> SinkOperator:
    schema = schema or table_of(COLUMNS, {}).schema
    operator = SinkOperator(sink_spec("op", "sink", schema, table, key, False), JobOptions())
    operator.open(
        Context(
            "op", "sink", subtask, parallelism, KeyGroups(0, 1, 1), ManualClock(), OperatorMetrics(), services
        )
    )
    return operator
