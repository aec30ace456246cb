"""Common subexpressions of a filter and a projection: each is computed once per batch, as one more column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.registry import is_deterministic
from penstock.planner.expressions.nodes import (
    Call,
    Cast,
    Column,
    Expression,
    Lambda,
    LambdaVariable,
    Literal,
)
from penstock.planner.expressions.python_calls import PythonCall

# As quick as reading a column that was computed before: at least 200 million values a second.
_CHEAP = frozenset(
    (
        "add",
        "subtract",
        "multiply",
        "divide",
        "negate",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "null_safe_equal",
        "and",
        "or",
        "not",
        "is_null",
        "is_not_null",
        "is_true",
        "is_false",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_not",
        "field",
    )
)

_MOST_NODES = 1_000
"""Nodes are compared with all that is below them: of more of them the comparison would take a second."""


@dataclass(frozen=True)
class SharedSubexpressions:
    """``filtered`` are computed from the input and appended to its columns, for the predicate. ``projected``
    are computed from the rows that pass, and appended behind them. The predicate and the projections read
    these columns instead.
    """

    filtered: tuple[Expression, ...]
    projected: tuple[Expression, ...]
    predicate: Expression | None
    projections: tuple[Expression, ...] | None


def share_subexpressions(
    predicate: Expression | None, projections: Sequence[Expression] | None, width: int
) -> SharedSubexpressions | None:
    """Return a filter and a projection over ``width`` columns with their common subexpressions computed once;
    ``None`` when they have none that costs more than a column.

    A subexpression below CASE, AND or OR is computed for all rows, also for those that do not need it. If it
    faults, the caller must evaluate what it had.
    """
    roots = [*(() if predicate is None else (predicate,)), *(projections or ())]
    if sum(1 for root in roots for _ in root.walk()) > _MOST_NODES:
        return None
    of_filter = _candidates(predicate) if predicate is not None else []
    of_projection = [node for projection in projections or () for node in _candidates(projection)]
    counts = Counter([*of_filter, *of_projection])
    common = [node for node, count in counts.items() if count > 1]
    # A part of a common subexpression is computed with it.
    inner = {below for node in common for below in node.walk() if below is not node}
    common = [node for node in common if node not in inner or _occurs_alone(node, roots, common)]
    if not common:
        return None
    used = set(of_filter)
    filtered = [node for node in common if node in used]
    projected = [node for node in common if node not in used]
    columns = {node: width + i for i, node in enumerate([*filtered, *projected])}

    def replaced(expression: Expression) -> Expression:
        # From the top: the largest common subexpression becomes the column.
        if (index := columns.get(expression)) is not None:
            return Column(expression.type, expression.nullable, index=index, name=str(expression))
        children = tuple(replaced(child) for child in expression.children)
        return expression.with_children(children) if children else expression

    return SharedSubexpressions(
        tuple(filtered),
        tuple(projected),
        None if predicate is None else replaced(predicate),
        None if projections is None else tuple(replaced(projection) for projection in projections),
    )


def _occurs_alone(node: Expression, roots: Sequence[Expression], common: Sequence[Expression]) -> bool:
    """Return whether a subexpression also occurs outside of all larger common ones."""
    larger = {other for other in common if other != node and node in set(other.walk())}

    def occurs(expression: Expression) -> bool:
        if expression in larger:
            return False
        return expression == node or any(map(occurs, expression.children))

    return any(map(occurs, roots))


def _candidates(root: Expression) -> list[Expression]:
    """Return the subexpressions that may be computed once. The body of a lambda function is computed over
    elements, not over rows.
    """
    found: list[Expression] = []

    def visit(node: Expression) -> tuple[bool, bool, bool]:
        """Return whether the node with its operands has one value, is costly, and reads a column."""
        parts = [visit(child) for child in node.children]
        one_value = _has_one_value(node) and all(part[0] for part in parts)
        costly = _is_costly(node) or any(part[1] for part in parts)
        reads = isinstance(node, Column) or any(part[2] for part in parts)
        if one_value and costly and reads:
            found.append(node)
        return one_value, costly, reads

    visit(root)
    return found


def has_one_value(expression: Expression) -> bool:
    """Return whether equal expressions have equal values in each row of a batch."""
    return all(map(_has_one_value, expression.walk()))


def _has_one_value(node: Expression) -> bool:
    """Return whether equal nodes have equal values in each row of a batch."""
    match node:
        # A user's function may count its calls.
        case PythonCall():
            return False
        case Call(function=function):
            return is_deterministic(function)
        case LambdaVariable() | Lambda():
            return False
        # 0.0 equals -0.0, but their texts differ.
        case Literal(value=float() as value):
            return value != 0
    return True


def _is_costly(node: Expression) -> bool:
    return isinstance(node, Cast) or (isinstance(node, Call) and node.function not in _CHEAP)
