"""Mathematical functions: roots, logarithms, rounding, trigonometry, hyperbolic functions, buckets,
factorials.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import Decimal, is_integer
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    columnwise,
    nulls_of,
    nulls_of_any,
    on_first,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import out_of_range
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, plain
from penstock.engine.expressions.numeric import decimals

_INT64_LIMIT = float(2**63)


def _numpy(function: np.ufunc) -> Factory:
    def compute(*columns: pa.Array) -> pa.Array:
        with np.errstate(all="ignore"):
            return array_of(
                function(*[values_of(column) for column in columns]), nulls_of_any(*columns), pa.float64()
            )

    return plain(columnwise(compute))


def _logarithm(function: np.ufunc) -> Kernel:
    """Return a logarithm's kernel: NULL at and below zero, as in Spark. NaN stays NaN."""

    def compute(column: pa.Array) -> pa.Array:
        values = values_of(column)
        missing = nulls_of(column)
        with np.errstate(all="ignore"):
            outside = values <= 0
            return array_of(function(values), outside if missing is None else outside | missing, pa.float64())

    return columnwise(compute)


def _log(bound: BoundCall) -> Kernel:
    natural = _logarithm(np.log)
    if len(bound.kinds) == 1:
        return natural

    def with_base(base: Datum, x: Datum) -> pa.Array:
        base, x = aligned(base, x)
        # log(base, x): the change of base
        return pc.divide(natural(x), natural(base))

    return with_base


def _whole(name: str) -> Factory:
    """Return the factory of ``ceil`` or ``floor``."""
    towards = "up" if name == "ceil" else "down"

    def factory(bound: BoundCall) -> Kernel:
        kind, result = bound.kinds[0], bound.call.type
        # CEIL and FLOOR of an integer are the integer.
        if is_integer(kind):
            return lambda a: a
        if isinstance(result, Decimal):
            return columnwise(lambda a: _decimal_round(a, 0, towards, result))
        return columnwise(lambda a: whole_numbers(pc.ceil(a) if name == "ceil" else pc.floor(a), pa.int64()))

    return factory


def whole_numbers(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return floats without fraction as BIGINT. Raise Fault RUN-2002 for NaN and values too large."""
    values = values_of(column)
    missing = nulls_of(column)
    with np.errstate(all="ignore"):
        inside = (values >= -_INT64_LIMIT) & (values < _INT64_LIMIT)
        if not (inside if missing is None else inside | missing).all():
            raise out_of_range("BIGINT")
        return array_of(np.where(inside, values, 0).astype(np.int64), missing, kind)


def _decimal_round(column: pa.Array, digits: int, mode: str, result: Decimal) -> pa.Array:
    wide = pc.round(decimals.widened(column), digits, mode)
    return decimals.checked(wide, result)


def _round(half: str) -> Factory:
    def factory(bound: BoundCall) -> Kernel:
        kind = bound.kinds[0]
        digits = bound.constant(1) if len(bound.kinds) > 1 else 0
        assert isinstance(digits, int)
        if isinstance(bound.call.type, Decimal):
            result = bound.call.type
            return on_first(lambda a: _decimal_round(a, digits, half, result))
        if is_integer(kind):
            # ROUND(1234, -2): only digits before the point change an integer.
            return on_first(lambda a: a if digits >= 0 else _round_integers(a, digits, half))
        return on_first(lambda a: _round_floats(a, digits, half))

    return factory


def _round_integers(column: pa.Array, digits: int, half: str) -> pa.Array:
    # Through DECIMAL, since a rounded BIGINT may need one digit more before the check.
    wide = pc.round(column.cast(pa.decimal128(20, 0)), digits, half).cast(pa.decimal128(38, 0))
    return wide.cast(column.type)


def _round_floats(column: pa.Array, digits: int, half: str) -> pa.Array:
    """Round floats by their printed digits. Near a tie, binary arithmetic cannot decide, so those few values
    are rounded as DECIMAL.
    """
    rounded = pc.round(column, digits, half)
    values = values_of(column)
    with np.errstate(all="ignore"):
        scaled = np.abs(values.astype(np.float64)) * 10.0**digits
        # within the error of the type, 24 bits or 53
        near = np.abs(scaled - np.floor(scaled) - 0.5) <= np.maximum(scaled, 1.0) * (
            1e-6 if column.type == pa.float32() else 1e-14
        )
        # From 1e15 on a DOUBLE has hardly a digit after the point to round.
        near &= scaled < 1e15
    missing = nulls_of(column)
    near = near if missing is None else near & ~missing
    if not near.any() or digits > 18:
        return rounded
    # The text has the digits that a reader sees: 2.675 rounds to 2.68, though its binary value is below.
    ties = column.filter(pa.array(near)).cast(pa.string()).cast(pa.decimal256(76, 38))
    # back to the column's type from the rounded digits as text: Arrow's cast of a decimal misses the nearest
    # DOUBLE, as in 2.6799999999999997 for 2.68
    exact = pc.round(ties, digits, half).cast(pa.string()).cast(column.type)
    return pc.replace_with_mask(rounded, pa.array(near), exact)


MATHEMATICS: dict[str, Factory] = {
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _round("half_towards_infinity"),
    "bround": _round("half_to_even"),
    "sign": plain(lambda a: pc.cast(pc.sign(a), pa.float64())),
    "sqrt": plain(pc.sqrt),
    "cbrt": _numpy(np.cbrt),
    "pow": plain(pc.power),
    "exp": plain(pc.exp),
    "ln": plain(_logarithm(np.log)),
    "log": _log,
    "log10": plain(_logarithm(np.log10)),
    "log2": plain(_logarithm(np.log2)),
    "sin": _numpy(np.sin),
    "cos": _numpy(np.cos),
    "tan": _numpy(np.tan),
    "asin": _numpy(np.arcsin),
    "acos": _numpy(np.arccos),
    "atan": _numpy(np.arctan),
    "atan2": _numpy(np.arctan2),
    "degrees": _numpy(np.degrees),
    "radians": _numpy(np.radians),
    "pi": plain(lambda: pa.scalar(math.pi)),
    "is_nan": plain(lambda a: pc.fill_null(pc.is_nan(a), False)),
}


# 20! is the last factorial that fits BIGINT.
_FACTORIALS = np.array([math.factorial(n) for n in range(21)])


def _of_numbers(compute: object) -> Factory:
    """Return the factory of a numpy function of DOUBLEs."""

    def kernel(*columns: pa.Array) -> pa.Array:
        with np.errstate(all="ignore"):
            return array_of(compute(*map(values_of, columns)), nulls_of_any(*columns), pa.float64())  # type: ignore[operator]  # a function

    return plain(columnwise(kernel))


def _log1p(x: pa.Array) -> pa.Array:
    values, missing = values_of(x), nulls_of_any(x)
    with np.errstate(all="ignore"):
        outside = values <= -1
        return array_of(np.log1p(values), outside if missing is None else outside | missing, pa.float64())


def _factorial(n: pa.Array) -> pa.Array:
    values, missing = values_of(n), nulls_of_any(n)
    # 21! does not fit BIGINT: NULL, as in Spark
    outside = (values < 0) | (values > 20)
    return array_of(
        _FACTORIALS[np.where(outside, 0, values)],
        outside if missing is None else outside | missing,
        pa.int64(),
    )


def _width_bucket(x: pa.Array, low: pa.Array, high: pa.Array, count: pa.Array) -> pa.Array:
    value, first, last, parts = (values_of(column) for column in (x, low, high, count))
    with np.errstate(all="ignore"):
        undefined = (
            (parts <= 0) | (first == last) | np.isnan(value) | ~np.isfinite(first) | ~np.isfinite(last)
        )
        inside = np.floor(parts * (value - first) / (last - first)) + 1
    up = first < last
    # Bounds may descend: width_bucket(x, 10, 0, 5). Outside are bucket 0 and bucket count + 1.
    before, behind = np.where(up, value < first, value > first), np.where(up, value >= last, value <= last)
    bucket = np.where(
        before, 0, np.where(behind, parts + 1, np.where(np.isfinite(inside), inside, 0))
    ).astype(np.int64)
    missing = nulls_of_any(x, low, high, count)
    return array_of(bucket, undefined if missing is None else undefined | missing, pa.int64())


def _kernel(kernel: Kernel) -> Factory:
    return plain(columnwise(kernel))


NUMBERS: dict[str, Factory] = {
    "sinh": _of_numbers(np.sinh),
    "cosh": _of_numbers(np.cosh),
    "tanh": _of_numbers(np.tanh),
    "asinh": _of_numbers(np.arcsinh),
    "acosh": _of_numbers(np.arccosh),
    "atanh": _of_numbers(np.arctanh),
    "cot": _of_numbers(lambda x: 1.0 / np.tan(x)),
    "sec": _of_numbers(lambda x: 1.0 / np.cos(x)),
    "csc": _of_numbers(lambda x: 1.0 / np.sin(x)),
    "expm1": _of_numbers(np.expm1),
    "log1p": _kernel(_log1p),
    "hypot": _of_numbers(np.hypot),
    "rint": _of_numbers(np.rint),
    "nanvl": _kernel(lambda x, y: pc.if_else(pc.is_nan(x), y, x)),
    "e": plain(lambda: pa.scalar(math.e)),
    "factorial": _kernel(_factorial),
    "width_bucket": _kernel(_width_bucket),
}
