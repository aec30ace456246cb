"""The sink operator: it writes rows, and commits what a checkpoint holds once that is durable. Its variant
writes a materialized view.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.catalog.connectors.registry import takes_changes
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    ListState,
    Operator,
    Output,
    PendingOutput,
    start_output,
)
from penstock.engine.api.row_pieces import copies_at_once
from penstock.engine.api.sink import Origin, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import weights_of
from penstock.engine.connectors.in_process.materialized_views import MaterializedTables
from penstock.engine.connectors.registry import sink_writer
from penstock.engine.state.rows.table_contents import Contents
from penstock.planner.logical.sink import Sink, SinkFacts
from penstock.planner.physical.operator_specs import OperatorSpec


class SinkOperator(Operator, ListState):
    """Two-phase commit over one writer.

    Before a checkpoint's barrier the writer prepares. What it prepared is list state of that checkpoint, and
    is committed when the checkpoint is complete. After a restore, what the checkpoint holds is committed
    again before any new row; a commit is idempotent.
    """

    def __init__(self, spec: OperatorSpec[Sink, SinkFacts], options: JobOptions) -> None:
        self._spec, self._node, self._facts = spec, spec.node, spec.facts
        self._pending: list[dict[str, Any]] = []
        self._started = False
        # NOT NULL columns of the table, which the query's columns of the same name must keep
        promised = (
            {field.name.lower() for field in spec.node.table.source_schema if not field.nullable}
            if spec.node.table is not None
            else set()
        )
        self._never_null = [
            index for index, field in enumerate(spec.schema) if field.name.lower() in promised
        ]
        # without a table the client reads the rows, with their weights
        self._takes_changes = spec.node.table is None or takes_changes(spec.node.table)

    def open(self, context: Context) -> None:
        self._context = context
        spec = self._spec
        self._request = SinkRequest(
            spec.node.table,
            spec.schema,
            spec.facts.upsert_key,
            spec.operator_id,
            context.job_id,
            context.subtask,
            context.parallelism,
            context.services,
            context.metrics,
            context.owner,
            None
            if context.restored is None
            else Origin(context.restored.owner, spec.operator_id, context.restored.checkpoint_id),
            context.keeps_snapshots,
            context.key_groups.start,
            context.report_event,
            spec.facts.upserts,
        )
        self._writer = sink_writer(self._request)

    def succeeds(self, operator_id: str) -> None:
        # staged files are found by the operator id that wrote them
        assert self._request.origin is not None, "only an operator that is restored had another id"
        self._writer.close()
        self._writer = sink_writer(
            replace(self._request, origin=replace(self._request.origin, operator_id=operator_id))
        )

    def list_states(self) -> dict[str, ListState]:
        return {"pending": self}

    def keyed_states(self) -> dict[str, KeyedState]:
        return self._writer.keyed_states()

    def copied_states(self) -> frozenset[str]:
        # which subtask commits an epoch does not follow key groups
        return frozenset(self.keyed_states())

    def snapshot_items(self) -> list[dict[str, Any]]:
        return list(self._pending)

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        # The items of all subtasks: recover() deletes staged rows that none of them names.
        pending = [entry for item in items for entry in item["items"]]
        self._started = True
        self._writer.recover(pending)
        context = self._context
        failpoint("R2")
        # each item is committed by one subtask, whatever the parallelism was before
        for writer in _by_writer(items)[context.subtask :: context.parallelism]:
            for item in writer:
                self._writer.commit(item["items"])
        failpoint("R2b")

    def on_restored(self) -> None:
        self._writer.on_restored()

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        self._start()
        if self._never_null:
            self._refuse_nulls(batch)
        # one row of weight 1,000,000 would be as many lines of a file: only then are there pieces
        if batch.weights is None or self._facts.upsert_key is not None or self._node.table is None:
            self._write(batch)
            return None
        return start_output(self._in_pieces(batch))

    def _in_pieces(self, batch: Batch) -> PendingOutput:
        """Write rows, one of a great weight in pieces. Changes of a key stay together; a client gets
        weights.
        """
        for number, piece in enumerate(batch.copies(copies_at_once(weights_of(batch), batch.rows))):
            if number:
                yield
            self._write(piece)

    def _write(self, batch: Batch) -> None:
        self._writer.write(batch if self._takes_changes else _inserts(batch, self._spec))

    def ready(self) -> bool:
        return self._writer.ready()

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self._start()
        failpoint("S1")
        # Prepared, not visible. It becomes visible when the checkpoint that holds these items is complete.
        items = self._writer.prepare(checkpoint_id)
        failpoint("S3")
        if items:
            self._pending.append({"checkpoint": checkpoint_id, "items": items})

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        # an earlier checkpoint that was never reported complete is contained in this one
        while self._pending and self._pending[0]["checkpoint"] <= checkpoint_id:
            failpoint("S4")
            self._writer.commit(self._pending[0]["items"])
            failpoint("S6")
            # only after the commit: a failure in between commits again, which changes nothing
            del self._pending[0]
            failpoint("S7")
        self._writer.completed(checkpoint_id)

    def on_end(self, out: Output) -> None:
        self._writer.end()

    def close(self) -> None:
        if hasattr(self, "_writer"):
            self._writer.close()

    def _refuse_nulls(self, batch: Batch) -> None:
        """Enforce NOT NULL: IntegrityError RUN-2005 before a NULL is written."""
        for index in self._never_null:
            if batch.rows.column(index).null_count:
                name = self._spec.schema[index].name
                message = (
                    f"column {name} of {self._node.table.name if self._node.table else 'the result'} is "
                    "NOT NULL, a row has NULL"
                )
                hint = (
                    f"filter with {name} IS NOT NULL, give a default with COALESCE, or declare the "
                    "column without NOT NULL"
                )
                raise PenstockError("RUN-2005", message, hint=hint, sqlstate="23502")

    def _start(self) -> None:
        """Delete what an attempt that never completed a checkpoint left behind, once, before the first
        row.
        """
        if not self._started:
            self._started = True
            self._writer.recover([])


def _by_writer(items: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the pending items of all subtasks, those of one subtask together and in order.

    A target may record the last commit of a writer: of two that are committed at once by two subtasks, the
    earlier one would pass for done. The items of a subtask follow each other, and their checkpoints ascend.
    """
    writers: list[list[dict[str, Any]]] = []
    for item in items:
        if writers and writers[-1][-1]["checkpoint"] < item["checkpoint"]:
            writers[-1].append(item)
        else:
            writers.append([item])
    return writers


def _inserts(batch: Batch, spec: OperatorSpec[Sink, SinkFacts]) -> Batch:
    """Return an append-only changelog as plain rows. INT-9005 for retractions: planning refuses such a
    query.
    """
    if batch.weights is None:
        return batch
    # cannot happen: planning refuses such a query
    if (batch.weights < 0).any():
        raise PenstockError(
            "INT-9005",
            f"sink {spec.name} only appends but received retractions",
            kind=Kind.INTERNAL,
            sqlstate="XX000",
        )
    if (batch.weights == 1).all():
        return Batch(batch.rows)
    return Batch(batch.repeated().rows)


class MaterializedViewSinkOperator(Operator):
    """Stores the rows, so that a job resumed from a checkpoint fills the view anew, also in another
    process.
    """

    def __init__(self, spec: OperatorSpec[Sink, SinkFacts], options: JobOptions) -> None:
        assert spec.node.table is not None
        self._name = spec.node.table.options["name"]
        self._schema = spec.node.table.schema.to_arrow()
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
        # the column names of the view, not those of the query
        changes = Batch(pa.RecordBatch.from_arrays(batch.rows.columns, schema=self._schema), batch.weights)
        self._rows.add(changes)
        self._changes.append(changes)

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self._begin()
        # readers see these changes when the checkpoint is complete, all subtasks' at once
        self._view.stage(checkpoint_id, self._changes)
        self._changes = []

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._view.complete(checkpoint_id)

    def _begin(self) -> None:
        """Send the view, once and before any change, what this subtask was restored with."""
        if not self._begun:
            self._begun = True
            self._view.begin(
                self._context.attempt, self._context.subtask, self._context.parallelism, self._rows.weighted()
            )
