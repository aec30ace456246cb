"""DATE_BIN and TIME_BUCKET: the beginning of the bucket of constant width that a time is in, as arithmetic on
microseconds from an origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import BIGINT, STRING, Date, Timestamp, TimestampLtz, is_timestamp
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal

# A Monday, so that buckets of weeks begin on one: as DuckDB and TimescaleDB have it.
_MONDAY = datetime(2000, 1, 3)
# as DataFusion has it
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def _bucket(
    name: str, begin: datetime, args: Sequence[Expression], call: Caller, span: Span | None
) -> Expression:
    width, time = args[0], args[1]
    length = width.value if isinstance(width, Literal) else None
    if not isinstance(length, timedelta) or length <= timedelta():
        hint = f"write {name}(INTERVAL '15' MINUTE, ts); date_trunc('MONTH', ts) has months"
        raise _wrong(f"{name} takes a constant interval of days or less as its width", span, hint)
    if isinstance(time.type, Date):
        time = Cast(Timestamp(6), time.nullable, arg=time, safe=False, span=span)
    if not is_timestamp(time.type):
        raise _wrong(f"{name} takes a time, this is {time.type}", span, "write to_timestamp(text)")
    origin: Expression = Literal(Timestamp(6), False, value=begin)
    if len(args) == 3:
        origin = args[2]
    if origin.type != time.type:
        origin = Cast(time.type, origin.nullable, arg=origin, safe=False, span=span)
    width_us = Literal(BIGINT, False, value=length // _MICROSECOND)
    # buckets of instants have one width: no days of the wall clock, of which one has 23 hours
    if isinstance(time.type, TimestampLtz):
        first, since = (call("unix_micros", [value], span) for value in (origin, time))
        rest = call("pmod", [call("subtract", [since, first], span), width_us], span)
        begins = call("timestamp_micros", [call("subtract", [since, rest], span)], span)
        return Cast(time.type, begins.nullable, arg=begins, safe=False, span=span)
    unit = Literal(STRING, False, value="MICROSECOND")
    since = call("timestampdiff", [unit, origin, time], span)
    # the rest is from 0 on, also before the origin
    rest = call("pmod", [since, width_us], span)
    return call("timestampadd", [unit, call("subtract", [since, rest], span), origin], span)


def _wrong(message: str, span: Span | None, hint: str) -> PenstockError:
    return PenstockError("SQL-1103", message, span=span, hint=hint, sqlstate="42804")


TIME_BUCKETS = {
    "date_bin": partial(_bucket, "date_bin", _EPOCH),
    "time_bucket": partial(_bucket, "time_bucket", _MONDAY),
}
"""The builders of ``date_bin(width, time[, origin])`` and ``time_bucket`` of the same."""
