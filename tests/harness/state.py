"""What operator tests share: a context, an output that folds, snapshots cut by key group and given to
other subtasks.
"""

from collections import Counter

import numpy as np
import pyarrow as pa

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.key_groups import key_group_range
from penstock.engine.api.operator import Context, Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.layered import checkpoint

OPTIONS = JobOptions()


class Folded:
    """An output that sums the weights of rows, and keeps the batches."""

    def __init__(self):
        self.rows = Counter()
        self.batches = []

    def collect(self, batch):
        assert batch.weights is None or (batch.weights != 0).all()
        batch.rows.validate(full=True)
        self.batches.append(batch)
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        for row, weight in zip(batch.rows.to_pylist(), weights, strict=True):
            seen = tuple(tuple(value) if isinstance(value, list) else value for value in row.values())
            self.rows[seen] += weight
            if not self.rows[seen]:
                del self.rows[seen]


def opened(operator, subtask=0, parallelism=1, clock=None):
    metrics = OperatorMetrics()
    operator.metrics = metrics
    services = Services()
    operator.open(
        Context(
            "id",
            "name",
            subtask,
            parallelism,
            key_group_range(128, parallelism, subtask),
            ManualClock() if clock is None else clock,
            metrics,
            services,
        )
    )
    return operator


def rescaled(operators, make, parallelism):
    """Return new operators that go on from the snapshots of others, each with the key groups of its
    subtask.
    """
    fresh = [opened(make(), subtask, parallelism) for subtask in range(parallelism)]
    saved = [checkpoint(operator) for operator in operators]
    for name in operators[0].list_states():
        for operator in fresh:
            operator.list_states()[name].restore_items([item for _, items in saved for item in items[name]])
    for name in operators[0].keyed_states():
        for table in (tables[name] for tables, _ in saved):
            groups = table.column("key_group").to_numpy().astype(np.int64)
            assert table.schema.field(0).type == pa.uint16()
            assert (np.diff(groups) >= 0).all()
            for subtask, operator in enumerate(fresh):
                owned = key_group_range(128, parallelism, subtask)
                part = table.filter(pa.array((groups >= owned.start) & (groups < owned.end)))
                operator.keyed_states()[name].restore(part)
    return fresh


def batch_of(schema, rows, weights=None, behind=None):
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=schema),
        None if weights is None else np.array(weights, np.int64),
        None if behind is None else np.array(behind, np.int64),
    )
