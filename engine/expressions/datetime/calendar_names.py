"""Calendar functions: names of days and months, MONTHS_BETWEEN, time zone conversion, seconds with a
fraction.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import TimestampLtz
from penstock.engine.api.arrow_numpy import is_true
from penstock.engine.expressions.datetime.calendar_months import months_of
from penstock.engine.expressions.datetime.date_arithmetic import (
    DAY_US,
    INSTANT,
    LOCAL,
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
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value

_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# MO, MON and MONDAY are all day 0.
_NAMES = {name[:size]: number for number, name in enumerate(_DAYS) for size in (2, 3, len(name))}


def _day_number(name: str) -> int:
    number = _NAMES.get(name.strip().upper())
    if number is None:
        raise bad_argument(f"there is no day of the week {name!r}", "days are MO or MON or MONDAY, ..")
    return number


def _next_day(bound: BoundCall) -> Kernel:
    numbers = by_value(_day_number, pa.int64())(bound)

    def kernel(d: pa.Array, name: pa.Array) -> pa.Array:
        wanted = numbers(name)
        days = values_of(d).astype(np.int64)
        ahead = (values_of(wanted) - (days + 3) % 7 - 1) % 7 + 1  # 1970-01-01 was a Thursday
        return array_of((days + ahead).astype(np.int32), nulls_of_any(d, wanted), pa.date32())

    return columnwise(kernel)


def _named(bound: BoundCall, names: list[str], number: Kernel) -> Kernel:
    zone = bound.context.zone
    words = pa.array(names)

    def kernel(t: pa.Array) -> pa.Array:
        # a lookup by number: seven or twelve texts for any number of rows
        return words.take(number(local_view(t, zone) if pa.types.is_timestamp(t.type) else t))

    return columnwise(kernel)


def _dayname(bound: BoundCall) -> Kernel:
    return _named(
        bound,
        [name[:3].capitalize() for name in _DAYS],
        lambda t: pc.day_of_week(t, count_from_zero=True, week_start=1),
    )


def _monthname(bound: BoundCall) -> Kernel:
    return _named(bound, list(_MONTHS), lambda t: pc.subtract(pc.month(t), 1))


def _exact_second(bound: BoundCall) -> Kernel:
    zone = bound.context.zone

    def kernel(t: pa.Array) -> pa.Array:
        micros = values_of(local_view(t, zone)) % 60_000_000
        # decimal128(8, 6) is two words; microseconds of a minute are below 2^63 and not negative
        pairs = np.zeros((micros.size, 2), np.int64)
        pairs[:, 0] = micros
        valid = None if not t.null_count else pc.is_valid(t).buffers()[1]
        whole = pa.Array.from_buffers(pa.decimal128(8, 6), micros.size, [None, pa.py_buffer(pairs)])
        return whole if valid is None else pc.if_else(pc.is_valid(t), whole, pa.scalar(None, whole.type))

    return columnwise(kernel)


def _months_between(bound: BoundCall) -> Kernel:
    """Return the kernel of MONTHS_BETWEEN. The result is whole when both days are equal or both are the last
    of their month. Otherwise a day counts as 1/31 of a month.
    """
    zone = bound.context.zone

    def kernel(a: pa.Array, b: pa.Array, *rounds: pa.Array) -> pa.Array:
        times = [defined_values(local_view(moment, zone)) for moment in (a, b)]
        (months, nth, is_last), (others, other_nth, other_is_last) = (
            months_of(moment // DAY_US) for moment in times
        )
        whole = (nth == other_nth) | (is_last & other_is_last)
        apart = months - others
        # in a month of 31 days, times of day included
        first, second = (moment % DAY_US // 1_000_000 for moment in times)
        seconds_apart = (nth - other_nth) * 86_400 + (first - second)
        months_apart = np.where(whole, apart, apart + seconds_apart / (31 * 86_400))
        # Eight digits unless the third argument is FALSE.
        rounded = np.round(months_apart, 8)
        if rounds:
            rounded = np.where(is_true(rounds[0]), rounded, months_apart)
        return array_of(rounded, nulls_of_any(a, b, *rounds), pa.float64())

    return columnwise(kernel)


def _zone(bound: BoundCall, position: int) -> str:
    zone = bound.constant(position)
    if not isinstance(zone, str):
        raise bad_argument("the time zone must be a constant text")
    try:
        # Arrow has the list of zones: it is asked once, at compile time.
        pc.assume_timezone(pa.array([0], LOCAL), zone)
    except pa.ArrowInvalid:
        raise bad_argument(
            f"there is no time zone {zone}", "write 'Europe/Berlin', '+02:00' or 'UTC'"
        ) from None
    return zone


def _shifted(forth: bool) -> Factory:
    """Return the factory of ``from_utc_timestamp`` or ``to_utc_timestamp``: wall-clock times between UTC and
    a zone.
    """

    def factory(bound: BoundCall) -> Kernel:
        zone, session, instants = (
            _zone(bound, 1),
            bound.context.zone,
            isinstance(bound.kinds[0], TimestampLtz),
        )

        def kernel(t: Datum, *_: Datum) -> Datum:
            # the value is read as UTC, or as the zone's wall clock, whatever its type says
            moved = to_local(t.view(INSTANT), zone) if forth else to_instant(t.view(LOCAL), zone).view(LOCAL)
            return moved.view(INSTANT) if instants else moved

        assert session
        return columnwise(kernel)

    return factory


def _convert_timezone(bound: BoundCall) -> Kernel:
    source, target = _zone(bound, 0), _zone(bound, 1)
    return columnwise(lambda _, __, t: to_local(to_instant(t, source), target))


CALENDAR_WORDS: dict[str, Factory] = {
    "next_day": _next_day,
    "dayname": _dayname,
    "monthname": _monthname,
    "exact_second": _exact_second,
    "months_between": _months_between,
    "from_utc_timestamp": _shifted(True),
    "to_utc_timestamp": _shifted(False),
    "convert_timezone": _convert_timezone,
}
