"""Join conditions: equalities between the two sides (equi keys), and time bounds that make an
interval join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import product

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Role
from penstock.catalog.types import DayTimeInterval, Timestamp, TimestampLtz
from penstock.planner.binder.scope import Scope
from penstock.planner.expressions.nodes import Call, Cast, Column, Expression, Literal
from penstock.planner.logical.joins.interval_join import (
    TIME_ROLES,
    Deadline,
    IntervalSide,
    JoinTime,
    can_settle,
)
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project


def key_pair(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    """Return the (left, right) sides of an equality between two inputs, or ``None``. The right one is over
    its own columns.
    """
    if not isinstance(part, Call) or part.function != "equal":
        return None
    first, second = part.args
    # l.a = r.b and r.b = l.a
    for left, right in ((first, second), (second, first)):
        mine, theirs = left.columns(), right.columns()
        # a constant side reads no column: a.x = 1 is no key
        if mine and theirs and max(mine) < width <= min(theirs):
            return left, right.remap({i: i - width for i in theirs})
    return None


def with_keys(plan: LogicalPlan, keys: Sequence[Expression]) -> tuple[LogicalPlan, tuple[int, ...]]:
    """Return the plan with computed keys projected at its end, and the positions of all keys."""
    fields = plan.schema.fields
    expressions: list[Expression] = [
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)
    ]
    names = [f.name for f in fields]
    positions = []
    for key in keys:
        # a key that is a column is used in place
        if isinstance(key, Column):
            positions.append(key.index)
            continue
        positions.append(len(expressions))
        expressions.append(key)
        names.append(f"key{len(positions)}")
    if len(expressions) == len(fields):
        return plan, tuple(positions)
    return Project(plan, tuple(expressions), tuple(names)), tuple(positions)


Roles = Mapping[int, Role]
"""The time roles of one side's columns, by position."""

_MICROSECOND = timedelta(microseconds=1)
# Bounds of each comparison: (whether the first operand is the later one, by how many microseconds at least).
# Equality has both directions.
_ORDERS = {
    "less": ((False, 1),),
    "less_equal": ((False, 0),),
    "greater": ((True, 1),),
    "greater_equal": ((True, 0),),
    "equal": ((False, 0), (True, 0)),
}


@dataclass(frozen=True)
class _Bound:
    """A time bound: ``column`` is at most ``other`` plus ``offset_us``. Positions are over left ++ right."""

    column: int
    other: int
    offset_us: int


def time_roles(scope: Scope) -> Roles:
    """Return the time roles of a scope's columns, by position."""
    return {c.index: c.field.role for c in scope.columns if c.field.role in TIME_ROLES}


def bounds_times(part: Expression, width: int) -> bool:
    """Return whether a condition compares shifted timestamps of the two sides."""
    return any(True for _ in _bounds((part,), width))


def join_time(
    parts: Sequence[Expression], width: int, left: Roles, right: Roles, kind: JoinKind
) -> JoinTime | None:
    """Return the time bounds of a join, or None when its conditions (over left ++ right) bound too little.

    Of several pairs of time columns, windows win, then the pair that bounds most sides.
    """
    bounds = list(_bounds(parts, width))
    # every time column of one side with every one of the other
    candidates = [_of_pair(pair, bounds, width, left, right) for pair in product(sorted(left), sorted(right))]
    usable = [
        time for time in candidates if can_settle(kind, bool(time.left.deadlines), bool(time.right.deadlines))
    ]
    return max(usable, key=_merit, default=None)


def _merit(time: JoinTime) -> tuple[bool, int, int]:
    delays = [time.delay_us(port) for port in (0, 1)]
    return (
        # Windows first, then more bounded sides, then more sides with a known delay.
        time.of_windows,
        sum(bool(side.deadlines) for side in time.sides),
        sum(delay is not None for delay in delays),
    )


def _of_pair(
    pair: tuple[int, int], bounds: Sequence[_Bound], width: int, left: Roles, right: Roles
) -> JoinTime:
    mine, theirs = pair
    # A left row may be dropped when the right time passes its deadline, and the other way round.
    of_left = tuple(Deadline(b.other, b.offset_us) for b in bounds if b.column == theirs + width)
    of_right = tuple(Deadline(b.other - width, b.offset_us) for b in bounds if b.column == mine)
    return JoinTime(IntervalSide(mine, left[mine], of_left), IntervalSide(theirs, right[theirs], of_right))


def _bounds(parts: Sequence[Expression], width: int) -> Iterator[_Bound]:
    for part in parts:
        if not isinstance(part, Call) or part.function not in _ORDERS:
            continue
        first, second = _compared(part)
        # Both timestamps of one side: no bound between the sides.
        if first is None or second is None or (first[0] < width) == (second[0] < width):
            continue
        for reversed_, at_least in _ORDERS[part.function]:
            (low, low_us), (high, high_us) = (second, first) if reversed_ else (first, second)
            # low + low_us <= high + high_us - at_least
            yield _Bound(low, high, high_us - low_us - at_least)


def _compared(part: Call) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Return the two timestamps of a comparison. ``a - b <= INTERVAL ..`` compares a with b plus the
    interval.
    """
    for (difference, constant), reversed_ in ((part.args, False), (part.args[::-1], True)):
        match difference, constant:
            # l.ts - r.ts <= INTERVAL '5' MINUTE
            case Call(function="subtract", args=(later, earlier), type=DayTimeInterval()), Literal(
                value=timedelta() as by
            ):
                # a - b <= i is a <= b + i
                sides = _shifted(later), _later(_shifted(earlier), by)
                return sides[::-1] if reversed_ else sides
    return _shifted(part.args[0]), _shifted(part.args[1])


def _shifted(expression: Expression) -> tuple[int, int] | None:
    """Return a timestamp as a column and constant microseconds."""
    match expression:
        # ts
        case Column(type=Timestamp() | TimestampLtz(), index=index):
            return index, 0
        # CAST(ts AS TIMESTAMP(n)) to a precision that loses nothing
        case Cast(arg=arg, type=Timestamp() | TimestampLtz() as kind) if (
            type(arg.type) is type(kind) and arg.type.precision <= kind.precision
        ):
            return _shifted(arg)
        case (
            # ts + INTERVAL, INTERVAL + ts
            Call(function="add", args=(time, Literal(value=timedelta() as by)))
            | Call(function="add", args=(Literal(value=timedelta() as by), time))
        ):
            return _later(_shifted(time), by)
        # ts - INTERVAL
        case Call(function="subtract", args=(time, Literal(value=timedelta() as by))):
            return _later(_shifted(time), -by)
    return None


def _later(time: tuple[int, int] | None, by: timedelta) -> tuple[int, int] | None:
    return None if time is None else (time[0], time[1] + by // _MICROSECOND)
