"""Column expressions of the Table API. Python operators build the same syntax trees as the SQL grammar."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from penstock.planner.parser.syntax_nodes import CastTo, FunctionCall, HostValue, Reference
from penstock.planner.parser.type_parser import parse_type


class ColumnExpression:
    """An expression over the columns of a table, with an optional name. Combine conditions with ``& | ~``:
    ``and or not`` do not build trees.
    """

    __hash__ = None  # type: ignore[assignment]  # == builds an expression, so these cannot be dictionary keys

    def __init__(self, tree: exp.Expr) -> None:
        self.tree = tree

    def __bool__(self) -> bool:
        # `a and b` asks a for its truth value and would silently drop one side
        raise TypeError(
            "a column expression has no truth value: combine conditions with & | ~ and put each in "
            "parentheses"
        )

    def __repr__(self) -> str:
        return f"ColumnExpression({type(self.tree).__name__})"

    # arithmetic

    def __add__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Add, self, other)

    # 1 + col("a"): the constant is on the left
    def __radd__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Add, other, self)

    def __sub__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Sub, self, other)

    def __rsub__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Sub, other, self)

    def __mul__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Mul, self, other)

    def __rmul__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Mul, other, self)

    def __truediv__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Div, self, other)

    def __rtruediv__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Div, other, self)

    def __mod__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Mod, self, other)

    def __neg__(self) -> ColumnExpression:
        # a copy everywhere: a sqlglot node has one parent, and an expression may be used in several
        return ColumnExpression(exp.Neg(this=self.tree.copy()))

    # comparison and logic

    def __eq__(self, other: object) -> ColumnExpression:  # type: ignore[override]
        return _binary(exp.EQ, self, other)

    def __ne__(self, other: object) -> ColumnExpression:  # type: ignore[override]
        return _binary(exp.NEQ, self, other)

    def __lt__(self, other: Any) -> ColumnExpression:
        return _binary(exp.LT, self, other)

    def __le__(self, other: Any) -> ColumnExpression:
        return _binary(exp.LTE, self, other)

    def __gt__(self, other: Any) -> ColumnExpression:
        return _binary(exp.GT, self, other)

    def __ge__(self, other: Any) -> ColumnExpression:
        return _binary(exp.GTE, self, other)

    def __and__(self, other: Any) -> ColumnExpression:
        return _binary(exp.And, self, other)

    def __or__(self, other: Any) -> ColumnExpression:
        return _binary(exp.Or, self, other)

    def __invert__(self) -> ColumnExpression:
        return ColumnExpression(exp.Not(this=self.tree.copy()))

    def is_null(self) -> ColumnExpression:
        """Return whether the value is NULL."""
        return ColumnExpression(exp.Is(this=self.tree.copy(), expression=exp.Null()))

    def is_not_null(self) -> ColumnExpression:
        """Return whether the value is not NULL."""
        # a IS NOT NULL is NOT (a IS NULL)
        return ColumnExpression(exp.Not(this=self.is_null().tree))

    def isin(self, *values: Any) -> ColumnExpression:
        """Return whether the value equals one of the others."""
        return ColumnExpression(
            exp.In(this=self.tree.copy(), expressions=[tree_of(value) for value in values])
        )

    def between(self, low: Any, high: Any) -> ColumnExpression:
        """Return whether the value is from ``low`` to ``high``, both included."""
        return ColumnExpression(exp.Between(this=self.tree.copy(), low=tree_of(low), high=tree_of(high)))

    def like(self, pattern: str) -> ColumnExpression:
        """Return whether the text matches a LIKE pattern."""
        return _binary(exp.Like, self, pattern)

    # types, names, order

    def cast(self, sql_type: str) -> ColumnExpression:
        """Return the value cast to another SQL type, e.g. ``"BIGINT"``."""
        node = CastTo(this=self.tree.copy(), safe=False)
        node.meta["sql_type"] = parse_type(sql_type)
        return ColumnExpression(node)

    def alias(self, name: str) -> ColumnExpression:
        """Return the expression under a column name."""
        return ColumnExpression(
            # quoted: the name may be a reserved word
            exp.Alias(this=self.tree.copy(), alias=exp.Identifier(this=name, quoted=True))
        )

    def asc(self, *, nulls_first: bool = True) -> ColumnExpression:
        """Return the expression as an ascending sort key."""
        return ColumnExpression(exp.Ordered(this=self.tree.copy(), desc=False, nulls_first=nulls_first))

    def desc(self, *, nulls_first: bool = False) -> ColumnExpression:
        """Return the expression as a descending sort key."""
        return ColumnExpression(exp.Ordered(this=self.tree.copy(), desc=True, nulls_first=nulls_first))

    # aggregates

    def count(self) -> ColumnExpression:
        """Return the number of values that are not NULL."""
        return call("count", self)

    def sum(self) -> ColumnExpression:
        """Return the sum."""
        return call("sum", self)

    def avg(self) -> ColumnExpression:
        """Return the mean."""
        return call("avg", self)

    def min(self) -> ColumnExpression:
        """Return the smallest value."""
        return call("min", self)

    def max(self) -> ColumnExpression:
        """Return the largest value."""
        return call("max", self)

    def where(self, condition: ColumnExpression) -> ColumnExpression:
        """Return the aggregate over the rows that satisfy a condition (FILTER)."""
        # sum(a) FILTER (WHERE condition)
        node = self.tree.copy()
        node.set("filter", condition.tree.copy())
        return ColumnExpression(node)


def tree_of(value: Any) -> exp.Expr:
    """Return the syntax tree of an expression or of a Python value."""
    if isinstance(value, ColumnExpression):
        return value.tree.copy()
    # Python values never pass through SQL text, so they need no quoting.
    node = HostValue()
    node.meta["value"] = value
    return node


def _binary(kind: type[exp.Expr], left: Any, right: Any) -> ColumnExpression:
    return ColumnExpression(kind(this=tree_of(left), expression=tree_of(right)))


def col(name: str) -> ColumnExpression:
    """Return a column by name, ``"a"`` or ``"t.a"``."""
    return ColumnExpression(
        Reference(expressions=[exp.Identifier(this=part, quoted=True) for part in name.split(".")])
    )


def lit(value: Any) -> ColumnExpression:
    """Return a constant: None, bool, int, float, str, bytes, Decimal, date, time, datetime or timedelta."""
    return ColumnExpression(tree_of(value))


def call(function: str, *args: Any) -> ColumnExpression:
    """Return a call of any SQL function by name. Strings among ``args`` are constants; write columns as
    ``col("a")``.
    """
    return ColumnExpression(FunctionCall(this=function, expressions=[tree_of(arg) for arg in args]))


def count() -> ColumnExpression:
    """Return the number of rows, COUNT(*)."""
    return ColumnExpression(FunctionCall(this="count", star=True))
