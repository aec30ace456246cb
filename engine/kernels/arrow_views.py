"""Arrow arrays as numpy arrays for kernels: int64 words, validity bytes, string offsets and bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.api.row_pieces import LIMITS, TooLarge

NO_BYTES = np.zeros(0, np.uint8)
NO_WORDS = np.zeros(0, np.int64)
CANONICAL_NAN_BITS = 0x7FF8000000000000

# Types that are widened to a word.
_NARROW = {
    kind.id: np.dtype(width)
    for kind, width in (
        (pa.int8(), np.int8),
        (pa.int16(), np.int16),
        (pa.int32(), np.int32),
        (pa.uint8(), np.uint8),
        (pa.uint16(), np.uint16),
        (pa.uint32(), np.uint32),
        (pa.uint64(), np.uint64),
        (pa.date32(), np.int32),
        (pa.time32("ms"), np.int32),
    )
}
# Types whose values are words already: no copy.
_WIDE = {kind.id for kind in (pa.int64(), pa.timestamp("us"), pa.duration("us"), pa.time64("us"))}
_BYTES = {pa.string().id, pa.binary().id}
"""Ids of types: testing a type with one predicate after another takes longer than a kernel over a small
batch.
"""
_WORD = np.dtype(np.int64)


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether values of a type are byte strings (STRING, BINARY)."""
    return kind.id in _BYTES


def is_word(kind: pa.DataType) -> bool:
    """Return whether values of a type are stored as int64 words, which are in the order of the values."""
    return kind.id in _WIDE


def is_wide(kind: pa.DataType) -> bool:
    """Return whether a value needs two words: a decimal of more than 18 digits."""
    return pa.types.is_decimal128(kind) and kind.precision > 18


def refuse_nested(kind: pa.DataType) -> None:
    """Raise SQL-1290 when values of a type cannot be keys."""
    if (
        is_bytes(kind)
        or pa.types.is_primitive(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_null(kind)
    ):
        return
    message = f"values of type {kind} cannot be grouped, partitioned or compared"
    raise PenstockError("SQL-1290", message, hint="use one of its fields or elements instead", kind=Kind.USER)


def validity(array: pa.Array) -> np.ndarray:
    """Return one byte per value, 1 when it is not NULL. The result is empty when no value is NULL."""
    if array.null_count == 0:
        return NO_BYTES
    return truths(array.is_valid()).view(np.uint8)


def _buffer(array: pa.Array, dtype: np.dtype, per_value: int = 1) -> np.ndarray:
    # ``per_value``: a decimal is two words.
    data, count = array.buffers()[1], len(array) * per_value
    if data is None or not count:
        return np.zeros(count, dtype)
    return np.frombuffer(data, dtype, count, array.offset * per_value * dtype.itemsize)


def words(array: pa.Array) -> np.ndarray:
    """Return the values as int64 words. Words are equal exactly when the values are (-0.0 is 0.0, every NaN
    the same); undefined for NULL.

    Decimals return their low word, which is the value up to 18 digits; see ``wide_words``.
    """
    kind = array.type
    if kind.id in _WIDE:
        return _buffer(array, _WORD)
    narrow = _NARROW.get(kind.id)
    if narrow is not None:
        return _buffer(array, narrow).astype(np.int64)
    if pa.types.is_floating(kind):
        return float_words(floats(array))
    if pa.types.is_boolean(kind):
        # Bits become bytes: Arrow packs booleans, eight to a byte.
        return array.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_decimal128(kind):
        # Little-endian: the low word comes first.
        return np.ascontiguousarray(_buffer(array, _WORD, 2)[::2])
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.int64)
    refuse_nested(kind)
    return _buffer(array, _WORD)


def wide_words(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the low and the high int64 word of decimal128 values."""
    pairs = _buffer(array, _WORD, 2)
    return np.ascontiguousarray(pairs[::2]), np.ascontiguousarray(pairs[1::2])


def floats(array: pa.Array) -> np.ndarray:
    """Return floating-point values as float64; undefined for NULL."""
    return _buffer(array, np.dtype(np.float32 if array.type == pa.float32() else np.float64)).astype(
        np.float64, copy=False
    )


def float_words(values: np.ndarray) -> np.ndarray:
    """Return the canonical bits of float64 values as int64 words."""
    # -0.0 + 0.0 is 0.0
    bits = (values + 0.0).view(np.int64)
    nan = np.isnan(values)
    if nan.any():
        bits[nan] = CANONICAL_NAN_BITS
    return bits


def string_parts(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets (int32, one more than values) and the bytes of a string or binary array."""
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(len(array) + 1, np.int32), NO_BYTES
    starts = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    # Offsets are absolute in the data, so a sliced array needs no copy.
    return starts, NO_BYTES if data is None else np.frombuffer(data, np.uint8)


def array_of_words(values: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return the Arrow array of a type from its ``words``. ``valid`` bytes mark the values that are not NULL;
    empty means all.
    """
    if kind.id in _WIDE:
        return _from_buffer(values, valid, kind)
    if pa.types.is_decimal128(kind):
        # The sign fills the high word.
        return array_of_wide_words(values, values >> 63, valid, kind)
    if pa.types.is_null(kind):
        return pa.nulls(values.size)
    if pa.types.is_boolean(kind):
        return array_of(values != 0, None if valid.size == 0 else valid == 0)
    if pa.types.is_floating(kind):
        numbers = np.ascontiguousarray(values).view(np.float64)
        return _from_buffer(numbers.astype(np.float32) if kind == pa.float32() else numbers, valid, kind)
    narrow = _NARROW.get(kind.id)
    return _from_buffer(values if narrow is None else values.astype(narrow, copy=False), valid, kind)


def array_of_wide_words(low: np.ndarray, high: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return the decimal128 array with these low and high words."""
    pairs = np.empty((low.size, 2), np.int64)
    pairs[:, 0] = low
    pairs[:, 1] = high
    return _from_buffer(pairs, valid, kind)


def array_of_strings(offsets: np.ndarray, data: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return the string or binary array with these offsets (int64) and bytes. Raise ``TooLarge`` when 32-bit
    offsets do not suffice.
    """
    if data.size > LIMITS.array_bytes:
        raise TooLarge(data.size)
    return pa.Array.from_buffers(
        kind, offsets.size - 1, [bitmap(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    )


def _from_buffer(values: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(
        kind, len(values), [bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))]
    )


def bitmap(valid: np.ndarray) -> pa.Buffer | None:
    """Return validity bytes as Arrow's bits; no bytes mean no bitmap."""
    return None if valid.size == 0 else pa.py_buffer(np.packbits(valid, bitorder="little"))


_SIGN = np.int64(-(2**63))


def order_words(array: pa.Array) -> np.ndarray:
    """Return int64[n, width] rows of words that sort as the values do (NaN largest). Equal values have equal
    rows.
    """
    if is_wide(array.type):
        low, high = wide_words(array)
        # The low word is unsigned: flipping its top bit makes signed comparison right.
        # (n, 2): the high word decides.
        return np.stack([high, low ^ _SIGN], axis=1)
    ordered = words(array)
    if pa.types.is_floating(array.type):
        ordered = _float_order(ordered)
    # (n, 1).
    return ordered.reshape(-1, 1)


def array_of_order_words(rows: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return the array of a type whose ``order_words`` are these."""
    if is_wide(kind):
        return array_of_wide_words(rows[:, 1] ^ _SIGN, rows[:, 0], valid, kind)
    ordered = np.ascontiguousarray(rows[:, 0])
    return array_of_words(_float_order(ordered) if pa.types.is_floating(kind) else ordered, valid, kind)


def _float_order(bits: np.ndarray) -> np.ndarray:
    """Turn the bits of floats into integers of the same order, and back."""
    # Among negative floats the greater number has the smaller bits: they are inverted, the sign aside.
    return np.where(bits < 0, bits ^ ~_SIGN, bits)
