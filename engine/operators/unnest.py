"""Table functions (UNNEST and others): each row once per row its function returns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.engine.api import arrow_numpy
from penstock.engine.api.clock import BatchClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output, PendingOutput, start_output
from penstock.engine.api.row_pieces import cut_pairs, row_sizes, widest_row
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions import EvaluationContext, compile_expression, compile_predicate
from penstock.engine.expressions.evaluation_errors import Fault, to_error
from penstock.engine.functions.table_functions import RowsAndColumns, table_kernel
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.unnest import Unnest
from penstock.planner.physical.operator_specs import OperatorSpec


class UnnestOperator(Operator):
    """Rows keep their weights and lateness, so a retracted row retracts all it emitted. Nothing is stored
    between batches.
    """

    def __init__(self, spec: OperatorSpec[Unnest, OperatorFacts], options: JobOptions) -> None:
        self._spec, self._node = spec, spec.node
        self._zone = options.time_zone
        self._schema = spec.schema.to_arrow()

    def open(self, context: Context) -> None:
        self._clock = BatchClock(context.clock)
        evaluation = EvaluationContext(self._zone, self._clock)
        self._arguments = [compile_expression(arg, evaluation) for arg in self._node.call.args]
        self._kernel = table_kernel(self._node.call, evaluation)
        condition = self._node.condition
        # the condition of LEFT JOIN UNNEST(..) ON: it sees only the columns it reads
        self._reads = [] if condition is None else sorted(condition.columns())
        places = {column: position for position, column in enumerate(self._reads)}
        self._test = None if condition is None else compile_predicate(condition.remap(places), evaluation)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        self._clock.begin_batch()
        return start_output(self._in_pieces(batch, out))

    def _in_pieces(self, batch: Batch, out: Output) -> PendingOutput:
        """Emit the rows of the function in pieces. What an input row still lacks is known when the rows of
        the next begin.
        """
        progress = _Progress(np.zeros(batch.num_rows, np.bool_))
        passing = batch.rows.select(list(self._node.keep))
        pieces = self._pieces(batch.rows, passing)
        # one piece ahead: input rows in front of the next piece's first one get no further row
        parents, columns = next(pieces)
        while parents is not None:
            following, more = next(pieces, (None, []))
            emitted = self._emit(
                batch,
                passing,
                parents,
                columns,
                int(following[0]) if following is not None else batch.num_rows,
                progress,
                out,
            )
            if emitted and following is not None:
                yield
            parents, columns = following, more

    def _pieces(
        self, rows: pa.RecordBatch, passing: pa.RecordBatch
    ) -> Iterator[tuple[np.ndarray | None, list[pa.Array]]]:
        """Yield the function's rows in pieces that may be emitted beside the columns of the input. Only the
        first may be empty.
        """
        some, widest = False, widest_row(passing)
        for parents, columns in self._expand(rows):
            function_rows = pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])
            sizes = partial(_sizes, passing, parents, function_rows)
            for first, last in cut_pairs(parents.size, widest + widest_row(function_rows), sizes):
                some = True
                yield parents[first:last], [column.slice(first, last - first) for column in columns]
        # no row at all: the empty columns still have their types, for the NULLs of LEFT JOIN
        if not some:
            yield parents, columns

    def _emit(
        self,
        batch: Batch,
        passing: pa.RecordBatch,
        parents: np.ndarray,
        columns: list[pa.Array],
        last: int,
        progress: _Progress,
        out: Output,
    ) -> bool:
        """Emit one piece and, with OUTER, the rows before ``last`` without any; return whether there was
        output.
        """
        spec = self._spec
        function_columns = [columns[i] for i in spec.node.gives]
        # WITH ORDINALITY, or a condition that may read it: numbered before the condition drops rows
        numbered = spec.node.ordinality or self._test is not None
        numbers = [progress.numbers(parents)] if numbered else []
        if spec.node.ordinality:
            function_columns += numbers
        if self._test is not None:
            passed = self._passed(batch.rows, parents, [*columns, *numbers])
            parents, function_columns = (
                parents[passed],
                [column.filter(arrow_numpy.array_of(passed)) for column in function_columns],
            )
        # LEFT JOIN: input rows without any row of the function get one of NULLs
        if spec.node.outer:
            parents, function_columns = _with_absent(
                parents, function_columns, progress.absent(parents, last)
            )
        if not parents.size:
            return False
        rows = arrow_numpy.array_of(parents)
        result = pa.RecordBatch.from_arrays(
            [*(column.take(rows) for column in passing.columns), *function_columns], schema=self._schema
        )
        # each row has the weight and the lateness of its input row
        weights = None if batch.weights is None else batch.weights[parents]
        out.collect(
            Batch(result, weights, None if batch.behind is None else batch.behind[parents], batch.origin)
        )
        return True

    def _passed(
        self, rows: pa.RecordBatch, parents: np.ndarray, function_columns: list[pa.Array]
    ) -> np.ndarray:
        """Return for which rows of the function the condition is TRUE."""
        assert self._test is not None
        width, beside = rows.num_columns, arrow_numpy.array_of(parents)
        read = [
            rows.column(i).take(beside) if i < width else function_columns[i - width] for i in self._reads
        ]
        tested = (
            pa.RecordBatch.from_arrays(read, [str(i) for i in self._reads]) if read else rows.take(beside)
        )
        return arrow_numpy.is_true(self._test(tested))

    def _expand(self, rows: pa.RecordBatch) -> Iterator[RowsAndColumns]:
        arguments = [evaluate(rows) for evaluate in self._arguments]
        try:
            yield from self._kernel(arguments, rows.num_rows)
        except Fault as fault:
            raise to_error(fault, self._node.call.args[0], None) from None


def _sizes(passing: pa.RecordBatch, parents: np.ndarray, function_rows: pa.RecordBatch) -> np.ndarray:
    return row_sizes(passing, parents) + row_sizes(function_rows)


class _Progress:
    """The progress in a batch. ``has_rows``: which rows have got a row of the function."""

    def __init__(self, has_rows: np.ndarray) -> None:
        self._has_rows = has_rows
        self._complete = 0
        self._row, self._rows_of_it = -1, 0

    def numbers(self, parents: np.ndarray) -> pa.Array:
        """Number the function's rows within those of their input row, from 1, continuing the last piece."""
        if not parents.size:
            return arrow_numpy.array_of(np.zeros(0, np.int64))
        positions = np.arange(parents.size)
        # `parents` ascends, so searchsorted finds the first row of each
        numbers = positions - np.searchsorted(parents, parents) + 1
        numbers[parents == self._row] += self._rows_of_it
        self._row, self._rows_of_it = int(parents[-1]), int(numbers[-1])
        return arrow_numpy.array_of(numbers)

    def absent(self, parents: np.ndarray, last: int) -> np.ndarray:
        """Return the rows from the end of the last piece to before ``last`` without any; these have got
        something now.
        """
        self._has_rows[parents] = True
        first, self._complete = self._complete, last
        return first + np.flatnonzero(~self._has_rows[first:last])


def _with_absent(
    parents: np.ndarray, function_columns: list[pa.Array], absent: np.ndarray
) -> tuple[np.ndarray, list[pa.Array]]:
    """Add a row of NULLs for each input row without any, in its position."""
    if not absent.size:
        return parents, function_columns
    together = np.concatenate([parents, absent])
    # input order: `order` below parents.size is a row of the function, else a row of NULLs
    order = np.argsort(together, kind="stable")
    positions = arrow_numpy.array_of(np.where(order < parents.size, order, 0), order >= parents.size)
    return together[order], [
        column.take(positions) if len(column) else pa.nulls(order.size, column.type)
        for column in function_columns
    ]
