"""Checked arithmetic on numbers: overflow and division by zero raise a Fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    Date,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    YearMonthInterval,
    is_integer,
    is_timestamp,
    to_arrow,
)
from penstock.engine.expressions.datetime.date_arithmetic import (
    add_days_kernel,
    add_interval_kernel,
    add_months_kernel,
    days_between,
)
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    columnwise,
    nulls_of,
    nulls_of_any,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import division_by_zero, out_of_range
from penstock.engine.expressions.kernel_factory import BoundCall, Factory
from penstock.engine.expressions.numeric import decimals
from penstock.planner.expressions.nodes import Call

_CHECKED = {"add": pc.add_checked, "subtract": pc.subtract_checked, "multiply": pc.multiply_checked}


def _numbers(operator: str, bound: BoundCall) -> Kernel:
    left, right = bound.kinds
    result = bound.call.type
    # DECIMAL op DECIMAL is exact, by Spark's rules of precision and scale.
    if isinstance(left, Decimal) and isinstance(right, Decimal) and isinstance(result, Decimal):
        return decimals.exact_kernel(operator, left, right, result)
    # Floats overflow to infinity, they do not fault.
    if isinstance(result, Float | Double):
        return {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}[operator]
    return _CHECKED[operator]


def _moved(bound: BoundCall, sign: int) -> Kernel | None:
    """Return the kernel of a date or timestamp (left operand) plus or minus an interval or days. ``None`` for
    other operands.
    """
    left, right = bound.kinds
    # DATE '2024-01-31' + INTERVAL '1' MONTH
    if isinstance(right, YearMonthInterval) and (is_timestamp(left) or isinstance(left, Date)):
        return add_months_kernel(left, sign, bound.context.zone)
    # TIMESTAMP + INTERVAL '2' HOUR
    if is_timestamp(left) and isinstance(right, DayTimeInterval):
        return add_interval_kernel(left, sign, bound.context.zone)
    # DATE + 3 or DATE + INTERVAL '3' DAY
    if isinstance(left, Date):
        return add_days_kernel(sign, in_microseconds=isinstance(right, DayTimeInterval))
    return None


def _add(bound: BoundCall) -> Kernel:
    left, right = bound.kinds
    # INTERVAL '1' DAY + d is d + INTERVAL '1' DAY.
    if isinstance(left, DayTimeInterval | YearMonthInterval) and right != left:
        mirrored = BoundCall(_mirrored(bound), bound.constants[::-1], bound.context)
        kernel = _moved(mirrored, 1)
        assert kernel is not None
        return lambda a, b: kernel(b, a)
    return _moved(bound, 1) or _numbers("add", bound)


def _mirrored(bound: BoundCall) -> Call:
    return replace(bound.call, args=bound.call.args[::-1])


def _subtract(bound: BoundCall) -> Kernel:
    left, right = bound.kinds
    # DATE - DATE is an interval of days.
    if isinstance(left, Date) and isinstance(right, Date):
        return columnwise(days_between)
    # TIMESTAMP - TIMESTAMP is an interval in microseconds
    if is_timestamp(left) and is_timestamp(right):
        return pc.subtract_checked
    return _moved(bound, -1) or _numbers("subtract", bound)


def _multiply(bound: BoundCall) -> Kernel:
    left, right = bound.kinds
    if isinstance(left, DayTimeInterval | YearMonthInterval):
        return _scaled(to_arrow(left), np.multiply)
    if isinstance(right, DayTimeInterval | YearMonthInterval):
        kernel = _scaled(to_arrow(right), np.multiply)
        return lambda a, b: kernel(b, a)
    return _numbers("multiply", bound)


def _scaled(kind: pa.DataType, compute: np.ufunc) -> Kernel:
    """Return the kernel of an interval multiplied or divided by a number, rounded half away from zero."""

    def kernel(interval: pa.Array, factor: pa.Array) -> pa.Array:
        missing = nulls_of_any(interval, factor)
        values, by = values_of(interval), values_of(factor)
        if compute is np.divide:
            _refuse_zero(by, missing)
        # An integer factor needs no rounding: exact, with Arrow's overflow check.
        elif by.dtype.kind == "i":
            return pc.multiply_checked(interval.view(_integer(kind)), factor.cast(_integer(kind))).view(kind)
        with np.errstate(all="ignore"):
            exact = compute(values, by, dtype=np.float64)
        bounds = np.iinfo(np.int32 if kind == pa.int32() else np.int64)
        good = (
            (exact >= bounds.min) & (exact < bounds.max)
            if missing is None
            else missing | ((exact >= bounds.min) & (exact < bounds.max))
        )
        if not good.all():
            raise out_of_range("INTERVAL")
        # Half away from zero, unlike numpy's round.
        rounded = np.trunc(exact + np.copysign(0.5, exact))
        return array_of(np.where(np.isfinite(rounded), rounded, 0).astype(np.int64), missing, kind)

    return columnwise(kernel)


def _integer(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind == pa.int32() else pa.int64()


def _divide(bound: BoundCall) -> Kernel:
    left, right = bound.kinds
    if isinstance(left, Decimal) and isinstance(right, Decimal) and isinstance(bound.call.type, Decimal):
        return decimals.divide_kernel(left, right, bound.call.type)
    if isinstance(left, DayTimeInterval | YearMonthInterval):
        return _scaled(to_arrow(left), np.divide)
    # DOUBLE: division by zero is an error too, as in Spark's ANSI mode
    return pc.divide_checked


def _integral_divide(bound: BoundCall) -> Kernel:
    return decimals.integral_divide_kernel() if isinstance(bound.kinds[0], Decimal) else pc.divide_checked


def _refuse_zero(divisor: np.ndarray, missing: np.ndarray | None) -> None:
    zero = divisor == 0
    if (zero if missing is None else zero & ~missing).any():
        raise division_by_zero()


def _remainder(positive: bool) -> Factory:
    def factory(bound: BoundCall) -> Kernel:
        if isinstance(bound.call.type, Decimal):
            return decimals.remainder_kernel(bound.call.type, positive)
        kind = to_arrow(bound.call.type)

        def kernel(a: Datum, b: Datum) -> pa.Array:
            if isinstance(a, pa.Array) and isinstance(b, pa.Scalar) and _is_divisor(b):
                return array_of(_remainder_by(values_of(a), b.as_py(), positive), nulls_of(a), kind)
            left, right = aligned(a, b)
            missing = nulls_of_any(left, right)
            divisor = values_of(right)
            _refuse_zero(divisor, missing)
            with np.errstate(all="ignore"):
                remainder = np.fmod(values_of(left), divisor)
                if positive:
                    # PMOD: pmod(-7, 3) is 2, while -7 % 3 is -1.
                    remainder = np.where(remainder < 0, np.fmod(remainder + divisor, divisor), remainder)
            return array_of(remainder, missing, kind)

        return kernel

    return factory


def _is_divisor(constant: pa.Scalar) -> bool:
    """Whether a constant is a positive integer."""
    return pa.types.is_integer(constant.type) and constant.is_valid and constant.as_py() > 0


def _remainder_by(values: np.ndarray, divisor: int, positive: bool) -> np.ndarray:
    """Return the remainders of integers by a positive constant. numpy divides by one number several times as
    quickly as by a column of it.
    """
    # the remainder of a division that rounds down, which is never negative; the product may wrap around
    with np.errstate(over="ignore"):
        remainder = values - values // divisor * divisor
    if positive or not values.size or values.min() >= 0:
        return remainder
    # the sign is that of the dividend
    return np.where((values < 0) & (remainder != 0), remainder - divisor, remainder)


def _negate(bound: BoundCall) -> Kernel:
    kind = bound.call.type
    # only -(-128) of TINYINT and its kin overflow
    if isinstance(kind, Decimal | Float | Double):
        return pc.negate
    return pc.negate_checked


def _absolute(bound: BoundCall) -> Kernel:
    kind = bound.call.type
    return (
        pc.abs_checked
        if is_integer(kind) or isinstance(kind, DayTimeInterval | YearMonthInterval)
        else pc.abs
    )


ARITHMETIC: dict[str, Factory] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "div": _integral_divide,
    "mod": _remainder(positive=False),
    "pmod": _remainder(positive=True),
    "negate": _negate,
    "abs": _absolute,
}
