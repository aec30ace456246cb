"""Conversions between text and times: by pattern, by parts, by seconds since 1970."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import DATE, TIMESTAMP, TIMESTAMP_LTZ, DataType, String
from penstock.engine.api.arrow_numpy import scalar_of
from penstock.engine.expressions.casts.cast import cast_kernel
from penstock.engine.expressions.datetime.date_arithmetic import INSTANT, local_view, to_instant, to_local
from penstock.engine.expressions.datetime.date_parts import unix_seconds_of
from penstock.engine.expressions.datetime.datetime_patterns import (
    compile_format,
    compile_reader,
    date_parts_fault,
    local_times,
)
from penstock.engine.expressions.datum import (
    Kernel,
    array_of,
    columnwise,
    defined_values,
    nulls_of_any,
    on_first,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import bad_argument, bad_cast
from penstock.engine.expressions.kernel_factory import BoundCall, Factory
from penstock.engine.expressions.numeric import decimals

DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"


def _pattern(bound: BoundCall, position: int) -> str:
    # compiled once per call, so it must be constant
    pattern = bound.constant(position) if len(bound.kinds) > position else DEFAULT_PATTERN
    if not isinstance(pattern, str):
        raise bad_argument("the pattern must be a constant text")
    return pattern


def _date_format(bound: BoundCall) -> Kernel:
    write, zone = compile_format(_pattern(bound, 1)), bound.context.zone
    # the pattern is a constant, which is not repeated for each row
    return on_first(lambda t: write(local_view(t, zone)))


def _from_unixtime(bound: BoundCall) -> Kernel:
    write, zone = compile_format(_pattern(bound, 1)), bound.context.zone
    micros = scalar_of(1_000_000, pa.int64())
    return on_first(lambda n: write(to_local(pc.multiply_checked(n, micros).view(INSTANT), zone)))


def _strict_reader(pattern: str, kind: DataType) -> Callable[[pa.Array], pa.Array]:
    """Return a pattern's reader that raises Fault RUN-2003 for the first text it cannot parse."""
    read = compile_reader(pattern)

    def strict(texts: pa.Array) -> pa.Array:
        times = read(texts)
        # a NULL more than before: the first text that did not match
        if times.null_count > texts.null_count:
            bad = pc.and_(pc.is_valid(texts), pc.is_null(times))
            raise bad_cast(texts.filter(bad)[0].as_py(), f"{kind} by the pattern {pattern!r}")
        return times

    return strict


def _read(kind: DataType) -> Factory:
    def factory(bound: BoundCall) -> Kernel:
        # to_timestamp(x): without a pattern it is a cast; to_timestamp_ltz(n) counts milliseconds.
        if len(bound.kinds) == 1:
            if kind == TIMESTAMP_LTZ and not isinstance(bound.kinds[0], String | type(TIMESTAMP_LTZ)):
                return columnwise(lambda n: pc.multiply_checked(n, scalar_of(1000, pa.int64())).view(INSTANT))
            return cast_kernel(bound.kinds[0], kind, False, bound.context.zone) or (lambda a: a)
        # to_timestamp_ltz(n, 0) counts seconds, to_timestamp_ltz(n, 3) milliseconds.
        if kind == TIMESTAMP_LTZ and not isinstance(bound.kinds[0], String):
            factor = scalar_of(1_000_000 if bound.constant(1) == 0 else 1000, pa.int64())
            return columnwise(lambda n, _: pc.multiply_checked(n, factor).view(INSTANT))
        # to_timestamp(s, 'yyyy-MM-dd')
        read = _strict_reader(_pattern(bound, 1), kind)
        if kind == DATE:
            return columnwise(lambda s, _: pc.cast(read(s), pa.date32(), safe=False))
        if kind == TIMESTAMP:
            return columnwise(lambda s, _: read(s))
        return columnwise(lambda s, _: to_instant(read(s), bound.context.zone))

    return factory


def _unix_timestamp(bound: BoundCall) -> Kernel:
    seconds = unix_seconds_of(bound)
    if len(bound.kinds) == 1:
        return seconds
    read = _strict_reader(_pattern(bound, 1), TIMESTAMP)
    return columnwise(lambda s, _: seconds(read(s)))


def _make_timestamp(*parts: pa.Array) -> pa.Array:
    """Build a timestamp from its parts. Second 60 is the first second of the next minute, as in Spark."""
    *whole, seconds = parts
    missing = nulls_of_any(*parts)
    year, month, day, hour, minute = (defined_values(part).astype(np.int64) for part in whole)
    # seconds are DECIMAL(8, 6)
    micros, _ = decimals.microseconds_of(seconds)
    times, real = local_times(year, month, day, hour, minute, 0, micros, len(micros))
    real = real & (micros >= 0) & (micros <= 60_000_000)
    # a NULL part makes NULL, whatever the others are
    bad = ~real if missing is None else ~real & ~missing
    if bad.any():
        i = int(np.argmax(bad))
        raise bad_argument(
            f"there is no time {year[i]:04d}-{month[i]:02d}-{day[i]:02d} "
            f"{hour[i]:02d}:{minute[i]:02d}:{micros[i] / 1e6:09.6f}"
        )
    return array_of(times, missing, pa.timestamp("us"))


def _make_date(*parts: pa.Array) -> pa.Array:
    missing = nulls_of_any(*parts)
    year, month, day = (values_of(part).astype(np.int64) for part in parts)
    times, real = local_times(year, month, day, 0, 0, 0, 0, len(year))
    bad = ~real if missing is None else ~real & ~missing
    if bad.any():
        i = int(np.argmax(bad))
        raise date_parts_fault(int(year[i]), int(month[i]), int(day[i]))
    return array_of(times // 86_400_000_000, missing, pa.date32())


TIME_TEXT: dict[str, Factory] = {
    "date_format": _date_format,
    "from_unixtime": _from_unixtime,
    "to_timestamp": _read(TIMESTAMP),
    "to_timestamp_ltz": _read(TIMESTAMP_LTZ),
    "to_date": _read(DATE),
    "unix_timestamp": _unix_timestamp,
    "make_timestamp": lambda bound: columnwise(_make_timestamp),
    "make_date": lambda bound: columnwise(_make_date),
}
