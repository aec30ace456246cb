"""Subqueries in ON: those of an inner join filter its rows. Those of an outer join are values joined to the
side that they read.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.joins import join_on
from penstock.planner.binder.scope import FromClause, JoinSides, Scope
from penstock.planner.binder.subqueries.correlation import InnerRows, conjunct_trees, has_subquery
from penstock.planner.binder.subqueries.dependent_join import self_contained
from penstock.planner.binder.subqueries.scalar_subqueries import Attached, ScalarSubquery, SubqueryValues
from penstock.planner.binder.subqueries.semi_joins import filtered, roles_above
from penstock.planner.expressions.nodes import Column, Expression, conjuncts
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.projection import select_columns
from penstock.planner.parser.syntax_nodes import span_of


def join_with_subqueries(
    left: FromClause, right: FromClause, kind: JoinKind, tree: exp.Expr, join: JoinSides, context: BindContext
) -> FromClause:
    """Return the join on a condition with subqueries. Raises SQL-1601 for an outer join whose subquery reads
    both sides.
    """
    width = len(left.plan.schema)
    scope = left.scope.beside(right.scope, width)
    trees = conjunct_trees(tree)
    plain = ExpressionBinder(scope, context, "ON")
    # ON a.k = b.k AND a.x IN (SELECT ..)
    parts = [part for tree in trees if not has_subquery(tree) for part in conjuncts(plain.condition(tree))]
    nested = [tree for tree in trees if has_subquery(tree)]
    # ON and WHERE mean the same for an inner join.
    if kind is JoinKind.INNER:
        return filtered(join(left, right, tuple(parts)), nested, context)
    binder = ExpressionBinder(scope, context, "ON", subqueries=SubqueryValues(filtered))
    # An outer join's ON decides what is padded, so its subqueries are joined beneath the join.
    parts += [binder.condition(tree) for tree in nested]
    if any(_reads_both(part, width) for part in parts):
        return _dependent(left, right, kind, trees, context, span_of(nested[0]))
    sides = _Sides(left, right)
    # all parts first: each may widen the left side, and right columns are behind it
    placed = [sides.over(part) for part in parts]
    return join(sides.left, sides.right, tuple(_numbered(part, sides.added) for part in placed))


def _reads_both(part: Expression, width: int) -> bool:
    """Return whether a subquery of a condition reads both sides, and so can be joined to neither."""
    read = (node.columns() for node in part.walk() if isinstance(node, ScalarSubquery))
    return any(columns and min(columns) < width <= max(columns) for columns in read)


def _dependent(
    left: FromClause,
    right: FromClause,
    kind: JoinKind,
    trees: Sequence[exp.Expr],
    context: BindContext,
    span: Span | None,
) -> FromClause:
    """Return an outer join whose condition has a subquery over both sides: each row of the preserved side
    with the rows of the other that pass the condition. Raises SQL-1601 for FULL JOIN.
    """
    if kind not in (JoinKind.LEFT, JoinKind.RIGHT):
        hint = "write a LEFT JOIN, and UNION ALL of the rows of the other side for which NOT EXISTS"
        message = f"a subquery in the ON of a {kind.value.upper()} JOIN reads both sides"
        raise PenstockError("SQL-1601", message, span=span, hint=hint, sqlstate="0A000")
    swapped = kind is JoinKind.RIGHT
    kept, tested = (right, left) if swapped else (left, right)
    width, added = len(kept.plan.schema), len(tested.plan.schema)
    # LEFT JOIN LATERAL (SELECT * FROM tested WHERE condition) ON TRUE
    passed = filtered(tested, trees, context.inside(kept.scope))
    rows = InnerRows(passed.plan, width, Scope((), kept.scope), context.level)
    rows = self_contained(rows, kept.plan, span)
    joined = join_on(kept.plan, rows.plan, JoinKind.LEFT, rows.shared)
    order = (*range(width, width + added), *range(width)) if swapped else range(width + added)
    plan = select_columns(joined, order)
    sides = (left.scope.nullable(), right.scope) if swapped else (left.scope, right.scope.nullable())
    return FromClause(plan, sides[0].beside(sides[1], len(left.plan.schema)).without_roles())


class _Sides:
    """The two sides of a join, with the values of subqueries joined to them. Right columns have negative
    numbers until the left width is known.
    """

    def __init__(self, left: FromClause, right: FromClause) -> None:
        self._bottoms = (left, right)
        self._width = len(left.plan.schema)
        self._attached = (Attached(left.plan), Attached(right.plan))

    @property
    def left(self) -> FromClause:
        """The left side with the subqueries joined to it."""
        return self._side(0)

    @property
    def right(self) -> FromClause:
        """The right side with the subqueries joined to it."""
        return self._side(1)

    @property
    def added(self) -> int:
        """The current width of the left side."""
        return len(self._attached[0].plan.schema)

    def over(self, expression: Expression) -> Expression:
        """Return a condition over the joined values. Right columns are numbered -1, -2 .."""
        if isinstance(expression, ScalarSubquery):
            return self._value(expression)
        if isinstance(expression, Column):
            return (
                expression
                if expression.index < self._width
                else self._of_right(expression, expression.index - self._width)
            )
        return expression.with_children(tuple(self.over(child) for child in expression.children))

    def _value(self, node: ScalarSubquery) -> Expression:
        read = node.columns()
        if read and max(read) < self._width:
            return self._attached[0].over(node)
        # Correlated with the right side, or uncorrelated
        value = self._attached[1].over(node.remap({i: i - self._width for i in read}))
        return value.transform(lambda e: self._of_right(e, e.index) if isinstance(e, Column) else e)

    @staticmethod
    def _of_right(column: Column, index: int) -> Column:
        return Column(column.type, column.nullable, index=-1 - index, name=column.name, span=column.span)

    def _side(self, number: int) -> FromClause:
        bottom, plan = self._bottoms[number], self._attached[number].plan
        return (
            bottom if plan is bottom.plan else FromClause(plan, roles_above(bottom.scope, plan, bottom.plan))
        )


def _numbered(part: Expression, width: int) -> Expression:
    """Return a condition whose right columns -1, -2 .. are moved behind the ``width`` left ones."""
    # -1 is the first right column, at position width
    return part.remap({i: i if i >= 0 else width - 1 - i for i in part.columns()})
