"""VALUES: literal rows, emitted once by subtask 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, HeadOperator, ListState, Output, SourceStatus
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.compiler import literal_scalar
from penstock.planner.expressions.nodes import Literal
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.scan import Values
from penstock.planner.physical.operator_specs import OperatorSpec


class ValuesOperator(HeadOperator, ListState):
    """Its position is the number of rows emitted."""

    def __init__(self, spec: OperatorSpec[Values, OperatorFacts], options: JobOptions) -> None:
        self._rows = _batch(spec)
        self._most = options.batch_max_rows
        self._emitted = 0

    def open(self, context: Context) -> None:
        # one subtask emits all rows, the others end at once
        self._mine = context.subtask == 0

    def poll(self, out: Output) -> SourceStatus:
        if not self._mine or self._emitted >= self._rows.num_rows:
            return SourceStatus(ended=True)
        piece = self._rows.slice(self._emitted, self._most)
        self._emitted += piece.num_rows
        out.collect(Batch(piece))
        return SourceStatus(more=True)

    def list_states(self) -> dict[str, ListState]:
        return {"given": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        # given: the number of rows emitted
        return [{"given": self._emitted}] if self._mine else []

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        # the items of all subtasks come here; only one has any
        self._emitted = max((item["given"] for item in items), default=0)


def _batch(spec: OperatorSpec[Values, OperatorFacts]) -> pa.RecordBatch:
    schema = spec.schema.to_arrow()
    # Scalars become an array by Arrow alone: of Python's values it imports pandas, a quarter of a second.
    columns = [_column([row[i] for row in spec.node.rows], kind) for i, kind in enumerate(schema.types)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(literals: Sequence[Literal], kind: pa.DataType) -> pa.Array:
    arrays = [pa.repeat(literal_scalar(literal), 1) for literal in literals]
    return pa.concat_arrays(
        [pa.nulls(0, kind), *[array if array.type == kind else array.cast(kind) for array in arrays]]
    )
