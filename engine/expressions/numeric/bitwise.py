"""Bit functions of integers, and integers in other bases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import BigInt
from penstock.engine.api import arrow_numpy
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    columnwise,
    nulls_of_any,
    on_first,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import bad_argument, over_capacity
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value, compiled_later, plain
from penstock.engine.kernels.arrow_views import array_of_strings, string_parts, validity

_ALL = (1 << 64) - 1
# Word n is the two hexadecimal digits of byte n.
_HEX = np.frombuffer(b"".join(b"%02X" % code for code in range(256)), np.uint16)


def _shift(compute: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Factory:
    """Return the factory of a bit shift. The shift count is taken modulo the integer's width in bits."""

    def kernel(values: pa.Array, by: pa.Array) -> pa.Array:
        numbers = values_of(values)
        # as in Java: x << 33 of an INT is x << 1
        shifted = compute(numbers, (values_of(by) & (numbers.itemsize * 8 - 1)).astype(numbers.dtype))
        return array_of(shifted, nulls_of_any(values, by), values.type)

    return plain(columnwise(kernel))


def _unsigned(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    unsigned = values.view(f"u{values.itemsize}") >> by.view(f"u{values.itemsize}")
    return unsigned.view(values.dtype)


def _bit_count(values: pa.Array) -> pa.Array:
    # widened to 64 bits with the sign: bit_count(-1) is 64, as in Spark
    words = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
    return array_of(
        np.bitwise_count(values_of(words).astype(np.int64).view(np.uint64)).astype(np.int32),
        nulls_of_any(values),
        pa.int32(),
    )


def _getbit(values: pa.Array, position: pa.Array) -> pa.Array:
    numbers, at, missing = values_of(values), values_of(position), nulls_of_any(values, position)
    outside = (at < 0) | (at >= numbers.itemsize * 8)
    if (outside if missing is None else outside & ~missing).any():
        raise bad_argument(
            f"a bit of an integer of {numbers.itemsize * 8} bits has a number from 0 to "
            f"{numbers.itemsize * 8 - 1}"
        )
    bits = (numbers.astype(np.int64) >> np.where(outside, 0, at).astype(np.int64)) & 1
    return array_of(bits.astype(np.int8), missing, pa.int8())


def _in_base(base: int, shift: int, compute: Callable[[int], str]) -> Factory:
    """Return the factory of whole numbers in a base, which is two to the power of ``shift``; those below zero
    as two's complement of 64 bits.
    """

    def compiled(column: pa.Array) -> pa.Array:
        numbers = values_of(column).astype(np.int64).view(np.uint64)
        return _texts(numbers, np.zeros(len(column), np.uint8), validity(column), base, shift)

    return lambda bound: compiled_later(by_value(compute, pa.string())(bound), on_first(compiled))


def _texts(numbers: np.ndarray, negative: np.ndarray, valid: np.ndarray, base: int, shift: int) -> pa.Array:
    from penstock.engine.kernels.functions import number_texts  # numba is loaded where it is needed

    ends = np.empty(numbers.size + 1, np.int64)
    out = np.empty(numbers.size * (65 if base < 4 else 33), np.uint8)
    used = number_texts.write_numbers(numbers, negative, valid, base, shift, ends, out)
    return array_of_strings(ends, out[:used], valid, pa.string())


def _hex(bound: BoundCall) -> Kernel:
    if isinstance(bound.kinds[0], BigInt):
        # a negative number as two's complement of 64 bits
        return _in_base(16, 4, lambda number: f"{number & _ALL:X}")(bound)
    return columnwise(_hex_of_bytes)


def _hex_of_bytes(column: pa.Array) -> pa.Array:
    """Return two hexadecimal digits per byte, by table lookup."""
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4)
    data_bytes = (
        np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[starts[0] : starts[-1]]
    )
    # int64: twice the offsets may exceed 32 bits
    hex_offsets = (starts - starts[0]) * np.int64(2)
    if int(hex_offsets[-1]) > LIMITS.array_bytes:
        raise over_capacity()
    texts = pa.Array.from_buffers(
        pa.string(),
        len(column),
        [None, pa.py_buffer(hex_offsets.astype(np.int32)), pa.py_buffer(_HEX[data_bytes])],
    )
    return (
        pc.if_else(pc.is_valid(column), texts, pa.scalar(None, pa.string())) if column.null_count else texts
    )


def _unhex(text: str) -> bytes:
    # An odd number of digits has an implicit leading zero.
    digits = text if len(text) % 2 == 0 else "0" + text
    try:
        # fromhex skips blanks, SQL does not.
        return bytes.fromhex(digits) if " " not in digits else _no_hex(text)
    except ValueError:
        return _no_hex(text)


# The value of a digit's character; 255 is no digit.
_NIBBLES = np.full(256, 255, np.uint8)
for _number, _digit in enumerate("0123456789ABCDEF"):
    _NIBBLES[[ord(_digit), ord(_digit.lower())]] = _number


def _unhex_factory(bound: BoundCall) -> Kernel:
    each = by_value(_unhex, pa.binary())(bound)

    def kernel(column: pa.Array) -> pa.Array:
        starts, data = string_parts(column)
        first, last = int(starts[0]), int(starts[-1])
        nibbles = _NIBBLES[data[first:last]]
        # an odd number of digits, or what is none
        if ((starts - starts[0]) & 1).any() or (nibbles == 255).any():
            return each(column)
        halves = (starts - starts[0]) // 2
        octets = (nibbles[::2] << 4) | nibbles[1::2]
        return array_of_strings(halves, octets, validity(column), pa.binary())

    return columnwise(kernel)


def _no_hex(text: str) -> bytes:
    raise bad_argument(f"{text!r} is no hexadecimal text")


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _conv(text: str, source: int, target: int) -> str | None:
    """Convert a number from one base to another (2 to 36). The result is unsigned unless ``target`` is
    negative. Parsing stops at the first invalid digit.
    """
    if not (2 <= source <= 36 and 2 <= abs(target) <= 36):
        return None
    digits = text.strip(" ").upper()
    if not digits:
        return None
    negative = digits.startswith("-")
    number = 0
    for digit in digits.removeprefix("-"):
        value = _DIGITS.find(digit)
        if not 0 <= value < source:
            break
        number = number * source + value
    if number > _ALL:
        raise bad_argument(f"{text!r} in base {source} has more than 64 bits")
    # Two's complement of 64 bits.
    number = -number & _ALL if negative else number
    if target < 0 and (number >> 63 or (negative and not number)):
        return "-" + _written(-number & _ALL, -target)
    return _written(number, abs(target))


def _written(number: int, base: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


def _conv_factory(bound: BoundCall) -> Kernel:
    general = by_value(_conv, pa.string())(bound)
    source, target = bound.constant(1), bound.constant(2)
    if not (isinstance(source, int) and isinstance(target, int)):
        return general
    if not (2 <= source <= 36 and 2 <= abs(target) <= 36):
        return general
    base = abs(target)
    shift = base.bit_length() - 1 if base.bit_count() == 1 else 0

    def compiled(column: pa.Array, *others: Datum) -> Datum:
        from penstock.engine.kernels.functions import number_texts

        offsets, data = string_parts(column)
        numbers = np.empty(len(column), np.uint64)
        negative, absent, left = (np.empty(len(column), np.uint8) for _ in range(3))
        number_texts.read_numbers(offsets, data, source, numbers, negative, absent, left)
        known = arrow_numpy.truths(column.is_valid()) if column.null_count else np.ones(len(column), np.bool_)
        # letters beyond ASCII, or a fault
        if (known & (left != 0)).any():
            return general(column, *others)
        below = negative != 0
        numbers = np.where(below, np.uint64(0) - numbers, numbers)
        signed = ((numbers >> np.uint64(63)) != 0) | (below & (numbers == 0)) if target < 0 else below & False
        valid = (known & (absent == 0)).view(np.uint8)
        return _texts(
            np.where(signed, np.uint64(0) - numbers, numbers), signed.view(np.uint8), valid, base, shift
        )

    return compiled_later(general, lambda text, *others: compiled(*aligned(text), *others))


BITS: dict[str, Factory] = {
    "bitwise_and": plain(pc.bit_wise_and),
    "bitwise_or": plain(pc.bit_wise_or),
    "bitwise_xor": plain(pc.bit_wise_xor),
    "bitwise_not": plain(pc.bit_wise_not),
    "shiftleft": _shift(np.left_shift),
    "shiftright": _shift(np.right_shift),
    "shiftrightunsigned": _shift(_unsigned),
    "bit_count": plain(columnwise(_bit_count)),
    "getbit": plain(columnwise(_getbit)),
    "bin": _in_base(2, 1, lambda number: f"{number & _ALL:b}"),
    "hex": _hex,
    "unhex": _unhex_factory,
    "conv": _conv_factory,
}
