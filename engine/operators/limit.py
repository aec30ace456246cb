"""LIMIT and OFFSET without an order: the first rows that come, in one task."""

from __future__ import annotations

from typing import Any

from engine.elements import Batch
from engine.job_options import JobOptions
from engine.operator import ListState, Operator, Output
from planner.physical import LimitSpec


class LimitOperator(Operator, ListState):
    """Counts the rows seen; the input only ever inserts, which the planner sees to. Later rows are let go."""

    def __init__(self, spec: LimitSpec, options: JobOptions) -> None:
        self._offset = spec.offset
        self._end = None if spec.limit is None else spec.offset + spec.limit
        self._seen = 0

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        batch = batch.repeated()
        first = max(0, self._offset - self._seen)
        last = batch.num_rows if self._end is None else min(batch.num_rows, self._end - self._seen)
        self._seen += batch.num_rows
        if first < last:
            out.collect(batch.slice(first, last - first))

    def list_states(self) -> dict[str, ListState]:
        return {"seen": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"seen": self._seen}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self._seen = sum(item["seen"] for item in items)
