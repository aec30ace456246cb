"""The first row of each outer value in a join becomes a join with the nearest row, which stores no pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
    Time,
    Timestamp,
    TimestampLtz,
)
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal, inline
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.joins.nearest_join import NearestJoin
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project, column_of, select_columns

# By comparison of left and right: is the greatest right value the nearest, and do equal ones match?
_COMPARISONS = {
    "greater": (True, True),
    "greater_equal": (True, False),
    "less": (False, True),
    "less_equal": (False, False),
}
_NUMBERS = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE)
_WORD_DIGITS = 18
_MIRRORED = {
    "greater": "less",
    "greater_equal": "less_equal",
    "less": "greater",
    "less_equal": "greater_equal",
}


@dataclass(frozen=True)
class _Scope:
    """What a rule takes: the types of values, and whether values may be ``computed``, keys be cast or absent.
    What ``other`` takes is left to that rule.
    """

    fits: Callable[[DataType], bool]
    computed: bool
    other: _Scope | None = None


def nearest_rows(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``row_number() = 1 per l.k, l.v by r.v DESC`` over ``l JOIN r ON l.k = r.k AND r.v <= l.v`` into a
    NearestJoin.

    ASOF JOIN and a correlated ``ORDER BY .. LIMIT 1`` are bound to it. The rule applies where l has one row
    of each partition, and values are columns: numbers of up to 18 digits, dates or times.
    """
    return _with_nearest(plan, _COLUMNS)


def nearest_values(plan: LogicalPlan) -> LogicalPlan:
    """As ``nearest_rows``, also for texts, bytes and all decimals, for expressions of columns, for keys of
    unlike types and without keys. State of older versions has none of these.
    """
    return _with_nearest(plan, _Scope(_is_ordered, computed=True, other=_COLUMNS))


def nearest_rows_on_backends(plan: LogicalPlan) -> LogicalPlan:
    """As ``nearest_values``, for a plan that a bounded backend runs.

    A Top-1 over pairs is quadratic for each key there as well.
    """
    return _with_nearest(plan, _Scope(_is_sorted_by_backends, computed=True))


def _with_nearest(plan: LogicalPlan, scope: _Scope) -> LogicalPlan:
    facts = PlanFacts()

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        top = _Top.of(node)
        return node if top is None else top.nearest(facts, scope) or node

    return plan.transform(rewrite)


@dataclass(frozen=True)
class _Top:
    """A Top-1 over a join of two inputs, possibly with a projection between. ``shown``: the columns of the
    Top-1 over left ++ right.
    """

    node: PartitionTop
    project: Project | None
    join: Join
    shown: tuple[Expression, ...]

    @classmethod
    def of(cls, node: LogicalPlan) -> _Top | None:
        """Return the parts of a node; None for any other node."""
        if not isinstance(node, PartitionTop) or node.rank != "row_number" or node.limit != 1:
            return None
        if node.window is not None or node.ttl_ms or node.rank_name is not None:
            return None
        project = node.input if isinstance(node.input, Project) else None
        join = node.input if project is None else project.input
        if not isinstance(join, Join) or join.kind is not JoinKind.INNER or join.ttl_ms:
            return None
        columns = tuple(column_of(node.input, i) for i in range(len(node.input.schema)))
        shown = columns if project is None else tuple(inline(c, project.expressions) for c in columns)
        return cls(node, project, join, shown)

    @property
    def width(self) -> int:
        """The number of left columns."""
        return len(self.join.left.schema)

    def nearest(self, facts: PlanFacts, scope: _Scope) -> LogicalPlan | None:
        """Return the nearest join in its place; None where there is none of that scope."""
        compared = _compared(self.join.residual, self.width)
        if compared is None or not self._is_of(scope, compared):
            return None
        if scope.other is not None and self.nearest(facts, scope.other) is not None:
            return None
        order = self._order_behind(compared)
        partition = self._partition()
        if order is None or partition is None or not self._has_one_row(partition, compared, facts, scope):
            return None
        # Behind the order all columns break ties, in their order.
        columns = [e.index - self.width for e in self.shown if isinstance(e, Column)]
        ties = tuple(dict.fromkeys(column for column in columns if column >= 0))
        return self._over(self._joined(compared, order, ties))

    def _is_of(self, scope: _Scope, compared: _Comparison) -> bool:
        values = (compared.left, compared.right)
        if compared.left.type != compared.right.type or not scope.fits(compared.left.type):
            return False
        # Columns that are computed of left columns alone are equal in all rows of a partition.
        computed = [expression for expression in self.shown if not isinstance(expression, Column)]
        if scope.computed:
            of_left = all(max(e.columns(), default=self.width) < self.width for e in computed)
            return of_left and all(map(is_deterministic, (*computed, *values)))
        return not computed and bool(self.join.left_keys) and all(isinstance(v, Column) for v in values)

    def _order_behind(self, compared: _Comparison) -> tuple[tuple[int, bool, bool], ...] | None:
        """Return the order behind the compared value, as right columns; None for another order."""
        if not self.node.order:
            return None
        first, *rest = self.node.order
        nearest = inline(first.expression, self.shown)
        columns = [inline(key.expression, self.shown) for key in rest]
        if nearest != compared.right or first.descending != compared.latest:
            return None
        if not all(isinstance(c, Column) and c.index >= self.width for c in columns):
            return None
        pairs = zip(columns, rest, strict=True)
        return tuple(
            (c.index - self.width, key.descending, key.nulls_first)
            for c, key in pairs
            if isinstance(c, Column)
        )

    def _partition(self) -> set[int] | None:
        """Return the partition as left columns; a right key of it is the left key that it equals."""
        keys = zip(self.join.left_keys, self.join.right_keys, strict=True)
        lefts = {self.width + right: left for left, right in keys}
        columns = [self.shown[key] for key in self.node.partition]
        found = {lefts.get(c.index, c.index) for c in columns if isinstance(c, Column)}
        return None if any(key >= self.width for key in found) else found

    def _has_one_row(
        self, partition: set[int], compared: _Comparison, facts: PlanFacts, scope: _Scope
    ) -> bool:
        """Return whether a partition has one left row."""
        unique = facts.unique_keys(self.join.left)
        if scope.computed:
            return any(key <= partition for key in unique)
        # told apart by the keys and the value
        assert isinstance(compared.left, Column)
        told = frozenset({*self.join.left_keys, compared.left.index})
        return partition >= told and any(key <= told for key in unique)

    def _joined(
        self, compared: _Comparison, order: tuple[tuple[int, bool, bool], ...], ties: tuple[int, ...]
    ) -> NearestJoin:
        """Return the nearest join, with computed values behind the columns of their sides."""
        of_right = {self.width + i: i for i in range(len(self.join.right.schema))}
        left, value = _with_column(self.join.left, compared.left)
        right, other = _with_column(self.join.right, compared.right.remap(of_right))
        keys = self.join.left_keys, self.join.right_keys
        if not self.join.left_keys:
            # all rows have one key
            left, mine = _with_column(left, _ONE_KEY)
            right, theirs = _with_column(right, _ONE_KEY)
            keys = (mine,), (theirs,)
        return NearestJoin(
            left,
            right,
            self.join.kind,
            *keys,
            values=(value, other),
            latest=compared.latest,
            strict=compared.strict,
            order=order,
            ties=ties,
            subtasks=self.join.subtasks or self.node.subtasks,
        )

    def _over(self, nearest: NearestJoin) -> LogicalPlan:
        """Return the columns of the Top-1 over the nearest join."""
        added = len(nearest.left.schema) - self.width
        moved = {
            i: i if i < self.width else i + added for i in range(self.width + len(self.join.right.schema))
        }
        if self.project is None:
            return select_columns(nearest, list(moved.values()), self.node.schema.names)
        expressions = tuple(e.remap(moved) for e in self.project.expressions) if added else None
        return replace(self.project, input=nearest, expressions=expressions or self.project.expressions)


_ONE_KEY = Literal(INT, False, value=0)


def _with_column(plan: LogicalPlan, value: Expression) -> tuple[LogicalPlan, int]:
    """Return a plan with a value as its last column, unless it is one, and the position of the value."""
    if isinstance(value, Column):
        return plan, value.index
    columns = [column_of(plan, i) for i in range(len(plan.schema))]
    return Project(plan, (*columns, value), (*plan.schema.names, f"nearest{len(columns)}")), len(columns)


@dataclass(frozen=True)
class _Comparison:
    """The values of both sides that are compared, over left ++ right; whether the greatest right one is the
    nearest, and whether equal ones do not match.
    """

    left: Expression
    right: Expression
    latest: bool
    strict: bool


def _compared(residual: Expression | None, width: int) -> _Comparison | None:
    if not isinstance(residual, Call) or residual.function not in _COMPARISONS:
        return None
    first, second = residual.args
    mine, theirs = first.columns(), second.columns()
    if not mine or not theirs:
        return None
    if max(mine) < width <= min(theirs):
        return _Comparison(first, second, *_COMPARISONS[residual.function])
    if max(theirs) < width <= min(mine):
        return _Comparison(second, first, *_COMPARISONS[_MIRRORED[residual.function]])
    return None


def _has_words(kind: DataType) -> bool:
    """Return whether values are stored as integers of 64 bits that sort as they do."""
    if isinstance(kind, Decimal):
        return kind.precision <= _WORD_DIGITS
    return kind in _NUMBERS or isinstance(kind, Time | Timestamp | TimestampLtz)


_COLUMNS = _Scope(_has_words, computed=False)


def _is_ordered(kind: DataType) -> bool:
    """Return whether the operator keeps values in order."""
    return kind in (BOOLEAN, DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL) or _is_sorted_by_backends(kind)


def _is_sorted_by_backends(kind: DataType) -> bool:
    return kind in (STRING, BINARY) or isinstance(kind, Decimal) or _has_words(kind)
