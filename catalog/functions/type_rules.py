"""Typing rules of functions: from the types of a call's arguments to the types it needs and the type it
returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from penstock.catalog.coercion import (
    as_decimal,
    common_type,
    common_type_of,
    decimal_result,
    implicit_cast,
    is_interval,
    is_orderable,
)
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Float,
    Null,
    String,
    Timestamp,
    TimestampLtz,
    Variant,
    YearMonthInterval,
    holds,
    is_integer,
    is_numeric,
    is_timestamp,
)


@dataclass(frozen=True)
class Operand:
    """One argument as typing sees it: its type, and its value when it is a constant (``constant``)."""

    type: DataType
    constant: bool = False
    value: object = None


class Mismatch(Exception):
    """A rule's refusal: what is wrong in one sentence, and what to write instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


# The types the arguments are cast to, one an argument, and the type of the result.
Typing = tuple[tuple[DataType, ...], DataType]
Rule = Callable[[Sequence[Operand]], Typing]


@dataclass(frozen=True)
class Function:
    """A function of the registry.

    ``usage`` shows a call. ``arity`` is (least, most); most is None where there is no limit. ``nullable``
    None means "NULL when an argument is". ``fallible`` says that it can raise on some values. Of aggregates:
    ``distinct`` and ``ordered`` say whether DISTINCT and ORDER BY are allowed inside.
    """

    name: str
    usage: str
    help: str
    rule: Rule
    arity: tuple[int, int | None]
    aliases: tuple[str, ...] = ()
    nullable: bool | None = None
    deterministic: bool = True
    fallible: bool = False
    distinct: bool = field(default=False, kw_only=True)
    ordered: bool = field(default=False, kw_only=True)


_TIMES = (Date, Timestamp, TimestampLtz)


def wanted(operand: Operand, kind: DataType, position: int) -> DataType:
    """Return ``kind`` if the operand goes there by itself, else refuse."""
    # The binder casts; the rule only says to which type.
    if not implicit_cast(operand.type, kind):
        raise Mismatch(
            f"argument {position} is {operand.type}, wanted {kind}",
            "write time + INTERVAL '1' DAY"
            if isinstance(operand.type, DayTimeInterval)
            else f"write CAST(.. AS {kind}) if that is meant",
        )
    return kind


def fixed(*kinds: DataType, result: DataType) -> Rule:
    """Return the rule of a function with these parameter types; the last repeats, fewer arguments are fine
    (arity guards).
    """

    def rule(operands: Sequence[Operand]) -> Typing:
        # concat(STRING, STRING, ..): the last type for all that follow.
        padded = kinds + kinds[-1:] * (len(operands) - len(kinds))
        return tuple(
            wanted(o, kind, i) for i, (o, kind) in enumerate(zip(operands, padded, strict=False), 1)
        ), result

    return rule


def constant_result(result: DataType) -> Rule:
    """Return the rule of a function of any arguments with one result type."""
    return lambda operands: (tuple(o.type for o in operands), result)


def same(operands: Sequence[Operand]) -> Typing:
    """One type for all arguments and the result (coalesce, greatest)."""
    kind = common_type_of([o.type for o in operands])
    if kind is None:
        listed = ", ".join(str(o.type) for o in operands)
        raise Mismatch(f"the arguments have no common type: {listed}", "CAST them to one type")
    return (kind,) * len(operands), kind


def ordered(operands: Sequence[Operand]) -> Typing:
    """One orderable type for all arguments and the result."""
    kinds, kind = same(operands)
    if not is_orderable(kind):
        raise Mismatch(f"{kind} has no order", _part_of(kind))
    return kinds, kind


def _part_of(kind: DataType) -> str | None:
    return "CAST a value in it: v:name::STRING" if holds(kind, Variant) else None


def comparison(operands: Sequence[Operand]) -> Typing:
    """Two arguments of one orderable type; the result is BOOLEAN."""
    left, right = (o.type for o in operands)
    # price > 2 compares as DECIMAL with one digit for the constant, so that the column is not cast wider.
    kind = common_type(*_fitted(operands))
    if kind is None:
        hint = f"CAST one side, for instance CAST(.. AS {left})"
        # ordered_at > 2024-01-01 is a difference of three numbers
        if isinstance(left, _TIMES) and is_integer(right):
            hint = "write DATE '2024-01-31' or TIMESTAMP '2024-01-31 10:00:00'"
        if isinstance(left, Variant) or isinstance(right, Variant):
            hint = f"write CAST(v AS {right if isinstance(left, Variant) else left})"
        raise Mismatch(f"{left} and {right} cannot be compared", hint)
    if not is_orderable(kind):
        raise Mismatch(f"{kind} values cannot be compared", _part_of(kind))
    return (kind, kind), BOOLEAN


def membership(operands: Sequence[Operand]) -> Typing:
    """``x IN (a, b, ..)``: all of one type, BOOLEAN out."""
    kinds, _ = ordered(operands)
    return kinds, BOOLEAN


def logic(operands: Sequence[Operand]) -> Typing:
    """BOOLEAN in, BOOLEAN out; strings and numbers are no conditions."""
    for position, operand in enumerate(operands, 1):
        if not isinstance(operand.type, Boolean | Null):
            raise Mismatch(
                f"argument {position} is {operand.type}, wanted BOOLEAN", "compare it with something"
            )
    return (BOOLEAN,) * len(operands), BOOLEAN


def _literal_decimal(operand: Operand, other: Operand) -> DataType:
    """An integer constant beside a decimal counts with its own digits only: ``price * 2`` widens by one
    digit, not by ten.
    """
    if (
        operand.constant
        and isinstance(other.type, Decimal)
        and is_integer(operand.type)
        and isinstance(operand.value, int)
    ):
        return Decimal(max(1, len(str(abs(operand.value)))), 0)
    return operand.type


def _fitted(operands: Sequence[Operand]) -> tuple[DataType, DataType]:
    left, right = operands
    return _literal_decimal(left, right), _literal_decimal(right, left)


def _numbers(operands: Sequence[Operand], sign: str) -> tuple[DataType, DataType]:
    """The operand types; a STRING becomes a number by the type of the other operand. Refuses other types."""
    left, right = _fitted(operands)
    # NULL + NULL.
    if isinstance(left, Null) and isinstance(right, Null):
        left = right = DOUBLE
    # '5' + 1 is BIGINT, '5' + 1.5 and '5' + '1' are DOUBLE.
    if isinstance(left, String | Null) and (is_numeric(right) or isinstance(right, String)):
        left = _read_as(right, left)
    if isinstance(right, String | Null) and is_numeric(left):
        right = _read_as(left, right)
    if not is_numeric(left) or not is_numeric(right):
        raise Mismatch(
            f"{operands[0].type} {sign} {operands[1].type} is not defined",
            "CAST the operands to numbers or intervals",
        )
    return left, right


def _read_as(other: DataType, kind: DataType) -> DataType:
    if isinstance(kind, Null):
        return other
    return BIGINT if is_integer(other) else DOUBLE


def _calculate(operator: str, left: DataType, right: DataType) -> Typing:
    a, b = as_decimal(left), as_decimal(right)
    # DECIMAL with an integer is DECIMAL, with a float DOUBLE.
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        if a is not None and b is not None:
            return (a, b), decimal_result(operator, a, b)
        return (DOUBLE, DOUBLE), DOUBLE
    # Two integers, or a FLOAT or DOUBLE on one side at least.
    kind = common_type(left, right)
    assert kind is not None
    return (kind, kind), kind


def arithmetic(operator: str, sign: str) -> Rule:
    """Return the rule of ``+ - * %`` on numbers."""
    return lambda operands: _calculate(operator, *_numbers(operands, sign))


def add(operands: Sequence[Operand]) -> Typing:
    """Numbers; a date or timestamp with an interval in either order; DATE + n days; two intervals of one
    kind.
    """
    left, right = operands
    # INTERVAL + ts is ts + INTERVAL: the types are found for one order and swapped back.
    # Only + may be swapped: INTERVAL - ts has no meaning and is refused by _shifted.
    if is_interval(left.type) and not is_interval(right.type) and not is_numeric(right.type):
        (second, first), result = _shifted(right, left, "+")
        return (first, second), result
    return _shifted(left, right, "+") if _temporal(left, right) else arithmetic("add", "+")(operands)


def subtract(operands: Sequence[Operand]) -> Typing:
    """As ``+``, and the day-time interval between two dates or timestamps."""
    left, right = operands
    moments = (Date, Timestamp, TimestampLtz)
    # ts - ts.
    if isinstance(left.type, moments) and isinstance(right.type, (*moments, String)):
        kind = common_type(left.type, right.type)
        assert kind is not None
        return (kind, kind), DAY_TIME_INTERVAL
    return _shifted(left, right, "-") if _temporal(left, right) else arithmetic("subtract", "-")(operands)


def _temporal(left: Operand, right: Operand) -> bool:
    return (
        is_interval(left.type)
        or is_interval(right.type)
        or isinstance(left.type, Date)
        or isinstance(right.type, Date)
    )


def _shifted(left: Operand, right: Operand, sign: str) -> Typing:
    """A moment moved by an interval, or two intervals of one kind."""
    # The order of the tests matters: a text becomes a TIMESTAMP before the tests of timestamps.
    kind, by = left.type, right.type
    # Intervals of one kind.
    if is_interval(kind) and kind == by:
        return (kind, by), kind
    # '2024-01-01' + INTERVAL: the text is read as a TIMESTAMP.
    if isinstance(kind, String) and is_interval(by):
        kind = TIMESTAMP
    # NULL + INTERVAL is an interval that is NULL.
    if isinstance(kind, Null) and is_interval(by):
        return (by, by), by
    # ts + INTERVAL keeps the precision and the kind of timestamp.
    if is_timestamp(kind) and is_interval(by):
        return (kind, by), kind
    # Months keep a DATE a DATE.
    if isinstance(kind, Date) and isinstance(by, YearMonthInterval):
        return (kind, by), DATE
    # Hours make it a TIMESTAMP, whole days do not.
    if isinstance(kind, Date) and isinstance(by, DayTimeInterval):
        return ((DATE, by), DATE) if _whole_days(right) else ((TIMESTAMP, by), TIMESTAMP)
    # DATE + 3 is three days.
    if isinstance(kind, Date) and is_integer(by):
        return (DATE, INT), DATE
    if isinstance(kind, Date) and isinstance(by, Null):
        return (DATE, INT), DATE
    raise Mismatch(
        f"{left.type} {sign} {right.type} is not defined",
        "intervals go with DATE, TIMESTAMP and intervals of their own kind",
    )


def _whole_days(operand: Operand) -> bool:
    """Whether an interval is a constant number of days: a DATE moved by it stays a DATE."""
    seconds = getattr(operand.value, "total_seconds", None)
    return operand.constant and seconds is not None and seconds() % 86400 == 0


def multiply(operands: Sequence[Operand]) -> Typing:
    """Numbers, or an interval and a number in either order."""
    left, right = (o.type for o in operands)
    # INTERVAL '1' HOUR * 3, and the other way round below.
    if is_interval(left) and is_numeric(right):
        return (left, _factor(right)), left
    if is_interval(right) and is_numeric(left):
        return (_factor(left), right), right
    return arithmetic("multiply", "*")(operands)


def _factor(kind: DataType) -> DataType:
    # A whole factor stays exact.
    return BIGINT if is_integer(kind) else DOUBLE


def divide(operands: Sequence[Operand]) -> Typing:
    """``/``: DOUBLE, or DECIMAL when one side is and none is a float; an interval by a number."""
    left, right = (o.type for o in operands)
    # INTERVAL '1' HOUR / 2; a number by an interval is refused below.
    if is_interval(left) and is_numeric(right):
        return (left, _factor(right)), left
    left, right = _numbers(operands, "/")
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return _calculate("divide", left, right)
    return (DOUBLE, DOUBLE), DOUBLE


def integral_divide(operands: Sequence[Operand]) -> Typing:
    """``DIV``: BIGINT, cut towards zero."""
    left, right = _numbers(operands, "DIV")
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        # DECIMAL DIV DECIMAL divides decimals; only the quotient is a BIGINT.
        a, b = as_decimal(left), as_decimal(right)
        if a is not None and b is not None:
            return (a, b), BIGINT
    if is_integer(left) and is_integer(right):
        return (BIGINT, BIGINT), BIGINT
    raise Mismatch(
        f"{operands[0].type} DIV {operands[1].type} is not defined",
        "DIV divides integers and decimals; write / for floats",
    )


def signed(operands: Sequence[Operand]) -> Typing:
    """A number or interval keeps its type (negate, abs); strings are read as DOUBLE."""
    kind = operands[0].type
    # -'5' is -5.0, as in Spark.
    if isinstance(kind, String | Null):
        return (DOUBLE,), DOUBLE
    if not is_numeric(kind) and not is_interval(kind):
        raise Mismatch(f"argument 1 is {kind}, wanted a number")
    return (kind,), kind


def rounded_up_or_down(operands: Sequence[Operand]) -> Typing:
    """``ceil``/``floor``: BIGINT, or a decimal without fraction."""
    kind = operands[0].type
    if isinstance(kind, Decimal):
        # One digit more: ceil(9.9) is 10.
        return (kind,), Decimal(min(38, kind.precision - kind.scale + 1), 0)
    if is_integer(kind):
        return (BIGINT,), BIGINT
    return (wanted(operands[0], DOUBLE, 1),), BIGINT


def rounded(operands: Sequence[Operand]) -> Typing:
    """``round(x, d)``: keeps the type; a decimal's scale follows a constant ``d``."""
    kind = operands[0].type
    digits = operands[1].value if len(operands) > 1 else 0
    # The type of a decimal result follows the digits, so they are a constant.
    if len(operands) > 1 and not (operands[1].constant and isinstance(digits, int)):
        raise Mismatch("the number of digits must be a constant integer")
    tail = (INT,) if len(operands) > 1 else ()
    if isinstance(kind, Decimal):
        assert isinstance(digits, int)
        # One digit more: round(9.9) is 10.
        integral = kind.precision - kind.scale + 1
        # round(99, -2) is 100: no fraction, and one digit more than are rounded off.
        if digits < 0:
            return (kind, *tail), Decimal(min(38, max(integral, 1 - digits)), 0)
        scale = min(kind.scale, digits)
        return (kind, *tail), Decimal(min(38, integral + scale), scale)
    # Rounding an INT to hundreds is an INT still; it may overflow, which raises.
    if is_integer(kind) or isinstance(kind, Float):
        return (kind, *tail), kind
    return (wanted(operands[0], DOUBLE, 1), *tail), DOUBLE


def summed(operands: Sequence[Operand]) -> Typing:
    """``sum``: integers to BIGINT, DECIMAL(p, s) to DECIMAL(p + 10, s), floats to DOUBLE."""
    kind = operands[0].type
    # Spark's rule; Flink's sum of an INT is an INT, which overflows sooner.
    if is_integer(kind):
        return (kind,), BIGINT
    if isinstance(kind, Decimal):
        # Spark's rule: ten digits more, for up to 10**10 rows.
        return (kind,), Decimal(min(38, kind.precision + 10), kind.scale)
    return (_floating(operands[0]),), DOUBLE


def averaged(operands: Sequence[Operand]) -> Typing:
    """``avg``: DECIMAL(p, s) to DECIMAL(p + 4, s + 4), everything else to DOUBLE."""
    kind = operands[0].type
    if isinstance(kind, Decimal):
        # Spark's rule: four digits more behind the point.
        return (kind,), Decimal(min(38, kind.precision + 4), min(38, kind.scale + 4))
    return (kind if is_integer(kind) else _floating(operands[0]),), DOUBLE


def _floating(operand: Operand) -> DataType:
    # A FLOAT is not cast before; the result is DOUBLE all the same.
    return FLOAT if isinstance(operand.type, Float) else wanted(operand, DOUBLE, 1)


def zero_if_null(operands: Sequence[Operand]) -> Typing:
    """A number, of the type it has together with the INT 0."""
    # zeroifnull(x) is coalesce(x, 0).
    kind = common_type(operands[0].type, INT)
    if kind is None or not is_numeric(kind):
        raise Mismatch(f"argument 1 is {operands[0].type}, wanted a number")
    return (kind,), kind


def conditional(operands: Sequence[Operand]) -> Typing:
    """``if(condition, a, b)`` and ``nvl2(x, a, b)``: the branches share a type."""
    # The condition (or x of nvl2) has its own type; only the branches meet.
    (_, _), kind = same(operands[1:])
    return (operands[0].type if operands[0].type != NULL else BOOLEAN, kind, kind), kind


def nullif(operands: Sequence[Operand]) -> Typing:
    """``nullif(a, b)``: compared in the common type, the result keeps the type of ``a``."""
    # nullif(1, 1.5) compares two DECIMALs and returns an INT.
    kinds, _ = comparison(operands)
    return kinds, operands[0].type


def moment(operands: Sequence[Operand]) -> DataType:
    """Return the timestamp type of a first argument that is a point in time; dates and strings become
    TIMESTAMP.
    """
    kind = operands[0].type
    return kind if is_timestamp(kind) else wanted(operands[0], TIMESTAMP, 1)


def of_moment(result: DataType) -> Rule:
    """Return the rule of a function of a point in time."""
    return lambda operands: ((moment(operands),), result)


def concatenated(operands: Sequence[Operand]) -> Typing:
    """Strings (anything prints itself); all BINARY stays BINARY."""
    return fixed(STRING, result=STRING)(operands)
