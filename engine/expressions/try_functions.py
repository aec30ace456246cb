"""TRY_ADD and its kin: arithmetic that returns NULL on rows where the operation faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import is_integer, to_arrow
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import Datum, Kernel, aligned, defined_values
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.kernel_factory import BoundCall, Factory
from penstock.engine.expressions.numeric.arithmetic import ARITHMETIC

_FAULTS = (Fault, pa.ArrowInvalid)


def _tried(operator: str) -> Factory:
    def factory(bound: BoundCall) -> Kernel:
        kernel = ARITHMETIC[operator](replace(bound, call=replace(bound.call, function=operator)))
        kind = to_arrow(bound.call.type)
        integers = is_integer(bound.call.type)

        def safe(*data: Datum) -> Datum:
            try:
                return kernel(*data)
            except _FAULTS:
                left, right = aligned(*data)
            # Integer overflow and division by zero are found in one pass; other faults by halving.
            if integers or operator in ("divide", "mod"):
                right = _without(right, _faulty(operator, left, right))
            return _by_halves(kernel, left, right, kind)

        return safe

    return factory


def _without(column: pa.Array, faulty: np.ndarray) -> pa.Array:
    """Return the column with NULL where ``faulty``."""
    return column.take(arrow_numpy.array_of(np.arange(len(column)), faulty))


def _faulty(operator: str, left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return the mask of rows that overflow an integer or divide by zero. Rows with NULLs do neither."""
    if operator in ("divide", "mod"):
        return arrow_numpy.is_true(pc.equal(right, pa.scalar(0, right.type)))
    a, b = defined_values(left), defined_values(right)
    with np.errstate(all="ignore"):
        if operator == "add":
            total = a + b
            # Both operands have the other sign than the wrapped sum: overflow.
            return ((a ^ total) & (b ^ total)) < 0
        if operator == "subtract":
            total = a - b
            # The operands differ in sign, and the wrapped difference has the sign of the subtrahend.
            return ((a ^ b) & (a ^ total)) < 0
        least = np.iinfo(a.dtype).min
        total = a * b
        # Dividing the wrapped product by a factor gives the other one back, unless it overflowed.
        back = np.where(a == 0, 0, total // np.where(a == 0, 1, a))
        return ((a != 0) & (back != b)) | ((a == -1) & (b == least))


def _by_halves(kernel: Kernel, left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    """Run the operation on halves, down to single rows; a row that faults is NULL."""
    try:
        (result,) = aligned(kernel(left, right))
        return result if result.type == kind else result.cast(kind)
    except _FAULTS:
        half = len(left) // 2
        if not half:
            return pa.nulls(1, kind)
    parts = [
        _by_halves(kernel, left.slice(at, size), right.slice(at, size), kind)
        for at, size in ((0, half), (half, len(left) - half))
    ]
    return pa.concat_arrays(parts)


TRIES: dict[str, Factory] = {
    f"try_{operator}": _tried(operator) for operator in ("add", "subtract", "multiply", "divide", "mod")
}
"""NULL where the operation overflows or divides by zero."""
