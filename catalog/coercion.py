"""Type coercion as Spark SQL does it in ANSI mode: common types, implicit casts, decimal arithmetic."""

from __future__ import annotations

import re

from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTEGERS,
    MAX_DECIMAL_PRECISION,
    NULL,
    SMALLINT,
    TIME,
    TINYINT,
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    Map,
    Null,
    Row,
    String,
    Time,
    Timestamp,
    TimestampLtz,
    Variant,
    YearMonthInterval,
    is_integer,
    is_numeric,
    is_timestamp,
)

# Spark's DecimalType.MINIMUM_ADJUSTED_SCALE: a result above 38 digits keeps this many behind the point.
MINIMUM_ADJUSTED_SCALE = 6

# Digits of the decimal type that an integer becomes beside a decimal; Spark uses these numbers too.
# 2**63 - 1 has 19 digits, but Spark says 20, and result types of arithmetic follow from it.
_INTEGER_DIGITS: dict[DataType, int] = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def is_interval(kind: DataType) -> bool:
    """Return whether a type is a day-time or a year-month interval."""
    return isinstance(kind, DayTimeInterval | YearMonthInterval)


def is_orderable(kind: DataType) -> bool:
    """Return whether values of a type have an order: all but maps and VARIANT, as far as its parts have
    one.
    """
    match kind:
        # Two maps with the same entries may have them in another order.
        case Map() | Variant():
            return False
        case Array(element):
            return is_orderable(element)
        case Row(fields):
            return all(is_orderable(part) for _, part in fields)
    return True


def as_decimal(kind: DataType) -> Decimal | None:
    """Return the decimal type that holds every value of an integer or decimal type, or ``None`` for other
    types.
    """
    if isinstance(kind, Decimal):
        return kind
    digits = _INTEGER_DIGITS.get(kind)
    return None if digits is None else Decimal(digits, 0)


def adjusted_decimal(precision: int, scale: int) -> Decimal:
    """Return the decimal type of an arithmetic result. Above 38 digits the scale shrinks, to six digits at
    least (Spark's precision loss).
    """
    if precision <= MAX_DECIMAL_PRECISION:
        return Decimal(precision, scale)
    # DECIMAL(38, 10) * DECIMAL(38, 10) asks for (77, 20) and becomes DECIMAL(38, 6).
    # Digits before the point come first; the scale keeps six digits at least, as in Spark.
    integral = precision - scale
    kept = min(scale, MINIMUM_ADJUSTED_SCALE)
    return Decimal(MAX_DECIMAL_PRECISION, max(MAX_DECIMAL_PRECISION - integral, kept))


def bounded_decimal(precision: int, scale: int) -> Decimal:
    """Return a decimal type with both numbers cut to 38."""
    return Decimal(min(precision, MAX_DECIMAL_PRECISION), min(scale, MAX_DECIMAL_PRECISION))


def wider_decimal(a: Decimal, b: Decimal) -> Decimal:
    """Return the decimal type that holds the values of both, as far as 38 digits go."""
    scale = max(a.scale, b.scale)
    return bounded_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def decimal_result(operator: str, a: Decimal, b: Decimal) -> Decimal:
    """Return the result type of ``add``, ``subtract``, ``multiply``, ``divide``, ``mod`` or ``pmod`` on
    two decimal types.
    """
    scale = max(a.scale, b.scale)
    match operator:
        # One digit more for the carry.
        case "add" | "subtract":
            return adjusted_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
        # DECIMAL(5, 2) * DECIMAL(4, 1) is DECIMAL(10, 3).
        case "multiply":
            return adjusted_decimal(a.precision + b.precision + 1, a.scale + b.scale)
        # As many digits behind the point as the divisor may need, at least six.
        case "divide":
            scale = max(MINIMUM_ADJUSTED_SCALE, a.scale + b.precision + 1)
            return adjusted_decimal(a.precision - a.scale + b.scale + scale, scale)
        # The remainder is below the smaller operand.
        case "mod" | "pmod":
            return adjusted_decimal(max(1, min(a.precision - a.scale, b.precision - b.scale) + scale), scale)
    raise AssertionError(operator)


def common_type(a: DataType, b: DataType) -> DataType | None:
    """Return the type both types widen to, or ``None``; a string next to a number becomes that number
    (BIGINT or DOUBLE).
    """
    # An untyped NULL takes the type of the other side.
    if a == b or isinstance(b, Null):
        return a
    if isinstance(a, Null):
        return b
    if is_numeric(a) and is_numeric(b):
        return _common_number(a, b)
    # '5' = 5 compares numbers.
    if isinstance(a, String) or isinstance(b, String):
        return _common_with_string(b if isinstance(a, String) else a)
    # A DATE is its midnight.
    # DATE '2024-01-01' < ts: both sides become timestamps.
    if isinstance(a, Date) and is_timestamp(b):
        return b
    if is_timestamp(a) and isinstance(b, Date):
        return a
    if is_timestamp(a) and is_timestamp(b):
        return _common_timestamp(a, b)
    # Types without a rule have no common type: BOOLEAN and a number, TIME and DATE, intervals of two kinds.
    return _common_nested(a, b)


def common_type_of(kinds: list[DataType]) -> DataType | None:
    """Return the common type of a list: strings are met last, so that (STRING, INT, INT) and (INT, STRING,
    INT) agree.
    """
    # A STRING becomes the type that it meets first: the result would depend on the order of arguments.
    # sorted() is stable: the types that are no STRING stay in the order of the arguments.
    ordered = sorted(kinds, key=lambda kind: isinstance(kind, String))
    result: DataType = NULL
    for kind in ordered:
        wider = common_type(result, kind)
        if wider is None:
            return None
        result = wider
    return result


def _common_number(a: DataType, b: DataType) -> DataType:
    # INTEGERS is ordered by width.
    if is_integer(a) and is_integer(b):
        return INTEGERS[max(INTEGERS.index(a), INTEGERS.index(b))]
    # A float on either side makes both DOUBLE.
    left, right = as_decimal(a), as_decimal(b)
    if left is not None and right is not None:
        return wider_decimal(left, right)
    return DOUBLE


def _common_with_string(other: DataType) -> DataType | None:
    # A text may be any integer, so the widest.
    if is_integer(other):
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    # '2024-01-01' < DATE .. compares dates: the text is the side that is cast.
    if isinstance(other, Boolean | Binary | Date | Time | Timestamp | TimestampLtz):
        return other
    return None


def _common_timestamp(a: DataType, b: DataType) -> DataType:
    assert isinstance(a, Timestamp | TimestampLtz) and isinstance(b, Timestamp | TimestampLtz)
    # The greater precision loses nothing of either.
    precision = max(a.precision, b.precision)
    # A time without a zone is one of the session's time zone.
    if isinstance(a, TimestampLtz) or isinstance(b, TimestampLtz):
        return TimestampLtz(precision)
    return Timestamp(precision)


def _common_nested(a: DataType, b: DataType) -> DataType | None:
    match a, b:
        # ARRAY<INT> and ARRAY<BIGINT> meet as ARRAY<BIGINT>.
        case Array(left), Array(right):
            element = common_type(left, right)
            return None if element is None else Array(element)
        # Keys and values widen by themselves; one part without a common type leaves the map without one.
        case Map(left_key, left_value), Map(right_key, right_value):
            key, value = common_type(left_key, right_key), common_type(left_value, right_value)
            return None if key is None or value is None else Map(key, value)
        # Fields meet by position; the names of the left row stay.
        case Row(left), Row(right) if len(left) == len(right):
            kinds = [common_type(mine, theirs) for (_, mine), (_, theirs) in zip(left, right, strict=True)]
            if any(kind is None for kind in kinds):
                return None
            return Row(
                tuple((name, kind) for (name, _), kind in zip(left, kinds, strict=True) if kind is not None)
            )
    return None


# 1, 1.5, .5, 1e3, 2d, inf, NaN: what any numeric cast may read.
_NUMBER = re.compile(
    r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[df]?|inf(?:inity)?|nan)\s*", re.IGNORECASE
)
# 2024, 2024-1, 2024-01-31: the groups are month and day.
_DAY = re.compile(r"\s*[+-]?\d{4,7}(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?!\d|-)")
# At least the words that CAST to BOOLEAN reads: one that is missing would refuse a valid query.
_TRUTHS = frozenset(("t", "true", "y", "yes", "1", "on", "f", "false", "n", "no", "0", "off"))


def may_read(text: str, kind: DataType) -> bool:
    """Return whether a text may be one of a type's values; False only where no cast of it can ever
    succeed.
    """
    if is_numeric(kind):
        return _NUMBER.fullmatch(text) is not None
    if isinstance(kind, Boolean):
        return text.strip().lower() in _TRUTHS
    # Only month and day are compared with their limits: 2024-02-31 passes here and fails in the cast.
    if isinstance(kind, Date) or (is_timestamp(kind) and ":" not in text):  # a time alone is one of today
        day = _DAY.match(text)
        return day is not None and 1 <= int(day[1] or 1) <= 12 and 1 <= int(day[2] or 1) <= 31
    # A time has a digit at least; for every other type nothing can be ruled out.
    return not (isinstance(kind, Time) or is_timestamp(kind)) or re.search(r"\d", text) is not None


def can_cast(a: DataType, b: DataType) -> bool:
    """Return whether CAST from ``a`` to ``b`` exists (single values may still fail to cast)."""
    if a == b or isinstance(a, Null):
        return True
    # Every value has a text, nested ones too.
    if isinstance(b, String):
        return True
    if isinstance(a, Variant) or isinstance(b, Variant):
        return _has_json(b if isinstance(a, Variant) else a, read=isinstance(a, Variant))
    if isinstance(a, String):
        # A text is never parsed into a nested value or an interval; from_json reads nested values.
        return not (isinstance(b, Null | Array | Map | Row) or is_interval(b))
    # Numbers are seconds since 1970 for TIMESTAMP_LTZ; other times have no such number.
    if is_numeric(a):
        return is_numeric(b) or isinstance(b, Boolean | TimestampLtz)
    # TRUE is 1, FALSE is 0.
    if isinstance(a, Boolean):
        return is_numeric(b)
    if isinstance(a, Date):
        return is_timestamp(b)
    if is_timestamp(a):
        return (
            isinstance(b, Date)
            or is_timestamp(b)
            # Only an instant counts seconds since 1970: a wall clock without a zone is no number.
            or (isinstance(a, TimestampLtz) and is_numeric(b))
            or isinstance(b, Time)
        )
    if isinstance(a, Array) and isinstance(b, Array):
        return can_cast(a.element, b.element)
    if isinstance(a, Map) and isinstance(b, Map):
        return can_cast(a.key, b.key) and can_cast(a.value, b.value)
    # By position, as in Spark: names do not matter.
    if isinstance(a, Row) and isinstance(b, Row):
        pairs = zip(a.fields, b.fields, strict=False)
        return len(a.fields) == len(b.fields) and all(
            can_cast(mine, theirs) for (_, mine), (_, theirs) in pairs
        )
    return False


def _has_json(kind: DataType, read: bool) -> bool:
    """Return whether a type is cast to VARIANT, or from it (``read``). Only a text of JSON is read as a time:
    times and bytes are cast to STRING first.
    """
    match kind:
        case Array(element):
            return _has_json(element, read)
        case Map(key, value):
            return isinstance(key, String) and _has_json(value, read)
        case Row(fields):
            return all(_has_json(part, read) for _, part in fields)
        case Date() | Time() | Timestamp() | TimestampLtz():
            return read
    return is_numeric(kind) or isinstance(kind, Boolean | String | Variant | Null)


def implicit_cast(given: DataType, wanted: DataType) -> bool:
    """Return whether a function that wants one type takes an argument of another by itself."""
    if given == wanted or isinstance(given, Null):
        return True
    # upper(5): everything but nested values and intervals prints itself.
    if isinstance(wanted, String):
        return is_numeric(given) or isinstance(given, Boolean | Date | Time | Timestamp | TimestampLtz)
    # A DOUBLE or DECIMAL is never cut to an integer in silence: that needs a CAST.
    if is_integer(wanted):
        return is_integer(given) or isinstance(given, String)
    if isinstance(wanted, Double | Float | Decimal):
        return is_numeric(given) or isinstance(given, String)
    # A number is no condition: write x <> 0.
    if wanted == BOOLEAN:
        return isinstance(given, String)
    if wanted == DATE or is_timestamp(wanted):
        return is_timestamp(given) or isinstance(given, Date | String)
    return wanted == TIME and isinstance(given, String)
