"""Subqueries in ON: those of an inner join filter its rows. Those of an outer join are values joined to the
side that they read.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import FromClause, JoinSides
from penstock.planner.binder.subqueries.correlation import conjunct_trees, has_subquery
from penstock.planner.binder.subqueries.scalar_subqueries import Attached, ScalarSubquery, SubqueryValues
from penstock.planner.binder.subqueries.semi_joins import filtered, roles_above
from penstock.planner.expressions.nodes import Column, Expression, conjuncts
from penstock.planner.logical.joins.join import JoinKind


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
    sides = _Sides(left, right)
    # all parts first: each may widen the left side, and right columns are behind it
    placed = [sides.over(part) for part in parts]
    return join(sides.left, sides.right, tuple(_numbered(part, sides.added) for part in placed))


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
        # It can be joined to neither side.
        if read and min(read) < self._width <= max(read):
            hint = "read one side only, or join first and filter the rows in WHERE"
            message = "a subquery in the ON of an outer join reads both sides"
            raise PenstockError("SQL-1601", message, span=node.span, hint=hint, sqlstate="0A000")
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
