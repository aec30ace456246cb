"""Frames of OVER: their unit, their bounds and what they leave out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal as PyDecimal

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    BIGINT,
    TIMESTAMP,
    BigInt,
    Date,
    DayTimeInterval,
    Decimal,
    Int,
    SmallInt,
    Timestamp,
    TimestampLtz,
    TinyInt,
)
from penstock.planner.binder.expressions import literals
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Caller, Literal, SortKey
from penstock.planner.logical.over import (
    COMPOSED_RANKS,
    NEIGHBOURS,
    RANKS,
    RUNNING,
    WHOLE,
    Frame,
    FrameExclusion,
    FrameUnit,
)
from penstock.planner.parser.syntax_nodes import FrameBound, IntervalLiteral, OverClause, span_of

FRAMELESS = RANKS | NEIGHBOURS
"""These look at neighbours or peers in the partition, so a frame has no effect on them."""
_MICROSECOND = timedelta(microseconds=1)
# A BIGINT holds every number of so many digits.
_BIGINT_DIGITS = 18
_FURTHEST = 1 << 62
"""No two such numbers are so far from one another."""


def order_with_distances(
    order: tuple[SortKey, ...], clause: OverClause, call: Caller
) -> tuple[tuple[SortKey, ...], int | None]:
    """Return an order whose key has distances, and the scale of a DECIMAL key, else None.

    Of a RANGE distance a DATE key is a TIMESTAMP. A DECIMAL of scale s is the BIGINT 10^s times as large, if
    that holds its digits.
    """
    bounds = [bound for bound in (clause.args.get("first"), clause.args.get("last")) if bound is not None]
    distance = clause.args.get("unit") == "RANGE" and any(bound.this is not None for bound in bounds)
    if not distance or len(order) != 1:
        return order, None
    key = order[0].expression
    if isinstance(key.type, Date):
        return (replace(order[0], expression=coerced(key, TIMESTAMP)),), None
    if isinstance(key.type, Decimal) and key.type.precision <= _BIGINT_DIGITS:
        scale = key.type.scale
        power = Literal(Decimal(scale + 1, 0), False, value=PyDecimal(10**scale))
        scaled = coerced(call("multiply", [key, power], key.span), BIGINT)
        return (replace(order[0], expression=scaled),), scale
    return order, None


def bind_frame(
    clause: OverClause, order: Sequence[SortKey], function: str, scale: int | None = None
) -> Frame | None:
    """Return the frame of a function, None for one that no frame changes. ``scale``: that of a
    DECIMAL key, see ``order_with_distances``. Raises SQL-1066.
    """
    # SQL's default frame: up to the current row with ORDER BY, the whole partition without.
    if function in FRAMELESS:
        return None
    if clause.args.get("unit") is None:
        return RUNNING if order else WHOLE
    # ROWS counts rows and GROUPS groups of peers; RANGE compares values of the ORDER BY key
    unit = FrameUnit(clause.args["unit"].lower())
    first, last = clause.args["first"], clause.args.get("last")
    if unit is FrameUnit.GROUPS and not order:
        raise PenstockError(
            "SQL-1066",
            "a frame of GROUPS needs an ORDER BY",
            span=span_of(first),
            hint="rows equal in the ORDER BY are a group",
            sqlstate="42P20",
        )
    start = _distance(first, unit, order, scale, is_end=False)
    # A frame without BETWEEN ends at the current row.
    end = 0 if last is None else _distance(last, unit, order, scale, is_end=True)
    # BETWEEN 1 FOLLOWING AND 2 PRECEDING; None is unbounded and never crosses
    if start is not None and end is not None and start > end:
        raise PenstockError(
            "SQL-1066",
            "the frame ends before it begins",
            span=span_of(last or first),
            hint="put the earlier bound first",
        )
    return Frame(unit, start, end, FrameExclusion((clause.args.get("exclude") or "NO OTHERS").lower()))


def check_frame_of_rank(clause: OverClause, function: str) -> None:
    """Refuse a frame of a function that no frame changes: SQL-1066. Spark writes the one from the first row
    up to the current one.
    """
    first, last = clause.args.get("first"), clause.args.get("last")
    if first is None or function not in FRAMELESS | COMPOSED_RANKS:
        return
    usual = first.this is None and not first.args.get("current") and not first.args.get("following")
    if not usual or (last is not None and not last.args.get("current")):
        raise PenstockError(
            "SQL-1066",
            f"{function} takes no frame",
            span=span_of(first),
            hint="leave ROWS or RANGE out",
            sqlstate="42P20",
        )


def _distance(
    bound: FrameBound, unit: FrameUnit, order: Sequence[SortKey], scale: int | None, *, is_end: bool
) -> int | None:
    # CURRENT ROW
    if bound.args.get("current"):
        return 0
    # UNBOUNDED PRECEDING or FOLLOWING: None, on its own side only
    if bound.this is None:
        if bool(bound.args.get("following")) is not is_end:
            word = "end at UNBOUNDED PRECEDING" if is_end else "begin at UNBOUNDED FOLLOWING"
            raise PenstockError("SQL-1066", f"a frame cannot {word}", span=span_of(bound), sqlstate="42P20")
        return None
    # n PRECEDING is negative, n FOLLOWING positive.
    size = _size(bound.this, unit, order, scale)
    return size if bound.args.get("following") else -size


def _size(tree: exp.Expr, unit: FrameUnit, order: Sequence[SortKey], scale: int | None) -> int:
    # anything but a literal has no value here, and is refused below with what its unit takes
    literal = None
    if isinstance(tree, IntervalLiteral):
        literal = literals.interval(tree)
    elif isinstance(tree, exp.Literal) and not tree.is_string:
        literal = literals.number(tree, False, span_of(tree))
    value = literal.value if isinstance(literal, Literal) else None
    kind = order[0].expression.type if len(order) == 1 else None
    # ROWS: a number of rows; GROUPS: of groups of peers
    if unit is not FrameUnit.RANGE:
        # as LAG: an INT number of rows
        if isinstance(value, int) and value < 1 << 31:
            return value
        word = unit.value.upper()
        raise PenstockError(
            "SQL-1066",
            f"{word} takes a whole number of {unit.value}",
            span=span_of(tree),
            hint=f"write {word} 10 PRECEDING",
            sqlstate="22013",
        )
    # RANGE: a distance in the values of the one ORDER BY key, an interval or a whole number
    if kind is None:
        hint = "order by one column, or use ROWS"
        raise PenstockError(
            "SQL-1066",
            "a RANGE distance goes with exactly one ORDER BY key",
            span=span_of(tree),
            hint=hint,
            sqlstate="42P20",
        )
    if (
        isinstance(kind, Timestamp | TimestampLtz)
        and literal is not None
        and isinstance(literal.type, DayTimeInterval)
        and isinstance(value, timedelta)
    ):
        # in microseconds, as timestamps are stored
        if value >= timedelta(0):
            return value // _MICROSECOND
    # RANGE 10 PRECEDING over an integer key: rows whose key is at most 10 less
    elif scale is not None and isinstance(value, int | PyDecimal):
        # 0.125 is as far as 0.12 between keys of two decimals
        numerator, denominator = value.as_integer_ratio()
        return min(numerator * 10**scale // denominator, _FURTHEST)
    elif isinstance(kind, TinyInt | SmallInt | Int | BigInt) and isinstance(value, int):
        return value
    hint = (
        "TIMESTAMP keys take INTERVAL '10' MINUTES, integer keys take 10, DECIMAL keys of up to 18 digits "
        "take 0.5; order by one of these, or use ROWS"
    )
    raise PenstockError(
        "SQL-1066",
        f"this is no RANGE distance of a key of type {kind}",
        span=span_of(tree),
        hint=hint,
        sqlstate="42P20",
    )
