"""Aggregates and ranks that are expressions of others, such as NTILE, which is ROW_NUMBER and COUNT. They are
rewritten in the tree, so that every runtime computes them alike.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as Number

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DOUBLE, INT, DataType, Decimal, Null, is_integer, is_numeric
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.lambdas import unpacked
from penstock.planner.expressions.nodes import Cast, Expression, Literal
from penstock.planner.logical.over import COMPOSED_RANKS
from penstock.planner.parser.syntax_nodes import CastTo, FunctionCall, OverClause, set_span, span_of

Add = Callable[[FunctionCall], Expression]
"""Adds a call to the list of aggregates or of calls with OVER, and returns the placeholder of its result."""

_PERCENTILES = (
    *("percentile", "percentile_cont", "percentile_disc", "percentile_approx", "approx_percentile"),
    *("quantile", "quantile_cont", "quantile_disc"),
)
_WIDE = Decimal(20, 0)
"""Holds each integer and its negative."""


def composed(call: FunctionCall, binder: ExpressionBinder, add: Add) -> Expression | None:
    """Return a call that is an expression of others, or ``None`` for one that is computed by itself."""
    name, args = str(call.this).lower(), call.expressions
    if binder.context.catalog.functions.find(name) is not None:
        return None
    if name in COMPOSED_RANKS:
        return binder.bind(_rank(call, name))
    if name == "count" and len(args) > 1:
        return add(_counted(call))
    if name == "try_sum" and len(args) == 1:
        return _try_sum(call, binder, add)
    if name == "histogram_numeric" and len(args) == 2:
        return _binned(call, binder, add)
    if name in ("json_arrayagg", "json_objectagg"):
        return _json(call, name, binder, add)
    if name == "mode":
        return _mode(call, binder, add)
    if name in _PERCENTILES:
        return _percentile(call, name, binder, add)
    return None


def _changed(call: FunctionCall, name: str, args: list[exp.Expr], **clauses: object) -> FunctionCall:
    changed: FunctionCall = call.copy()
    changed.set("this", name)
    changed.set("expressions", [arg.copy() for arg in args])
    for key, value in clauses.items():
        changed.set(key, value)
    return changed


def _at(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    span = span_of(call)
    return node if span is None else set_span(node, span.start, span.end)


def _cast(value: exp.Expr, kind: DataType, call: exp.Expr) -> exp.Expr:
    node = CastTo(this=value, safe=False)
    node.meta["sql_type"] = kind
    return _at(node, call)


def _not_null(value: exp.Expr) -> exp.Expr:
    is_null = _at(exp.Is(this=value.copy(), expression=_at(exp.Null(), value)), value)
    return _at(exp.Not(this=is_null), value)


# aggregates


def _counted(call: FunctionCall) -> FunctionCall:
    """Return ``COUNT([DISTINCT] a, b)`` as the count of the rows ``(a, b)`` without a NULL."""
    known: exp.Expr | None = None
    for arg in call.expressions:
        test = _not_null(arg)
        known = test if known is None else _at(exp.And(this=known, expression=test), call)
    row = _at(FunctionCall(this="struct", expressions=[arg.copy() for arg in call.expressions]), call)
    return _changed(call, "count", [_at(exp.Case(ifs=[exp.If(this=known, true=row)]), call)])


def _try_sum(call: FunctionCall, binder: ExpressionBinder, add: Add) -> Expression:
    """Return ``TRY_SUM(x)``: integers are added as DECIMAL, which 10^18 of them do not overflow."""
    arg = call.expressions[0]
    kind = _type_of(arg, binder)
    if not is_integer(kind):
        return add(_changed(call, "sum", [arg]))
    total = add(_changed(call, "sum", [_cast(arg.copy(), _WIDE, call)]))
    return Cast(BIGINT, True, arg=total, safe=True, span=span_of(call))


def _binned(call: FunctionCall, binder: ExpressionBinder, add: Add) -> Expression:
    """Return ``HISTOGRAM_NUMERIC(x, n)``: all values and their counts, merged in order of their distance, so
    that the order of rows changes nothing.
    """
    arg, span = call.expressions[0], span_of(call)
    kind = _type_of(arg, binder)
    if not is_numeric(kind) and not isinstance(kind, Null):
        message = f"histogram_numeric: argument 1 is {kind}, wanted a number"
        raise PenstockError("SQL-1103", message, span=span_of(arg) or span, sqlstate="42804")
    counts = add(_changed(call, "histogram", [_cast(arg.copy(), DOUBLE, call)]))
    return binder.call("histogram_bins", [counts, binder.bind(call.expressions[1])], span)


def _type_of(arg: exp.Expr, binder: ExpressionBinder) -> DataType:
    """Return the type of an argument; what is wrong in it is found when it is bound for good."""
    inner = ExpressionBinder(
        binder.scope, binder.context, "an aggregate", None, binder.depth, binder.subqueries
    )
    return inner.bind(arg.copy()).type


def _mode(call: FunctionCall, binder: ExpressionBinder, add: Add) -> Expression | None:
    """Return MODE() WITHIN GROUP (ORDER BY x [DESC]), and Spark's MODE(x, deterministic); ``None`` for
    MODE(x), the smallest of the most frequent values.
    """
    within, args, span = call.args.get("within") or [], call.expressions, span_of(call)
    if len(args) == 2 and isinstance(args[1], exp.Boolean):
        return add(_changed(call, "mode", args[:1]))
    if args or len(within) != 1:
        return None
    if not within[0].args.get("desc"):
        return add(_changed(call, "mode", [within[0].this], within=[]))
    # a histogram is sorted by value: the last of those that occur most often
    counts = add(_changed(call, "histogram", [within[0].this], within=[]))
    keys, often = (binder.call(part, [counts], span) for part in ("map_keys", "map_values"))
    backward = binder.call("reverse", [often], span)
    place = binder.call("array_position", [backward, binder.call("array_max", [often], span)], span)
    return binder.call("element_at", [binder.call("reverse", [keys], span), place], span)


def _json(call: FunctionCall, name: str, binder: ExpressionBinder, add: Add) -> Expression:
    """Return JSON_ARRAYAGG and JSON_OBJECTAGG as TO_JSON of a list or of a map."""
    nulls, span = call.args.get("nulls"), span_of(call)
    if name == "json_arrayagg":
        if nulls != "NULL":
            values = add(_changed(call, "collect_list", call.expressions, nulls=None))
            return binder.call("to_json", [values], span)
        rows = [_row(call, value=item) for item in call.expressions]
        listed = add(_changed(call, "collect_list", rows, nulls=None))
        return binder.call("to_json", [unpacked(listed, span)], span)
    key, value = call.expressions
    pair = _row(call, key=key, value=value)
    keep = call.args.get("filter")
    if nulls == "ABSENT":
        known = _at(
            exp.Not(this=_at(exp.Is(this=value.copy(), expression=_at(exp.Null(), call)), call)), call
        )
        keep = known if keep is None else _at(exp.And(this=keep.copy(), expression=known), call)
    pairs = add(_changed(call, "collect_list", [pair], nulls=None, filter=keep))
    return binder.call("to_json", [binder.call("map_from_entries", [pairs], span)], span)


def _row(call: FunctionCall, **fields: exp.Expr) -> exp.Expr:
    parts = []
    for name, value in fields.items():
        parts += [_at(exp.Literal.string(name), call), value.copy()]
    return _at(FunctionCall(this="named_struct", expressions=parts), call)


def _percentile(call: FunctionCall, name: str, binder: ExpressionBinder, add: Add) -> Expression | None:
    """Return a percentile of an array of shares, or in descending order; ``None`` for any other."""
    within, args = call.args.get("within") or [], call.expressions
    place = 0 if within else 1
    shares = args[place] if len(args) > place else None
    # PERCENTILE(x, ARRAY[0.25, 0.75]) is the array of both, and NULL where there is no value
    if isinstance(shares, FunctionCall) and str(shares.this).lower() == "array" and shares.expressions:
        each = []
        for share in shares.expressions:
            one = _changed(call, name, [*args[:place], share, *args[place + 1 :]])
            each.append(_percentile(one, name, binder, add) or add(one))
        span = span_of(call)
        listed = binder.call("array", each, span)
        absent = binder.call("is_null", [each[0]], span)
        return case_of([(absent, Literal(listed.type, True, value=None))], listed, span)
    if len(within) == 1 and within[0].args.get("desc"):
        return _descending(call, name, binder, add)
    return None


def _descending(call: FunctionCall, name: str, binder: ExpressionBinder, add: Add) -> Expression | None:
    """Return a percentile ``WITHIN GROUP (ORDER BY x DESC)``: the share from above, or that of ``-x``."""
    share, key = call.expressions[0], call.args["within"][0]
    ascending = key.copy()
    ascending.set("desc", False)
    if name == "percentile_cont" and isinstance(share, exp.Literal) and not share.is_string:
        rest = _at(exp.Literal.number(str(1 - Number(share.name))), share)
        return add(_changed(call, name, [rest], within=[ascending]))
    kind = _type_of(key.this, binder)
    # of other types the order of the negatives is not the reverse: NaN, and what has no negative
    if name != "percentile_disc" or not (is_integer(kind) or isinstance(kind, Decimal)):
        return None
    value = _cast(key.this.copy(), _WIDE, call) if is_integer(kind) else key.this.copy()
    ascending.set("this", _at(exp.Neg(this=value), call))
    found = add(_changed(call, name, [share], within=[ascending]))
    back = binder.call("negate", [found], span_of(call))
    return Cast(kind, True, arg=back, safe=False, span=span_of(call)) if is_integer(kind) else back


# ranks


def _rank(call: FunctionCall, name: str) -> exp.Expr:
    """Return NTILE, PERCENT_RANK or CUME_DIST as an expression of ROW_NUMBER, RANK and COUNT."""
    least = 1 if name == "ntile" else 0
    if len(call.expressions) != least:
        wanted = "1 argument" if least else "no argument"
        raise PenstockError(
            "SQL-1102",
            f"{name} takes {wanted}, not {len(call.expressions)}",
            span=span_of(call),
            sqlstate="42883",
        )
    over = call.args["over"]
    if not over.args["order"]:
        hint = "write OVER (PARTITION BY .. ORDER BY ..)"
        raise PenstockError(
            "SQL-1065", f"{name} needs an ORDER BY", span=span_of(over), hint=hint, sqlstate="42P20"
        )
    count = _over(call, "count", OverClause(partition=_copies(over.args["partition"]), order=[]), star=True)
    if name == "cume_dist":
        running = OverClause(partition=_copies(over.args["partition"]), order=_copies(over.args["order"]))
        return _ratio(_over(call, "count", running, star=True), count, call)
    if name == "percent_rank":
        one = _number(1, call)
        above = _at(exp.Sub(this=_over(call, "rank", _ranked(over)), expression=one), call)
        others = _at(exp.Sub(this=count, expression=one.copy()), call)
        # a partition of one row: 0
        alone = _at(exp.EQ(this=count.copy(), expression=one.copy()), call)
        zero = _cast(_number(0, call), DOUBLE, call)
        return _at(exp.Case(ifs=[exp.If(this=alone, true=zero)], default=_ratio(above, others, call)), call)
    return _tile(call, _over(call, "row_number", _ranked(over)), count)


def _tile(call: FunctionCall, number: exp.Expr, count: exp.Expr) -> exp.Expr:
    """Return NTILE(n): the first ``count % n`` tiles have one row more than the others."""
    tiles = call.expressions[0]
    if (
        not isinstance(tiles, exp.Literal)
        or tiles.is_string
        or not tiles.name.isdigit()
        or not int(tiles.name)
    ):
        raise PenstockError(
            "SQL-1102", "ntile takes a whole number of tiles", span=span_of(tiles), hint="write ntile(4)"
        )

    def two(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
        return _at(kind(this=left.copy(), expression=right.copy()), call)

    one = _number(1, call)
    size, rest = two(exp.IntDiv, count, tiles), two(exp.Mod, count, tiles)
    larger, before = _at(exp.Paren(this=two(exp.Add, size, one)), call), two(exp.Sub, number, one)
    before = _at(exp.Paren(this=before), call)
    first = two(exp.Add, two(exp.IntDiv, before, larger), one)
    behind = _at(exp.Paren(this=two(exp.Sub, before, rest)), call)
    # never zero where it is read: with fewer rows than tiles every row is in a larger tile
    least = _at(FunctionCall(this="greatest", expressions=[size.copy(), one.copy()]), call)
    second = two(exp.Add, two(exp.IntDiv, behind, least), one)
    within = two(exp.LTE, number, two(exp.Mul, _at(exp.Paren(this=rest), call), larger))
    return _cast(_at(exp.Case(ifs=[exp.If(this=within, true=first)], default=second), call), INT, call)


def _ranked(over: exp.Expr) -> OverClause:
    return OverClause(partition=_copies(over.args["partition"]), order=_copies(over.args["order"]))


def _copies(nodes: list[exp.Expr]) -> list[exp.Expr]:
    return [node.copy() for node in nodes]


def _over(call: FunctionCall, name: str, over: OverClause, *, star: bool = False) -> exp.Expr:
    return _at(FunctionCall(this=name, expressions=[], star=star, over=_at(over, call.args["over"])), call)


def _number(value: int, call: exp.Expr) -> exp.Expr:
    return _at(exp.Literal.number(value), call)


def _ratio(above: exp.Expr, below: exp.Expr, call: exp.Expr) -> exp.Expr:
    return _at(exp.Div(this=_cast(above, DOUBLE, call), expression=_cast(below, DOUBLE, call)), call)
