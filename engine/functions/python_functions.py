"""Python aggregate functions and Python table functions: the engine's side of a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.python_functions import PROGRAM_ERRORS, CallMode, PythonTable
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.python_calls import (
    as_column,
    called,
    checked_variants,
    raised,
    values_as_column,
)
from penstock.planner.expressions.python_calls import PythonAggregateCall


def aggregated(call: PythonAggregateCall, offsets: np.ndarray, columns: list[pa.Array]) -> pa.Array:
    """Return one value per group; group i has the rows ``offsets[i]`` up to ``offsets[i + 1]`` of the
    columns. A group without rows is NULL: the function is not asked. Raises RUN-2010 and RUN-2011.
    """
    function, kind, groups = call.body, to_arrow(call.type), offsets.size - 1
    filled = np.flatnonzero(np.diff(offsets))
    if filled.size < groups:
        if not filled.size:
            return pa.nulls(groups, kind)
        of_filled = aggregated(call, np.append(offsets[filled], offsets[-1]), columns)
        at = np.full(groups, -1)
        at[filled] = np.arange(filled.size)
        return of_filled.take(array_of(at, at < 0))
    try:
        # one call for all groups, with the offsets; else one call per group with slices
        if function.mode is CallMode.ARROW:
            column = as_column(function, called(function, offsets, *columns), kind, groups)
            return checked_variants(function, column, call.type)
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        values = [called(function, *(c.slice(first, end - first) for c in columns)) for first, end in bounds]
        return checked_variants(function, values_as_column(function, values, kind), call.type)
    # the call's position is added here: the function itself does not know it
    except Fault as fault:
        raise PenstockError(
            fault.code,
            fault.message,
            detail=f"in {call}",
            hint=fault.hint,
            span=call.span,
            sqlstate=fault.sqlstate,
        ) from None


RowsAndColumns = tuple[np.ndarray, list[pa.Array]]
_LOOK_EVERY = 256  # rows of a generator: so often one of them is asked for its size
_ROWS_FIRST = 1 << 10  # input rows of the first call with columns: nobody knows yet how many rows each gives


class PythonTableRows:
    """The rows of one Python table function, in pieces of about as many rows and bytes as may be emitted at
    once.

    Only the next piece is read from a generator, so it may be endless. A function of columns is called with
    as many input rows as made one piece before.
    """

    def __init__(self, function: PythonTable) -> None:
        self._function = function
        self._kinds = [to_arrow(field.type) for field in function.result]
        self._rows_a_call = _ROWS_FIRST

    def pieces(self, columns: list[pa.Array], count: int) -> Iterator[RowsAndColumns]:
        """Yield the input row (int64, ascending) of each output row, and the output columns; at least once.

        ``columns`` are the arguments, or one column of any kind for a function of none. Raises RUN-2010 and
        RUN-2011.
        """
        function = self._function
        arguments = columns[: len(function.arg_types)]
        try:
            yield from (self._by_row if function.mode is CallMode.ROW else self._by_column)(arguments, count)
        except Fault as fault:
            raise PenstockError(
                fault.code,
                fault.message,
                detail=f"in {function.usage}",
                hint=fault.hint,
                sqlstate=fault.sqlstate,
            ) from None

    def _by_column(self, columns: list[pa.Array], count: int) -> Iterator[RowsAndColumns]:
        first = 0
        while first < count or not first:
            # one without arguments cannot see how many rows it is called for
            rows = min(count - first, self._rows_a_call) if columns else count
            # ``parents`` count from the first row of this call
            parents, columns_of_rows = self._called([column.slice(first, rows) for column in columns], rows)
            yield parents + first if first else parents, columns_of_rows
            # rows of output, or their bytes in units of rows, whichever is nearer its limit
            cost = max(
                parents.size,
                sum(column.nbytes for column in columns_of_rows) * LIMITS.piece_rows // LIMITS.piece_bytes,
            )
            self._rows_a_call = max(
                # as many input rows as make about one piece; at most eight times more than the last call
                1,
                min(LIMITS.piece_rows, 8 * self._rows_a_call, LIMITS.piece_rows * rows // max(cost, 1)),
            )
            first += max(rows, 1)

    def _called(self, columns: list[pa.Array], count: int) -> RowsAndColumns:
        function, wanted = self._function, len(self._kinds)
        result = called(function, *columns)
        # (row numbers, column, column, ..)
        if not isinstance(result, tuple | list) or len(result) != wanted + 1:
            raise _bad(
                function,
                f"returned no tuple of {wanted + 1}: the row numbers of its input rows, and {wanted} columns",
            )
        rows = as_column(
            function, result[0], pa.int64(), len(result[0]) if hasattr(result[0], "__len__") else -1
        )
        parents = (
            np.asarray(rows.to_numpy(zero_copy_only=False), np.int64)
            if not rows.null_count
            else np.full(1, -1)
        )
        # ascending, so the first and the last number bound the others
        if parents.size and (parents[0] < 0 or parents[-1] >= count or (np.diff(parents) < 0).any()):
            raise _bad(function, f"returned row numbers that do not ascend within the {count} rows")
        return parents, [
            checked_variants(function, as_column(function, column, kind, parents.size), field.type)
            for column, kind, field in zip(result[1:], self._kinds, function.result, strict=True)
        ]

    def _by_row(self, columns: list[pa.Array], count: int) -> Iterator[RowsAndColumns]:
        """Call the function once per input row."""
        rows = zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * count
        parents: list[int] = []
        counts: list[int] = []
        values: list[tuple[Any, ...]] = []
        size, asked, none = 0, 0, True
        for number, row in enumerate(rows):
            # a generator is read in steps: it may be endless, and one row may make many
            iterator = _iterator(self._function, called(self._function, *row))
            more = True
            while more:
                wanted = min(asked + _LOOK_EVERY, LIMITS.piece_rows) - len(values)
                some = _tuples(self._function, iterator, wanted)
                parents.append(number)
                counts.append(len(some))
                values += some
                # fewer rows than requested: the generator has ended
                more = len(some) == wanted
                if not more:
                    continue
                # the size of the last row is used for all rows since the last estimate
                size += (len(values) - asked) * _size(values[-1])
                asked = len(values)
                if asked >= LIMITS.piece_rows or size >= LIMITS.piece_bytes:
                    yield self._columns(parents, counts, values)
                    parents, counts, values, size, asked, none = [], [], [], 0, 0, False
        # one piece at least, so that an empty result still has its columns
        if values or none:
            yield self._columns(parents, counts, values)

    def _columns(
        self, parents: list[int], counts: list[int], values: list[tuple[Any, ...]]
    ) -> RowsAndColumns:
        width = len(self._kinds)
        # the set of lengths, so that the usual case is one comparison
        if any(length != width for length in set(map(len, values))):
            raise _bad(
                self._function, f"returned a row that has not {width} value{'s' if width != 1 else ''}"
            )
        # rows to columns
        turned = list(zip(*values, strict=True)) or [()] * width
        columns = [
            checked_variants(self._function, values_as_column(self._function, list(column), kind), field.type)
            for column, kind, field in zip(turned, self._kinds, self._function.result, strict=True)
        ]
        return np.repeat(np.array(parents, np.int64), np.array(counts, np.int64)), columns


def _iterator(function: PythonTable, returned: Any) -> Iterator[Any]:
    if not isinstance(returned, Iterable):
        raise _bad(function, f"returned a {type(returned).__name__}, not an iterable of rows")
    try:
        return iter(returned)
    except PROGRAM_ERRORS as error:
        raise raised(function, error) from error


def _tuples(function: PythonTable, returned: Iterator[Any], most: int) -> list[tuple[Any, ...]]:
    """Return the next rows, fewer than ``most`` when there are no more."""
    try:
        return [row if isinstance(row, tuple) else (row,) for row in islice(returned, most)]
    except PROGRAM_ERRORS as error:
        raise raised(function, error) from error


def _size(value: Any) -> int:
    """Return about how many bytes a value is."""
    if isinstance(value, str | bytes | bytearray):
        return 4 + len(value)
    if isinstance(value, dict):
        return 4 + sum(map(_size, value)) + sum(map(_size, value.values()))
    return 4 + sum(map(_size, value)) if isinstance(value, list | tuple) else 8


def _bad(function: PythonTable, what: str) -> Fault:
    columns = ", ".join(f"{field.name} {field.type}" for field in function.result)
    return Fault(
        "RUN-2011",
        "39004",
        f"Python function {function.name} {what}",
        f"it is declared to return ({columns})",
    )
