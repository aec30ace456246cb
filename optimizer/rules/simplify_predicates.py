"""Boolean identities, filters that are always or never true, and filters that follow each other."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.types import BOOLEAN
from penstock.planner.expressions.expression_properties import is_deterministic, may_raise
from penstock.planner.expressions.nodes import (
    FALSE,
    TRUE,
    Call,
    Expression,
    Literal,
    conjunction,
    conjuncts,
)
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.scan import Values


def simplify_predicates(plan: LogicalPlan) -> LogicalPlan:
    """Apply AND/OR/NOT identities (three-valued), drop what is always true, empty what never is, and merge
    adjacent filters.
    """
    return plan.transform(
        lambda node: _simplify_node(
            node.simplify_expressions(lambda expression: expression.transform(_simplify))
        )
    )


def _simplify_node(node: LogicalPlan) -> LogicalPlan:
    match node:
        # WHERE FALSE or WHERE NULL: no rows, and nothing below is read.
        case Filter(predicate=predicate) if _never_true(predicate):
            return Values((), node.schema)
        # WHERE TRUE.
        case Filter(input=inner, predicate=predicate) if predicate == TRUE:
            return inner
        # The inner filter's parts come first: they may guard the outer ones from values that raise.
        case Filter(input=Filter(input=inner, predicate=first), predicate=second):
            return _simplify_node(Filter(inner, conjunction(_distinct(conjuncts(first) + conjuncts(second)))))
        # ON TRUE.
        case BinaryJoin(residual=residual) if residual == TRUE:
            return replace(node, residual=None)
        # ON FALSE: an inner join has no rows; an outer one still pads each.
        case BinaryJoin(left=left, right=right, kind=JoinKind.INNER, residual=residual) if (
            residual is not None and _never_true(residual)
        ):
            return Values((), left.schema.concat(right.schema))
    return node


def _never_true(predicate: Expression) -> bool:
    """Whether a filter keeps no row: one of its ANDed parts is FALSE or NULL."""
    return any(isinstance(part, Literal) and part.value is not True for part in conjuncts(predicate))


def _distinct(parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
    kept: list[Expression] = []
    for part in parts:
        # Two calls of a function that is not deterministic are two tests.
        if part not in kept or not is_deterministic(part):
            kept.append(part)
    return tuple(kept)


def _simplify(node: Expression) -> Expression:
    if not isinstance(node, Call):
        return node
    match node.function:
        case "and":
            return _simplify_junction(node, neutral=TRUE, absorbing=FALSE)
        case "or":
            return _simplify_junction(node, neutral=FALSE, absorbing=TRUE)
        case "not":
            return _simplify_not(node)
        # A column that is NOT NULL.
        case "is_null" | "is_not_null" if _surely_not_null(node.args[0]):
            return _truth(node, node.function == "is_not_null")
        # x = x, x <= x.
        case "equal" | "less_equal" | "greater_equal" if _same_not_null(node):
            return _truth(node, True)
        # x <> x, x < x.
        case "not_equal" | "less" | "greater" if _same_not_null(node):
            return _truth(node, False)
        # x <=> x is TRUE for NULL too, so x may be NULL.
        case "null_safe_equal" if (
            node.args[0] == node.args[1] and is_deterministic(node) and not may_raise(node)
        ):
            return _truth(node, True)
    return node


def _truth(node: Expression, value: bool) -> Literal:
    return Literal(BOOLEAN, False, span=node.span, value=value)


def _surely_not_null(operand: Expression) -> bool:
    return not operand.nullable and is_deterministic(operand) and not may_raise(operand)


def _same_not_null(node: Call) -> bool:
    """``x = x`` is TRUE only where x cannot be NULL."""
    return node.args[0] == node.args[1] and _surely_not_null(node.args[0])


def _simplify_junction(node: Call, neutral: Literal, absorbing: Literal) -> Expression:
    """AND with TRUE, OR with FALSE: the other side. AND with FALSE, OR with TRUE: that constant, even
    beside NULL. Twice the same: once.
    """
    left, right = node.args
    # FALSE AND NULL is FALSE, TRUE OR NULL is TRUE. What the other side would raise is not raised then.
    if absorbing in (left, right):
        return replace(absorbing, span=node.span)
    if left == neutral:
        return right
    if right == neutral or (left == right and is_deterministic(left)):
        return left
    return node


_OPPOSITES = {"equal": "not_equal", "not_equal": "equal", "is_null": "is_not_null", "is_not_null": "is_null"}


def _simplify_not(node: Call) -> Expression:
    arg = node.args[0]
    if isinstance(arg, Literal) and isinstance(arg.value, bool):
        return _truth(node, not arg.value)
    # NOT NOT x is x: NULL stays NULL.
    if isinstance(arg, Call) and arg.function == "not":
        return arg.args[0]
    # Also for NULL: NOT (NULL = 1) and NULL <> 1 are both NULL.
    if isinstance(arg, Call) and arg.function in _OPPOSITES:
        return replace(arg, function=_OPPOSITES[arg.function], span=node.span)
    return node
