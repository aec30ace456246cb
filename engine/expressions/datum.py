"""Datum: a value of an expression, as a column or as a scalar; and the rows an expression is evaluated on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api import arrow_numpy as arrays
from penstock.engine.expressions.evaluation_errors import MOST, check_sizes

Datum: TypeAlias = "pa.Array | pa.Scalar"
Kernel = Callable[..., Datum]

# numpy types of the values of fixed width; all others are timestamps, which are i8
_DTYPES: dict[pa.DataType, str] = {
    pa.int8(): "i1",
    pa.int16(): "i2",
    pa.int32(): "i4",
    pa.int64(): "i8",
    pa.float32(): "f4",
    pa.float64(): "f8",
    pa.date32(): "i4",
    pa.time64("us"): "i8",
    pa.duration("us"): "i8",
}


# scalars whose size is not that of their type
_OF_ANY_SIZE = (pa.ListScalar, pa.StringScalar, pa.BinaryScalar, pa.StructScalar)


def values_of(array: pa.Array) -> np.ndarray:
    """Return the values of a fixed-width column without copying; booleans are unpacked. Slots of NULLs have
    undefined values.
    """
    if pa.types.is_boolean(array.type):
        return arrays.is_true(array)
    data = array.buffers()[1]
    dtype = np.dtype(_DTYPES.get(array.type, "i8"))
    if data is None:
        # A column of only NULLs may have no data buffer.
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def defined_values(array: pa.Array) -> np.ndarray:
    """Return the values of a fixed-width column with zeros where it is NULL."""
    values = values_of(array)
    missing = nulls_of(array)
    return values if missing is None else np.where(missing, np.zeros(1, values.dtype), values)


def nulls_of(array: pa.Array) -> np.ndarray | None:
    """Return a mask that is true where the column is NULL, or ``None`` when it never is."""
    return arrays.truths(pc.is_null(array)) if array.null_count else None


def nulls_of_any(*arrays: pa.Array) -> np.ndarray | None:
    """Return a mask that is true where some column is NULL, or ``None``."""
    result: np.ndarray | None = None
    for array in arrays:
        missing = nulls_of(array)
        if missing is not None:
            result = missing if result is None else result | missing
    return result


def either(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    """Return the union of two masks."""
    if a is None or b is None:
        return a if b is None else b
    return a | b


def array_of(values: np.ndarray, missing: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """Return a column of a fixed-width type from its values and the mask of its NULLs."""
    if pa.types.is_boolean(kind):
        return arrays.array_of(values, missing)
    wanted = np.dtype(_DTYPES.get(kind, "i8"))
    # without a copy where the type is right
    array = arrays.array_of(values if values.dtype == wanted else values.astype(wanted), missing)
    return array if array.type == kind else array.view(kind)


def lists_of(offsets: np.ndarray, flat: pa.Array) -> pa.Array:
    """Return a list column from int32 offsets and the values of all its lists."""
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


def repeated(value: pa.Scalar, count: int) -> pa.Array:
    """Return a column that repeats one value. Raise Fault RUN-2006 for a value too large for so many rows."""
    if count > 1 and value.is_valid and isinstance(value, _OF_ANY_SIZE):
        # a value of one row may be small, and its copies for a batch too large
        sizes = {"bytes": pa.repeat(value, 1).nbytes}
        if isinstance(value, pa.ListScalar):
            sizes["elements"] = len(value.values)
        for unit, single in sizes.items():
            # The sizes' array is only built when the check is going to fail.
            if single * count > MOST[unit]:
                check_sizes("a constant", np.full(count, single, np.int64), unit)
    if not count:
        return pa.nulls(0, value.type)
    if value.is_valid and (value.type in _DTYPES or pa.types.is_timestamp(value.type)):
        # Arrow appends value by value: numpy takes a tenth of the time
        return array_of(np.full(count, values_of(pa.repeat(value, 1))[0]), None, value.type)
    if count > 1 and isinstance(value, pa.ListScalar):
        # a tenth of the time again: of a list Arrow appends element by element
        return pa.repeat(value, 1).take(arrays.array_of(np.zeros(count, np.int32)))
    return pa.repeat(value, count)


def aligned(*data: Datum) -> list[pa.Array]:
    """Return all arguments as columns of one length. When all are scalars, the length is 1."""
    length = next((len(datum) for datum in data if isinstance(datum, pa.Array)), 1)
    return [datum if isinstance(datum, pa.Array) else repeated(datum, length) for datum in data]


def columnwise(compute: Callable[..., pa.Array]) -> Kernel:
    """Return a kernel that only receives columns: scalar arguments are repeated."""

    def kernel(*data: Datum) -> pa.Array:
        return compute(*aligned(*data))

    return kernel


def on_first(compute: Callable[[pa.Array], pa.Array]) -> Kernel:
    """Return a kernel that receives the first argument as a column. ``compute`` knows the others, constants
    that need not be repeated.
    """
    return lambda first, *_: compute(*aligned(first))


def truth(mask: Datum) -> np.ndarray:
    """Return a boolean column as a numpy mask, NULL as false."""
    return arrays.is_true(mask)


class Rows(Protocol):
    """Columns by position, and the number of rows. A record batch implements it."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""

    def column(self, i: int) -> pa.Array:
        """Return a column."""


Evaluate = Callable[[Rows], Datum]


class Selection:
    """A selection of rows by position. A column is gathered when it is first read."""

    def __init__(self, rows: Rows, positions: np.ndarray) -> None:
        self._rows = rows
        self._positions = pa.array(positions)
        self._columns: dict[int, pa.Array] = {}

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self._positions)

    def column(self, i: int) -> pa.Array:
        """Return a column."""
        gathered = self._columns.get(i)
        if gathered is None:
            gathered = self._columns[i] = self._rows.column(i).take(self._positions)
        return gathered


def spread(part: Datum, positions: np.ndarray, length: int) -> pa.Array:
    """Return a column of ``length`` with ``part`` at the positions and NULL elsewhere."""
    if isinstance(part, pa.Scalar):
        part = repeated(part, len(positions))
    # ``where`` has each row's index in ``part``, and -1 for NULL.
    where = np.full(length, -1, np.int64)
    where[positions] = np.arange(len(positions))
    return part.take(arrays.array_of(where, where < 0))
