"""Table functions: each row once per row its function gives for it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine import arrays
from engine.elements import Batch
from engine.expressions import EvaluationContext, compile_expression, compile_predicate
from engine.expressions.faults import Fault, to_error
from engine.job_options import JobOptions
from engine.operator import Context, Operator, Output
from engine.table_functions import Given, table_kernel
from planner.physical import UnnestSpec

_ROWS_AT_ONCE = 1 << 16


class UnnestOperator(Operator):
    """Rows keep their weights and marks, so a row taken back takes back all it gave. Nothing is kept between batches."""

    def __init__(self, spec: UnnestSpec, options: JobOptions) -> None:
        self._spec = spec
        self._zone = options.time_zone
        self._schema = spec.schema.to_arrow()

    def open(self, context: Context) -> None:
        evaluation = EvaluationContext(self._zone, context.clock)
        self._arguments = [compile_expression(arg, evaluation) for arg in self._spec.call.args]
        self._kernel = table_kernel(self._spec.call, evaluation)
        condition = self._spec.condition
        self._reads = [] if condition is None else sorted(condition.columns())
        places = {column: place for place, column in enumerate(self._reads)}
        self._test = None if condition is None else compile_predicate(condition.remap(places), evaluation)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        spec = self._spec
        parents, columns = self._given(batch.rows)
        given = [columns[i] for i in spec.gives]
        numbered = spec.ordinality or self._test is not None
        numbers = [_numbers(parents, batch.num_rows)] if numbered else []
        if spec.ordinality:
            given += numbers
        if self._test is not None:
            passed = self._passed(batch.rows, parents, [*columns, *numbers])
            parents, given = parents[passed], [column.filter(arrays.array_of(passed)) for column in given]
        if spec.outer:
            parents, given = _with_absent(parents, given, batch.num_rows)
        if not parents.size:
            return
        rows = arrays.array_of(parents)
        kept = [batch.rows.column(i).take(rows) for i in spec.keep]
        result = pa.RecordBatch.from_arrays([*kept, *given], schema=self._schema)
        weights = None if batch.weights is None else batch.weights[parents]
        whole = Batch(result, weights, None if batch.behind is None else batch.behind[parents], batch.origin)
        for first in range(0, whole.num_rows, _ROWS_AT_ONCE):
            out.collect(whole.slice(first, min(_ROWS_AT_ONCE, whole.num_rows - first)))

    def _passed(self, rows: pa.RecordBatch, parents: np.ndarray, given: list[pa.Array]) -> np.ndarray:
        """Return for which rows of the function the condition is TRUE."""
        assert self._test is not None
        width, beside = rows.num_columns, arrays.array_of(parents)
        read = [rows.column(i).take(beside) if i < width else given[i - width] for i in self._reads]
        tested = pa.RecordBatch.from_arrays(read, [str(i) for i in self._reads]) if read else rows.take(beside)
        return arrays.is_true(self._test(tested))

    def _given(self, rows: pa.RecordBatch) -> Given:
        arguments = [evaluate(rows) for evaluate in self._arguments]
        try:
            return self._kernel(arguments, rows.num_rows)
        except Fault as fault:
            raise to_error(fault, self._spec.call.args[0], None) from None


def _numbers(parents: np.ndarray, rows: int) -> pa.Array:
    starts = np.searchsorted(parents, np.arange(rows))
    return arrays.array_of(np.arange(parents.size) - starts[parents] + 1)


def _with_absent(parents: np.ndarray, given: list[pa.Array], rows: int) -> tuple[np.ndarray, list[pa.Array]]:
    """Add a row of NULLs for each input row without any, in its place."""
    absent = np.flatnonzero(np.bincount(parents, minlength=rows) == 0)
    if not absent.size:
        return parents, given
    together = np.concatenate([parents, absent])
    order = np.argsort(together, kind="stable")
    places = arrays.array_of(np.where(order < parents.size, order, 0), order >= parents.size)
    return together[order], [column.take(places) if len(column) else pa.nulls(order.size, column.type) for column in given]
