"""Filters that Spark pushes down, as Arrow expressions that pass exactly the rows that Spark's own filters
pass.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark

Condition = tuple[str, str, Any]
"""A filter as data: its kind, its column, its value."""

_COMPARISONS = (spark.GreaterThan, spark.GreaterThanOrEqual, spark.LessThan, spark.LessThanOrEqual)
_TEXTS = (spark.StringStartsWith, spark.StringEndsWith, spark.StringContains)
# dt.datetime is a dt.date
_VALUES = (bool, int, float, str, bytes, dt.date, Decimal)


def split(filters: Iterable[spark.Filter], schema: pa.Schema) -> tuple[list[Condition], list[spark.Filter]]:
    """Return the filters that are applied here, and those that Spark must apply."""
    taken, left = [], []
    for pushed in filters:
        condition = _condition(pushed, schema)
        # not exactly the same in Arrow: Spark tests it
        if condition is None:
            left.append(pushed)
        else:
            taken.append(condition)
    return taken, left


def expression(conditions: Iterable[Condition], schema: pa.Schema) -> pc.Expression | None:
    """Return the expression that rows must pass, ``None`` for no conditions."""
    made = [_expression(condition, schema) for condition in conditions]
    return reduce(lambda left, right: left & right, made) if made else None


def _condition(pushed: spark.Filter, schema: pa.Schema) -> Condition | None:
    # NOT of a filter; a double NOT is left to Spark
    if isinstance(pushed, spark.Not):
        inner = _condition(pushed.child, schema)
        return None if inner is None or inner[0].startswith("Not") else (f"Not{inner[0]}", *inner[1:])
    (name, *nested) = pushed.attribute  # type: ignore[attr-defined]  # every other filter is of one column
    # a field of a struct: Spark tests it
    if nested or name not in schema.names:
        return None
    kind = schema.field(name).type
    # IS NULL, IS NOT NULL
    if isinstance(pushed, spark.IsNull | spark.IsNotNull):
        return type(pushed).__name__, name, None
    # IN; with floating point Spark's rules for NaN would not hold
    if isinstance(pushed, spark.In):
        values = tuple(_literal(value, kind) for value in pushed.value)
        return (
            None
            if pa.types.is_floating(kind) or any(value is None for value in values)
            else ("In", name, values)
        )
    value = _literal(pushed.value, kind)  # type: ignore[attr-defined]
    known = (spark.EqualTo, spark.EqualNullSafe, *_COMPARISONS, *_TEXTS)
    return (type(pushed).__name__, name, value) if isinstance(pushed, known) and value is not None else None


def _literal(value: Any, kind: pa.DataType) -> Any:
    """Return a value if Arrow certainly interprets it as Spark does, else ``None``. Times with a zone are
    left to Spark.
    """
    if not isinstance(value, _VALUES) or pa.types.is_nested(kind):
        return None
    if isinstance(value, dt.datetime) and (
        value.tzinfo is not None or not pa.types.is_timestamp(kind) or kind.tz is not None
    ):
        return None
    try:
        return value if pa.scalar(value, kind).is_valid else None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None


def _expression(condition: Condition, schema: pa.Schema) -> pc.Expression:
    what, name, value = condition
    if what.startswith("Not") and what != "Not":
        inner = ~_expression((what[3:], name, value), schema)
        # NOT IN over NULL is NULL, which passes no row; Arrow's isin says false there
        return inner & pc.field(name).is_valid() if what == "NotIn" else inner
    field, kind = pc.field(name), schema.field(name).type
    match what:
        # a IS NULL
        case "IsNull":
            return field.is_null()
        case "IsNotNull":
            return field.is_valid()
        # a IN (1, 2)
        case "In":
            return field.isin(pa.array(value, kind))
        # a LIKE 'x%'
        case "StringStartsWith":
            return pc.starts_with(field, value)
        # a LIKE '%x'
        case "StringEndsWith":
            return pc.ends_with(field, value)
        # a LIKE '%x%'
        case "StringContains":
            return pc.match_substring(field, value)
    compared = _compared(what, field, value, kind)
    # a <=> 1 is false over NULL, not NULL: that matters under a NOT
    return compared & field.is_valid() if what == "EqualNullSafe" else compared


def _compared(what: str, field: pc.Expression, value: Any, kind: pa.DataType) -> pc.Expression:
    """Return a comparison; for Spark, NaN equals itself and is greater than every number."""
    literal = pc.scalar(pa.scalar(value, kind))
    floating = pa.types.is_floating(kind)
    # a > 'NaN': in Arrow every comparison with NaN is false
    if floating and math.isnan(value):
        nan = pc.is_nan(field)
        # Arrow has no false literal for a field: this one is
        never = nan & ~nan
        return {"LessThan": ~nan, "LessThanOrEqual": nan | ~nan, "GreaterThan": never}.get(what, nan)
    match what:
        # NaN is greater than every number
        case "GreaterThan":
            return (field > literal) | pc.is_nan(field) if floating else field > literal
        case "GreaterThanOrEqual":
            return (field >= literal) | pc.is_nan(field) if floating else field >= literal
        case "LessThan":
            return field < literal
        case "LessThanOrEqual":
            return field <= literal
    return field == literal
