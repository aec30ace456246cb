"""Spark's spellings of array, map and row functions."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.types import Map, Row, TimestampLtz
from penstock.planner.expressions.nodes import Call, Literal
from penstock.planner.sql_generator.dialect import Spelling, binary, cast, function, integer, same_names, text
from penstock.planner.sql_generator.spark.intervals import interval_us, us_interval


def field_name(call: Call) -> str:
    """Return the name of the field that a call reads."""
    row, place = call.args
    assert isinstance(row.type, Row) and isinstance(place, Literal) and isinstance(place.value, int)
    return row.type.fields[place.value][0]


def _field(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return exp.Dot(this=exp.Paren(this=args[0]), expression=exp.to_identifier(field_name(call), quoted=True))


def _element(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # A missing key and a position outside the array are NULL, where element_at would raise.
    if isinstance(call.args[0].type, Map):
        return function("try_element_at", *args)
    return function("get", args[0], binary(exp.Sub, args[1], integer(1)))


def _struct(call: Call, args: list[exp.Expr]) -> exp.Expr:
    assert isinstance(call.type, Row)
    return function(
        "named_struct",
        *(part for (name, _), arg in zip(call.type.fields, args, strict=True) for part in (text(name), arg)),
    )


def _at_time_zone(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # By way of UTC, which has no hour twice. convert_timezone moves wall clocks from one zone to another.
    utc, epoch = text("UTC"), cast(text("1970-01-01"), exp.DataType.build("TIMESTAMP_NTZ", dialect="spark"))
    if isinstance(call.args[0].type, TimestampLtz):
        clock = binary(exp.Add, epoch, us_interval(function("unix_micros", args[0])))
        return function("convert_timezone", utc, args[1], clock)
    since = binary(exp.Sub, function("convert_timezone", args[1], utc, args[0]), epoch)
    return function("timestamp_micros", interval_us(since))


SPARK_NESTED: dict[str, Spelling] = {
    **same_names(
        "array map named_struct element_at try_element_at get size array_contains array_position "
        "array_remove array_append array_prepend "
        "array_distinct array_compact sort_array array_sort array_join array_min array_max "
        "array_union array_intersect array_except arrays_overlap "
        "array_repeat slice flatten sequence split map_keys map_values map_entries map_contains_key "
        "map_from_arrays map_from_entries map_concat "
        "str_to_map transform filter exists forall aggregate zip_with map_filter transform_keys "
        "transform_values"
    ),
    "field": _field,
    "element": _element,
    "struct": _struct,
    "at_time_zone": _at_time_zone,
}
