"""One aggregate call, normalized: aliases and special forms become the few functions that the plan has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.registry import Signature, resolve_aggregate, takes_order
from penstock.catalog.python_functions import PythonAggregate
from penstock.catalog.schema import Role
from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, STRING
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import ScopeColumn
from penstock.planner.expressions.implicit_casts import coerced_argument
from penstock.planner.expressions.nodes import (
    TRUE,
    AggregateCall,
    Call,
    Case,
    Column,
    Direction,
    Expression,
    Literal,
    conjunction,
)
from penstock.planner.expressions.python_calls import PythonAggregateCall, arguments
from penstock.planner.parser.syntax_nodes import FunctionCall, consume, span_of

_PERCENTILES = frozenset({"percentile_cont", "percentile_disc"})
_POSITIONED = frozenset({"first_value", "last_value"})
_REPEATABLE = frozenset(
    {"bool_and", "bool_or", "bit_and", "bit_or", "max_by", "min_by", "collect_set", *_POSITIONED}
)
"""Aggregates that ignore duplicates: DISTINCT has no effect on them."""

Order = list[tuple[Expression, Direction]]


def bind_aggregate_call(call: FunctionCall, binder: ExpressionBinder) -> AggregateCall:
    """Return the aggregate call of a tree, its arguments bound by ``binder``. Raises as
    ``resolve_aggregate``, and SQL-1064 for an invalid ORDER BY.
    """
    consume(call, "this", "expressions", "distinct", "star", "order", "within", "nulls", "filter", "over")
    name, distinct = str(call.this).lower(), bool(call.args.get("distinct"))
    args = [binder.bind(arg) for arg in call.expressions]
    python = binder.context.catalog.functions.find(name, span_of(call))
    # A registered Python aggregate shadows a built-in one.
    if isinstance(python, PythonAggregate):
        return _python_aggregate_call(call, python, args, distinct, _condition(call, binder))
    # the form of the call is checked before its types, so that SUM(*) is not an error of types
    _check_star(call, name, len(args))
    order = _order(call, binder)
    # PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x) is PERCENTILE_CONT(x, p).
    if name in _PERCENTILES and call.args.get("within"):
        args, order = [order[0][0], *args], []
    signature = resolve_aggregate(name, args, distinct, span_of(call))
    wanted = [
        coerced_argument(arg, kind, signature.canonical)
        for arg, kind in zip(args, signature.arg_types, strict=False)
    ]
    condition = _condition(call, binder)
    # ANY_VALUE never returns a NULL where there is a value
    skips = call.args.get("nulls") == "IGNORE" and signature.canonical == "any_value"
    if call.args.get("nulls") and signature.canonical not in _POSITIONED and not skips:
        message, hint = (
            f"{call.args['nulls']} NULLS does not go with {signature.canonical}",
            "only FIRST_VALUE and LAST_VALUE take it",
        )
        raise PenstockError("SQL-1105", message, span=span_of(call), hint=hint, sqlstate="42809")
    return _canonical(call, signature, wanted, order, condition, binder)


def _condition(call: FunctionCall, binder: ExpressionBinder) -> Expression | None:
    keep = call.args.get("filter")
    return None if keep is None else replace(binder, clause="FILTER").condition(keep)


def _check_star(call: FunctionCall, name: str, count: int) -> None:
    span = span_of(call)
    # SUM(*)
    if call.args.get("star") and name != "count":
        raise PenstockError(
            "SQL-1102", f"{name}(*) does not exist", span=span, hint="only COUNT takes *", sqlstate="42809"
        )
    # COUNT()
    if not call.args.get("star") and name == "count" and not count:
        raise PenstockError("SQL-1102", "count() counts nothing", span=span, hint="write COUNT(*)")
    if name == "sum0":
        raise PenstockError(
            "SQL-1101",
            "there is no function sum0",
            span=span,
            hint="write COALESCE(SUM(..), 0)",
            sqlstate="42883",
        )


def _order(call: FunctionCall, binder: ExpressionBinder) -> Order:
    """Return the ORDER BY of a call, inside its parentheses or in WITHIN GROUP."""
    name, inside, within = str(call.this).lower(), call.args.get("order") or [], call.args.get("within") or []
    trees = [*inside, *within]
    if not trees:
        return []
    span = span_of(trees[0])
    # LISTAGG(x ORDER BY a) WITHIN GROUP (ORDER BY b)
    if inside and within:
        raise PenstockError(
            "SQL-1064", f"{name} is ordered twice", span=span, hint="leave one ORDER BY out", sqlstate="42601"
        )
    # PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x): the key is the argument
    if name in _PERCENTILES and within:
        if len(trees) > 1 or trees[0].args.get("desc"):
            hint = "write 1 - p for the share from above"
            raise PenstockError(
                "SQL-1064", f"{name} takes one ascending key", span=span, hint=hint, sqlstate="42601"
            )
    # SUM(x ORDER BY k): the order would change nothing
    elif not takes_order(name):
        hint = "first_value, last_value, collect_list and listagg take one"
        raise PenstockError("SQL-1064", f"{name} takes no ORDER BY", span=span, hint=hint, sqlstate="42809")
    keys = []
    for tree in trees:
        consume(tree, "this", "desc", "nulls_first")
        key = binder.bind(tree.this)
        if not is_orderable(key.type):
            raise PenstockError(
                "SQL-1103", f"ORDER BY cannot compare {key.type}", span=span_of(tree), sqlstate="42804"
            )
        keys.append((key, Direction(bool(tree.args.get("desc")), bool(tree.args.get("nulls_first")))))
    return keys


def _canonical(
    call: FunctionCall,
    signature: Signature,
    args: list[Expression],
    order: Order,
    keep: Expression | None,
    binder: ExpressionBinder,
) -> AggregateCall:
    """Return the call in the plan's form: aliases and derived functions are rewritten to the
    canonical ones.
    """
    name, span, distinct = signature.canonical, span_of(call), bool(call.args.get("distinct"))
    nullable = True if signature.nullable is None else signature.nullable
    # COUNT_IF(c): COUNT(CASE WHEN c THEN TRUE END)
    if name == "count_if":
        return AggregateCall("count", (_marked(args[0]),), BIGINT, False, filter=keep, span=span)
    # REGR_COUNT(y, x): rows in which neither is NULL
    if name == "regr_count":
        both = conjunction(tuple(Call(BOOLEAN, False, function="is_not_null", args=(arg,)) for arg in args))
        return AggregateCall("count", (_marked(both),), BIGINT, False, filter=keep, span=span)
    # It is computed exactly: COUNT(DISTINCT x).
    if name == "approx_count_distinct":
        return AggregateCall("count", (args[0],), BIGINT, False, True, keep, span=span)
    # MEDIAN(x): PERCENTILE(x, 0.5)
    if name == "median":
        name, args = "percentile", [args[0], Literal(DOUBLE, False, value=0.5)]
    # The accuracy argument has no use: percentiles are exact.
    if name == "percentile_approx":
        args = args[:2]
    # COLLECT_SET(x): COLLECT_LIST(DISTINCT x)
    if name == "collect_set":
        name, distinct = "collect_list", True
    # BOOL_AND(DISTINCT x) is BOOL_AND(x).
    elif name in _REPEATABLE:
        distinct = False
    # The default separator is the empty string.
    if name == "listagg" and len(args) < 2:
        args.append(Literal(STRING, False, value=""))
    # FIRST_VALUE(x) IGNORE NULLS, or FIRST_VALUE(x, TRUE): a filter. Without ORDER BY event time orders,
    # and without it all columns.
    if name in _POSITIONED:
        ignores = call.args.get("nulls") == "IGNORE" or (
            len(args) > 1 and getattr(args[1], "value", False) is True
        )
        keep = (
            _both(keep, Call(BOOLEAN, False, function="is_not_null", args=(args[0],), span=span))
            if ignores
            else keep
        )
        args, order = args[:1], order or _event_time(binder) or _all_columns(call, binder)
    # COLLECT_LIST(DISTINCT x ORDER BY y): one x may have several y
    if distinct and any(key != args[0] for key, _ in order):
        hint = f"order by {args[0]}, or leave DISTINCT out"
        raise PenstockError(
            "SQL-1064",
            "DISTINCT values have no order by another column",
            span=span_of(call),
            hint=hint,
            sqlstate="42P10",
        )
    # Sort keys are further arguments of the aggregate; their directions are a field of the call.
    every, directions = (*args, *(key for key, _ in order)), tuple(direction for _, direction in order)
    return AggregateCall(name, every, signature.result, nullable, distinct, keep, directions, span=span)


def _marked(condition: Expression) -> Expression:
    """Return an argument for COUNT: not NULL where a condition is TRUE, else NULL."""
    return Case(
        BOOLEAN,
        True,
        whens=((condition, TRUE),),
        default=Literal(BOOLEAN, True, value=None),
        span=condition.span,
    )


def _both(keep: Expression | None, condition: Expression) -> Expression:
    return condition if keep is None or keep == TRUE else conjunction((keep, condition))


def _event_time(binder: ExpressionBinder) -> Order:
    """The default order of an aggregate's rows: their event time. A window's time is that of all its rows, so
    it orders nothing within the window.
    """
    # the first of the scope, where a join has several
    times = [c for c in binder.scope.columns if c.field.role is Role.EVENT_TIME]
    return [(_column(times[0]), Direction())] if times else []


def _all_columns(call: FunctionCall, binder: ExpressionBinder) -> Order:
    """The order of rows without event time: by all their columns, so that one answer is right."""
    columns = [column for column in binder.scope.columns if is_orderable(column.field.type)]
    name = str(call.this).lower()
    text = f"{name} without ORDER BY is of rows in the order of all columns: they have no event time"
    binder.context.note(text)
    return [(_column(column), Direction()) for column in columns]


def _column(column: ScopeColumn) -> Column:
    field = column.field
    return Column(field.type, field.nullable, index=column.index, name=field.name)


def _python_aggregate_call(
    call: FunctionCall,
    function: PythonAggregate,
    args: Sequence[Expression],
    distinct: bool,
    keep: Expression | None,
) -> PythonAggregateCall:
    """Return the call of a Python aggregate. With DISTINCT it aggregates each distinct row of arguments once.
    Raises as ``arguments``, and SQL-1105 for clauses it does not support.
    """
    span, name = span_of(call), str(call.this).lower()
    for key, word in (("star", "*"), ("nulls", "NULLS"), ("order", "ORDER BY"), ("within", "WITHIN GROUP")):
        if call.args.get(key):
            hint = "a Python aggregate gets its rows in ascending order of their values"
            raise PenstockError(
                "SQL-1105", f"{word} does not go with {name}", span=span, hint=hint, sqlstate="42809"
            )
    return PythonAggregateCall(
        name, arguments(function, args, span), function.result, True, distinct, keep, body=function, span=span
    )
