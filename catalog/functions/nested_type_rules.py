"""Typing rules of functions of arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zoneinfo import available_timezones

from penstock.catalog.coercion import common_type, common_type_of, is_orderable
from penstock.catalog.functions.type_rules import Mismatch, Operand, Rule, Typing, concatenated, wanted
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Array,
    DataType,
    Date,
    DayTimeInterval,
    Map,
    Null,
    Row,
    Timestamp,
    TimestampLtz,
    YearMonthInterval,
    is_integer,
    is_numeric,
)


def array_type(operand: Operand, position: int) -> Array:
    """Return the type of an argument that is an array (NULL counts as one), else refuse."""
    # array_distinct(NULL) is allowed, and NULL.
    if isinstance(operand.type, Null):
        return Array(NULL)
    if not isinstance(operand.type, Array):
        raise Mismatch(f"argument {position} is {operand.type}, wanted an ARRAY")
    return operand.type


def map_type(operand: Operand, position: int) -> Map:
    """Return the type of an argument that is a map, else refuse."""
    if not isinstance(operand.type, Map):
        raise Mismatch(f"argument {position} is {operand.type}, wanted a MAP")
    return operand.type


def _common(kinds: Sequence[DataType], what: str) -> DataType:
    kind = common_type_of(list(kinds))
    if kind is None:
        raise Mismatch(
            f"the {what} have no common type: {', '.join(dict.fromkeys(map(str, kinds)))}",
            "CAST them to one type",
        )
    return kind


def _order_of(kind: DataType) -> DataType:
    # A MAP has no order, so elements that contain one cannot be compared.
    if not is_orderable(kind):
        raise Mismatch(f"{kind} values cannot be compared")
    return kind


def _key(kind: DataType) -> DataType:
    # Maps cannot be compared: the value of such a key could not be looked up.
    if isinstance(kind, Map):
        raise Mismatch("a MAP cannot be a key of a map")
    if isinstance(kind, Null):
        raise Mismatch(
            "NULL cannot be the key of a MAP",
            "a key is never NULL; CAST keys that have no type: CAST(array() AS ARRAY<INT>)",
        )
    return kind


def array_of(operands: Sequence[Operand]) -> Typing:
    """``array(a, b, ..)``: elements of one type."""
    kind = _common([o.type for o in operands], "elements")
    # array() has no elements: its type is ARRAY<NULL> until something widens it.
    return (kind,) * len(operands), Array(kind)


def map_of(operands: Sequence[Operand]) -> Typing:
    """``map(k, v, ..)``: keys of one type, values of one type."""
    # map(k1, v1, k2, v2, ..)
    if len(operands) % 2:
        raise Mismatch("keys and values come in pairs, the last value is missing")
    key = _key(_common([o.type for o in operands[::2]], "keys"))
    value = _common([o.type for o in operands[1::2]], "values")
    return (key, value) * (len(operands) // 2), Map(key, value)


def row_of(operands: Sequence[Operand]) -> Typing:
    """``struct(a, b, ..)``: a row with fields col1, col2, .. (the binder knows better names)."""
    # struct(1, 'a') is ROW<col1 INT, col2 STRING>, as in Spark.
    kinds = tuple(o.type for o in operands)
    return kinds, Row(tuple((f"col{i}", kind) for i, kind in enumerate(kinds, 1)))


def named_row(operands: Sequence[Operand]) -> Typing:
    """``named_struct('a', x, ..)``: names are constants, each once."""
    if len(operands) % 2:
        raise Mismatch("names and values come in pairs, the last value is missing")
    names = [o.value for o in operands[::2]]
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise Mismatch(
                f"argument {2 * position + 1} is no constant text",
                "name a field in quotes, as in named_struct('x', 1)",
            )
    # Fields are read without regard to case.
    if len({str(name).lower() for name in names}) < len(names):
        raise Mismatch("a field is named twice")
    kinds = tuple(o.type for o in operands)
    return kinds, Row(tuple((str(name), kind) for name, kind in zip(names, kinds[1::2], strict=True)))


def field(operands: Sequence[Operand]) -> Typing:
    """``row.field``: the position of the field is a constant."""
    row, position = operands
    # The binder has turned the field's name into its position.
    assert isinstance(row.type, Row) and isinstance(position.value, int)
    return (row.type, INT), row.type.fields[position.value][1]


def element(operands: Sequence[Operand]) -> Typing:
    """``a[i]``, ``element_at``: an element of an array by its position, a value of a map by its key."""
    container, place = operands
    # The key may be of a narrower type than the map's keys, not of a wider one.
    if isinstance(container.type, Map):
        kind = common_type(container.type.key, place.type)
        if kind != container.type.key:
            raise Mismatch(
                f"the keys are {container.type.key}, this is {place.type}",
                f"write CAST(.. AS {container.type.key})",
            )
        return (container.type, container.type.key), container.type.value
    # A text or a row has no elements: row.field and substr(s, i, 1) read their parts.
    if not isinstance(container.type, Array):
        raise Mismatch(f"{container.type} has no elements", "elements are read of an ARRAY or a MAP")
    return (container.type, _index(place, 2)), container.type.element


def array_element(operands: Sequence[Operand]) -> Typing:
    """``get(a, i)``: an element of an array."""
    return (array_type(operands[0], 1), _index(operands[1], 2)), array_type(operands[0], 1).element


def _index(operand: Operand, position: int) -> DataType:
    if not is_integer(operand.type) and not isinstance(operand.type, Null):
        raise Mismatch(f"argument {position} is {operand.type}, wanted an integer")
    return wanted(operand, INT, position)


def with_element(result: DataType | None = None) -> Rule:
    """Return the rule of a function of an array and a value beside its elements; ``None``: the result is such
    an array.
    """

    def rule(operands: Sequence[Operand]) -> Typing:
        # array_contains(ARRAY<INT>, 2.5) compares as the common type of the elements and the value.
        kind = _order_of(
            _common([array_type(operands[0], 1).element, operands[1].type], "elements and the value")
        )
        return (Array(kind), kind), Array(kind) if result is None else result

    return rule


def of_array(
    result: Callable[[DataType], DataType], *more: DataType, compares: bool = False, orders: bool = False
) -> Rule:
    """Return the rule of a function of one array and arguments of fixed types; ``result`` makes its type
    of the elements'.
    """

    def rule(operands: Sequence[Operand]) -> Typing:
        kind = array_type(operands[0], 1)
        # array_distinct and array_sort need an order, array_compact does not.
        if compares or orders:
            _order_of(kind.element)
        rest = tuple(
            wanted(o, want, i) for i, (o, want) in enumerate(zip(operands[1:], more, strict=False), 2)
        )
        return (kind, *rest), result(kind.element)

    return rule


def of_arrays(result: DataType | None = None) -> Rule:
    """Return the rule of a function of several arrays of one type that compares their elements."""

    def rule(operands: Sequence[Operand]) -> Typing:
        # array_union(ARRAY<INT>, ARRAY<BIGINT>) is an ARRAY<BIGINT>.
        kind = _order_of(_common([array_type(o, i).element for i, o in enumerate(operands, 1)], "elements"))
        return (Array(kind),) * len(operands), Array(kind) if result is None else result

    return rule


def joined_texts(operands: Sequence[Operand]) -> Typing:
    """``array_join``: elements as texts."""
    element = array_type(operands[0], 1).element
    # Only flat elements have one text.
    if isinstance(element, Array | Map | Row):
        raise Mismatch(f"argument 1 is {operands[0].type}, wanted an ARRAY<STRING>")
    return (Array(STRING), *(wanted(o, STRING, i) for i, o in enumerate(operands[1:], 2))), STRING


def flattened(operands: Sequence[Operand]) -> Typing:
    """``flatten``: an array of arrays."""
    inner = array_type(operands[0], 1).element
    if not isinstance(inner, Array):
        raise Mismatch(f"argument 1 is {operands[0].type}, wanted an ARRAY of arrays")
    return (Array(inner),), inner


def repeated(operands: Sequence[Operand]) -> Typing:
    """``array_repeat``: any value."""
    return (operands[0].type, wanted(operands[1], INT, 2)), Array(operands[0].type)


def sequence(operands: Sequence[Operand]) -> Typing:
    """``sequence(first, last[, step])``: integers, dates or timestamps; a step of time is an interval."""
    kind = _common([o.type for o in operands[:2]], "bounds")
    # sequence(1, 9, 2)
    if is_integer(kind):
        kind = _common([kind, *(o.type for o in operands[2:])], "arguments")
        if not is_integer(kind):
            raise Mismatch("the step is no integer")
        return (kind,) * len(operands), Array(kind)
    if not isinstance(kind, Date | Timestamp | TimestampLtz):
        raise Mismatch(f"a sequence of {kind} does not exist", "its bounds are integers, dates or timestamps")
    # sequence(DATE .., DATE .., INTERVAL '1' DAY)
    steps = tuple(o.type for o in operands[2:])
    if any(not isinstance(step, DayTimeInterval | YearMonthInterval) for step in steps):
        raise Mismatch("the step of a sequence of times is an INTERVAL")
    # The step keeps its type: months and days move a time in different ways.
    return (kind, kind, *steps), Array(kind)


def of_map(result: Callable[[Map], DataType]) -> Rule:
    """Return the rule of a function of one map."""
    return lambda operands: ((map_type(operands[0], 1),), result(map_type(operands[0], 1)))


def entry(kind: Map) -> Row:
    """Return the type of an entry of a map."""
    return Row((("key", kind.key), ("value", kind.value)))


def has_key(operands: Sequence[Operand]) -> Typing:
    """``map_contains_key``."""
    kind = map_type(operands[0], 1)
    # As for m[key]: the key may be narrower than the map's keys, not wider.
    if common_type(kind.key, operands[1].type) != kind.key:
        raise Mismatch(
            f"the keys are {kind.key}, argument 2 is {operands[1].type}", f"write CAST(.. AS {kind.key})"
        )
    return (kind, _order_of(kind.key)), BOOLEAN


def binned(operands: Sequence[Operand]) -> Typing:
    """``histogram_bins``: a map of numbers and counts, and a constant number of bins."""
    kind = map_type(operands[0], 1)
    if not (is_numeric(kind.key) and is_integer(kind.value)):
        raise Mismatch(f"argument 1 is {kind}, wanted a map of numbers and counts", "write histogram(x)")
    bins = operands[1].value if operands[1].constant else None
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins < 1 << 31:
        raise Mismatch("the number of bins is a constant of 2 or more", "write 10")
    return (Map(DOUBLE, BIGINT), INT), Array(Row((("x", DOUBLE), ("y", DOUBLE))))


def map_of_arrays(operands: Sequence[Operand]) -> Typing:
    """``map_from_arrays``: an array of keys and one of values."""
    keys, values = array_type(operands[0], 1), array_type(operands[1], 2)
    return (keys, values), Map(_key(keys.element), values.element)


def map_of_entries(operands: Sequence[Operand]) -> Typing:
    """``map_from_entries``: an array of rows of two fields."""
    kind = array_type(operands[0], 1)
    if not isinstance(kind.element, Row) or len(kind.element.fields) != 2:
        raise Mismatch(f"argument 1 is {operands[0].type}, wanted an ARRAY of rows of two fields")
    # By position: the names of the two fields do not matter.
    (_, key), (_, value) = kind.element.fields
    return (kind,), Map(_key(key), value)


def maps_joined(operands: Sequence[Operand]) -> Typing:
    """``map_concat``: maps of one type."""
    kind = _common([map_type(o, i) for i, o in enumerate(operands, 1)], "maps")
    return (kind,) * len(operands), kind


def sized(operands: Sequence[Operand]) -> Typing:
    """``size``: an array or a map."""
    kind = operands[0].type
    if not isinstance(kind, Array | Map | Null):
        raise Mismatch(f"argument 1 is {kind}, wanted an ARRAY or a MAP")
    # An untyped NULL is cast to an array, whose size is NULL.
    return (Array(NULL) if isinstance(kind, Null) else kind,), INT


def reversed_value(operands: Sequence[Operand]) -> Typing:
    """``reverse``: a text or an array."""
    kind = operands[0].type
    # An array keeps its type; everything else is a text.
    if isinstance(kind, Array):
        return (kind,), kind
    return (wanted(operands[0], STRING, 1),), STRING


def concatenated_values(operands: Sequence[Operand]) -> Typing:
    """``concat``, ``||``: texts, or arrays of one type."""
    # array || array
    if any(isinstance(o.type, Array) for o in operands):
        kind = _common([o.type for o in operands], "arrays")
        if isinstance(kind, Array):
            return (kind,) * len(operands), kind
    # Anything else prints itself: 'a' || 5 is 'a5'.
    return concatenated(operands)


def at_zone(operands: Sequence[Operand]) -> Typing:
    """``t AT TIME ZONE z``: a wall-clock time becomes an instant, an instant the wall-clock time there."""
    kind = operands[0].type
    # A constant, so that a wrong name is an error of the statement and not of a row.
    if not (operands[1].constant and isinstance(operands[1].value, str)):
        raise Mismatch("the zone is no constant text", "write AT TIME ZONE 'Europe/Berlin'")
    # By the names of the zone database; an offset such as '+01:00' is no zone here.
    if operands[1].value not in available_timezones():
        raise Mismatch(
            f'there is no time zone "{operands[1].value}"',
            did_you_mean(operands[1].value, sorted(available_timezones())),
        )
    # An instant to the wall clock there.
    if isinstance(kind, TimestampLtz):
        return (kind, STRING), Timestamp(kind.precision)
    # A wall clock there to the instant.
    if isinstance(kind, Timestamp):
        return (kind, STRING), TimestampLtz(kind.precision)
    return (wanted(operands[0], TIMESTAMP, 1), STRING), TIMESTAMP_LTZ
