"""Column expressions of the Table API. Python operators build the same syntax trees as the SQL grammar."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sqlglot import exp

from penstock.planner.parser.query_parser import parse_expression, parse_sort_item
from penstock.planner.parser.syntax_nodes import (
    CastTo,
    FrameBound,
    FunctionCall,
    HostValue,
    IntervalLiteral,
    OverClause,
    Reference,
    moved,
)
from penstock.planner.parser.type_parser import parse_type
from penstock.planner.table_api.sql_text import ADDED, TEXT

# the key of a reference's table in its meta: the number of the Table object
ORIGIN = "origin"


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
        """Return whether the value equals one of the others: ``isin(1, 2)`` or ``isin([1, 2])``. No values:
        FALSE.
        """
        # one list, tuple, set or other collection holds the values; a text is one value
        if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str | bytes):
            values = tuple(values[0])
        if not values:
            return lit(False)
        return ColumnExpression(
            exp.In(this=self.tree.copy(), expressions=[tree_of(value) for value in values])
        )

    def notin(self, *values: Any) -> ColumnExpression:
        """Return whether the value equals none of the others."""
        return ~self.isin(*values)

    def between(self, low: Any, high: Any) -> ColumnExpression:
        """Return whether the value is from ``low`` to ``high``, both included."""
        return ColumnExpression(exp.Between(this=self.tree.copy(), low=tree_of(low), high=tree_of(high)))

    def like(self, pattern: str) -> ColumnExpression:
        """Return whether the text matches a LIKE pattern."""
        return _binary(exp.Like, self, pattern)

    # strings

    def ilike(self, pattern: str) -> ColumnExpression:
        """Return whether the text matches a LIKE pattern in any case."""
        return _binary(exp.ILike, self, pattern)

    def rlike(self, pattern: str) -> ColumnExpression:
        """Return whether a regular expression matches a part of the text."""
        return _binary(exp.RegexpLike, self, pattern)

    def upper(self) -> ColumnExpression:
        """Return the text in upper case."""
        return call("upper", self)

    def lower(self) -> ColumnExpression:
        """Return the text in lower case."""
        return call("lower", self)

    def length(self) -> ColumnExpression:
        """Return the number of characters."""
        return call("char_length", self)

    def strip(self) -> ColumnExpression:
        """Return the text without blanks at its ends."""
        return call("trim", self)

    def lstrip(self) -> ColumnExpression:
        """Return the text without blanks at its begin."""
        return call("ltrim", self)

    def rstrip(self) -> ColumnExpression:
        """Return the text without blanks at its end."""
        return call("rtrim", self)

    def contains(self, part: Any) -> ColumnExpression:
        """Return whether the text has a part."""
        return call("contains", self, part)

    def startswith(self, prefix: Any) -> ColumnExpression:
        """Return whether the text begins with a prefix."""
        return call("startswith", self, prefix)

    def endswith(self, suffix: Any) -> ColumnExpression:
        """Return whether the text ends with a suffix."""
        return call("endswith", self, suffix)

    def substr(self, start: Any, length: Any = None) -> ColumnExpression:
        """Return a part of the text. Positions begin at 1, as in SQL."""
        return call("substring", self, start, *(() if length is None else (length,)))

    def replace(self, part: Any, by: Any) -> ColumnExpression:
        """Return the text with every occurrence of a part replaced."""
        return call("replace", self, part, by)

    def regexp_extract(self, pattern: str, group: int = 1) -> ColumnExpression:
        """Return what a group of a regular expression matches in the text."""
        return call("regexp_extract", self, pattern, group)

    def concat(self, *others: Any) -> ColumnExpression:
        """Return the text followed by others; NULL if one of them is NULL."""
        joined = self
        for other in others:
            joined = _binary(exp.DPipe, joined, other)
        return joined

    # dates and times

    def year(self) -> ColumnExpression:
        """Return the year."""
        return call("year", self)

    def month(self) -> ColumnExpression:
        """Return the month, 1 to 12."""
        return call("month", self)

    def day(self) -> ColumnExpression:
        """Return the day of the month."""
        return call("dayofmonth", self)

    def hour(self) -> ColumnExpression:
        """Return the hour, 0 to 23."""
        return call("hour", self)

    def minute(self) -> ColumnExpression:
        """Return the minute."""
        return call("minute", self)

    def second(self) -> ColumnExpression:
        """Return the second."""
        return call("second", self)

    def truncate(self, unit: str) -> ColumnExpression:
        """Return the time rounded down to a unit: ``"HOUR"``, ``"DAY"``, ``"MONTH"``."""
        return call("date_trunc", unit, self)

    def strftime(self, pattern: str) -> ColumnExpression:
        """Return the time as text by a pattern of ``date_format``, such as ``"yyyy-MM-dd HH:mm"``."""
        return call("date_format", self, pattern)

    # numbers, NULLs, parts

    def abs(self) -> ColumnExpression:
        """Return the absolute value."""
        return call("abs", self)

    def round(self, digits: int = 0) -> ColumnExpression:
        """Return the number rounded to digits behind the point."""
        return call("round", self, digits)

    def _round_down(self) -> ColumnExpression:
        """Return the largest whole number that is not larger."""
        return call("floor", self)

    floor = _round_down

    def ceil(self) -> ColumnExpression:
        """Return the smallest whole number that is not smaller."""
        return call("ceil", self)

    def coalesce(self, *others: Any) -> ColumnExpression:
        """Return the first value that is not NULL, of this one and others."""
        return call("coalesce", self, *others)

    fill_null = coalesce

    def nullif(self, other: Any) -> ColumnExpression:
        """Return NULL where the value equals another, else the value."""
        return call("nullif", self, other)

    def __getitem__(self, key: int | str | ColumnExpression) -> ColumnExpression:
        """Return an element of an array (the first is 1), a value of a map or a field of a row."""
        return ColumnExpression(exp.Bracket(this=self.tree.copy(), expressions=[tree_of(key)]))

    # an array has no length before it is run: iteration would never end
    __iter__ = None

    # types, names, order

    def cast(self, sql_type: str) -> ColumnExpression:
        """Return the value cast to another SQL type, e.g. ``"BIGINT"``."""
        node = CastTo(this=self.tree.copy(), safe=False)
        node.meta["sql_type"] = parse_type(sql_type)
        return ColumnExpression(node)

    def try_cast(self, sql_type: str) -> ColumnExpression:
        """Return the value cast to another SQL type, NULL where that fails."""
        node = CastTo(this=self.tree.copy(), safe=True)
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

    def count_distinct(self) -> ColumnExpression:
        """Return the number of distinct values that are not NULL."""
        return ColumnExpression(FunctionCall(this="count", expressions=[self.tree.copy()], distinct=True))

    def sum(self) -> ColumnExpression:
        """Return the sum."""
        return call("sum", self)

    def avg(self) -> ColumnExpression:
        """Return the mean."""
        return call("avg", self)

    mean = avg

    def stddev(self) -> ColumnExpression:
        """Return the standard deviation of a sample."""
        return call("stddev", self)

    def first(self) -> ColumnExpression:
        """Return the first value that arrived."""
        return call("first_value", self)

    def last(self) -> ColumnExpression:
        """Return the last value that arrived."""
        return call("last_value", self)

    def min(self) -> ColumnExpression:
        """Return the smallest value."""
        return call("min", self)

    def max(self) -> ColumnExpression:
        """Return the largest value."""
        return call("max", self)

    def where(self, condition: ColumnExpression) -> ColumnExpression:
        """Return the aggregate over the rows that satisfy a condition (FILTER)."""
        # sum(a) FILTER (WHERE condition)
        return self._with_clause("filter", condition.tree.copy())

    def _with_clause(self, clause: str, tree: exp.Expr) -> ColumnExpression:
        if not isinstance(self.tree, FunctionCall):
            word = "where" if clause == "filter" else clause
            raise TypeError(f"{word} goes with a call, such as col('a').sum().{word}(..)")
        node = self.tree.copy()
        node.set(clause, tree)
        # expr("sum(a)").where(..): this clause is not in the text of the call
        node.meta[ADDED] = (*node.meta.get(ADDED, ()), clause)
        return ColumnExpression(node)

    # values of other rows

    def lag(self, offset: int = 1) -> ColumnExpression:
        """Return the value of an earlier row; needs ``over``."""
        return call("lag", self, offset)

    def lead(self, offset: int = 1) -> ColumnExpression:
        """Return the value of a later row; needs ``over``."""
        return call("lead", self, offset)

    def over(
        self,
        *,
        partition_by: Any = (),
        order_by: Any = (),
        rows: tuple[int | None, int | None] | None = None,
        range_: tuple[Any, Any] | None = None,
    ) -> ColumnExpression:
        """Return the call over a window of rows (OVER). ``rows`` and ``range_`` are its frame: distances
        before and after the row, 0 for the row itself, None for no bound. Keys are SQL text or expressions.
        """
        if rows is not None and range_ is not None:
            raise TypeError("a window has a frame of rows or of range_, not of both")
        clause = OverClause(partition=_trees(partition_by), order=_sort_trees(order_by))
        for unit, frame in (("ROWS", rows), ("RANGE", range_)):
            if frame is not None:
                clause.set("unit", unit)
                clause.set("first", _bound(frame[0], following=False))
                clause.set("last", _bound(frame[1], following=True))
        return self._with_clause("over", clause)


def _trees(keys: Any) -> list[exp.Expr]:
    listed = [keys] if isinstance(keys, str | ColumnExpression) else list(keys)
    return [expr(key).tree if isinstance(key, str) else tree_of(key) for key in listed]


def _sort_trees(keys: Any) -> list[exp.Expr]:
    listed = [keys] if isinstance(keys, str | ColumnExpression) else list(keys)
    trees = [
        _with_text(parse_sort_item(key), key) if isinstance(key, str) else tree_of(key) for key in listed
    ]
    # ascending, NULLs first, as in SQL
    return [
        tree if isinstance(tree, exp.Ordered) else exp.Ordered(this=tree, desc=False, nulls_first=True)
        for tree in trees
    ]


def _with_text(tree: exp.Expr, text: str) -> exp.Expr:
    # spans would point into this text, which errors of a method do not quote
    moved(tree, None)
    # what the tree is written as again; a comment must not hide what follows
    tree.meta[TEXT] = text.strip() + ("\n" if "--" in text else "")
    return tree


def _bound(distance: Any, *, following: bool) -> exp.Expr:
    node = FrameBound(following=following)
    match distance:
        case None:
            pass
        # before 0: the row itself
        case int() if distance == 0:
            return FrameBound(current=True)
        case int():
            node.set("this", exp.Literal.number(distance))
        case timedelta():
            seconds, micros = divmod(distance // timedelta(microseconds=1), 1_000_000)
            node.set("this", IntervalLiteral(this=f"{seconds}.{micros:06}", unit="SECOND"))
        # "10 minutes", as in INTERVAL
        case _:
            node.set("this", IntervalLiteral(this=str(distance)))
    return node


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


def expr(sql: str) -> ColumnExpression:
    """Return an expression that is written in SQL. It is text of the program: put values in as ``lit``."""
    tree = _with_text(parse_expression(sql), sql)
    # a call takes FILTER and OVER behind it; anything else stands in parentheses beside operators
    if not isinstance(tree, FunctionCall | Reference):
        tree.meta[TEXT] = f"({tree.meta[TEXT]})"
    return ColumnExpression(tree)


def call(function: str, *args: Any) -> ColumnExpression:
    """Return a call of any SQL function by name. Strings among ``args`` are constants; write columns as
    ``col("a")``.
    """
    return ColumnExpression(FunctionCall(this=function, expressions=[tree_of(arg) for arg in args]))


def count() -> ColumnExpression:
    """Return the number of rows, COUNT(*)."""
    return ColumnExpression(FunctionCall(this="count", star=True))


def row_number() -> ColumnExpression:
    """Return the number of the row in its window, from 1; needs ``over``."""
    return call("row_number")


def rank() -> ColumnExpression:
    """Return the rank of the row, equal rows alike, with gaps; needs ``over``."""
    return call("rank")


def dense_rank() -> ColumnExpression:
    """Return the rank of the row, equal rows alike, without gaps; needs ``over``."""
    return call("dense_rank")


def ifelse(condition: ColumnExpression, then: Any, otherwise: Any = None) -> ColumnExpression:
    """Return one value where a condition is TRUE and another elsewhere (CASE WHEN)."""
    return case((condition, then), otherwise=otherwise)


def case(*branches: tuple[ColumnExpression, Any], otherwise: Any = None) -> ColumnExpression:
    """Return the value of the first branch, a condition with its value, whose condition is TRUE."""
    if not branches:
        raise TypeError("case takes at least one branch: (condition, value)")
    ifs = [exp.If(this=tree_of(condition), true=tree_of(value)) for condition, value in branches]
    # without ELSE the rest is NULL
    default = None if otherwise is None else tree_of(otherwise)
    return ColumnExpression(exp.Case(ifs=ifs, default=default))
