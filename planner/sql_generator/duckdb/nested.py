"""DuckDB's spellings of array, map and row functions that have Spark's values there. The others run on our
own runtime.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.types import (
    INTEGERS,
    Array,
    DataType,
    Decimal,
    Double,
    Map,
    Null,
    Row,
    String,
    TimestampLtz,
    is_integer,
    to_spark,
)
from penstock.planner.expressions.nodes import Call, Literal
from penstock.planner.sql_generator.dialect import (
    Flavour,
    Spelling,
    binary,
    cast,
    function,
    integer,
    named,
    text,
    when,
)
from penstock.planner.sql_generator.spark.nested import field_name


def _typed(spelling: Spelling) -> Spelling:
    return lambda call, args: cast(
        spelling(call, args), exp.DataType.build(to_spark(call.type), dialect="spark")
    )


def _struct(names: list[str], values: list[exp.Expr]) -> exp.Expr:
    """A struct field by field: in a struct of literals sqlglot would put the names in quotes."""
    parts = [
        exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value)
        for name, value in zip(names, values, strict=True)
    ]
    return exp.Struct(expressions=parts)


def _row(call: Call, args: list[exp.Expr]) -> exp.Expr:
    assert isinstance(call.type, Row)
    return _struct([name for name, _ in call.type.fields], args)


def _named_row(call: Call, args: list[exp.Expr]) -> exp.Expr:
    assert isinstance(call.type, Row)
    # named_struct('a', x, 'b', y): names come from the type.
    return _struct([name for name, _ in call.type.fields], args[1::2])


def _field(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return function("struct_extract", args[0], text(field_name(call)))


def _element(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # map[key]
    if isinstance(call.args[0].type, Map):
        return function("map_extract_value", *args)
    # array[1]
    if isinstance(call.args[1], Literal):
        return function("list_extract", *args)
    # A computed position below 1 is NULL: DuckDB would count from the end.
    return when(
        exp.GTE(this=args[1], expression=integer(1)),
        function("list_extract", args[0], args[1].copy()),
        exp.null(),
    )


def _get(call: Call, args: list[exp.Expr]) -> exp.Expr:
    inside = exp.GTE(this=args[1], expression=integer(0))
    return when(
        inside, function("list_extract", args[0], binary(exp.Add, args[1].copy(), integer(1))), exp.null()
    )


def _map(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # map(k1, v1, k2, v2) is map([k1, k2], [v1, v2]) in DuckDB.
    return function("map", function("list_value", *args[::2]), function("list_value", *args[1::2]))


def _size(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return function("cardinality" if isinstance(call.args[0].type, Map) else "len", args[0])


def _contains(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """NULL where the value is absent but the array has NULLs."""
    array, value = args
    open_ = exp.Or(
        this=exp.Is(this=value, expression=exp.null()), expression=exp.Is(this=array, expression=exp.null())
    )
    found = function("list_contains", array.copy(), value.copy())
    # list_count counts elements that are not NULL.
    holds_null = exp.GT(this=function("len", array.copy()), expression=function("list_count", array.copy()))
    branches = [
        exp.If(this=open_, true=exp.null()),
        exp.If(this=found, true=exp.true()),
        exp.If(this=holds_null, true=exp.null()),
    ]
    return exp.Case(ifs=branches, default=exp.false())


def _unless_null(name: str) -> Spelling:
    """A function for which DuckDB treats a NULL array as an empty one."""
    return lambda call, args: when(
        exp.Is(this=args[0], expression=exp.null()), exp.null(), function(name, args[0].copy(), *args[1:])
    )


def _prepend(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return when(
        exp.Is(this=args[0], expression=exp.null()),
        exp.null(),
        function("list_prepend", args[1], args[0].copy()),
    )


def _reverse(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return function("reverse" if isinstance(call.type, String) else "list_reverse", args[0])


def concatenation(texts: Spelling) -> Spelling:
    """Return the spelling of ``concat``: of arrays it is NULL where one is NULL; of texts it is ``texts``."""

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        if not isinstance(call.type, Array):
            return texts(call, args)
        result = args[0]
        for arg in args[1:]:
            either = exp.Or(
                this=exp.Is(this=result.copy(), expression=exp.null()),
                expression=exp.Is(this=arg.copy(), expression=exp.null()),
            )
            result = when(either, exp.null(), function("list_concat", result, arg))
        return result

    return spelling


def _split(call: Call, args: list[exp.Expr]) -> exp.Expr:
    pattern = call.args[1]
    if len(args) > 2 or not isinstance(pattern, Literal) or not pattern.value:
        raise Flavour().refusal("split with a limit, or by a pattern that is no constant", call.span)
    return function("string_split_regex", *args)


def _at_time_zone(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # of an instant its wall clock; of a wall clock the instant, the earlier one if there are two
    name = "timezone" if isinstance(call.args[0].type, TimestampLtz) else "penstock_instant_of"
    return function(name, args[1], args[0])


DUCKDB_NESTED: dict[str, Spelling] = {
    "array": _typed(named("list_value")),
    "map": _typed(_map),
    "struct": _row,
    "named_struct": _named_row,
    "field": _field,
    "element": _element,
    "get": _get,
    "size": _typed(_size),
    "array_contains": _contains,
    "array_append": _unless_null("list_append"),
    "array_prepend": _prepend,
    "reverse": _reverse,
    "split": _split,
    "map_keys": named("map_keys"),
    "map_values": named("map_values"),
    "map_entries": named("map_entries"),
    "at_time_zone": _at_time_zone,
}


def sort_value(arg: exp.Expr, kind: DataType, depth: int = 0) -> exp.Expr:
    """Return what ORDER BY compares of a value. DuckDB puts a NULL inside of an array or row last, in either
    direction; so each value inside stands behind whether it is known.
    """
    match kind:
        case Array(element):
            each = exp.to_identifier(f"sorted{depth}")
            key = _known_first([(exp.column(each.copy()), element)], depth + 1)
            return function("list_transform", arg, exp.Lambda(this=key, expressions=[each]))
        case Row(fields):
            parts = [(function("struct_extract", arg.copy(), text(name)), field) for name, field in fields]
            return when(
                exp.Is(this=arg.copy(), expression=exp.null()), exp.null(), _known_first(parts, depth)
            )
    return arg


def _known_first(parts: list[tuple[exp.Expr, DataType]], depth: int) -> exp.Expr:
    values: list[exp.Expr] = []
    for part, kind in parts:
        known = exp.Not(this=exp.Is(this=part.copy(), expression=exp.null()))
        values += [exp.Paren(this=known), sort_value(part, kind, depth)]
    return _struct([f"f{number}" for number in range(len(values))], values)


def nested_cast(flavour: Flavour, arg: exp.Expr, source: DataType, target: DataType, safe: bool) -> exp.Expr:
    """Return a cast of a nested type. Rows are cast field by field, by position. Other casts are refused
    unless they only widen.
    """
    refused = flavour.refusal(f"CAST of {source} to {target}")
    if isinstance(source, Row) and isinstance(target, Row) and not safe:
        pairs = list(zip(source.fields, target.fields, strict=True))
        parts = [function("struct_extract", arg.copy(), text(name)) for (name, _), _ in pairs]
        # Fields of equal types are passed on as they are.
        casts = [
            p if m == t else flavour.cast(p, m, t, safe)
            for p, ((_, m), (_, t)) in zip(parts, pairs, strict=True)
        ]
        return when(
            exp.Is(this=arg, expression=exp.null()),
            exp.null(),
            _struct([name for name, _ in target.fields], casts),
        )
    if not _widens(source, target):
        raise refused
    return cast(arg, flavour.kind(target), safe)


def _widens(source: DataType, target: DataType) -> bool:
    match source, target:
        case Null(), _:
            return True
        # Element by element.
        case Array(mine), Array(theirs):
            return _widens(mine, theirs)
        case Map(), Map():
            return _widens(source.key, target.key) and _widens(source.value, target.value)
    if source == target:
        return True
    # Of the other casts only those of integers have Spark's values element by element.
    return is_integer(source) and (
        isinstance(target, Double | Decimal)
        or (is_integer(target) and INTEGERS.index(source) < INTEGERS.index(target))
    )
