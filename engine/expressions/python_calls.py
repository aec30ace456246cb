"""Python scalar functions as kernels: called with columns or, in row mode, once per row. Results are
checked.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.python_functions import PROGRAM_ERRORS, CallMode, PythonFunction
from penstock.catalog.types import DataType, Variant, holds, to_arrow
from penstock.engine.expressions.datum import Datum, repeated
from penstock.engine.expressions.evaluation_errors import Fault, one_array
from penstock.planner.expressions.python_calls import PythonCall

RowsKernel = Callable[[int, list[Datum]], Datum]
# frames of files below it are ours
_ENGINE = Path(__file__).resolve().parents[1]


def python_kernel(call: PythonCall) -> RowsKernel:
    """Return the kernel of a call: from the number of rows and the arguments to a column of the declared
    type.

    Faults: RUN-2010 for an exception of the function, with its line in the program. RUN-2011 for a result
    that is no such column.
    """
    function, kind = call.body, to_arrow(call.body.result)
    evaluate = _by_row if function.mode is CallMode.ROW else _by_column

    def kernel(count: int, data: list[Datum]) -> Datum:
        columns = [repeated(datum, count) if isinstance(datum, pa.Scalar) else datum for datum in data]
        return checked_variants(function, evaluate(function, kind, count, columns), function.result)

    return kernel


def _by_column(function: PythonFunction, kind: pa.DataType, count: int, columns: list[pa.Array]) -> pa.Array:
    returned = called(function, *columns)
    return as_column(function, returned, kind, count)


def _by_row(function: PythonFunction, kind: pa.DataType, count: int, columns: list[pa.Array]) -> pa.Array:
    """Call a row-mode function once per row. It is the only loop over rows in the engine."""
    # a function without arguments is still called once per row
    rows = zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * count
    return values_as_column(function, [called(function, *row) for row in rows], kind)


def called(function: PythonFunction, *args: Any) -> Any:
    """Call the user's function. Its exception becomes RUN-2010."""
    try:
        return function.body(*args)
    except PROGRAM_ERRORS as error:
        raise raised(function, error) from error


def raised(function: PythonFunction, error: BaseException) -> Fault:
    """Return the fault of an exception in the user's function; it shows the function's own line."""
    # The engine's own frames say nothing to the author of the function.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not Path(frame.filename).is_relative_to(_ENGINE)
    ]
    outcome = (
        f"raised at {Path(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name}"
        if frames
        else None
    )
    reason = str(error).strip().split("\n")[0]
    return Fault(
        "RUN-2010",
        "39000",
        f"Python function {function.name}: {type(error).__name__}{f': {reason}' if reason else ''}",
        outcome,
    )


def as_column(function: PythonFunction, returned: Any, kind: pa.DataType, count: int) -> pa.Array:
    """Return a function's result for ``count`` rows as a column of ``kind``. Accepts an Arrow or numpy array
    of that length, or one value for all rows. Raise Fault RUN-2011 for anything else.
    """
    # an Arrow array, a numpy array, or one value for all rows
    if isinstance(returned, pa.ChunkedArray):
        returned = one_array(returned)
    if isinstance(returned, np.ndarray):
        returned = _from_numpy(function, returned)
    if isinstance(returned, pa.Array):
        if len(returned) != count:
            raise _bad_result(function, f"returned {len(returned)} values for {count} rows")
        return _cast(function, returned, kind)
    # A list or a pandas object is not taken for a single value of all rows.
    if isinstance(returned, list | tuple | dict | set) or hasattr(returned, "to_numpy"):
        raise _bad_result(function, f"returned a {type(returned).__name__}, not an Arrow array")
    value = returned if isinstance(returned, pa.Scalar) else values_as_column(function, [returned], kind)[0]
    return _cast(function, repeated(value, count), kind)


def values_as_column(function: PythonFunction, values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values as a column of ``kind``."""
    try:
        return one_array(pa.array(values, kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _bad_result(
            function, f"returned a value that is no {kind}: {str(error).splitlines()[0]}"
        ) from None


def checked_variants(function: PythonFunction, column: pa.Array, kind: DataType) -> pa.Array:
    """Return a result whose texts of VARIANT are as they are stored. Raise Fault RUN-2011 for one that is no
    JSON: kernels read no other texts.
    """
    if not holds(kind, Variant):
        return column
    from penstock.engine.expressions.json.canonical_text import NotCanonical
    from penstock.engine.expressions.json.variant_parts import canonical_parts

    try:
        return canonical_parts(column, kind)
    except NotCanonical as error:
        raise _bad_result(function, f"returned a VARIANT that is none: {error}") from None


def _from_numpy(function: PythonFunction, returned: np.ndarray) -> pa.Array:
    try:
        return one_array(pa.array(returned))
    except pa.ArrowException as error:
        raise _bad_result(
            function, f"returned a numpy array that Arrow cannot read: {str(error).splitlines()[0]}"
        ) from None


def _cast(function: PythonFunction, returned: pa.Array, kind: pa.DataType) -> pa.Array:
    if returned.type == kind:
        return returned
    try:
        return returned.cast(kind)
    except pa.ArrowException:
        raise _bad_result(function, f"returned {returned.type} values that are no {kind}") from None


def _bad_result(function: PythonFunction, what: str) -> Fault:
    declared: DataType | None = getattr(function, "result", None)
    return Fault(
        "RUN-2011", "39004", f"Python function {function.name} {what}", f"it is declared to return {declared}"
    )
