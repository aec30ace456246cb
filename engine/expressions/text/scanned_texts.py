"""Functions of texts and numbers that a compiled loop computes, and what it leaves to a general one."""

from __future__ import annotations

import binascii
import math
import re
import string
from base64 import b64decode
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import Decimal as DecimalType
from penstock.catalog.types import Double, Float, is_integer
from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions.datum import Datum, Kernel, aligned, nulls_of, values_of
from penstock.engine.expressions.evaluation_errors import bad_argument, over_capacity
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value
from penstock.engine.kernels import arrow_views

_TEXT = pa.string()
_WIDEST = 10_000
"""Digits of a number in a text: a larger number of them is a slip, and would take much memory."""
_MOST_PLACES = 15
_GREATEST = float(1 << 51)
"""Doubles below it have a half between whole numbers that is exact."""
_NEAR_HALF = 1e-4
_SEXTETS = f"{string.ascii_uppercase}{string.ascii_lowercase}{string.digits}+/".encode()
_CRC_POLYNOMIAL = 0xEDB88320


def like_kernel(pattern: str, without_case: bool) -> Kernel | None:
    """Return the kernel of LIKE with several parts between ``%``; ``None`` for a pattern with other signs, or
    that Arrow compares without a regular expression. ``pattern`` has the backslash as its escape.
    """
    words = pattern.split("%")
    parts = [word for word in words if word]
    if len(parts) < 2 or "\\" in pattern or "_" in pattern or (without_case and not pattern.isascii()):
        return None
    octets = [(part.lower() if without_case else part).encode() for part in parts]
    bounds = np.concatenate(([0], np.cumsum([len(part) for part in octets])))
    joined = np.frombuffer(b"".join(octets), np.uint8)
    from_start, to_end = bool(words[0]), bool(words[-1])

    def kernel(text: Datum, *_: Datum) -> pa.Array | pa.Scalar:
        if isinstance(text, pa.Scalar):
            return pc.match_like(text, pattern, ignore_case=without_case)
        offsets, data = arrow_views.string_parts(text)
        # letters beyond ASCII may be the same in another case
        if without_case and (data[offsets[0] : offsets[-1]] >= 0x80).any():
            return pc.match_like(text, pattern, ignore_case=True)
        from penstock.engine.kernels.functions import text_scans

        matches = np.empty(len(text), np.uint8)
        text_scans.like(offsets, data, joined, bounds, from_start, to_end, without_case, matches)
        return array_of(matches != 0, nulls_of(text))

    return kernel


def reversed_texts(text: Datum) -> Datum:
    """Return texts backwards, character by character."""
    if isinstance(text, pa.Array):
        offsets, data = arrow_views.string_parts(text)
        if not (data[offsets[0] : offsets[-1]] >= 0x80).any():
            return pc.ascii_reverse(text)
    return pc.utf8_reverse(text)


def crc32(values: Datum) -> pa.Array:
    """Return the CRC-32 of texts or bytes."""
    from penstock.engine.kernels.functions import text_scans

    (column,) = aligned(values)
    sums = np.empty(len(column), np.int64)
    text_scans.crc32(*arrow_views.string_parts(column), _crc_table(), sums)
    return array_of(sums, nulls_of(column))


def _crc_table() -> np.ndarray:
    table = np.arange(256, dtype=np.int64)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ _CRC_POLYNOMIAL, table >> 1)
    return table


def base64(column: pa.Array) -> pa.Array:
    """Return bytes, or texts in UTF-8, in base 64."""
    from penstock.engine.kernels.functions import text_scans

    offsets, data = arrow_views.string_parts(column)
    size = int(((np.diff(offsets).astype(np.int64) + 2) // 3).sum()) * 4
    if size > LIMITS.array_bytes:
        raise over_capacity()
    ends, out = np.empty(len(column) + 1, np.int64), np.empty(size, np.uint8)
    text_scans.base64(offsets, data, np.frombuffer(_SEXTETS, np.uint8), ends, out)
    return arrow_views.array_of_strings(ends, out, arrow_views.validity(column), _TEXT)


def unbase64(texts: Datum) -> pa.Array:
    """Return the bytes of texts in base 64. Raise Fault RUN-2004 for a text that is none."""
    from penstock.engine.kernels.functions import text_scans

    (column,) = aligned(texts)
    offsets, data = arrow_views.string_parts(column)
    ends, left = np.empty(len(column) + 1, np.int64), np.empty(len(column), np.uint8)
    out = np.empty((int(offsets[-1]) - int(offsets[0])) * 3 // 4 + 4, np.uint8)
    used = text_scans.unbase64(offsets, data, ends, out, left)
    valid = arrow_views.validity(column)
    made = arrow_views.array_of_strings(ends, out[:used], valid, pa.binary())
    others = (left != 0) & truths(pc.is_valid(column))
    if not others.any():
        return made
    mask = array_of(others)
    rest = [_unbase64(text) for text in column.filter(mask).to_pylist()]
    return pc.replace_with_mask(made, mask, pa.array(rest, pa.binary()))


def _unbase64(text: str) -> bytes:
    digits = re.sub(r"\s", "", text)
    try:
        # blanks are ignored and the padding may be missing
        return b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise bad_argument(f"{text!r} is not in base 64") from None


def format_number(bound: BoundCall) -> Kernel:
    """Return the kernel of ``format_number(x, d)``: halves are rounded to the even digit."""
    general, digits, kind = by_value(_format_number, _TEXT)(bound), bound.constant(1), bound.kinds[0]
    if not isinstance(digits, int) or not 0 <= digits <= _MOST_PLACES:
        return general
    if isinstance(kind, DecimalType) and kind.precision > 18:
        return general

    def kernel(number: Datum, places: Datum) -> pa.Array:
        (column,) = aligned(number)
        if is_integer(kind):
            numbers, known, scale = _whole(values_of(column).astype(np.int64))
        elif isinstance(kind, Float | Double):
            numbers, known, scale = *_scaled(column, digits), digits
        elif isinstance(kind, DecimalType):
            numbers, known, scale = _rounded(arrow_views.words(column), kind.scale, digits)
        else:
            return general(column, places)
        below = np.signbit(values_of(column)) if isinstance(kind, Float | Double) else numbers < 0
        made = _grouped(np.abs(numbers), below, column, scale, digits - scale)
        others = ~known & truths(pc.is_valid(column))
        if not others.any():
            return made
        mask = array_of(others)
        return pc.replace_with_mask(made, mask, general(column.filter(mask), pa.scalar(digits, pa.int32())))

    return kernel


def _whole(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    # the least BIGINT has no number above zero
    known = numbers != np.iinfo(np.int64).min
    return np.where(known, numbers, 0), known, 0


def _scaled(column: pa.Array, digits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return doubles times a power of ten as whole numbers, and which of them are surely rounded as their
    digits are: those that are far from a half.
    """
    with np.errstate(all="ignore"):
        values = np.abs(values_of(column).astype(np.float64)) * 10.0**digits
        floor = np.floor(values)
        known = (values < _GREATEST) & (np.abs(values - floor - 0.5) > _NEAR_HALF)
        # a FLOAT is printed with fewer digits than its double
        if column.type == pa.float32():
            known &= values < float(1 << 20)
        return np.where(known, np.floor(values + 0.5), 0).astype(np.int64), known


def _rounded(words: np.ndarray, scale: int, digits: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return decimals with at most ``digits`` behind the point, and how many there are."""
    known = np.ones(len(words), np.bool_)
    if scale <= digits:
        return words, known, scale
    power = 10 ** (scale - digits)
    whole, rest = np.divmod(np.abs(words), power)
    up = (2 * rest > power) | ((2 * rest == power) & (whole % 2 == 1))
    # a number below zero that becomes zero has its sign all the same: the general kernel writes it
    rounded = whole + up
    known = (rounded != 0) | (words >= 0)
    return np.where(words < 0, -rounded, rounded), known, digits


def _grouped(numbers: np.ndarray, below: np.ndarray, column: pa.Array, scale: int, zeros: int) -> pa.Array:
    from penstock.engine.kernels.functions import text_scans

    valid = arrow_views.validity(column)
    offsets = np.empty(len(column) + 1, np.int64)
    out = np.empty(len(column) * (28 + scale + zeros), np.uint8)
    marks = np.ascontiguousarray(below).view(np.uint8)
    used = text_scans.group_digits(numbers, marks, valid, scale, zeros, offsets, out)
    return arrow_views.array_of_strings(offsets, out[:used], valid, _TEXT)


def _format_number(number: int | float | Decimal, digits: int) -> str | None:
    if digits < 0:
        return None
    if digits > _WIDEST:
        raise bad_argument(f"format_number: {digits:,} digits are more than {_WIDEST:,}")
    if isinstance(number, float) and math.isnan(number):
        return "NaN"
    if isinstance(number, float) and number in (float("inf"), float("-inf")):
        return "∞" if number > 0 else "-∞"
    # the digits a DOUBLE prints with, not its binary value
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    return (
        f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN):,f}"
        if exact.adjusted() + digits < 27
        else f"{exact:,.{digits}f}"
    )


SCANNED: dict[str, Factory] = {
    "format_number": format_number,
    "crc32": lambda _bound: crc32,
    "unbase64": lambda _bound: unbase64,
}
