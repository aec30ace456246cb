"""Scalar functions that are expressions of others, such as BIT_LENGTH, which is eight times OCTET_LENGTH."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal as Number

from sqlglot import exp

from penstock.catalog.coercion import can_cast
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.composed import COMPOSED, TREES
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    INT,
    NULL,
    STRING,
    TIME,
    TIMESTAMP_LTZ,
    VARIANT,
    YEAR_MONTH_INTERVAL,
    Array,
    Binary,
    DataType,
    Date,
    Decimal,
    Timestamp,
    TimestampLtz,
    is_integer,
    is_numeric,
    is_timestamp,
)
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.binder.expressions.geo_functions import GEO_FUNCTIONS
from penstock.planner.binder.expressions.ip_functions import IP_FUNCTIONS
from penstock.planner.binder.expressions.json import json_member, json_member_text, variant_get
from penstock.planner.binder.expressions.number_formats import to_char, to_number
from penstock.planner.binder.expressions.overloads import overloaded
from penstock.planner.binder.expressions.regexp_functions import REGEXP_FUNCTIONS
from penstock.planner.binder.expressions.strftime_formats import STRFTIME_FORMATS
from penstock.planner.binder.expressions.time_buckets import TIME_BUCKETS
from penstock.planner.binder.expressions.time_precision import cut_cast
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal, conjunction
from penstock.planner.parser.syntax_nodes import FunctionCall, LambdaFunction, Reference, set_span, span_of

Arguments = Sequence[Expression]

_MOST_DIGITS = 18
_UNITS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1))
# digits of a second that a timestamp has
_MOST_PRECISE = 6
# noncharacters of Unicode, one for each class of characters that MASK replaces
_MARKS = "\ufdd0\ufdd1\ufdd2\ufdd3"
_MASKED = (r"\p{Lu}", r"\p{Ll}", r"\p{Nd}", r"[^\p{Lu}\p{Ll}\p{Nd}" + _MARKS + "]")
# bits of a bitmap of Spark
_BITMAP_BITS = 32_768
_ENCODINGS = {"hex": "unhex", "base64": "unbase64"}


def composed_tree(tree: FunctionCall) -> exp.Expr | None:
    """Return a call with a lambda as a tree of other calls, or ``None`` for any other call."""
    name = str(tree.this).lower()
    if name not in TREES:
        return None
    _check_count(name, len(tree.expressions), span_of(tree))
    if name == "map_union":
        return _united_maps(tree)
    return _zipped(tree) if name == "arrays_zip" else _zipped_maps(tree)


def composed_function(name: str, args: Arguments, call: Caller, span: Span | None) -> Expression | None:
    """Return a call as an expression of others, or ``None`` for a function that is computed by itself."""
    if name in ("ceil", "ceiling", "floor") and len(args) == 2:
        return _rounded(name, args[0], args[1], call, span)
    if name == "element" and len(args) == 1:
        return _sole_element(args[0], call, span)
    # CURRENT_TIMESTAMP(3)
    if name in ("current_timestamp", "localtimestamp") and len(args) == 1:
        return _rounded_now(name, args[0], call, span)
    if name == "concat_ws" and any(isinstance(arg.type, Array) for arg in args[1:]):
        return _joined_elements(args, call, span)
    build = _BUILDERS.get(name)
    if build is None:
        return None
    _check_count(name, len(args), span)
    return overloaded(name, args, call, span) or build(args, call, span)


def _check_count(name: str, count: int, span: Span | None) -> None:
    least, most = COMPOSED[name].arity
    if count < least or (most is not None and count > most):
        raise PenstockError(
            "SQL-1102",
            f"{name} does not take {count} argument{'s' if count != 1 else ''}",
            span=span,
            hint=f"write {COMPOSED[name].usage}",
            sqlstate="42883",
        )


def _whole(value: int) -> Expression:
    return Literal(INT, False, value=value)


def _text(value: str) -> Expression:
    return Literal(STRING, False, value=value)


def _wrong(message: str, span: Span | None, hint: str) -> PenstockError:
    return PenstockError("SQL-1103", message, span=span, hint=hint, sqlstate="42804")


# numbers


def _rounded(name: str, value: Expression, digits: Expression, call: Caller, span: Span | None) -> Expression:
    """Return ``ceil(x, d)`` or ``floor(x, d)``: ROUND, moved by one unit where it went the other way."""
    places = digits.value if isinstance(digits, Literal) else None
    if not isinstance(places, int) or abs(places) > _MOST_DIGITS or not is_numeric(value.type):
        message = f"{name} takes a number, and constant digits from -{_MOST_DIGITS} to {_MOST_DIGITS}"
        raise _wrong(message, span, f"write {name}(x, 2)")
    # as Spark: the result of any number is a DECIMAL
    if not isinstance(value.type, Decimal):
        value = coerced(value, Decimal(20, 0) if is_integer(value.type) else Decimal(30, 15))
    near = call("round", [value, digits], span)
    scale = max(places, 0)
    unit = Number(1).scaleb(-places).quantize(Number(1).scaleb(-scale))
    one = Literal(Decimal(max(1 - places, scale + 1), scale), False, value=unit)
    up = name != "floor"
    wrong = call("less" if up else "greater", [near, value], span)
    return case_of([(wrong, call("add" if up else "subtract", [near, one], span))], near, span)


def _truncated(args: Arguments, call: Caller, span: Span | None) -> Expression:
    digits = args[1] if len(args) > 1 else _whole(0)
    below, above = (_rounded(name, args[0], digits, call, span) for name in ("floor", "ceil"))
    return case_of([(call("less", [args[0], _whole(0)], span), above)], below, span)


def _positive(args: Arguments, call: Caller, span: Span | None) -> Expression:
    # the type that its negative would have: no text has one
    return coerced(args[0], call("negate", [args[0]], span).type)


def _bit_position(args: Arguments, call: Caller, span: Span | None) -> Expression:
    number, size = args[0], _whole(_BITMAP_BITS)
    above = call("mod", [call("subtract", [number, _whole(1)], span), size], span)
    below = call("mod", [call("negate", [number], span), size], span)
    return _integer(case_of([(call("greater", [number, _whole(0)], span), above)], below, span), BIGINT)


def _bucket(args: Arguments, call: Caller, span: Span | None) -> Expression:
    number, size = args[0], _whole(_BITMAP_BITS)
    above = call(
        "add", [call("div", [call("subtract", [number, _whole(1)], span), size], span), _whole(1)], span
    )
    below = call("div", [number, size], span)
    return _integer(case_of([(call("greater", [number, _whole(0)], span), above)], below, span), BIGINT)


def _integer(value: Expression, kind: DataType) -> Expression:
    return Cast(kind, value.nullable, arg=value, safe=False, span=value.span)


# texts and bytes


def _same_text(args: Arguments, call: Caller, span: Span | None) -> Expression:
    if isinstance(args[0].type, Binary):
        raise _wrong("every STRING is valid UTF-8, this is BINARY", span, "write decode(b, 'UTF-8')")
    return coerced(args[0], STRING)


def _is_text(args: Arguments, call: Caller, span: Span | None) -> Expression:
    value = _same_text(args, call, span)
    return call("equal", [value, value], span)


def _masked(args: Arguments, call: Caller, span: Span | None) -> Expression:
    """Return ``mask(s, ..)``: each class of characters becomes a mark, which no text has, and each mark its
    replacement. So no replacement is replaced again.
    """
    wanted: list[object] = ["X", "x", "n", None]
    for i, arg in enumerate(args[1:]):
        wanted[i] = arg.value if isinstance(arg, Literal) else 0
    if not all(by is None or (isinstance(by, str) and len(by) == 1) for by in wanted):
        raise _wrong("mask takes constant characters", span, f"write {COMPOSED['mask'].usage}")
    masked, marks = args[0], ""
    for pattern, mark, by in zip(_MASKED, _MARKS, wanted, strict=True):
        if by is not None:
            masked, marks = call("regexp_replace", [masked, _text(pattern), _text(mark)], span), marks + mark
    by = "".join(str(by) for by in wanted if by is not None)
    return call("translate", [masked, _text(marks), _text(by)], span)


def _quoted(args: Arguments, call: Caller, span: Span | None) -> Expression:
    inner = call("replace", [args[0], _text("'"), _text("\\'")], span)
    return call("concat", [_text("'"), inner, _text("'")], span)


def _unquoted(args: Arguments, call: Caller, span: Span | None) -> Expression:
    is_string = call("rlike", [args[0], _text(r'(?s)^"(?:[^"\\]|\\.)*"$')], span)
    read = call("coalesce", [call("get_json_object", [args[0], _text("$")], span), args[0]], span)
    return case_of([(is_string, read)], coerced(args[0], STRING), span)


def _json_of(args: Arguments, call: Caller, span: Span | None) -> Expression:
    """Return a value as JSON, the one element of an array without its brackets."""
    listed = call("to_json", [call("array", args[:1], span)], span)
    inner = call(
        "substr",
        [listed, _whole(2), call("subtract", [call("length", [listed], span), _whole(2)], span)],
        span,
    )
    absent = Literal(STRING, True, value=None)
    return case_of([(call("is_null", [args[0]], span), absent)], inner, span)


def _tried_bytes(args: Arguments, call: Caller, span: Span | None) -> Expression:
    form = str(getattr(args[1], "value", "")).lower() if len(args) > 1 else "hex"
    if form == "hex":
        known = call("rlike", [args[0], _text("^[0-9A-Fa-f]*$")], span)
        digits = case_of([(known, args[0])], Literal(STRING, True, value=None), span)
        return call("unhex", [digits], span)
    if form != "base64":
        return _bytes_of(args, call, span)
    # digits in fours, the last of them filled with =
    digits = call("regexp_replace", [args[0], _text(r"\s"), _text("")], span)
    right = call(
        "rlike", [digits, _text("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")], span
    )
    checked = case_of([(right, digits)], Literal(STRING, True, value=None), span)
    return call("unbase64", [checked], span)


def _matches(pattern: str) -> Callable[[Arguments, Caller, Span | None], Expression]:
    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        found = call("rlike", [args[0], _text(pattern)], span)
        return call("coalesce", [found, Literal(BOOLEAN, False, value=False)], span)

    return build


def _digest(bits: int) -> Callable[[Arguments, Caller, Span | None], Expression]:
    return lambda args, call, span: call("sha2", [args[0], _whole(bits)], span)


def _bytes_of(args: Arguments, call: Caller, span: Span | None) -> Expression:
    form = (
        args[1].value if len(args) > 1 and isinstance(args[1], Literal) else "hex" if len(args) == 1 else None
    )
    form = str(form).lower()
    if form in ("utf-8", "utf8"):
        return call("encode", [args[0], _text("UTF-8")], span)
    if form not in _ENCODINGS:
        raise _wrong("to_binary takes a constant format", span, "formats are 'hex', 'utf-8' and 'base64'")
    return call(_ENCODINGS[form], [args[0]], span)


def _written_value(args: Arguments, call: Caller, span: Span | None) -> Expression:
    if isinstance(args[0].type, Date) or is_timestamp(args[0].type):
        return call("date_format", args, span)
    return to_char(args, call, span)


# times


def _in_zone(args: Arguments, call: Caller, span: Span | None) -> Expression:
    wall = Cast(Timestamp(6), args[0].nullable, arg=args[0], safe=False, span=span)
    utc = call("to_utc_timestamp", [wall, args[1]], span)
    there = call("from_utc_timestamp", [utc, args[2]], span)
    return call("date_format", [there, _text("yyyy-MM-dd HH:mm:ss")], span)


def _interval(
    kind: DataType, *units: timedelta | int
) -> Callable[[Arguments, Caller, Span | None], Expression]:
    """Return the builder of an interval: the sum of so many of each unit."""

    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        parts = [
            call("multiply", [Literal(kind, False, value=unit), count], span)
            for unit, count in zip(units, args, strict=False)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = call("add", [total, part], span)
        return total

    return build


def _as_variant(value: Expression, span: Span | None) -> Expression:
    if not can_cast(value.type, VARIANT):
        raise _wrong(f"{value.type} cannot be a VARIANT", span, "CAST times and bytes to STRING first")
    return Cast(VARIANT, value.nullable, arg=value, span=span)


def _time_now(args: Arguments, call: Caller, span: Span | None) -> Expression:
    return Cast(TIME, False, arg=call("localtimestamp", [], span), safe=False, span=span)


def _made_time(args: Arguments, call: Caller, span: Span | None) -> Expression:
    day = [_whole(1970), _whole(1), _whole(1)]
    moment = call("make_timestamp_ntz", [*day, *args], span)
    return Cast(TIME, moment.nullable, arg=moment, safe=False, span=span)


def _made_instant(args: Arguments, call: Caller, span: Span | None) -> Expression:
    moment = call("make_timestamp_ntz", args, span)
    return Cast(TIMESTAMP_LTZ, moment.nullable, arg=moment, safe=False, span=span)


def _tried_timestamp(args: Arguments, call: Caller, span: Span | None) -> Expression:
    """Return ``try_make_timestamp(..)``: TRY_CAST of the text of its minute, and its seconds, up to 60."""
    parts: list[Expression] = []
    for arg, width, behind in zip(args[:5], (4, 2, 2, 2, 2), ("-", "-", " ", ":", ":00"), strict=True):
        whole = Cast(INT, True, arg=arg, safe=True, span=span)
        written = Cast(STRING, True, arg=whole, safe=False, span=span)
        short = call("less", [call("length", [written], span), _whole(width)], span)
        filled = call("lpad", [written, _whole(width), _text("0")], span)
        parts += [case_of([(short, filled)], written, span), _text(behind)]
    minute = Cast(Timestamp(6), True, arg=call("concat", parts, span), safe=True, span=span)
    seconds = Cast(Decimal(16, 6), True, arg=args[5], safe=True, span=span)
    low, high = (
        call("greater_equal", [seconds, _whole(0)], span),
        call("less_equal", [seconds, _whole(60)], span),
    )
    second = Literal(DAY_TIME_INTERVAL, False, value=timedelta(seconds=1))
    moment = call("add", [minute, call("multiply", [second, seconds], span)], span)
    nothing = Literal(Timestamp(6), True, value=None)
    return case_of([(conjunction((low, high)), moment)], nothing, span)


def _read_time(args: Arguments, call: Caller, span: Span | None) -> Expression:
    if len(args) > 1:
        moment = call("to_timestamp", args, span)
        return Cast(TIME, moment.nullable, arg=moment, safe=False, span=span)
    return Cast(TIME, args[0].nullable, arg=args[0], safe=False, span=span)


def _of_time(name: str) -> Callable[[Arguments, Caller, Span | None], Expression]:
    """Return the builder of a function of TIMEs only: for these it is rewritten already."""

    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        raise _wrong(f"{name} takes a TIME", span, f"write {COMPOSED[name].usage}, or CAST(x AS TIME)")

    return build


def _made_interval(args: Arguments, call: Caller, span: Span | None) -> Expression:
    """Return ``make_interval(..)``: of months or of days, as its constants that are 0 decide."""
    above, below = args[:2], args[2:]
    if all(isinstance(arg, Literal) and arg.value == 0 for arg in below):
        return _interval(YEAR_MONTH_INTERVAL, 12, 1)(above, call, span)
    if all(isinstance(arg, Literal) and arg.value == 0 for arg in above):
        units = [timedelta(weeks=1), *_UNITS, timedelta(seconds=1)]
        return _interval(DAY_TIME_INTERVAL, *units)(below, call, span)
    hint = "write make_ym_interval(years, months), make_dt_interval(days, hours, minutes), and add both"
    raise _wrong("an interval is of months or of days", span, hint)


def _rounded_now(name: str, digits: Expression, call: Caller, span: Span | None) -> Expression:
    precision = digits.value if isinstance(digits, Literal) else None
    if not isinstance(precision, int) or not 0 <= precision <= _MOST_PRECISE:
        raise _wrong(f"{name} takes a constant precision from 0 to 6", span, f"write {name}(3)")
    kind = Timestamp(precision) if name == "localtimestamp" else TimestampLtz(precision)
    now = call(name, [], span)
    return cut_cast(Cast(kind, False, arg=now, safe=False, span=span), now.type, kind)


# arrays


def _sole_element(values: Expression, call: Caller, span: Span | None) -> Expression:
    """Return ``element(a)``: the one element, NULL of none; of several ELEMENT_AT raises behind the last."""
    size = call("size", [values], span)
    several, behind = call("greater", [size, _whole(1)], span), call("add", [size, _whole(1)], span)
    found = call("element_at", [values, case_of([(several, behind)], _whole(1), span)], span)
    absent = Literal(found.type, True, value=None)
    return case_of([(call("equal", [size, _whole(0)], span), absent)], found, span)


def _joined_elements(args: Arguments, call: Caller, span: Span | None) -> Expression:
    """Return ``concat_ws(sep, a, ..)`` with arrays among its arguments: ARRAY_JOIN, which skips NULLs."""
    lists = []
    nothing = Cast(Array(STRING), False, arg=call("array", [], span), safe=False, span=span)
    for arg in args[1:]:
        if not isinstance(arg.type, Array):
            lists.append(call("array", [coerced(arg, STRING)], span))
            continue
        texts = Cast(Array(STRING), arg.nullable, arg=arg, safe=False, span=span)
        lists.append(call("coalesce", [texts, nothing], span))
    every = call("concat", lists, span) if len(lists) > 1 else lists[0]
    return call("array_join", [every, args[0]], span)


def _sliced(args: Arguments, call: Caller, span: Span | None) -> Expression:
    bounds = [arg.value if isinstance(arg, Literal) else None for arg in args[1:]]
    if not all(isinstance(bound, int) and bound >= 1 for bound in bounds):
        raise _wrong("array_slice takes constant positions from 1", span, "write slice(a, start, length)")
    first = int(str(bounds[0]))
    size = (
        _whole(max(int(str(bounds[1])) - first + 1, 0)) if len(bounds) > 1 else call("size", [args[0]], span)
    )
    return call("slice", [args[0], args[1], size], span)


def _nth(args: Arguments, call: Caller, span: Span | None) -> Expression:
    place = call("subtract", [args[0], _whole(1)], span)
    return call("get", [call("array", args[1:], span), coerced(place, INT)], span)


def _inserted(args: Arguments, call: Caller, span: Span | None) -> Expression:
    """Return ``array_insert(a, i, x)``: the elements before, NULLs, x, NULLs, the elements from there on."""
    values, position, value = args
    place = position.value if isinstance(position, Literal) else None
    if not isinstance(place, int) or place == 0:
        raise _wrong(
            "array_insert takes a constant position, and none is 0", span, "write array_insert(a, 1, x)"
        )
    size = call("size", [values], span)
    # -1 is behind the last element
    at = position if place > 0 else call("add", [size, _whole(place + 2)], span)
    zero, one = _whole(0), _whole(1)
    ahead = call("subtract", [at, one], span)
    known = call("least", [call("greatest", [ahead, zero], span), size], span)
    before = call("slice", [values, one, known], span)
    behind = call("slice", [values, call("add", [known, one], span), size], span)
    nothing = Literal(NULL, True, value=None)
    gap = call("greatest", [call("subtract", [ahead, size], span), zero], span)
    front = call("greatest", [call("subtract", [one, at], span), zero], span)
    blanks = [call("array_repeat", [coerced(nothing, value.type), count], span) for count in (gap, front)]
    return call("concat", [before, blanks[0], call("array", [value], span), blanks[1], behind], span)


def _zipped(tree: FunctionCall) -> exp.Expr:
    """Return ``arrays_zip(a, b)`` as ZIP_WITH into rows of the fields 0 and 1."""
    names = [
        _at(exp.Identifier(this=name, quoted=True), tree) for name in ("0", "1")[: len(tree.expressions)]
    ]
    fields: list[exp.Expr] = []
    for name in names:
        fields += [_at(exp.Literal.string(name.name), tree), _read(name, tree)]
    row = _at(FunctionCall(this="named_struct", expressions=fields), tree)
    function = _at(LambdaFunction(this=row, expressions=names), tree)
    called = "zip_with" if len(names) == 2 else "transform"
    return _at(FunctionCall(this=called, expressions=[*tree.expressions, function]), tree)


def _zipped_maps(tree: FunctionCall) -> exp.Expr:
    """Return ``map_zip_with(m, n, (k, v, w) -> ..)``: a map from the keys of both, each with the value of the
    body, in which ``v`` is ``m[k]`` and ``w`` is ``n[k]``.
    """
    *maps, function = tree.expressions
    if not isinstance(function, LambdaFunction) or len(function.expressions) != 3:
        raise PenstockError(
            "SQL-1113",
            "map_zip_with takes a function of a key and two values last",
            span=span_of(function),
            hint=f"write {COMPOSED['map_zip_with'].usage}",
        )
    named, *values = function.expressions
    # no column of the maps has this name, so each of them stays what it is inside of the lambda
    key = _at(exp.Identifier(this="key of map_zip_with", quoted=True), tree)
    read: dict[str, exp.Expr] = {named.name.lower(): _read(key, tree)}
    for value, source in zip(values, maps, strict=True):
        read[value.name.lower()] = _at(exp.Bracket(this=source.copy(), expressions=[_read(key, tree)]), tree)

    def written(node: exp.Expr) -> exp.Expr:
        known = read.get(node.expressions[0].name.lower()) if isinstance(node, Reference) else None
        if known is None:
            return node
        # v.x: a field of the value
        for part in node.expressions[1:]:
            known = _at(exp.Dot(this=known, expression=part.copy()), tree)
        return known.copy()

    body = function.this.copy().transform(written)
    keys = [_at(FunctionCall(this="map_keys", expressions=[source.copy()]), tree) for source in maps]
    every = _at(FunctionCall(this="array_union", expressions=keys), tree)
    each = _at(LambdaFunction(this=body, expressions=[key.copy()]), tree)
    found = _at(FunctionCall(this="transform", expressions=[every.copy(), each]), tree)
    return _at(FunctionCall(this="map_from_arrays", expressions=[every, found]), tree)


def _united_maps(tree: FunctionCall) -> exp.Expr:
    """Return ``map_union(m, n)``: MAP_ZIP_WITH that takes the value of n where n has the key."""
    parameters = ("key of map_union", "value of the first", "value of the second")
    names = [_at(exp.Identifier(this=name, quoted=True), tree) for name in parameters]
    known = _at(
        FunctionCall(
            this="map_contains_key", expressions=[tree.expressions[1].copy(), _read(names[0], tree)]
        ),
        tree,
    )
    chosen = _at(exp.If(this=known, true=_read(names[2], tree)), tree)
    body = _at(exp.Case(ifs=[chosen], default=_read(names[1], tree)), tree)
    function = _at(LambdaFunction(this=body, expressions=names), tree)
    zipped = FunctionCall(this="map_zip_with", expressions=[*tree.expressions, function])
    _at(zipped, tree)
    return _zipped_maps(zipped)


def _read(name: exp.Expr, tree: exp.Expr) -> exp.Expr:
    return _at(Reference(expressions=[name.copy()]), tree)


def _at(node: exp.Expr, place: exp.Expr) -> exp.Expr:
    span = span_of(place)
    return node if span is None else set_span(node, span.start, span.end)


_BUILDERS: dict[str, Callable[[Arguments, Caller, Span | None], Expression]] = {
    "array_slice": _sliced,
    "bitmap_bit_position": _bit_position,
    "bitmap_bucket_number": _bucket,
    "collation": lambda args, call, span: _text("SYSTEM.BUILTIN.UTF8_BINARY"),
    "current_row_timestamp": lambda args, call, span: call("current_timestamp", [], span),
    "current_time": _time_now,
    "is_decimal": _matches(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"),
    "is_valid_utf8": _is_text,
    "json_extract_path": json_member,
    "json_extract_path_text": json_member_text,
    "json_quote": _json_of,
    "json_string": _json_of,
    "json_unquote": _unquoted,
    "localtime": _time_now,
    "make_interval": _made_interval,
    "make_time": _made_time,
    "make_timestamp_ltz": _made_instant,
    "mask": _masked,
    "quote": _quoted,
    "time_diff": _of_time("time_diff"),
    "time_trunc": _of_time("time_trunc"),
    "to_number": lambda args, call, span: to_number(args, call, span, tries=False),
    "to_time": _read_time,
    "try_make_interval": _made_interval,
    "try_make_timestamp": _tried_timestamp,
    "try_to_binary": _tried_bytes,
    "try_to_number": lambda args, call, span: to_number(args, call, span, tries=True),
    "try_to_time": lambda args, call, span: Cast(TIME, True, arg=args[0], safe=True, span=span),
    "to_variant_object": lambda args, call, span: _as_variant(args[0], span),
    "try_variant_get": lambda args, call, span: variant_get(args, call, span, tries=True),
    **dict.fromkeys(("make_valid_utf8", "try_validate_utf8", "validate_utf8"), _same_text),
    "variant_get": lambda args, call, span: variant_get(args, call, span, tries=False),
    "array_concat": lambda args, call, span: call("concat", args, span),
    "array_insert": _inserted,
    "array_reverse": lambda args, call, span: call("reverse", args, span),
    "bit_length": lambda args, call, span: call(
        "multiply", [call("octet_length", args, span), _whole(8)], span
    ),
    **TIME_BUCKETS,
    **STRFTIME_FORMATS,
    **IP_FUNCTIONS,
    **REGEXP_FUNCTIONS,
    **GEO_FUNCTIONS,
    "convert_tz": _in_zone,
    "elt": _nth,
    "equal_null": lambda args, call, span: call("null_safe_equal", args, span),
    "from_base64": lambda args, call, span: call(
        "decode", [call("unbase64", args, span), _text("UTF-8")], span
    ),
    "is_alpha": _matches(r"^\p{L}+$"),
    "is_digit": _matches(r"^\p{Nd}+$"),
    "make_dt_interval": _interval(DAY_TIME_INTERVAL, *_UNITS, timedelta(seconds=1)),
    "make_ym_interval": _interval(YEAR_MONTH_INTERVAL, 12, 1),
    "positive": _positive,
    **{f"sha{bits}": _digest(bits) for bits in (224, 256, 384, 512)},
    "to_base64": lambda args, call, span: call("base64", args, span),
    "to_binary": _bytes_of,
    "to_char": _written_value,
    "to_varchar": _written_value,
    "truncate": _truncated,
    "try_to_date": lambda args, call, span: Cast(DATE, True, arg=args[0], safe=True, span=span),
    "try_to_timestamp": lambda args, call, span: Cast(Timestamp(6), True, arg=args[0], safe=True, span=span),
    "typeof": lambda args, call, span: _text(str(args[0].type).lower().replace(", ", ",")),
}
