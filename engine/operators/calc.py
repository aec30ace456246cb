"""Calc: a filter and a projection fused. Rows whose predicate is TRUE, then one column per expression."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output, PendingOutput, start_output
from penstock.engine.api.row_pieces import TooLarge
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions import EvaluationContext, compile_expression, compile_predicate
from penstock.engine.expressions.evaluation_errors import BatchTooLarge
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.physical.operator_specs import Calc, OperatorSpec

Project = Callable[[pa.RecordBatch], pa.RecordBatch]


class CalcOperator(Operator):
    """Keeps the weights and the lateness of the rows that pass. Columns no projection reads are dropped
    before rows are filtered.
    """

    def __init__(self, spec: OperatorSpec[Calc, OperatorFacts], options: JobOptions) -> None:
        self._spec, self._node = spec, spec.node
        self._zone = options.time_zone

    def open(self, context: Context) -> None:
        evaluation = EvaluationContext(self._zone, context.clock)
        spec = self._spec
        self._keep = (
            None if spec.node.predicate is None else compile_predicate(spec.node.predicate, evaluation)
        )
        self._needed: list[int] | None = None
        self._project: Project | None = None
        if spec.node.projections is not None:
            # with WHERE only the columns of SELECT are filtered; without it nothing is copied anyway
            if self._keep is not None:
                self._needed = sorted(
                    {index for projection in spec.node.projections for index in projection.columns()}
                )
            self._project = self._projection(evaluation)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        try:
            result = self._of(batch)
        # One row that is too large is an error. Of more rows the first half may fit.
        except (BatchTooLarge, TooLarge):
            if batch.num_rows < 2:
                raise
            return start_output(self._in_halves(batch, out))
        if result is not None:
            out.collect(result)
        return None

    def _in_halves(self, batch: Batch, out: Output) -> PendingOutput:
        """The values of all rows are too large for one batch: retry with fewer rows at once."""
        middle = batch.num_rows // 2
        yield from self.on_batch(batch.slice(0, middle), 0, out) or ()
        yield
        yield from self.on_batch(batch.slice(middle, batch.num_rows - middle), 0, out) or ()

    def _of(self, batch: Batch) -> Batch | None:
        if self._keep is not None:
            mask = self._keep(batch.rows)
            # FALSE and NULL do not pass
            passing = mask.true_count
            if passing == 0:
                return None
            # columns that only WHERE reads are dropped before the rows are copied
            if self._needed:
                batch = batch.with_rows(batch.rows.select(self._needed))
            # all rows pass: the batch stays as it is, without a copy
            if passing < batch.num_rows:
                batch = batch.filter(mask)
        return batch if self._project is None else batch.with_rows(self._project(batch.rows))

    def _projection(self, evaluation: EvaluationContext) -> Project:
        assert self._node.projections is not None
        # positions of the columns after _of has dropped those only WHERE reads
        positions = {column: position for position, column in enumerate(self._needed or ())}
        projections = [
            projection.remap(positions) if positions else projection for projection in self._node.projections
        ]
        schema = self._spec.schema.to_arrow()
        # SELECT b, a: columns are chosen, nothing is computed
        if all(isinstance(projection, Column) for projection in projections):
            indexes = [projection.index for projection in projections if isinstance(projection, Column)]
            return lambda rows: pa.RecordBatch.from_arrays(
                [rows.column(index) for index in indexes], schema=schema
            )
        compiled = [compile_expression(projection, evaluation) for projection in projections]
        return lambda rows: pa.RecordBatch.from_arrays(
            [evaluate(rows) for evaluate in compiled], schema=schema
        )
