"""Table functions, a batch at a time: from argument columns to rows, each with the number of its input
row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.types import Array, Map, Row, is_integer, to_arrow
from penstock.engine.api import arrow_numpy
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions.datum import aligned, nulls_of_any, values_of
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall, EvaluationContext
from penstock.engine.expressions.nested.constructors import alternated
from penstock.engine.expressions.nested.lists import Lists, lists_of
from penstock.engine.expressions.registry import KERNELS
from penstock.engine.functions.python_functions import PythonTableRows, RowsAndColumns
from penstock.planner.expressions.nodes import Call
from penstock.planner.logical.unnest import TableCall

TableKernel = Callable[[list[pa.Array], int], Iterator[RowsAndColumns]]
"""A function from the argument columns and their length to output rows. Generated rows (SERIES, RANGE) come
in pieces.
"""


def table_kernel(call: TableCall, context: EvaluationContext) -> TableKernel:
    """Return the kernel of a call. It raises a fault for argument values that are not allowed."""
    # a Python table function
    if (body := call.body) is not None:
        return PythonTableRows(body).pieces
    maker = _MAKERS.get(call.function)
    if maker is None:
        raise PenstockError(
            "INT-9002", f"table function {call.function} has no kernel", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    return maker(call, context)


def _unnested(call: TableCall, context: EvaluationContext) -> TableKernel:
    kind = call.args[0].type
    # UNNEST of ARRAY<ROW<a, b>> or of a MAP: one column a field; EXPLODE of ARRAY<ROW> keeps one column
    if isinstance(kind, Map) or (isinstance(kind, Array) and isinstance(kind.element, Row)):
        return lambda columns, rows: iter([_with_fields(lists_of(columns[0]))])
    return lambda columns, rows: iter([_whole(lists_of(columns[0]))])


def _exploded(call: TableCall, context: EvaluationContext) -> TableKernel:
    if isinstance(call.args[0].type, Map):
        return lambda columns, rows: iter([_with_fields(lists_of(columns[0]))])
    return lambda columns, rows: iter([_whole(lists_of(columns[0]))])


def _numbered(call: TableCall, context: EvaluationContext) -> TableKernel:
    explode = _exploded(call, context)

    def run(columns: list[pa.Array], rows: int) -> Iterator[RowsAndColumns]:
        for parents, exploded in explode(columns, rows):
            # POSEXPLODE: the position within its array, from 0
            yield parents, [arrow_numpy.array_of(lists_of(columns[0]).nth.astype(np.int32)), *exploded]

    return run


def _with_fields(lists: Lists) -> RowsAndColumns:
    return lists.parents, [pc.struct_field(lists.flat, i) for i in range(lists.flat.type.num_fields)]


def _whole(lists: Lists) -> RowsAndColumns:
    return lists.parents, [lists.flat]


def _stacked(call: TableCall, context: EvaluationContext) -> TableKernel:
    width = len(call.columns)

    def run(columns: list[pa.Array], rows: int) -> Iterator[RowsAndColumns]:
        # STACK(n, v1, v2, ..): the first argument is the number of rows; values fill them from left to right
        values = columns[1:]
        # STACK fills its last row with NULLs
        short = -len(values) % width
        values += (
            [pa.nulls(rows, to_arrow(field.type)) for field in call.columns[width - short :]] if short else []
        )
        lists = [alternated(values[offset::width]) for offset in range(width)]
        yield lists[0].parents, [part.flat for part in lists]

    return run


def _series(call: TableCall, context: EvaluationContext) -> TableKernel:
    kind = call.columns[0].type
    if not is_integer(kind):
        return _moments(call, context)
    return lambda columns, rows: _steps(columns, to_arrow(kind), inclusive=True)


def _moments(call: TableCall, context: EvaluationContext) -> TableKernel:
    """Return a series of points in time: the elements of ``sequence``, none where the step leads away from
    the end.
    """
    expression = Call(Array(call.columns[0].type), True, function="sequence", args=call.args)
    kernel = KERNELS["sequence"](BoundCall(expression, (None,) * len(call.args), context))

    def run(columns: list[pa.Array], rows: int) -> Iterator[RowsAndColumns]:
        first, last, step = (values_of(column).astype(np.int64) for column in columns)
        # SEQUENCE raises an error for a step away from the end; a series is empty then
        reached = arrow_numpy.array_of((first == last) | ((first < last) == (step > 0)))
        column = kernel(*(pc.if_else(reached, part, pa.scalar(None, part.type)) for part in columns))
        yield _whole(lists_of(aligned(column)[0]))

    return run


def _range(call: TableCall, context: EvaluationContext) -> TableKernel:
    def run(columns: list[pa.Array], rows: int) -> Iterator[RowsAndColumns]:
        # RANGE(n) is RANGE(0, n)
        if len(columns) == 1:
            columns = [arrow_numpy.array_of(np.zeros(len(columns[0]), np.int64)), columns[0]]
        return _steps(columns, pa.int64(), inclusive=False)

    return run


def _steps(columns: list[pa.Array], kind: pa.DataType, inclusive: bool) -> Iterator[RowsAndColumns]:
    missing = nulls_of_any(*columns)
    first, last = (values_of(column).astype(np.int64) for column in columns[:2])
    step = values_of(columns[2]).astype(np.int64) if len(columns) > 2 else np.ones(first.size, np.int64)
    if ((step == 0) & (True if missing is None else ~missing)).any():
        raise bad_argument("the step of a series is 0")
    # steps of 0 remain only in rows with a NULL argument, which have no elements
    safe = np.where(step == 0, 1, step)
    # SERIES includes its end, RANGE does not; the second is a division that rounds up
    counts = (last - first) // safe + 1 if inclusive else -((first - last) // safe)
    counts = np.maximum(counts if missing is None else np.where(missing, 0, counts), 0)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    # positions in all series end to end; one piece at least, so that no rows still have a column
    for start in range(0, max(total, 1), LIMITS.piece_rows):
        positions = np.arange(start, min(start + LIMITS.piece_rows, total))
        # the series a position belongs to; series without elements are skipped
        parents = np.searchsorted(ends, positions, side="right")
        nth = positions - (ends[parents] - counts[parents])
        values = arrow_numpy.array_of(first[parents] + nth * step[parents])
        yield parents, [values if kind == pa.int64() else values.view(kind)]


_MAKERS: dict[str, Callable[[TableCall, EvaluationContext], TableKernel]] = {
    "unnest": _unnested,
    "explode": _exploded,
    "posexplode": _numbered,
    "stack": _stacked,
    "series": _series,
    "range": _range,
}
