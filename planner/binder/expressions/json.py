"""JSON in expressions: the type of FROM_JSON, and the JSON constructors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.coercion import can_cast
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.json import readable
from penstock.catalog.functions.type_rules import Mismatch
from penstock.catalog.types import INT, STRING, VARIANT, DataType
from penstock.planner.expressions.nodes import Call, Caller, Cast, Expression, Literal
from penstock.planner.parser.type_parser import parse_type

CONSTRUCTORS = {"json_object": "null", "json_array": "absent"}
"""The JSON constructors, with their default for NULLs."""

_NESTED = re.compile(r"\s*(ARRAY|MAP|ROW|STRUCT)\s*[<(]", re.IGNORECASE)
_WRITES_JSON = ("json_object", "json_array", "to_json", "json_query")


def json_read(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``from_json(text, schema[, options])`` of the type in its constant schema. Raises SQL-1103 and
    SQL-1204 for an invalid type.
    """
    called = call("from_json", [*args[:2], *(_mode(option) for option in args[2:])], span)
    schema = args[1]
    assert isinstance(called, Call) and isinstance(schema, Literal)
    return replace(called, type=_declared(str(schema.value), schema.span))


def _declared(text: str, span: Span | None) -> DataType:
    # behind the opening quote
    begin = span.start + 1 if span is not None else 0
    # 'a INT, b STRING' is short for 'ROW<a INT, b STRING>'; spans still count from the text itself.
    kind = parse_type(text, begin) if _NESTED.match(text) else parse_type(f"ROW<{text}>", begin - len("ROW<"))
    try:
        readable(kind)
    except Mismatch as refusal:
        raise PenstockError(
            "SQL-1103", f"from_json: {refusal.message}", span=span, hint=refusal.hint, sqlstate="42804"
        ) from None
    return kind


def _mode(option: Expression) -> Expression:
    """Return the mode in ``map('mode', 'FAILFAST')`` as a literal, empty without one."""
    if isinstance(option, Call) and option.function == "map" and len(option.args) == 2:
        key, mode = option.args
        if isinstance(key, Literal) and isinstance(mode, Literal) and str(key.value).lower() == "mode":
            return replace(mode, value=str(mode.value).upper())
    return Literal(STRING, False, value="", span=option.span)


def json_constructor(
    name: str, args: Sequence[Expression], nulls: str | None, call: Caller, span: Span | None
) -> Expression:
    """Return JSON_OBJECT or JSON_ARRAY; ``nulls`` is NULL or ABSENT. The result of a JSON function is
    inserted as it is, unquoted.
    """
    # JSON_OBJECT('a', 1, 'b')
    if name == "json_object" and len(args) % 2:
        raise PenstockError(
            "SQL-1102",
            "json_object takes keys and values in pairs, the last value is missing",
            span=span,
            hint="write k VALUE v",
        )
    # keys and values alternate
    values = args[1::2] if name == "json_object" else args
    # One letter per value for the engine: j is JSON already, v is encoded.
    marks = "".join(
        "j" if isinstance(value, Call) and value.function in _WRITES_JSON else "v" for value in values
    )
    # "absent vj": leave NULLs out, encode the first value, insert the second as it is
    how = Literal(STRING, False, value=f"{(nulls or CONSTRUCTORS[name]).lower()} {marks}", span=span)
    return call(name, [how, *args], span)


def variant_get(args: Sequence[Expression], call: Caller, span: Span | None, tries: bool) -> Expression:
    """Return ``variant_get(v, path[, type])``: the value at a path, cast to a constant type. Raise
    SQL-1106 for a type that no VARIANT is cast to.
    """
    found = call("variant_at", args[:2], span)
    if len(args) == 2:
        return found
    wanted = args[2]
    if not isinstance(wanted, Literal) or not isinstance(wanted.value, str):
        raise PenstockError(
            "SQL-1103",
            "the type of variant_get is no constant text",
            span=wanted.span or span,
            hint="write variant_get(v, '$.a', 'INT')",
            sqlstate="42804",
        )
    kind = parse_type(wanted.value, wanted.span.start + 1 if wanted.span is not None else 0)
    if not can_cast(VARIANT, kind):
        raise PenstockError(
            "SQL-1106",
            f"VARIANT cannot be cast to {kind}",
            span=wanted.span or span,
            hint="read it as STRING, and CAST that",
            sqlstate="42846",
        )
    return found if kind == VARIANT else Cast(kind, True, arg=found, safe=tries, span=span)


def tuple_fields(args: Sequence[Expression], call: Caller, span: Span | None) -> tuple[Expression, ...]:
    """Return the row of ``json_tuple(text, 'a', ..)`` as the arguments of ``stack``."""
    # json_tuple(text, 'a', 'b')
    keys = [str(key.value) for key in args[1:] if isinstance(key, Literal)]
    fields = [
        call("get_json_object", [args[0], Literal(STRING, False, value=f"$['{key}']", span=span)], span)
        for key in keys
    ]
    return (Literal(INT, False, value=1, span=span), *fields)


def json_member(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``s -> 'a' -> 0``: the VARIANT at a path of constants in a text or a VARIANT. It is NULL where
    there is none, or where the text is no JSON.
    """
    path = _path(args[1:], span)
    value = args[0] if args[0].type == VARIANT else call("try_parse_json", [args[0]], span)
    return call("variant_at", [value, path], span)


def json_member_text(args: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    """Return ``s ->> 'a'``: what is at the path as a text, an object or an array as JSON."""
    if args[0].type == VARIANT:
        return Cast(STRING, True, arg=json_member(args, call, span), span=span)
    return call("get_json_object", [args[0], _path(args[1:], span)], span)


def _path(keys: Sequence[Expression], span: Span | None) -> Literal:
    return Literal(STRING, False, value="$" + "".join(_step(key, span) for key in keys), span=span)


def _step(key: Expression, span: Span | None) -> str:
    value = key.value if isinstance(key, Literal) else None
    if isinstance(value, str):
        # DuckDB: s ->> '$.a.b' is a whole path
        if value.startswith(("$.", "$[")):
            return value[1:]
        # a path has no way to write such a name
        if "'" not in value:
            return f"['{value}']"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return f"[{value}]"
    raise PenstockError(
        "SQL-1103",
        "a key of JSON is a constant: the name of a field without quotes, or a position from 0",
        span=key.span or span,
        hint="write s ->> 'name', s -> 'list' ->> 0, or element_at(from_json(s, 'MAP<STRING, STRING>'), key)",
        sqlstate="42804",
    )
