"""CASE, and the functions that are short for CASE: COALESCE, NULLIF, IF, NVL2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from penstock.catalog.coercion import common_type_of
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import BOOLEAN, INT, Boolean, DataType, Null
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Call, Case, Cast, Expression, Literal
from penstock.planner.parser.syntax_nodes import consume, span_of

CONDITIONALS = frozenset(("coalesce", "nullif", "if", "nvl2", "zeroifnull", "nullifzero"))


class PartBinder(Protocol):
    """The part of the expression binder that CASE uses."""

    def bind(self, tree: exp.Expr) -> Expression:
        """Bind a part."""

    def condition(self, tree: exp.Expr, clause: str | None = None) -> Expression:
        """Bind a BOOLEAN part."""

    def call(self, function: str, args: Sequence[Expression], span: Span | None) -> Expression:
        """Call a function on bound parts."""


def bind_case(binder: PartBinder, tree: exp.Expr) -> Expression:
    """Return a searched CASE; ``CASE x WHEN v`` compares x with each v."""
    consume(tree, "this", "ifs", "default")
    operand = tree.args.get("this")
    subject = None if operand is None else binder.bind(operand)
    branches = []
    for branch in tree.args["ifs"]:
        condition = branch.this
        test = (
            # the WHERE of UPDATE and DELETE is bound as a CASE
            binder.condition(condition, branch.meta.get("clause", "WHEN"))
            # CASE WHEN condition, or CASE x WHEN value
            if subject is None
            else binder.call("equal", [subject, binder.bind(condition)], span_of(condition))
        )
        branches.append((test, binder.bind(branch.args["true"])))
    default = tree.args.get("default")
    last = None if default is None else binder.bind(default)
    return case_of(branches, last, span_of(tree))


def case_of(
    branches: Sequence[tuple[Expression, Expression]], default: Expression | None, span: Span | None
) -> Expression:
    """Return a CASE whose branches are cast to their common type; no default means NULL."""
    values = [value for _, value in branches] + ([default] if default is not None else [])
    kind = common_type_of([value.type for value in values])
    # CASE WHEN .. THEN 1 ELSE DATE '..' END
    if kind is None:
        listed = ", ".join(dict.fromkeys(str(value.type) for value in values))
        message = f"the branches of CASE have no common type: {listed}"
        raise PenstockError("SQL-1103", message, span=span, hint="CAST them to one type", sqlstate="42804")
    # ELSE NULL, where none is written
    last = Literal(kind, True, value=None, span=span) if default is None else coerced(default, kind)
    whens = tuple((test, coerced(value, kind)) for test, value in branches)
    nullable = last.nullable or any(value.nullable for _, value in whens)
    return Case(kind, nullable, whens=whens, default=last, span=span)


def conditional(function: str, args: Sequence[Expression], kind: DataType, span: Span | None) -> Expression:
    """Return the CASE that a conditional function is short for. Arguments are already cast to the types of
    its signature.
    """
    match function:
        # COALESCE(a, b): CASE WHEN a IS NOT NULL THEN a ELSE b
        case "coalesce":
            return _coalesce(args, kind, span)
        # NULLIF(a, b): the comparison is in the common type, the result has the type of a.
        case "nullif":
            same = Call(
                BOOLEAN, args[0].nullable or args[1].nullable, function="equal", args=_alike(args), span=span
            )
            widened = args[0]
            # NULLIF(i, 1.5): i was widened to DECIMAL for the comparison; the result is the INT itself
            value = (
                widened.arg
                if isinstance(widened, Cast) and widened.arg.type == kind
                else coerced(widened, kind)
            )
            return Case(
                kind,
                True,
                whens=((same, Literal(kind, True, value=None, span=span)),),
                default=value,
                span=span,
            )
        # ZEROIFNULL(x): COALESCE(x, 0)
        case "zeroifnull":
            return _coalesce([args[0], _zero(kind)], kind, span)
        # NULLIFZERO(x): NULLIF(x, 0)
        case "nullifzero":
            is_zero = Call(
                BOOLEAN, args[0].nullable, function="equal", args=(args[0], _zero(kind)), span=span
            )
            return Case(
                kind,
                True,
                whens=((is_zero, Literal(kind, True, value=None, span=span)),),
                default=args[0],
                span=span,
            )
        # NVL2(x, a, b): CASE WHEN x IS NOT NULL THEN a ELSE b
        case "nvl2":
            return _choice(_present(args[0]), args[1], args[2], kind, span)
    # IF(condition, a, b)
    if not isinstance(args[0].type, Boolean | Null):
        message = f"if takes a BOOLEAN condition, this is {args[0].type}"
        raise PenstockError(
            "SQL-1103", message, span=args[0].span, hint="compare it with something", sqlstate="42804"
        )
    # a NULL condition takes the last branch, as CASE does
    return _choice(coerced(args[0], BOOLEAN), args[1], args[2], kind, span)


def _zero(kind: DataType) -> Expression:
    return coerced(Literal(INT, False, value=0), kind)


def _coalesce(args: Sequence[Expression], kind: DataType, span: Span | None) -> Expression:
    useful = []
    for arg in args:
        useful.append(coerced(arg, kind))
        # Arguments behind one that is never NULL are never reached.
        if not arg.nullable:
            break
    # COALESCE(x, y) of an x that is never NULL
    if len(useful) == 1:
        return useful[0]
    whens = tuple((_present(arg), arg) for arg in useful[:-1])
    return Case(kind, useful[-1].nullable, whens=whens, default=useful[-1], span=span)


def _present(value: Expression) -> Expression:
    return Call(BOOLEAN, False, function="is_not_null", args=(value,), span=value.span)


def _choice(
    test: Expression, then: Expression, other: Expression, kind: DataType, span: Span | None
) -> Expression:
    first, second = coerced(then, kind), coerced(other, kind)
    return Case(kind, first.nullable or second.nullable, whens=((test, first),), default=second, span=span)


def _alike(args: Sequence[Expression]) -> tuple[Expression, ...]:
    kind = common_type_of([arg.type for arg in args])
    return tuple(args) if kind is None else tuple(coerced(arg, kind) for arg in args)
