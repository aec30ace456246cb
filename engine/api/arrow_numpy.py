"""Arrow arrays over the memory of NumPy ones, and back. pyarrow's own converters do the same, but the first
use of one imports pandas where that is installed: half a second before the first row. The paths every query
takes come through here instead.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa

_ARROW = {
    np.dtype(name): pa.type_for_alias(name)
    for name in (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
    )
}
_MICROSECOND = timedelta(microseconds=1)


def array_of(values: np.ndarray, null: np.ndarray | None = None) -> pa.Array:
    """Return one-dimensional numbers or truth values as an Arrow array, NULL where ``null`` is true.
    Nothing is copied that lies dense.
    """
    # Arrow's validity bitmap: 1 is a value, 0 is NULL; without NULLs there is none
    valid = None if null is None or not null.any() else _bits(~null)
    if values.dtype == np.bool_:
        # BOOLEAN is a bitmap in Arrow, a byte a value in NumPy
        return pa.Array.from_buffers(pa.bool_(), values.size, [valid, _bits(values)])
    return pa.Array.from_buffers(
        _ARROW[values.dtype], values.size, [valid, pa.py_buffer(np.ascontiguousarray(values))]
    )


def texts(values: list[str]) -> pa.Array:
    """Return strings, none of them None, as an Arrow array."""
    encoded = [value.encode() for value in values]
    # value i is the bytes offsets[i] .. offsets[i + 1]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    return pa.Array.from_buffers(
        pa.string(), len(encoded), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    )


def numbers_of(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return numbers or truth values without NULL as a NumPy array; of one chunk of numbers it is a view
    that cannot be written.
    """
    if isinstance(array, pa.ChunkedArray):
        # one chunk is not copied
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    assert not array.null_count
    if pa.types.is_boolean(array.type):
        return truths(array)
    dtype = np.dtype(array.type.to_pandas_dtype())
    return (
        np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
        if len(array)
        else np.zeros(0, dtype)
    )


def truths(array: pa.Array) -> np.ndarray:
    """Return a boolean array as NumPy booleans; undefined under NULL."""
    if not len(array):
        return np.zeros(0, np.bool_)
    bits = np.frombuffer(array.buffers()[1], np.uint8)
    # a slice may begin in the middle of a byte: unpack from that byte on, then drop the bits before it
    first = array.offset // 8
    spread = np.unpackbits(bits[first : (array.offset + len(array) + 7) // 8], bitorder="little")
    return spread[array.offset % 8 :][: len(array)].view(np.bool_)


def is_true(array: pa.Array) -> np.ndarray:
    """Return a boolean array as NumPy booleans, NULL as false."""
    return truths(array) & truths(array.is_valid()) if array.null_count else truths(array)


def scalar_of(value: object, kind: pa.DataType) -> pa.Scalar:
    """Return a Python value as an Arrow scalar of a type. Arrow refuses a fraction that a DECIMAL has no
    digits for.
    """
    # NULL of the type
    if value is None:
        return pa.nulls(1, kind)[0]
    # before int: a bool is an int in Python
    if isinstance(value, bool) and pa.types.is_boolean(kind):
        return array_of(np.array([value]))[0]
    if (isinstance(value, int) and pa.types.is_integer(kind)) or (
        isinstance(value, float) and pa.types.is_floating(kind)
    ):
        return array_of(np.array([value], kind.to_pandas_dtype()))[0]
    if isinstance(value, str) and pa.types.is_string(kind):
        return texts([value])[0]
    if isinstance(value, timedelta) and kind == pa.duration("us"):
        return array_of(np.array([value // _MICROSECOND])).view(kind)[0]
    if isinstance(value, Decimal) and pa.types.is_decimal128(kind):
        return _decimal(value, kind)
    return pa.scalar(value, kind)


def _decimal(value: Decimal, kind: pa.DataType) -> pa.Scalar:
    sign, digits, exponent = value.as_tuple()
    if (
        not isinstance(exponent, int)
        # more digits behind the point than the type has, or more digits in all: Arrow's converter refuses it
        or exponent + kind.scale < 0
        or len(digits) + exponent + kind.scale > kind.precision
    ):
        return pa.scalar(value, kind)
    # 1.5 as DECIMAL(5, 2) is the integer 150, in 16 bytes
    unscaled = int("".join(map(str, digits))) * 10 ** (exponent + kind.scale)
    word = (-unscaled if sign else unscaled).to_bytes(16, "little", signed=True)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(word)])[0]


def _bits(truth: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(truth, bitorder="little"))
