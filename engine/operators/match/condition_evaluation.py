"""The conditions of DEFINE over sorted rows: what rows alone fulfil, and the cells programs load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, is_true, numbers_of, truths
from penstock.engine.expressions.call_site import EvaluationContext
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.over.partitions import Partitions
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.condition_program import TOTALS, CellKind, Programs, programs_of
from penstock.planner.logical.match_recognize import Definition, RowValue, Value

_ALONE, _ALONG = 1, 2


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns for programs, one after the other, each with a cell more than rows: that of no row. Whole
    numbers, floating-point ones, validity.
    """

    whole: np.ndarray
    real: np.ndarray
    valid: np.ndarray


class RowTests:
    """The conditions of the variables of one pattern. Programs as arrays: ``code`` with ``code_at`` by
    variable, ``totals``, ``places``, ``member``.

    ``member``: by set of rows and variable, whether the variable's rows are in the set.
    """

    def __init__(self, definitions: Sequence[Definition], variables: int, time_zone: str) -> None:
        self._context = EvaluationContext(time_zone)
        self._variables = variables
        self._programs = programs_of(definitions)
        self._tests = [
            (test.variable, self._over(test.condition, test.values)) for test in self._programs.tests
        ]
        self._columns = [
            (column, self._over(column.expression, column.values)) for column in self._programs.columns
        ]
        self._lay(self._programs)

    def _lay(self, programs: Programs) -> None:
        sets = list(
            dict.fromkeys(
                [
                    *(p.rows for p in programs.places if p.rows is not None),
                    *(total.rows for total in programs.totals),
                ]
            )
        )
        self.member = np.array(
            [number in rows for rows in sets for number in range(self._variables)], np.uint8
        )
        places = [
            (-1 if p.rows is None else sets.index(p.rows), int(p.first), p.offset) for p in programs.places
        ]
        self.places = np.array(places, np.int64).ravel()
        totals = []
        for total in programs.totals:
            real = total.column is not None and programs.columns[total.column].kind is CellKind.FLOAT
            totals.append(
                (
                    TOTALS.index(total.function),
                    -1 if total.column is None else total.column,
                    sets.index(total.rows),
                    int(real),
                )
            )
        self.totals = np.array(totals, np.int64).ravel()
        code: list[tuple[int, int, int]] = []
        code_at = [0]
        for variable in range(self._variables):
            code += programs.code.get(variable, [])
            code_at.append(len(code))
        self.code, self.code_at = np.array(code, np.int64).ravel(), np.array(code_at, np.int64)

    @property
    def alone(self) -> bool:
        """Whether all conditions are of rows alone."""
        return self.code.size == 0

    def _over(self, expression: Expression, values: Sequence[Value]) -> _Over:
        return _Over(expression, values, self._context)

    def of(self, part: Partitions) -> np.ndarray:
        """Return what is known of sorted rows alone, uint8 by row and variable: 0 the row is not the
        variable's, 1 it is, 2 its program decides.
        """
        start = [_ALONG if variable in self._programs.code else _ALONE for variable in range(self._variables)]
        known = np.tile(np.array(start, np.uint8), (part.rows.num_rows, 1))
        for variable, condition in self._tests:
            known[~is_true(condition.of(part, False)), variable] = 0
        return known.ravel()

    def cells(self, part: Partitions) -> Cells:
        """Return the columns programs load."""
        stride = part.rows.num_rows + 1
        shape = (len(self._columns), stride)
        whole, real, valid = np.zeros(shape, np.int64), np.zeros(shape, np.float64), np.zeros(shape, np.uint8)
        found = [over.of(part, True) for _, over in self._columns]
        ranks = iter(
            _ranks(
                [
                    array
                    for (column, _), array in zip(self._columns, found, strict=True)
                    if column.kind is CellKind.TEXT
                ]
            )
        )
        for number, ((column, _), array) in enumerate(zip(self._columns, found, strict=True)):
            valid[number] = truths(array.is_valid())
            if column.kind is CellKind.FLOAT:
                real[number] = col.floats(array)
            elif column.kind is CellKind.TEXT:
                whole[number] = next(ranks)
            else:
                whole[number] = _whole(array)
        return Cells(whole.ravel(), real.ravel(), valid.ravel())


class _Over:
    """An expression over values that are all read at one row."""

    def __init__(self, expression: Expression, values: Sequence[Value], context: EvaluationContext) -> None:
        self._read = sorted(expression.columns())
        self._values = []
        for value in map(values.__getitem__, self._read):
            assert isinstance(value, RowValue)
            self._values.append((compile_expression(value.expression, context), value.before))
        positions = {old: new for new, old in enumerate(self._read)}
        self._evaluate = compile_expression(expression.remap(positions), context)

    def of(self, part: Partitions, absent: bool) -> pa.Array:
        """Return the expression at each of the sorted rows, and with ``absent`` one more: at no row, where
        all values are NULL.
        """
        columns = [earlier(evaluate(part.rows), part, before) for evaluate, before in self._values]
        if absent:
            columns = [pa.concat_arrays([column, pa.nulls(1, column.type)]) for column in columns]
        columns.append(pa.nulls(part.rows.num_rows + absent))
        return self._evaluate(
            pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        )


def earlier(values: pa.Array, part: Partitions, before: int) -> pa.Array:
    """Return for each of the sorted rows the value that many rows before it in its partition, NULL where
    there is none.
    """
    if not before:
        return values
    at = np.arange(part.rows.num_rows) - before
    known = at >= part.starts
    return values.take(array_of(np.where(known, at, 0), ~known))


def _whole(array: pa.Array) -> np.ndarray:
    """Return the values as int64; a decimal's digits without its point. Undefined under NULL."""
    if not pa.types.is_decimal128(array.type):
        return col.words(array)
    low, high = col.wide_words(array)
    valid = truths(array.is_valid())
    if (valid & (high != low >> 63)).any():
        message = "a DECIMAL in DEFINE is out of the range of 18 digits"
        raise PenstockError("RUN-2002", message, hint="compute with CAST(A.x AS DOUBLE)", sqlstate="22003")
    return low


def _ranks(arrays: list[pa.Array]) -> list[np.ndarray]:
    """Return texts as the ranks they have among all texts of all arrays."""
    if not arrays:
        return []
    coded = pc.dictionary_encode(pa.concat_arrays(arrays))
    order = numbers_of(pc.sort_indices(coded.dictionary))
    rank = np.empty(order.size + 1, np.int64)
    rank[order] = np.arange(order.size)
    rank[-1] = 0
    return np.split(
        rank[numbers_of(coded.indices.fill_null(-1))], np.cumsum([len(array) for array in arrays])[:-1]
    )
