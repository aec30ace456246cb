"""Python table functions: columns of arguments in, rows and the input row of each out; what the program gives is checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from catalog.errors import PenstockError
from catalog.python_functions import CallMode, PythonTable
from catalog.types import to_arrow
from engine.expressions.faults import Fault
from engine.expressions.python_calls import as_column, called, raised, values_as_column

Given = tuple[np.ndarray, list[pa.Array]]


def table_rows(function: PythonTable, columns: list[pa.Array]) -> Given:
    """Return the input row (int64, ascending) of each row given, and the columns given.

    ``columns`` are the arguments, or one column of any kind for a function of none. Raises RUN-2010 and RUN-2011.
    """
    given = columns[: len(function.arg_types)]
    try:
        return (_by_row if function.mode is CallMode.ROW else _by_column)(function, given, len(columns[0]))
    except Fault as fault:
        raise PenstockError(fault.code, fault.message, detail=f"in {function.usage}", hint=fault.hint, sqlstate=fault.sqlstate) from None


def _by_column(function: PythonTable, columns: list[pa.Array], count: int) -> Given:
    result = called(function, *columns)
    wanted = len(function.result)
    if not isinstance(result, tuple | list) or len(result) != wanted + 1:
        raise _bad(function, f"gave no tuple of {wanted + 1}: the rows its rows belong to, and {wanted} columns")
    rows = as_column(function, result[0], pa.int64(), len(result[0]) if hasattr(result[0], "__len__") else -1)
    parents = np.asarray(rows.to_numpy(zero_copy_only=False), np.int64) if not rows.null_count else np.full(1, -1)
    if parents.size and (parents[0] < 0 or parents[-1] >= count or (np.diff(parents) < 0).any()):
        raise _bad(function, f"gave rows that are not the ascending numbers of {count} rows")
    kinds = [to_arrow(field.type) for field in function.result]
    return parents, [as_column(function, column, kind, parents.size) for column, kind in zip(result[1:], kinds, strict=True)]


def _by_row(function: PythonTable, columns: list[pa.Array], count: int) -> Given:
    """The program's own loop over rows: it asked for one row a call."""
    rows = zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * count
    counts: list[int] = []
    values: list[tuple[Any, ...]] = []
    for row in rows:
        before = len(values)
        values += _tuples(function, called(function, *row))
        counts.append(len(values) - before)
    parents = np.repeat(np.arange(count), np.array(counts, np.int64)) if counts else np.zeros(0, np.int64)
    kinds = [to_arrow(field.type) for field in function.result]
    turned = list(zip(*values, strict=True)) or [()] * len(kinds)
    return parents, [values_as_column(function, list(column), kind) for column, kind in zip(turned, kinds, strict=True)]


def _tuples(function: PythonTable, given: Any) -> list[tuple[Any, ...]]:
    if not isinstance(given, Iterable):
        raise _bad(function, f"gave a {type(given).__name__}, not an iterable of rows")
    width = len(function.result)
    try:
        rows = [row if isinstance(row, tuple) else (row,) for row in given]
    except Exception as error:  # a generator of the program may raise anything
        raise raised(function, error) from error
    if any(len(row) != width for row in rows):
        raise _bad(function, f"gave a row that has not {width} value{'s' if width != 1 else ''}")
    return rows


def _bad(function: PythonTable, what: str) -> Fault:
    columns = ", ".join(f"{field.name} {field.type}" for field in function.result)
    return Fault("RUN-2011", "39004", f"Python function {function.name} {what}", f"it is declared to give ({columns})")
