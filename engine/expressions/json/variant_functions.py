"""Functions of VARIANT: parsed from JSON, read at a path, described."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.coercion import as_decimal
from penstock.catalog.functions.variant import VARIANT_STEP
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    MAX_DECIMAL_PRECISION,
    NULL,
    STRING,
    VARIANT,
    Array,
    DataType,
    Null,
    Row,
    is_numeric,
)
from penstock.catalog.types import Decimal as DecimalType
from penstock.engine.api.arrow_numpy import truths
from penstock.engine.expressions.casts.variant import parts_of
from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.json.canonical_text import (
    NotCanonical,
    canonical_text,
    canonical_texts,
    escaped,
)
from penstock.engine.expressions.json.path_scan import ABSENT, Step, scan
from penstock.engine.expressions.json.schema_of_json import type_text
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value, plain


def path_steps(path: str) -> list[Step]:
    """Return the steps of a path such as ``$.a['b c'][0]``, which the function's declaration has checked."""
    steps: list[Step] = []
    for step in VARIANT_STEP.finditer(path, 1):
        name = step["name"] or step["single"] or step["double"] or ""
        steps.append(int(step["index"]) if step["index"] else escaped(name))
    return steps


def _parse(strict: bool) -> Kernel:
    def kernel(text: Datum) -> pa.Array:
        (texts,) = aligned(text)
        result, wrong = canonical_texts(texts)
        if strict and wrong.any():
            try:
                canonical_text(texts[int(wrong.argmax())].as_py())
            except NotCanonical as error:
                raise bad_argument(f"parse_json: {error}", "write try_parse_json to get NULL") from None
        return result

    return kernel


def _at(bound: BoundCall) -> Kernel:
    steps = path_steps(str(bound.constant(1)))
    return lambda value, *_: _read(value, steps)


def _read(value: Datum, steps: Sequence[Step]) -> pa.Array:
    (texts,) = aligned(value)
    values = scan(texts, steps, canonical=True)
    there = values.kinds != ABSENT
    if texts.null_count:
        there &= truths(pc.is_valid(texts))
    return parts_of(values, there)


def _is_null(value: Datum) -> pa.Array:
    (texts,) = aligned(value)
    return pc.fill_null(pc.equal(texts, "null"), False)


def _schema(text: str) -> str:
    # a number with an exponent is a DOUBLE, one with a point a DECIMAL
    value = json.loads(text, parse_float=lambda digits: float(digits) if "E" in digits else Decimal(digits))
    return type_text(_type_of(value), row="OBJECT", nothing="VOID")


def _type_of(value: Any) -> DataType:
    # bool is an int to Python
    if value is None or isinstance(value, bool):
        return NULL if value is None else BOOLEAN
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return BIGINT
    if isinstance(value, int | Decimal):
        number = Decimal(value)
        digits, scale = len(number.as_tuple().digits), -int(number.as_tuple().exponent)
        return DecimalType(max(digits, scale), scale)
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, list):
        element: DataType = NULL
        for part in value:
            element = _merged(element, _type_of(part))
        return Array(element)
    if isinstance(value, dict):
        return Row(tuple((name, _type_of(part)) for name, part in value.items()))
    return STRING


def _merged(left: DataType, right: DataType) -> DataType:
    """Return the type of elements of two types; VARIANT where there is no other."""
    if left == right or isinstance(right, Null):
        return left
    match left, right:
        case Null(), _:
            return right
        case Array(mine), Array(theirs):
            return Array(_merged(mine, theirs))
        case Row(mine), Row(theirs):
            first, second = dict(mine), dict(theirs)
            names = sorted(first | second)
            return Row(
                tuple((name, _merged(first.get(name, NULL), second.get(name, NULL))) for name in names)
            )
    if not (is_numeric(left) and is_numeric(right)):
        return VARIANT
    one, other = as_decimal(left), as_decimal(right)
    if one is None or other is None:
        return DOUBLE
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return DecimalType(whole + scale, scale) if whole + scale <= MAX_DECIMAL_PRECISION else DOUBLE


VARIANTS: dict[str, Factory] = {
    "parse_json": plain(_parse(strict=True)),
    "try_parse_json": plain(_parse(strict=False)),
    "variant_at": _at,
    "is_variant_null": plain(_is_null),
    "schema_of_variant": by_value(_schema, pa.string()),
}
