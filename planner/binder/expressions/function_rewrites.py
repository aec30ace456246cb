"""Functions that are rewritten to other functions or to CASE: FLOOR and CEIL to a unit, SIMILAR TO, DECODE,
functions of a unit, GROUPING.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Timestamp,
    TimestampLtz,
    Variant,
    YearMonthInterval,
)
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Call, Caller, Expression, Literal
from penstock.planner.parser.syntax_nodes import FunctionCall, RoundedTo, span_of

# With three arguments, the first a unit; with two they count days.
_OF_A_UNIT = {"datediff": "timestampdiff", "date_add": "timestampadd", "dateadd": "timestampadd"}
# Characters that mean the same in SIMILAR TO and in a regular expression.
_SPECIAL = frozenset("|*+?{}()")
_PLAIN_IN_SETS = re.compile(r"[\w\s,;:.%#@!-]|[^\x00-\x7f]")

# EXTRACT's names of parts, where the function has another name.
_PARTS = {"second": "exact_second", "week": "weekofyear", "dow": "dayofweek", "doy": "dayofyear"}
_PART_NAMES = (
    *("year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "doy"),
    *("dayofweek", "dayofyear", "epoch"),
)
CAST_FUNCTIONS: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "tinyint": TINYINT,
    "smallint": SMALLINT,
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "decimal": Decimal(10, 0),
    "date": DATE,
    "timestamp": Timestamp(6),
    "binary": BINARY,
    "string": STRING,
}
"""Types that are functions of one argument, as in Spark: float(x) is CAST(x AS FLOAT)."""


def cast_hint(source: DataType, target: DataType) -> str | None:
    """Return what to write in place of a CAST that does not exist."""
    if isinstance(source, Variant) or isinstance(target, Variant):
        return "CAST it to STRING first"
    if isinstance(target, DayTimeInterval):
        return "write CAST(x AS INTERVAL SECOND), one unit, of a whole number; or x * INTERVAL '1' SECOND"
    if isinstance(target, YearMonthInterval):
        return "write CAST(x AS INTERVAL MONTH), one unit, of a whole number; or x * INTERVAL '1' MONTH"
    if isinstance(source, DayTimeInterval):
        return "write EXTRACT(EPOCH FROM x), its seconds, or EXTRACT(DAY FROM x)"
    return (
        "write EXTRACT(YEAR FROM x) * 12 + EXTRACT(MONTH FROM x)"
        if isinstance(source, YearMonthInterval)
        else None
    )


def resolve_unit_function(name: str, arguments: int) -> str:
    """Return the function that a name means when called with ``arguments`` arguments: ``datediff(DAY, a, b)``
    is ``timestampdiff``.
    """
    return _OF_A_UNIT.get(name.lower(), name) if arguments == 3 else name


def rounded_to(tree: RoundedTo, value: Expression, call: Caller) -> Expression:
    """Return ``FLOOR(x TO unit)`` or ``CEIL(x TO unit)`` of a DATE or a timestamp, of the type of x."""
    span, unit = (
        span_of(tree),
        Literal(STRING, False, value=tree.args["unit"].name, span=span_of(tree.args["unit"])),
    )
    floor = call("date_trunc", [unit, value], span)
    if isinstance(value.type, Date):
        floor = coerced(floor, value.type)
    # FLOOR(x TO unit)
    if not tree.args.get("up"):
        return floor
    # CEIL: the next unit, unless x is on a boundary
    above = coerced(call("timestampadd", [unit, Literal(INT, False, value=1), floor], span), value.type)
    return case_of([(call("equal", [floor, value], span), floor)], above, span)


def extracted(args: Sequence[Expression], tree: FunctionCall, call: Caller) -> Expression:
    """Return EXTRACT(YEAR FROM x), which is a function per part. Raises SQL-1011 for an unknown part."""
    unit = args[0].value if len(args) == 2 and isinstance(args[0], Literal) else None
    # EXTRACT(DAYS FROM x) is EXTRACT(DAY FROM x)
    name = str(unit).lower().removesuffix("s")
    if name not in _PART_NAMES:
        hint = did_you_mean(name, _PART_NAMES) or f"parts are {', '.join(_PART_NAMES)}"
        raise PenstockError(
            "SQL-1011",
            f"{name} is no part EXTRACT can take",
            span=span_of(tree.expressions[0]),
            hint=hint,
        )
    # the seconds since 1970, BIGINT as in Flink
    if name == "epoch":
        return _epoch(args[1], call, span_of(tree))
    return call(_PARTS.get(name, name), args[1:], span_of(tree))


def _epoch(value: Expression, call: Caller, span: Span | None) -> Expression:
    if isinstance(value.type, TimestampLtz):
        return call("unix_seconds", [value], span)
    begin = Literal(Timestamp(6), False, value=datetime(1970, 1, 1))
    # of an interval: its seconds
    if isinstance(value.type, DayTimeInterval):
        value = call("add", [begin, value], span)
    return call("timestampdiff", [Literal(STRING, False, value="SECOND"), begin, value], span)


def decoded(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``decode(x, a, b, .., otherwise)`` as CASE, where NULL matches NULL."""
    pairs, default = args[1:], None
    # An odd argument at the end is the default.
    if len(pairs) % 2:
        pairs, default = pairs[:-1], pairs[-1]
    branches = [
        (call("null_safe_equal", [args[0], wanted], span), value)
        for wanted, value in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    return case_of(branches, default, span)


def similar(
    value: Expression, pattern: Expression, escape: exp.Expr | None, call: Caller, span: Span | None
) -> Expression:
    """Return ``x SIMILAR TO pattern`` as a regular expression. Raises SQL-1011 for a pattern that is not
    constant or not well formed.
    """
    # translated once, at planning: a pattern per row would be translated for each row
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        hint = "write x RLIKE pattern, with a regular expression"
        raise PenstockError(
            "SQL-1011", "the pattern of SIMILAR TO is no constant text", span=pattern.span or span, hint=hint
        )
    if escape is not None and len(escape.name) != 1:
        raise PenstockError("SQL-1011", "ESCAPE takes one character", span=span_of(escape), sqlstate="22019")
    # without ESCAPE a backslash escapes
    regex = _regex(pattern.value, "\\" if escape is None else escape.name)
    if regex is None:
        hint = "% is any text, _ one character; |, *, +, ?, {n}, () and [] are as in regular expressions"
        raise PenstockError(
            "SQL-1011",
            f"the pattern {pattern.value!r} is not well formed",
            span=pattern.span or span,
            hint=hint,
            sqlstate="2201B",
        )
    return call("rlike", [value, Literal(STRING, False, value=regex, span=pattern.span)], span)


def _regex(pattern: str, escape: str) -> str | None:
    """Return a SIMILAR TO pattern as a regular expression of the whole text, or ``None`` if it is
    malformed.
    """
    out: list[str] = []
    inside, letters = False, iter(pattern)
    for letter in letters:
        # The escaped character is literal, also inside [..].
        if letter == escape:
            follower = next(letters, None)
            if follower is None:
                return None
            out.append(re.escape(follower))
        # [a-z], [^a], [:alpha:]: everything else is escaped
        elif inside:
            inside = letter != "]"
            out.append(letter if letter in "[]^:" or _PLAIN_IN_SETS.match(letter) else "\\" + letter)
        # A set begins.
        elif letter == "[":
            inside = True
            out.append(letter)
        else:
            out.append(
                # % is any text, _ any one character.
                {"%": ".*", "_": "."}.get(letter) or (letter if letter in _SPECIAL else re.escape(letter))
            )
    # (?s): % and _ match line breaks. The engine's end anchor is \z, Python's is \Z.
    whole = rf"(?s)\A(?:{''.join(out)})\z"
    try:
        re.compile(whole.replace(r"\z", r"\Z"))
    except re.error:
        return None
    return None if inside else whole


GROUPING = frozenset({"grouping", "grouping_id"})


@dataclass(frozen=True)
class GroupingMark(Expression):
    """GROUPING: one bit per key, the last key's the lowest, 1 where the row's grouping set leaves the key
    out. No keys: all of GROUP BY.
    """

    keys: tuple[Expression, ...] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.keys

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, keys=children)

    def __str__(self) -> str:
        return f"grouping({', '.join(map(str, self.keys))})"


def bits(marks: list[Expression]) -> Expression:
    """Return the number with ``marks`` as bits, the last one the lowest."""
    total: Expression = Literal(BIGINT, False, value=0)
    for position, mark in enumerate(marks):
        # Horner: ((m0 * 2 + m1) * 2 + m2) ..
        total = mark if position == 0 else Call(BIGINT, False, function="add", args=(_doubled(total), mark))
    return total


def _doubled(number: Expression) -> Expression:
    return Call(BIGINT, False, function="multiply", args=(number, Literal(BIGINT, False, value=2)))
