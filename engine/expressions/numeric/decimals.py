"""DECIMAL arithmetic as Spark does it: exact, rounded half up to the result's scale; overflow raises.

Arrow derives the result type from the declared precisions, which the actual values rarely use. Where Arrow
would exceed its maximal precision, the operands are relabelled. That reads the same 256-bit integers under
another precision and scale.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import Decimal
from penstock.engine.api.arrow_numpy import texts
from penstock.engine.expressions.datum import Datum, Kernel, aligned, nulls_of, nulls_of_any
from penstock.engine.expressions.evaluation_errors import bad_argument, division_by_zero, out_of_range
from penstock.engine.kernels.arrow_views import words

# The most digits of a 256-bit decimal; of each factor of a product that Arrow accepts; of 64 bits, safely.
_WIDE = 76
_HALF = 37
_EXACT = {"add": pc.add_checked, "subtract": pc.subtract_checked, "multiply": pc.multiply_checked}
_SMALL = 18
_TRUNCATION_DIGITS = 4
"""Arrow gives a quotient of DECIMAL(p, 0) by DECIMAL(1, 0) four digits after the point."""


def _relabelled(array: pa.Array, precision: int, scale: int) -> pa.Array:
    """Read the unscaled 256-bit integers of a column under another type, without copying."""
    kind = pa.decimal256(precision, scale)
    return pa.Array.from_buffers(kind, len(array), array.buffers(), array.null_count, array.offset)


def widened(array: pa.Array) -> pa.Array:
    """Return decimals with the maximal precision and their own scale."""
    return array.cast(pa.decimal256(_WIDE, array.type.scale))


def rescaled(array: pa.Array, result: Decimal) -> pa.Array:
    """Return decimals in another decimal type, rounded half away from zero. Values that do not fit become
    NULL.
    """
    if _always_fits(array.type, result):
        return array.cast(pa.decimal128(result.precision, result.scale))
    wide = widened(array)
    if array.type.scale > result.scale:
        wide = pc.round(wide, result.scale, "half_towards_infinity").cast(pa.decimal256(_WIDE, result.scale))
    fits = _fits(wide, result)
    if not pc.all(fits, min_count=0).as_py():
        # NULL first: the cast would raise for the whole column
        wide = pc.if_else(fits, wide, pa.scalar(None, wide.type))
    return wide.cast(pa.decimal128(result.precision, result.scale))


def _always_fits(kind: pa.DataType, result: Decimal) -> bool:
    """Whether each value of a decimal type is one of the result type, so that no digit is lost or checked."""
    return (
        pa.types.is_decimal128(kind)
        and kind.scale <= result.scale
        and kind.precision - kind.scale <= result.precision - result.scale
    )


def integers_as(array: pa.Array, result: Decimal) -> pa.Array:
    """Return integers as decimals. Values that do not fit become NULL."""
    factor = 10**result.scale
    values, missing = words(array), nulls_of(array)
    # a BIGINT has 19 digits at most: without a scale it is its own unscaled number
    if result.scale or result.precision <= _SMALL:
        # so many are multiplied within 64 bits, and fit; rows with others take the way of wide decimals
        most = 10 ** min(result.precision, _SMALL) // factor
        if not (values < most).all() or not (values > -most).all():
            # 20 digits hold every integer of 64 bits
            return rescaled(array.cast(pa.decimal128(20, 0)), result)
        values = values * factor
    return _decimals_of(values, missing, result)


def _fits(wide: pa.Array, result: Decimal) -> pa.Array:
    """Return whether values have no more digits than the result holds. Their scale must not exceed the
    result's.
    """
    # the first unscaled number with a digit too many
    number = 10 ** (result.precision - result.scale + wide.type.scale)
    # not of Python's number: that imports pandas, a quarter of a second
    limit = texts([str(number)]).cast(pa.decimal256(_WIDE, 0))[0]
    return pc.less(pc.abs(_relabelled(wide, _WIDE, 0)), limit)


def checked(array: pa.Array, result: Decimal) -> pa.Array:
    """Return decimals in another decimal type, rounded. Raise Fault RUN-2002 for a value that does not
    fit.
    """
    fitted = rescaled(array, result)
    if fitted.null_count > array.null_count:
        raise out_of_range(result)
    return fitted


def exact_kernel(operator: str, left: Decimal, right: Decimal, result: Decimal) -> Kernel:
    """Return the kernel of ``add``, ``subtract`` or ``multiply``."""
    compute = _EXACT[operator]
    product = operator == "multiply"
    scale = left.scale + right.scale if product else max(left.scale, right.scale)
    width = (
        left.precision + right.precision
        if product
        else max(left.precision - left.scale, right.precision - right.scale) + scale
    )
    # Arrow's own result type is the wanted one: no relabelling.
    if (width + 1, scale) == (result.precision, result.scale):
        return compute

    def kernel(a: Datum, b: Datum) -> pa.Array:
        a, b = (widened(side) for side in aligned(a, b))
        if product:
            # Arrow's product of two DECIMAL(37, s) has 75 digits, within its limit.
            a, b = _relabelled(a, _HALF, left.scale), _relabelled(b, _HALF, right.scale)
        else:
            a, b = (_relabelled(_raised(side, scale - side.type.scale), _WIDE - 1, scale) for side in (a, b))
        return checked(compute(a, b), result)

    return kernel


def _raised(wide: pa.Array, digits: int) -> pa.Array:
    """Return decimals with ``digits`` more digits after the point."""
    return wide.cast(pa.decimal256(_WIDE, wide.type.scale + digits)) if digits else wide


def _without_zeros(divisor: pa.Array, dividend: pa.Array) -> pa.Array:
    """Raise Fault RUN-2001 for a zero divisor whose dividend is not NULL. Return the divisor with NULL for
    zero.
    """
    zero = pc.equal(divisor, pa.scalar(0, divisor.type))
    if not pc.any(zero, min_count=0).as_py():
        return divisor
    if pc.any(pc.and_(zero, pc.is_valid(dividend)), min_count=0).as_py():
        raise division_by_zero()
    return pc.if_else(zero, pa.scalar(None, divisor.type), divisor)


def divide_kernel(left: Decimal, right: Decimal, result: Decimal) -> Kernel:
    """Return the kernel of ``/``: cut at least one digit after the result's scale, then rounded half up."""
    shift = left.scale - right.scale
    digits = max(_TRUNCATION_DIGITS, result.scale + 1 - shift, -shift)
    if left.precision + digits > _WIDE:
        raise bad_argument(
            f"{left} / {right} has too many digits", "CAST an operand to a narrower DECIMAL or to DOUBLE"
        )

    power = result.scale - shift
    # All three numbers fit 64 bits: numpy divides integers instead of Arrow 256-bit decimals.
    small = (
        power >= 0 and max(left.precision + power, right.precision) < _SMALL and result.precision <= _SMALL
    )

    def kernel(a: Datum, b: Datum) -> pa.Array:
        if small:
            first, second = aligned(a, b)
            return _small_quotient(first, second, 10**power, result)
        a, b = (widened(side) for side in aligned(a, b))
        # Labelled DECIMAL(p, 0) / DECIMAL(1, 0), the quotient has a known scale whatever the operands were.
        divisor = _relabelled(_without_zeros(b, a), 1, 0)
        dividend = _relabelled(_raised(a, digits - _TRUNCATION_DIGITS), _WIDE - _TRUNCATION_DIGITS - 1, 0)
        return checked(_relabelled(pc.divide(dividend, divisor), _WIDE, shift + digits), result)

    return kernel


def _small_quotient(a: pa.Array, b: pa.Array, factor: int, result: Decimal) -> pa.Array:
    """Divide decimals whose digits all fit 64 bits. The quotient is the same, rounded half up, but much
    faster.
    """
    missing = nulls_of_any(a, b)
    dividend, divisor = _words(a) * factor, _words(b)
    zero = divisor == 0
    if zero.any():
        if (zero if missing is None else zero & ~missing).any():
            raise division_by_zero()
        divisor = np.where(zero, 1, divisor)
    size = np.abs(divisor)
    # Half up: add half the divisor before the integer division.
    quotient = (np.abs(dividend) + size // 2) // size
    return _from_words(np.where((dividend < 0) ^ (divisor < 0), -quotient, quotient), missing, result)


def _words(array: pa.Array) -> np.ndarray:
    """Return the low 64 bits of 128-bit decimals. For at most 18 digits that is the whole value."""
    return np.frombuffer(array.buffers()[1], "<i8", count=2 * len(array), offset=16 * array.offset)[::2]


def _from_words(values: np.ndarray, missing: np.ndarray | None, kind: Decimal) -> pa.Array:
    """Return 64-bit unscaled values as decimals. Raise Fault RUN-2002 for more digits than the type holds."""
    outside = np.abs(values) >= 10**kind.precision
    if (outside if missing is None else outside & ~missing).any():
        raise out_of_range(kind)
    return _decimals_of(values, missing, kind)


def _decimals_of(values: np.ndarray, missing: np.ndarray | None, kind: Decimal) -> pa.Array:
    """Return 64-bit unscaled values, all of which fit, as decimals."""
    pairs = np.empty((len(values), 2), "<i8")
    pairs[:, 0] = values
    # The high word is the sign extension of the low one.
    pairs[:, 1] = values >> 63
    arrow = pa.decimal128(kind.precision, kind.scale)
    valid = None if missing is None else pa.array(~missing).buffers()[1]
    return pa.Array.from_buffers(arrow, len(values), [valid, pa.py_buffer(pairs)])


def _integers(a: Datum, b: Datum) -> tuple[pa.Array, pa.Array, int]:
    """Return both operands as unscaled integers of one scale, the divisor without zeros, and the scale."""
    left, right = (widened(side) for side in aligned(a, b))
    scale = max(left.type.scale, right.type.scale)
    left, right = (_relabelled(_raised(side, scale - side.type.scale), _WIDE, 0) for side in (left, right))
    return left, _without_zeros(right, left), scale


def _whole_quotient(a: pa.Array, b: pa.Array) -> pa.Array:
    raw = pc.divide(_relabelled(a, _WIDE - _TRUNCATION_DIGITS - 1, 0), _relabelled(b, 1, 0))
    return pc.round(_relabelled(raw, _WIDE, raw.type.scale), 0, "towards_zero").cast(pa.decimal256(_WIDE, 0))


def _remainder(a: pa.Array, b: pa.Array) -> pa.Array:
    """Return the remainder of whole numbers, with the sign of the dividend."""
    product = pc.multiply(_relabelled(_whole_quotient(a, b), _HALF, 0), _relabelled(b, _HALF, 0))
    return _relabelled(
        pc.subtract(_relabelled(a, _WIDE - 1, 0), _relabelled(product, _WIDE - 1, 0)), _WIDE, 0
    )


def integral_divide_kernel() -> Kernel:
    """Return the kernel of ``DIV`` on decimals: BIGINT."""

    def kernel(a: Datum, b: Datum) -> pa.Array:
        left, right, _ = _integers(a, b)
        quotient = _whole_quotient(left, right)
        limits = (pa.scalar(-(2**63), quotient.type), pa.scalar(2**63 - 1, quotient.type))
        if not pc.all(
            pc.and_(pc.greater_equal(quotient, limits[0]), pc.less_equal(quotient, limits[1])), min_count=0
        ).as_py():
            raise out_of_range("BIGINT")
        return quotient.cast(pa.int64())

    return kernel


def remainder_kernel(result: Decimal, positive: bool) -> Kernel:
    """Return the kernel of ``%`` (sign of the dividend) or, when ``positive``, of ``pmod``."""

    def kernel(a: Datum, b: Datum) -> pa.Array:
        left, right, scale = _integers(a, b)
        remainder = _remainder(left, right)
        if positive:
            # PMOD adds the divisor to a negative remainder, then takes the remainder again.
            lifted = pc.add(_relabelled(remainder, _WIDE - 1, 0), _relabelled(right, _WIDE - 1, 0))
            remainder = pc.if_else(
                pc.less(remainder, pa.scalar(0, remainder.type)), _remainder(lifted, right), remainder
            )
        return checked(_relabelled(remainder, _WIDE, scale), result)

    return kernel


def in_millionths(array: pa.Array) -> pa.Array:
    """Return decimals times a million, cut towards zero."""
    cut = pc.round(widened(array), 6, "towards_zero").cast(pa.decimal256(_WIDE, 6))
    return _relabelled(cut, _WIDE, 0)


def microseconds_of(array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """Return DECIMAL(8, 6) seconds as int64 microseconds and the mask of NULLs."""
    return _words(array), nulls_of(array)
