"""Calc: a filter and a projection fused. Rows whose predicate is TRUE, then one column per expression."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import BatchClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output, PendingOutput, start_output
from penstock.engine.api.row_pieces import TooLarge
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions import EvaluationContext, compile_expression, compile_predicate
from penstock.engine.expressions.evaluation_errors import BatchTooLarge
from penstock.engine.expressions.shared_subexpressions import SharedSubexpressions, share_subexpressions
from penstock.planner.expressions.nodes import Column, Expression
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.physical.operator_specs import Calc, OperatorSpec

Evaluate = Callable[[pa.RecordBatch], pa.Array]
Project = Callable[[pa.RecordBatch], pa.RecordBatch]


class CalcOperator(Operator):
    """Keeps the weights and the lateness of the rows that pass. Columns no projection reads are dropped
    before rows are filtered.
    """

    def __init__(self, spec: OperatorSpec[Calc, OperatorFacts], options: JobOptions) -> None:
        self._spec, self._node = spec, spec.node
        self._zone = options.time_zone

    def open(self, context: Context) -> None:
        self._clock = BatchClock(context.clock)
        evaluation = EvaluationContext(self._zone, self._clock)
        node, schema = self._node, self._spec.schema.to_arrow()
        read = [*(node.projections or ()), *([] if node.predicate is None else [node.predicate])]
        # no expression reads a column behind these
        width = max((index + 1 for expression in read for index in expression.columns()), default=0)
        plain = SharedSubexpressions((), (), node.predicate, node.projections)
        self._plain = _FilterAndProjection(plain, width, schema, evaluation)
        shared = share_subexpressions(node.predicate, node.projections, width)
        self._fused = (
            self._plain if shared is None else _FilterAndProjection(shared, width, schema, evaluation)
        )

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        self._clock.begin_batch()
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
        try:
            return self._fused.run(batch)
        except (PenstockError, BatchTooLarge, TooLarge):
            # A common subexpression faults, perhaps on a row that does not need it: nothing is shared from
            # here on. If the row needs it, the error is raised again.
            if self._fused is self._plain:
                raise
            self._fused = self._plain
            return self._plain.run(batch)


class _FilterAndProjection:
    """Compiled expressions over ``width`` columns. Common subexpressions are columns behind those."""

    def __init__(
        self, given: SharedSubexpressions, width: int, schema: pa.Schema, evaluation: EvaluationContext
    ) -> None:
        self._width = width
        self._filtered = [compile_expression(one, evaluation) for one in given.filtered]
        self._keep = None if given.predicate is None else compile_predicate(given.predicate, evaluation)
        self._needed: list[int] | None = None
        self._projected: list[Evaluate] = []
        self._project: Project | None = None
        # without a projection all columns stay
        if given.projections is not None:
            projections = [*given.projected, *given.projections]
            # with WHERE only the columns of SELECT are filtered; without it nothing is copied anyway
            if self._keep is not None:
                projections = self._over_needed(
                    projections, width + len(given.filtered), len(given.projected)
                )
            count = len(given.projected)
            self._projected = [compile_expression(one, evaluation) for one in projections[:count]]
            self._project = _projection(projections[count:], schema, evaluation)

    def _over_needed(self, projections: list[Expression], computed: int, count: int) -> list[Expression]:
        """Return projections over the columns they need alone, and over ``count`` columns behind the first
        ``computed`` ones.
        """
        read = {index for one in projections for index in one.columns()}
        self._needed = sorted(index for index in read if index < computed)
        positions = {column: position for position, column in enumerate(self._needed)}
        positions |= {computed + nth: len(self._needed) + nth for nth in range(count)}
        return [one.remap(positions) for one in projections] if positions else projections

    def run(self, batch: Batch) -> Batch | None:
        """Return the rows that pass, projected; ``None`` when none does."""
        if self._keep is not None:
            rows = _with_columns(batch.rows, self._width, self._filtered)
            mask = self._keep(rows)
            # FALSE and NULL do not pass
            passing = mask.true_count
            if passing == 0:
                return None
            # columns that only WHERE reads are dropped before the rows are copied
            if self._needed:
                batch = batch.with_rows(rows.select(self._needed))
            # all rows pass: the batch stays as it is, without a copy
            if passing < batch.num_rows:
                batch = batch.filter(mask)
        if self._project is None:
            return batch
        width = self._width if self._needed is None else len(self._needed)
        return batch.with_rows(self._project(_with_columns(batch.rows, width, self._projected)))


def _with_columns(rows: pa.RecordBatch, width: int, computed: list[Evaluate]) -> pa.RecordBatch:
    """Return the first ``width`` columns, and those computed from them."""
    if not computed:
        return rows
    columns = [*rows.columns[:width], *[evaluate(rows) for evaluate in computed]]
    return pa.RecordBatch.from_arrays(columns, names=[""] * len(columns))


def _projection(projections: list[Expression], schema: pa.Schema, evaluation: EvaluationContext) -> Project:
    # SELECT b, a: columns are chosen, nothing is computed
    if all(isinstance(projection, Column) for projection in projections):
        indexes = [projection.index for projection in projections if isinstance(projection, Column)]
        return lambda rows: pa.RecordBatch.from_arrays(
            [rows.column(index) for index in indexes], schema=schema
        )
    compiled = [compile_expression(projection, evaluation) for projection in projections]
    return lambda rows: pa.RecordBatch.from_arrays([evaluate(rows) for evaluate in compiled], schema=schema)
