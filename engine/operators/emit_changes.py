"""EMIT CHANGES EVERY: changes of a query without windows, put together."""

from __future__ import annotations

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Output, Rest, begun
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.change_buffer import GivesThinned, ThinnedChanges
from penstock.planner.physical.operator_specs import ThinnedRowsSpec


class ThinnedRowsOperator(GivesThinned):
    """Nothing is held over a barrier, so there is no state."""

    def __init__(self, spec: ThinnedRowsSpec, options: JobOptions) -> None:
        self._every_us = spec.every_us

    def open(self, context: Context) -> None:
        self._changes = ThinnedChanges(self._every_us, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> Rest | None:
        return begun(self._changes.add([batch] if batch.num_rows else [], out))
