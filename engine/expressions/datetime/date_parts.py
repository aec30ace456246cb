"""Parts, truncation and differences of dates and timestamps, and the current time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.functions.datetime import canonical_unit
from penstock.catalog.types import TimestampLtz
from penstock.engine.api.arrow_numpy import scalar_of
from penstock.engine.expressions.datetime.date_arithmetic import (
    DAY_US,
    INSTANT,
    LOCAL,
    add_days_kernel,
    add_interval_kernel,
    add_months_kernel,
    like,
    local_view,
    to_instant,
    to_local,
)
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    array_of,
    columnwise,
    defined_values,
    nulls_of_any,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import bad_argument, out_of_range
from penstock.engine.expressions.kernel_factory import BoundCall, EvaluationContext, Factory

# units of one length, in microseconds
_FIXED_US = {
    "week": 7 * DAY_US,
    "day": DAY_US,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
# units of whole months
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _part(kernel: Kernel) -> Factory:
    def factory(bound: BoundCall) -> Kernel:
        zone = bound.context.zone
        # DATE and TIMESTAMP are local already.
        if not isinstance(bound.kinds[0], TimestampLtz):
            return lambda t: pc.cast(kernel(t), pa.int32())
        return columnwise(lambda t: pc.cast(kernel(local_view(t, zone)), pa.int32()))

    return factory


def _constant_unit(bound: BoundCall, position: int) -> str:
    unit = bound.constant(position)
    if not isinstance(unit, str):
        raise bad_argument("the unit must be a constant text")
    return canonical_unit(unit)


def _date_trunc(bound: BoundCall) -> Kernel:
    unit, zone = _constant_unit(bound, 0), bound.context.zone

    def kernel(_: pa.Array, t: pa.Array) -> pa.Array:
        # a day begins at midnight of the session zone
        floored = pc.floor_temporal(local_view(t, zone), unit=unit, week_starts_monday=True)
        return like(floored, t, zone)

    return columnwise(kernel)


def _trunc(bound: BoundCall) -> Kernel:
    unit = _constant_unit(bound, 1)
    return columnwise(lambda d, _: pc.floor_temporal(d, unit=unit, week_starts_monday=True))


def _months_and_remainder(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return months since 1970 and the microseconds since the month began."""
    months = times.astype("M8[us]").astype("M8[M]")
    return months.astype(np.int64), times - months.astype("M8[us]").astype(np.int64)


def whole_units(unit: str, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the number of whole units between two local times in microseconds, truncated towards zero."""
    if unit in _FIXED_US:
        # sign and magnitude apart: // of a negative number would round down
        difference, size = end - start, _FIXED_US[unit]
        return np.sign(difference) * (np.abs(difference) // size)
    first, first_remainder = _months_and_remainder(start)
    last, last_remainder = _months_and_remainder(end)
    months = last - first
    # A month counts when it is complete: 31 January to 28 February is no month.
    months = (
        months
        - ((months > 0) & (last_remainder < first_remainder))
        + ((months < 0) & (last_remainder > first_remainder))
    )
    return np.sign(months) * (np.abs(months) // _MONTHS[unit])


def _timestampdiff(bound: BoundCall) -> Kernel:
    unit, zone = _constant_unit(bound, 0), bound.context.zone

    def kernel(_: pa.Array, start: pa.Array, end: pa.Array) -> pa.Array:
        first, last = defined_values(local_view(start, zone)), defined_values(local_view(end, zone))
        return array_of(whole_units(unit, first, last), nulls_of_any(start, end), pa.int64())

    return columnwise(kernel)


def _timestampadd(bound: BoundCall) -> Kernel:
    unit, kind = _constant_unit(bound, 0), bound.call.type
    # months go through the calendar
    if unit in _MONTHS:
        add, factor = add_months_kernel(kind, 1, bound.context.zone), _MONTHS[unit]
        return columnwise(
            lambda _, n, t: add(t, pc.multiply_checked(n, scalar_of(factor, pa.int64())).cast(pa.int32()))
        )
    size = scalar_of(_FIXED_US[unit], pa.int64())
    # hours move the instant, whatever their number: 25 are no day and an hour
    days = _FIXED_US[unit] % DAY_US == 0
    move = add_interval_kernel(kind, 1, bound.context.zone) if days else pc.add_checked
    return columnwise(lambda _, n, t: move(t, pc.multiply_checked(n, size).view(pa.duration("us"))))


def _datediff(end: pa.Array, start: pa.Array) -> pa.Array:
    days = defined_values(end).astype(np.int64) - defined_values(start)
    return array_of(days, nulls_of_any(end, start), pa.int32())


def _add_months(bound: BoundCall) -> Kernel:
    return add_months_kernel(bound.call.type, 1, bound.context.zone)


def _last_day(d: pa.Array) -> pa.Array:
    months = defined_values(d).astype("M8[D]").astype("M8[M]")
    # the day before the next month begins
    last = (months + np.timedelta64(1, "M")).astype("M8[D]").astype(np.int64) - 1
    return array_of(last, nulls_of_any(d), pa.date32())


def _scaled_instants(factor: int) -> Kernel:
    def kernel(n: pa.Array) -> pa.Array:
        if pa.types.is_floating(n.type):
            micros = values_of(n) * factor
            missing = nulls_of_any(n)
            # beyond, a cast to int64 is undefined
            inside = np.isfinite(micros) & (np.abs(micros) < 2.0**63)
            if not (inside if missing is None else inside | missing).all():
                raise out_of_range("TIMESTAMP_LTZ")
            return array_of(np.where(inside, micros, 0).astype(np.int64), missing, INSTANT)
        return pc.multiply_checked(n, scalar_of(factor, pa.int64())).view(INSTANT)

    return columnwise(kernel)


def _counted_instants(divisor: int) -> Kernel:
    # towards the past, also before 1970; unix_timestamp truncates towards 1970
    return columnwise(lambda t: array_of(values_of(t) // divisor, nulls_of_any(t), pa.int64()))


def unix_seconds_of(bound: BoundCall) -> Kernel:
    """Return the kernel of ``unix_timestamp(t)``: seconds, truncated towards 1970. A TIMESTAMP is in the
    session zone.
    """
    zone = bound.context.zone

    def count(t: pa.Array) -> pa.Array:
        instants = t if t.type.tz is not None else to_instant(t, zone)
        micros = values_of(instants)
        return array_of(np.sign(micros) * (np.abs(micros) // 1_000_000), nulls_of_any(instants), pa.int64())

    return columnwise(count)


def _viewed(kind: pa.DataType) -> Factory:
    return lambda bound: columnwise(lambda a: a.view(kind))


def clock_instant(context: EvaluationContext) -> Datum:
    """Return the clock's time as TIMESTAMP_LTZ. Raise Fault RUN-2004 when the context has no clock."""
    if context.clock is None:
        raise bad_argument(
            "the current time cannot be asked for here", "it has a meaning only while rows are processed"
        )
    # a cast of the scalar takes a tenth of a millisecond, for each batch
    return array_of(np.array([context.clock.wall_ms() * 1000]), None, INSTANT)[0]


def clock_local(context: EvaluationContext) -> Datum:
    """Return the clock's time in the session zone as TIMESTAMP."""
    return to_local(pa.repeat(clock_instant(context), 1), context.zone)[0]


def clock_date(context: EvaluationContext) -> Datum:
    """Return the clock's date in the session zone."""
    return clock_local(context).cast(LOCAL).cast(pa.date32(), safe=False)


MOMENTS: dict[str, Factory] = {
    "year": _part(pc.year),
    "quarter": _part(pc.quarter),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    # dayofweek: Sunday is 1; weekday: Monday is 0.
    "dayofweek": _part(lambda t: pc.day_of_week(t, count_from_zero=False, week_start=7)),
    "weekday": _part(lambda t: pc.day_of_week(t, count_from_zero=True, week_start=1)),
    "dayofyear": _part(pc.day_of_year),
    "weekofyear": _part(pc.iso_week),
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "timestampdiff": _timestampdiff,
    "timestampadd": _timestampadd,
    "datediff": lambda bound: columnwise(_datediff),
    "date_add": lambda bound: add_days_kernel(1, in_microseconds=False),
    "date_sub": lambda bound: add_days_kernel(-1, in_microseconds=False),
    "add_months": _add_months,
    "last_day": lambda bound: columnwise(_last_day),
    "timestamp_seconds": lambda bound: _scaled_instants(1_000_000),
    "timestamp_millis": lambda bound: _scaled_instants(1000),
    "timestamp_micros": _viewed(INSTANT),
    "unix_seconds": lambda bound: _counted_instants(1_000_000),
    "unix_millis": lambda bound: _counted_instants(1000),
    "unix_micros": _viewed(pa.int64()),
    "unix_date": _viewed(pa.int32()),
    "date_from_unix_date": _viewed(pa.date32()),
}
