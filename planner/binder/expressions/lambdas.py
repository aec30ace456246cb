"""Calls with lambda arguments: transform, filter, exists, forall, aggregate, zip_with, and those of maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from penstock.catalog.coercion import common_type, is_orderable
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.nested import LAMBDA_NAMES
from penstock.catalog.other_dialects import FUNCTION_HINTS
from penstock.catalog.types import BOOLEAN, INT, Array, Boolean, DataType, Map, Null, Row
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Call, Expression, Lambda, LambdaVariable, Literal
from penstock.planner.parser.syntax_nodes import FunctionCall, LambdaFunction, span_of

_OF_MAPS = ("map_filter", "transform_keys", "transform_values")
_CONDITIONS = ("filter", "exists", "forall", "map_filter")
# Their lambdas may have a second parameter, the element's index.
_WITH_PLACE = ("transform", "filter")


class BodyBinder(Protocol):
    """Binds the arguments of a call and the bodies of its lambdas."""

    clause: str
    lambda_parameters: tuple[LambdaVariable, ...]

    def bind(self, tree: exp.Expr) -> Expression:
        """Return the typed expression of a tree."""

    def inside_lambda(self, parameters: Sequence[LambdaVariable], clause: str) -> BodyBinder:
        """Return the binder of a lambda's body, with these parameters added."""


def takes_lambda(tree: FunctionCall) -> bool:
    """Return whether a call has a lambda among its arguments."""
    return any(isinstance(arg, LambdaFunction) for arg in tree.expressions)


def bind_lambda_call(tree: FunctionCall, binder: BodyBinder) -> Expression:
    """Return a call with lambdas among its arguments. Raises SQL-1113 for a lambda that does not fit, else as
    for other calls.
    """
    name, span, args = str(tree.this).lower(), span_of(tree), tree.expressions
    # any other function: abs(x -> x)
    declared = LAMBDA_NAMES.get(name)
    if declared is None:
        first = next(arg for arg in args if isinstance(arg, LambdaFunction))
        # upper(s -> 'a'): a member of JSON, which only parentheses tell from a function
        member = isinstance(first.this, exp.Literal) and len(first.expressions) == 1
        hint = f"write {name}(({first.expressions[0].name} -> ..)) for a member of JSON" if member else None
        # a function of another engine
        hint = FUNCTION_HINTS.get(name) or hint
        raise _misplaced(f"{name} takes no function as argument", span_of(first), hint)
    least, most = declared.arity
    if not least <= len(args) <= (most or least):
        raise PenstockError(
            "SQL-1102",
            f"{declared.name} does not take {len(args)} arguments",
            span=span,
            hint=f"write {declared.usage}",
        )
    # aggregate(array, start, merge[, finish]) is the only function with two lambdas.
    functions = 2 if declared.name == "aggregate" and len(args) == 4 else 1
    # lambdas are the last arguments; a lambda elsewhere, or a value in their place, is refused below
    values, bodies = args[: len(args) - functions], args[len(args) - functions :]
    for arg in args:
        if isinstance(arg, LambdaFunction) != (arg in bodies):
            raise _misplaced(
                f"{declared.name} takes its functions last", span_of(arg), f"write {declared.usage}"
            )
    bound = [binder.bind(value) for value in values]
    # zip_with takes two arrays.
    for value in bound[: 2 if declared.name == "zip_with" else 1]:
        if not isinstance(value.type, Map if declared.name in _OF_MAPS else Array):
            wanted = "a MAP" if declared.name in _OF_MAPS else "an ARRAY"
            message = f"{declared.name}: {value.type} is not {wanted}"
            raise PenstockError(
                "SQL-1103",
                message,
                span=value.span or span,
                hint=f"usage: {declared.usage}",
                sqlstate="42804",
            )
    if declared.name == "aggregate":
        return _aggregate(bound, bodies, binder, span)
    function = _function(declared.name, bodies[0], _elements(declared.name, bound), binder)
    kind = _result(declared.name, bound, function)
    nullable = declared.nullable or any(value.nullable for value in bound)
    return Call(kind, nullable, function=declared.name, args=(*bound, function), span=span)


def _elements(name: str, values: Sequence[Expression]) -> list[tuple[DataType, bool]]:
    """Return the types of the lambda's parameters, and whether each may be NULL."""
    kinds: list[tuple[DataType, bool]] = []
    for value in values:
        if isinstance(value.type, Map):
            # (k, v) -> ..: a key is never NULL
            kinds += [(value.type.key, False), (value.type.value, True)]
        elif isinstance(value.type, Array):
            # x -> .., or (x, y) -> .. of two arrays
            kinds.append((value.type.element, True))
    # (x, i) -> ..
    return [*kinds, (INT, False)] if name in _WITH_PLACE else kinds


def _function(
    name: str, tree: LambdaFunction, kinds: Sequence[tuple[DataType, bool]], binder: BodyBinder
) -> Lambda:
    names, span = tree.expressions, span_of(tree)
    least = 1 if name in _WITH_PLACE else len(kinds)
    if not least <= len(names) <= len(kinds):
        wanted = (
            "one parameter"
            if len(kinds) == 1
            else f"{least} or {len(kinds)} parameters"
            if least < len(kinds)
            else f"{len(kinds)} parameters"
        )
        raise _misplaced(
            f"the function of {name} has {wanted}, this has {len(names)}",
            span,
            f"write {LAMBDA_NAMES[name].usage}",
        )
    if len({one.name.lower() for one in names}) < len(names):
        raise _misplaced("two parameters of a function have one name", span, "give them different names")
    # Parameters are numbered through nested lambdas, so that inner ones do not hide outer values.
    outside = len(binder.lambda_parameters)
    parameters = tuple(
        LambdaVariable(kind, nullable, span=span_of(one), number=outside + i, name=one.name)
        for i, (one, (kind, nullable)) in enumerate(zip(names, kinds, strict=False))
    )
    body = binder.inside_lambda(parameters, f"the function of {name}").bind(tree.this)
    # filter, exists and forall test their elements.
    if name in _CONDITIONS:
        if not isinstance(body.type, Boolean | Null):
            message, hint = (
                f"the function of {name} returns BOOLEAN, this returns {body.type}",
                "compare it with something",
            )
            raise PenstockError("SQL-1103", message, span=body.span or span, hint=hint, sqlstate="42804")
        body = coerced(body, BOOLEAN)
    return Lambda(body.type, body.nullable, span=span, parameters=parameters, body=body)


def _result(name: str, values: Sequence[Expression], function: Lambda) -> DataType:
    kind = values[0].type
    match name:
        case "transform" | "zip_with":
            # transform(a, x -> x > 1) is ARRAY<BOOLEAN>
            return Array(function.type)
        case "exists" | "forall":
            return BOOLEAN
        # Keys must be of a comparable type, and not of the NULL type.
        case "transform_keys" if isinstance(kind, Map):
            if not is_orderable(function.type) or isinstance(function.type, Null):
                raise PenstockError(
                    "SQL-1103",
                    f"{function.type} cannot be the key of a MAP",
                    span=function.span,
                    sqlstate="42804",
                )
            return Map(function.type, kind.value)
        case "transform_values" if isinstance(kind, Map):
            return Map(kind.key, function.type)
    # filter and map_filter: the type of their argument
    return kind


def _aggregate(
    bound: Sequence[Expression], bodies: Sequence[LambdaFunction], binder: BodyBinder, span: Span | None
) -> Expression:
    """Bind AGGREGATE: the accumulator has the common type of the start value and the lambda's result."""
    array, start = bound
    assert isinstance(array.type, Array)
    element = (array.type.element, True)
    # The accumulator starts with the type of the start value. A wider result binds it a second time.
    merge = _function("aggregate", bodies[0], [(start.type, True), element], binder)
    if merge.type != start.type:
        kind = common_type(start.type, merge.type)
        merge = merge if kind is None else _function("aggregate", bodies[0], [(kind, True), element], binder)
        if kind is None or merge.type != kind:
            message = (
                f"the function of aggregate makes {merge.type} of {start.type if kind is None else kind}"
            )
            hint = f"CAST its value to {start.type}, or the start to the type it returns"
            raise PenstockError("SQL-1103", message, span=merge.span or span, hint=hint, sqlstate="42804")
        start = coerced(start, kind)
    args: list[Expression] = [array, start, merge]
    if len(bodies) > 1:
        # aggregate(a, 0, (s, x) -> s + x, s -> s / 2): the last lambda finishes the accumulator
        args.append(_function("aggregate", bodies[1], [(start.type, True)], binder))
    return Call(args[-1].type, True, function="aggregate", args=tuple(args), span=span)


def _misplaced(message: str, span: Span | None, hint: str | None = None) -> PenstockError:
    hint = hint or f"functions are arguments of {', '.join(sorted(LAMBDA_NAMES))}"
    return PenstockError("SQL-1113", message, span=span, hint=hint, sqlstate="42601")


def refuse_lambda(binder: BodyBinder, tree: exp.Expr) -> Expression:
    """Raise SQL-1113 for a lambda outside of a call."""
    raise _misplaced(f"a function cannot be used in {binder.clause} by itself", span_of(tree))


def unpacked(rows: Expression, span: Span | None) -> Expression:
    """Return the first fields of a list of rows. A list that an aggregate collects leaves NULLs out, but no
    row whose field is NULL.
    """
    assert isinstance(rows.type, Array) and isinstance(rows.type.element, Row)
    element = LambdaVariable(rows.type.element, False, name="x")
    kind = rows.type.element.fields[0][1]
    field = Call(kind, True, function="field", args=(element, Literal(INT, False, value=0)))
    body = Lambda(kind, True, parameters=(element,), body=field)
    return Call(Array(kind), False, function="transform", args=(rows, body), span=span)
