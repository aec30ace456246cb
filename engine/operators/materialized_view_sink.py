"""The sink of a materialized view: its subtask's share of the rows as state, and each barrier a new state
for who reads the view.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.materialized_views import MaterializedTables
from penstock.engine.state.rows.table_contents import Contents
from penstock.planner.physical.operator_specs import SinkSpec


class MaterializeOperator(Operator):
    """Keeps what came, so that a job that goes on from a checkpoint fills the view anew, also in another
    process.
    """

    def __init__(self, spec: SinkSpec, options: JobOptions) -> None:
        assert spec.table is not None
        self._name = spec.table.options["name"]
        self._schema = spec.table.schema.to_arrow()
        self._changes: list[Batch] = []
        self._begun = False

    def open(self, context: Context) -> None:
        self._context = context
        self._rows = Contents(self._schema, context.key_groups.start)
        self._view = context.services.get(MaterializedTables).contents(self._name)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        self._begin()
        changes = Batch(pa.RecordBatch.from_arrays(batch.rows.columns, schema=self._schema), batch.weights)
        self._rows.add(changes)
        self._changes.append(changes)

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self._begin()
        self._view.stage(checkpoint_id, self._changes)
        self._changes = []

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._view.complete(checkpoint_id)

    def _begin(self) -> None:
        """Tell the view once, before any change, what this subtask was restored with."""
        if not self._begun:
            self._begun = True
            self._view.begin(
                self._context.attempt, self._context.subtask, self._context.parallelism, self._rows.weighted()
            )
