"""Arithmetic of dates, times and intervals. It converts instants (TIMESTAMP_LTZ) to a zone's local times and
back.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import DataType, Date, TimestampLtz, to_arrow
from penstock.engine.expressions.datetime.calendar_months import shift_months
from penstock.engine.expressions.datetime.zone_offsets import instants_of
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    columnwise,
    defined_values,
    nulls_of_any,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import out_of_range

LOCAL = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")


def to_local(instants: pa.Array, zone: str) -> pa.Array:
    """Return the wall-clock times of instants in a zone."""
    if zone == "UTC":
        # both count microseconds; with UTC only the label changes
        return instants.view(LOCAL)
    return pc.local_timestamp(instants.cast(pa.timestamp("us", zone)))


def to_instant(local: pa.Array, zone: str) -> pa.Array:
    """Return the instants of a zone's wall-clock times. An ambiguous time is the earlier instant. A skipped
    time moves by the length of the gap, as in Spark and DuckDB: 02:30 where 02:00 is 03:00 is 03:30.
    """
    if zone == "UTC":
        return local.view(INSTANT)
    if (known := instants_of(local, zone)) is not None:
        return known
    try:
        # seldom is a time skipped: one conversion for all others
        return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise").cast(INSTANT)
    except pa.ArrowInvalid:
        # Of a skipped time the last instant before the gap, whose distance from UTC is the skipped time's.
        earlier = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
        return _with_offset_of(local, earlier.cast(INSTANT), zone)


def moved_instant(local: pa.Array, before: pa.Array, zone: str) -> pa.Array:
    """Return the instants of wall-clock times to which the instants ``before`` have moved. A time that is
    ambiguous keeps the distance from UTC it had before, so an hour after the second 02:30 is 03:30.
    """
    if zone == "UTC":
        return local.view(INSTANT)
    kept = _with_offset_of(local, before, zone)
    holds = pc.equal(to_local(kept, zone), local)
    # None where it is NULL
    if pc.all(holds).as_py() in (True, None):
        return kept
    return pc.if_else(holds, kept, to_instant(local, zone))


def _with_offset_of(local: pa.Array, instants: pa.Array, zone: str) -> pa.Array:
    """Return wall-clock times as instants, with the distance from UTC that the zone has at ``instants``."""
    offset = pc.subtract(to_local(instants, zone), instants.view(LOCAL))
    return pc.subtract(local, offset).view(INSTANT)


def local_view(times: pa.Array, zone: str) -> pa.Array:
    """Return TIMESTAMP or TIMESTAMP_LTZ values as wall-clock times."""
    return times if times.type.tz is None else to_local(times, zone)


def like(local: pa.Array, before: pa.Array, zone: str) -> pa.Array:
    """Return the wall-clock times to which the timestamps ``before`` have moved, as timestamps of their
    type.
    """
    return local if before.type.tz is None else moved_instant(local, before, zone)


DAY_US = 86_400_000_000
_INT32 = np.iinfo(np.int32)
# whole days whose every microsecond is within 64 bits
_TIMESTAMP_DAYS = np.iinfo(np.int64).max // DAY_US - 1


def add_months_kernel(kind: DataType, sign: int, zone: str) -> Kernel:
    """Return the kernel of a date or timestamp plus (or minus) a year-month interval."""
    arrow = to_arrow(kind)

    def of_date(dates: pa.Array, months: pa.Array) -> pa.Array:
        moved = shift_months(
            defined_values(dates).astype(np.int64), sign * defined_values(months).astype(np.int64)
        )
        _check_days(moved, _INT32.max, kind)
        return array_of(moved, nulls_of_any(dates, months), arrow)

    def of_timestamp(times: pa.Array, months: pa.Array) -> pa.Array:
        local = local_view(times, zone)
        # the time of day stays, the date moves
        days, within = np.divmod(defined_values(local), DAY_US)
        moved = shift_months(days, sign * defined_values(months).astype(np.int64))
        _check_days(moved, _TIMESTAMP_DAYS, kind)
        return like(array_of(moved * DAY_US + within, nulls_of_any(times, months), LOCAL), times, zone)

    return columnwise(of_date if isinstance(kind, Date) else of_timestamp)


def _check_days(days: np.ndarray, most: int, kind: object) -> None:
    """Fail where days are further than ``most`` from 1970: they would come out on the other side of it."""
    if days.size and (days.max() > most or days.min() < -most - 1):
        raise out_of_range(kind)


def add_interval_kernel(kind: DataType, sign: int, zone: str) -> Kernel:
    """Return the kernel of a timestamp plus or minus a day-time interval. For TIMESTAMP_LTZ, whole days are
    calendar days of the zone.
    """
    move = pc.add_checked if sign > 0 else pc.subtract_checked
    # Without changes of the clock every day has 24 hours: one addition.
    if not isinstance(kind, TimestampLtz) or zone == "UTC":
        return move

    def kernel(times: pa.Array, interval: pa.Array) -> pa.Array:
        # The days move the wall clock, the rest moves the instant: a day over a change of the clock is a day.
        # The rest has the interval's sign: an hour back is no day back and 23 hours forth.
        rest = np.fmod(values_of(interval), DAY_US)
        days, missing = values_of(interval) - rest, nulls_of_any(interval)
        time_part = array_of(rest, missing, pa.duration("us"))
        if days.any():
            whole = array_of(days, missing, pa.duration("us"))
            times = like(move(local_view(times, zone), whole), times, zone)
        return move(times, time_part)

    return columnwise(kernel)


def add_days_kernel(sign: int, *, in_microseconds: bool) -> Kernel:
    """Return the kernel of a date plus or minus days. Days are a count or, ``in_microseconds``, a day-time
    interval of whole days.
    """

    def kernel(dates: Datum, days: Datum) -> pa.Array:
        dates, days = aligned(dates, days)
        missing = nulls_of_any(dates, days)
        by = defined_values(days).astype(np.int64)
        moved = defined_values(dates).astype(np.int64) + sign * (by // DAY_US if in_microseconds else by)
        # a DATE is days in 32 bits
        _check_days(moved, _INT32.max, "DATE")
        return array_of(moved, missing, pa.date32())

    return kernel


def days_between(end: pa.Array, start: pa.Array) -> pa.Array:
    """Return the day-time interval from one date to another."""
    days = defined_values(end).astype(np.int64) - defined_values(start)
    return array_of(days * DAY_US, nulls_of_any(end, start), pa.duration("us"))
