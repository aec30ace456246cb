"""``CAST(x AS TIMESTAMP(p))`` and ``TIME(p)`` with fewer than six digits: the finer digits are cut off, as
arithmetic on microseconds that every backend has.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from penstock.catalog.errors import Span
from penstock.catalog.types import BIGINT, STRING, DataType, Date, Timestamp, TimestampLtz, is_timestamp
from penstock.planner.binder.expressions.overloads import overloaded
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal

_MICROSECONDS = 6
_EPOCH = datetime(1970, 1, 1)
# units that DATE_TRUNC has for a number of digits
_UNITS = {0: "SECOND", 3: "MILLISECOND"}


def cut_cast(cast: Expression, source: DataType, digits: int | None, call: Caller) -> Expression:
    """Return a cast to a time without what is finer than its type says; the cast itself where its source is
    as coarse. ``digits``: those of ``TIME(p)``, whose type does not hold them.

    A time before 1970 is cut downwards, as the others are.
    """
    kind, span = cast.type, cast.span
    if is_timestamp(kind):
        assert isinstance(kind, Timestamp | TimestampLtz)
        digits = kind.precision
    if digits is None or digits >= _MICROSECONDS or isinstance(source, Date):
        return cast
    # what is of that precision already is not computed anew: joins by time look for bare columns
    if isinstance(source, Timestamp | TimestampLtz) and is_timestamp(kind) and source.precision <= digits:
        return cast
    step_us = 10 ** (_MICROSECONDS - digits)
    # a constant stays one: options of table functions must be constants
    if isinstance(cast, Cast) and isinstance(cast.arg, Literal) and isinstance(cast.arg.value, datetime):
        value = cast.arg.value
        cut = value.replace(microsecond=value.microsecond - value.microsecond % step_us)
        return replace(cast, arg=replace(cast.arg, value=cut))
    unit = _UNITS.get(digits)
    # DATE_TRUNC of an instant goes by the wall clock of the zone, which shows an hour of autumn twice
    if unit is not None and not isinstance(kind, TimestampLtz):
        args = [Literal(STRING, False, value=unit), cast]
        return overloaded("date_trunc", args, call, span) or call("date_trunc", args, span)
    return _without_rest(cast, step_us, call, span)


def _without_rest(time: Expression, step_us: int, call: Caller, span: Span | None) -> Expression:
    """Return the last multiple of ``step_us`` microseconds that is not after a time."""
    unit = Literal(STRING, False, value="MICROSECOND")
    since: Expression
    if is_timestamp(time.type):
        epoch = _EPOCH.replace(tzinfo=UTC) if isinstance(time.type, TimestampLtz) else _EPOCH
        since = call("timestampdiff", [unit, Literal(time.type, False, value=epoch), time], span)
    else:
        midnight = Cast(time.type, False, arg=Literal(STRING, False, value="00:00:00"), safe=False, span=span)
        between = overloaded("timestampdiff", [unit, midnight, time], call, span)
        assert between is not None
        since = between
    rest = call("pmod", [since, Literal(BIGINT, False, value=step_us)], span)
    moved = [unit, call("negate", [rest], span), time]
    return overloaded("timestampadd", moved, call, span) or call("timestampadd", moved, span)
