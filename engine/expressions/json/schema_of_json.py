"""SCHEMA_OF_JSON: infers the type of a constant JSON text, in the form that FROM_JSON accepts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    NULL,
    STRING,
    Array,
    DataType,
    Null,
    Row,
    is_numeric,
)
from penstock.catalog.types import Decimal as DecimalType
from penstock.engine.expressions.datum import Kernel
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.json.from_json import parsed
from penstock.engine.expressions.kernel_factory import BoundCall

# digits of the widest DECIMAL
_LONGEST = 38


def schema_of_json(bound: BoundCall) -> Kernel:
    """Return the kernel of a call. The type is inferred once, at compile time."""
    text = str(bound.constant(0))
    try:
        kind = _kind(parsed(text))
    except (ValueError, RecursionError):
        raise bad_argument(f"{text[:80]!r} is no JSON") from None
    return lambda _: pa.scalar(type_text(kind))


def _kind(value: Any) -> DataType:
    if isinstance(value, dict):
        # Spark sorts the fields by name.
        return Row(tuple((name, _kind(value[name])) for name in sorted(value)))
    if isinstance(value, list):
        kind: DataType = NULL
        for part in value:
            kind = _common(kind, _kind(part))
        return Array(kind)
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        digits = len(str(abs(value)))
        return (
            # the narrowest type that holds the number
            BIGINT if -(2**63) <= value < 2**63 else DecimalType(digits, 0) if digits <= _LONGEST else DOUBLE
        )
    if isinstance(value, float | Decimal):
        return DOUBLE
    return NULL if value is None else STRING


def _common(a: DataType, b: DataType) -> DataType:
    """Return the common type: rows merge their fields, different scalars become STRING."""
    match a, b:
        # NULL says nothing about the type; arrays and rows merge part by part
        case Null(), _:
            return b
        case _, Null():
            return a
        case Array(mine), Array(theirs):
            return Array(_common(mine, theirs))
        case Row(mine), Row(theirs):
            left, right = dict(mine), dict(theirs)
            return Row(
                tuple(
                    (name, _common(left.get(name, NULL), right.get(name, NULL)))
                    for name in sorted(left | right)
                )
            )
    if a == b:
        return a
    # BIGINT and DECIMAL: the DECIMAL, which has more digits
    if is_numeric(a) and is_numeric(b):
        return DOUBLE if DOUBLE in (a, b) else a if isinstance(a, DecimalType) else b
    return STRING


def type_text(kind: DataType, row: str = "STRUCT", nothing: str = "STRING") -> str:
    """Return a type as Spark's schemas write it. ``row`` is the word for a ROW, ``nothing`` for what was
    always null.
    """
    match kind:
        case Null():
            return nothing
        case Array(element):
            return f"ARRAY<{type_text(element, row, nothing)}>"
        case Row(fields):
            parts = (f"{_name(name)}: {type_text(part, row, nothing)}" for name, part in fields)
            return f"{row}<{', '.join(parts)}>"
        case DecimalType():
            return f"DECIMAL({kind.precision},{kind.scale})"
    return str(kind)


def _name(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else "`" + name.replace("`", "``") + "`"
