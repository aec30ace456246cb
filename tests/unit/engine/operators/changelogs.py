"""What operator tests share: changelogs as lists, an output that collects, contexts of subtasks, folding."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.key_groups import groups_of_hashes, key_group_range, subtask_of_groups
from penstock.engine.api.operator import Context, Operator, Services, SplitEvent
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.layered import checkpoint

MAX_PARALLELISM = 16
Change = tuple[tuple[Any, ...], int]


@dataclass
class Collected:
    """An output that keeps what it is given."""

    batches: list[Batch] = field(default_factory=list)
    events: list[SplitEvent] = field(default_factory=list)

    def collect(self, batch: Batch) -> None:
        if batch.num_rows:
            self.batches.append(batch)

    def watermark(self, time_us: int) -> None:
        raise AssertionError(time_us)

    def idle(self) -> None:
        raise AssertionError

    def split(self, event: SplitEvent) -> None:
        self.events.append(event)

    def changes(self) -> list[Change]:
        return [change for batch in self.batches for change in listed(batch)]

    def folded(self) -> Counter[tuple[Any, ...]]:
        return fold(self.changes())


def listed(batch: Batch) -> list[Change]:
    weights = np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights
    columns = [column.to_pylist() for column in batch.rows.columns]
    return [(tuple(column[i] for column in columns), int(weights[i])) for i in range(batch.num_rows)]


def fold(changes: list[Change]) -> Counter[tuple[Any, ...]]:
    total: Counter[tuple[Any, ...]] = Counter()
    for row, weight in changes:
        total[row] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def batch_of(changes: list[Change], schema: pa.Schema) -> Batch:
    columns = [pa.array([row[i] for row, _ in changes], kind) for i, kind in enumerate(schema.types)]
    weights = np.array([weight for _, weight in changes], np.int64)
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=schema), None if (weights == 1).all() else weights
    )


def context(subtask: int = 0, parallelism: int = 1, services: Services | None = None) -> Context:
    groups = key_group_range(MAX_PARALLELISM, parallelism, subtask)
    return Context(
        "op", "op", subtask, parallelism, groups, ManualClock(), OperatorMetrics(), services or Services()
    )


def owners(rows: pa.RecordBatch, keys: tuple[int, ...], parallelism: int) -> np.ndarray:
    if not keys:
        return np.zeros(rows.num_rows, np.int64)
    groups = groups_of_hashes(stable_hash([rows.column(key) for key in keys]), MAX_PARALLELISM)
    return subtask_of_groups(groups, parallelism, MAX_PARALLELISM)


def snapshots(operators: list[Operator]) -> tuple[dict[str, list[pa.Table]], dict[str, list[dict[str, Any]]]]:
    keyed: dict[str, list[pa.Table]] = {}
    items: dict[str, list[dict[str, Any]]] = {}
    for operator in operators:
        tables, saved = checkpoint(operator)
        for name, table in tables.items():
            groups = table.column("key_group").to_pylist()
            assert groups == sorted(groups)
            keyed.setdefault(name, []).append(table)
        for name, told in saved.items():
            items.setdefault(name, []).extend(told)
    return keyed, items


def restored(
    operator: Operator, at: Context, saved: tuple[dict[str, list[pa.Table]], dict[str, list[dict[str, Any]]]]
) -> Operator:
    operator.open(at)
    keyed, items = saved
    for name, items_state in operator.list_states().items():
        items_state.restore_items(items.get(name, []))
    for name, state in operator.keyed_states().items():
        for table in keyed.get(name, []):
            groups = table.column("key_group").to_numpy()
            low, high = np.searchsorted(groups, [at.key_groups.start, at.key_groups.end])
            if high > low:
                state.restore(table.slice(low, high - low))
    return operator
