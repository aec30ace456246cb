"""Decorrelation: the dependent join of a plan with the values of the outer columns that it reads, pushed down
to where no outer column is read (Neumann and Kemper, "Unnesting Arbitrary Queries", 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BIGINT, BOOLEAN, Array, DayTimeInterval, Map
from penstock.planner.binder.relations.joins import join_on
from penstock.planner.binder.subqueries.outer_values import OuterValues, alike, equal
from penstock.planner.expressions.nodes import (
    FALSE,
    AggregateCall,
    Call,
    Case,
    Column,
    Expression,
    Literal,
    OuterColumn,
    SortKey,
    conjuncts,
)
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import BinaryJoin, Join, JoinKind
from penstock.planner.logical.over import RUNNING, Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, column_of, select_columns
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.logical.sort import Limit, Sort, TemporalSort, TopN
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.windows import AttachedWindow

_ZERO = Literal(BIGINT, False, value=0)
_MILLISECOND = Literal(DayTimeInterval(), False, value=timedelta(milliseconds=1))


def outer_columns(plan: LogicalPlan, level: int) -> dict[int, OuterColumn]:
    """Return the columns of the query at ``level`` that a plan reads, by position."""
    read: dict[int, OuterColumn] = {}

    def record(expression: Expression) -> Expression:
        for node in expression.walk():
            if isinstance(node, OuterColumn) and node.level == level:
                read.setdefault(node.index, node)
        return expression

    for node in plan.walk():
        node.map_expressions(record)
    return read


def own_outer_columns(expression: Expression, level: int) -> bool:
    """Return whether an expression reads a column of the query at ``level``."""
    return any(isinstance(node, OuterColumn) and node.level == level for node in expression.walk())


@dataclass(frozen=True)
class DependentJoin:
    """Joins a plan with ``values``, the distinct values of outer columns of one ``level``.

    A pushed plan has the columns of the plan at their positions, then those of the domain. Its rows with one
    value of the domain are the rows that the plan has for that value. ``order`` maps the position of an outer
    column to its place in the domain.
    """

    level: int
    values: OuterValues
    order: dict[int, int]
    span: Span | None

    @property
    def size(self) -> int:
        """The number of columns of the domain."""
        return len(self.values.schema)

    def push(self, plan: LogicalPlan) -> LogicalPlan:
        """Return the dependent join of a plan. Raises SQL-1601 for a node that it does not pass."""
        if not outer_columns(plan, self.level):
            # no outer column below: every value of the domain has all rows
            return Join(plan, self.values, JoinKind.INNER, (), ())
        return self._through(plan)

    def _over(self, expression: Expression, first: int) -> Expression:
        """Return an expression with its outer columns read from the domain, which begins at ``first``."""

        def replaced(node: Expression) -> Expression:
            if not isinstance(node, OuterColumn) or node.level != self.level:
                return node
            position = first + self.order[node.index]
            return Column(node.type, node.nullable, index=position, name=node.name, span=node.span)

        return expression.transform(replaced)

    def _domain(self, plan: LogicalPlan, first: int) -> tuple[Column, ...]:
        return tuple(column_of(plan, first + n) for n in range(self.size))

    def _ordered(
        self, plan: LogicalPlan, before: int, domain: int, names: Sequence[str] | None = None
    ) -> LogicalPlan:
        """Return a plan whose domain is at ``domain``, not at its end, with the domain moved to the end."""
        width = len(plan.schema)
        own = [i for i in range(width) if not domain <= i < domain + self.size]
        assert len(own) == before
        return select_columns(plan, [*own, *range(domain, domain + self.size)], names)

    def _through(self, plan: LogicalPlan) -> LogicalPlan:
        match plan:
            case Filter():
                return self._filter(plan)
            case Project():
                return self._project(plan)
            # the rows of a subquery have no order
            case Sort() | TemporalSort():
                return self.push(plan.input)
            case Union():
                return Union(tuple(map(self.push, plan.branches)))
            case Repeat():
                return self._repeat(plan)
            case Aggregate():
                return self._aggregate(plan)
            case WindowAggregate(window=AttachedWindow() as window):
                return self._window_aggregate(plan, window)
            # the time bounds of an interval join are among its conditions; a regular join has the same rows
            case Join() | IntervalJoin():
                return self._join(plan)
            case TopN():
                keys = tuple(key.map(lambda e: self._over(e, len(plan.schema))) for key in plan.keys)
                return self._first(plan, keys, plan.limit, plan.offset)
            case Limit():
                return self._first(plan, _first_column(plan), plan.limit, plan.offset)
            case PartitionTop():
                return self._partition_top(plan)
            case Over():
                return self._over_calls(plan)
            case Unnest():
                return self._unnest(plan)
        # MATCH_RECOGNIZE, temporal, lookup and snapshot joins, windows over correlated rows
        raise PenstockError(
            "SQL-1601",
            f"a correlated subquery cannot read the outer query below {plan.operator_name()}",
            span=next(iter(outer_columns(plan, self.level).values())).span or self.span,
            hint="compute this in a query of WITH or a view without the outer column, and compare with the "
            "outer column in the WHERE of the subquery",
            sqlstate="0A000",
        )

    def _filter(self, plan: Filter) -> LogicalPlan:
        width = len(plan.schema)
        return Filter(self.push(plan.input), self._over(plan.predicate, width))

    def _project(self, plan: Project) -> LogicalPlan:
        below, width = self.push(plan.input), len(plan.input.schema)
        own = tuple(self._over(expression, width) for expression in plan.expressions)
        return Project(below, own + self._domain(below, width), (*plan.names, *self.values.schema.names))

    # UNION ALL, and the copies of INTERSECT ALL and EXCEPT ALL

    def _repeat(self, plan: Repeat) -> LogicalPlan:
        below, width = self.push(plan.input), len(plan.schema)
        # the count is the last column
        count_last = [*range(width), *range(width + 1, width + 1 + self.size), width]
        return Repeat(select_columns(below, count_last))

    # groups

    def _aggregate(self, plan: Aggregate) -> LogicalPlan:
        below, width = self.push(plan.input), len(plan.input.schema)
        domain = tuple(range(width, width + self.size))
        calls = self._calls(plan.aggregates, width)
        keys = len(plan.keys)
        grouped = Aggregate(
            below, plan.keys + domain, calls, plan.names, ttl_ms=plan.ttl_ms, subtasks=plan.subtasks
        )
        groups = self._ordered(grouped, len(plan.schema), keys)
        # SELECT COUNT(*) FROM t WHERE t.k = o.k: a value of the domain without rows has a row all the same
        return groups if plan.keys else self._with_empty(groups, plan)

    def _calls(self, calls: Sequence[AggregateCall], width: int) -> tuple[AggregateCall, ...]:
        for call in calls:
            self._refuse_outer(call)
        return tuple(call.map(lambda e: self._over(e, width)) for call in calls)

    def _refuse_outer(self, call: AggregateCall) -> None:
        parts = [e for e in (*call.args, call.filter) if e is not None]
        if any(own_outer_columns(e, self.level) for e in parts) and not any(e.columns() for e in parts):
            raise outer_aggregate(call, self.span)

    def _with_empty(self, groups: LogicalPlan, plan: Aggregate) -> LogicalPlan:
        """Return the results of an aggregate without keys for every value of the domain."""
        count = len(plan.schema)
        joined = self._joined(self.values, groups, JoinKind.LEFT, 0, count)
        results = tuple(
            _of_no_rows(column_of(joined, self.size + i), call.nullable)
            for i, call in enumerate(plan.aggregates)
        )
        return Project(joined, results + self._domain(joined, 0), tuple(groups.schema.names))

    def _window_aggregate(self, plan: WindowAggregate, window: AttachedWindow) -> LogicalPlan:
        # GROUP BY window_start, window_end: rows joined with the domain come after their time, so a window
        # is a group like any other here, and its result follows corrections
        below, width = self.push(plan.input), len(plan.input.schema)
        bounds = (window.start_column, window.end_column)
        domain = tuple(range(width, width + self.size))
        keys = plan.keys + bounds + domain
        grouped = Aggregate(
            below, keys, self._calls(plan.aggregates, width), plan.names, subtasks=plan.subtasks
        )
        first, results = len(plan.keys), len(plan.aggregates)
        start, end = column_of(grouped, first), column_of(grouped, first + 1)
        # window_time is the last millisecond of the window
        time = Call(plan.schema.fields[-1].type, end.nullable, function="subtract", args=(end, _MILLISECOND))
        called = range(len(keys), len(keys) + results)
        outputs = (
            *(column_of(grouped, i) for i in (*range(first), *called)),
            *(start, end, time),
            *self._domain(grouped, first + 2),
        )
        return Project(grouped, outputs, (*plan.schema.names, *self.values.schema.names))

    # joins

    def _join(self, plan: BinaryJoin) -> LogicalPlan:
        of_left, of_right = (bool(outer_columns(side, self.level)) for side in plan.inputs)
        one_sided = plan.kind in (JoinKind.SEMI, JoinKind.ANTI)
        # The domain must be on a side whose rows are never padded; on both where one is not enough.
        right_only = plan.kind is JoinKind.RIGHT or (plan.kind is JoinKind.INNER and not of_left and of_right)
        both = plan.kind is JoinKind.FULL or (of_left if right_only else of_right)
        left = self.push(plan.left) if both or not right_only else plan.left
        right = self.push(plan.right) if both or right_only else plan.right
        width, others = len(plan.left.schema), len(plan.right.schema)
        shift = len(left.schema) - width
        parts = self._conditions(plan, width, shift, first=width if shift else width + others)
        if both:
            parts += self._same_domain(left, right, width, others)
        joined = _hinted(join_on(left, right, plan.kind, parts), plan)
        if one_sided:
            return joined
        if plan.kind is JoinKind.FULL:
            return self._merged(joined, width, others)
        # left ++ domain ++ right ++ domain, of which the padded one is dropped
        own = [*range(width), *range(width + shift, width + shift + others)]
        first = width + shift + others if right_only else width
        return select_columns(joined, [*own, *range(first, first + self.size)])

    def _conditions(self, plan: BinaryJoin, width: int, shift: int, first: int) -> tuple[Expression, ...]:
        """Return the conditions of a join over left ++ right, whose right columns moved by ``shift``."""
        moved = {i: i if i < width else i + shift for i in range(width + len(plan.right.schema))}
        keys = tuple(
            equal(column_of(plan.left, mine), replace(column_of(plan.right, theirs), index=width + theirs))
            for mine, theirs in zip(plan.left_keys, plan.right_keys, strict=True)
        )
        parts = (*keys, *(() if plan.residual is None else conjuncts(plan.residual)))
        return tuple(self._over(part.remap(moved), first) for part in parts)

    def _same_domain(
        self, left: LogicalPlan, right: LogicalPlan, mine: int, theirs: int
    ) -> tuple[Expression, ...]:
        """Return conditions over left ++ right: both rows have one value of the domain, at ``mine`` of the
        left plan and at ``theirs`` of the right one. NULL is equal to NULL.
        """
        parts: list[Expression] = []
        for n in range(self.size):
            first = column_of(left, mine + n)
            second = replace(column_of(right, theirs + n), index=len(left.schema) + theirs + n)
            nullable = first.nullable or second.nullable
            parts += alike(first, second, self.span) if nullable else [equal(first, second)]
        return tuple(parts)

    def _joined(
        self, left: LogicalPlan, right: LogicalPlan, kind: JoinKind, mine: int, theirs: int
    ) -> LogicalPlan:
        return join_on(left, right, kind, self._same_domain(left, right, mine, theirs))

    def _merged(self, joined: LogicalPlan, width: int, others: int) -> LogicalPlan:
        """Return a FULL JOIN with one domain: that of the side which is not padded."""
        second = width + self.size
        own = tuple(column_of(joined, i) for i in (*range(width), *range(second, second + others)))
        merged = []
        for n in range(self.size):
            left, right = column_of(joined, width + n), column_of(joined, second + others + n)
            there = Call(BOOLEAN, False, function="is_not_null", args=(left,))
            merged.append(Case(left.type, True, whens=((there, left),), default=right))
        names = [column.name for column in own]
        return Project(joined, (*own, *merged), (*names, *self.values.schema.names))

    # the first rows, and OVER

    def _first(
        self, plan: TopN | Limit, keys: tuple[SortKey, ...], limit: int | None, offset: int
    ) -> LogicalPlan:
        """Return the rows of ``plan.input`` after ``offset``, at most ``limit``, for each value of the
        domain.
        """
        below, width = self.push(plan.input), len(plan.schema)
        domain = tuple(range(width, width + self.size))
        if limit == 0:
            return Filter(below, FALSE)
        if limit is not None and not offset:
            return PartitionTop(below, domain, keys, "row_number", limit)
        number = AggregateCall("row_number", (), BIGINT, False)
        numbered = Over(below, domain, keys, RUNNING, (number,), ("position",))
        position = column_of(numbered, width + self.size)
        after = Literal(BIGINT, False, value=offset)
        kept: LogicalPlan = Filter(numbered, Call(BOOLEAN, False, function="greater", args=(position, after)))
        if limit is not None:
            last = Literal(BIGINT, False, value=offset + limit)
            kept = Filter(kept, Call(BOOLEAN, False, function="less_equal", args=(position, last)))
        return select_columns(kept, range(width + self.size))

    def _partition_top(self, plan: PartitionTop) -> LogicalPlan:
        below, width = self.push(plan.input), len(plan.input.schema)
        top = replace(
            plan,
            input=below,
            partition=(*plan.partition, *range(width, width + self.size)),
            order=tuple(key.map(lambda e: self._over(e, width)) for key in plan.order),
            window=None,
        )
        return self._ordered(top, len(plan.schema), width)

    def _over_calls(self, plan: Over) -> LogicalPlan:
        below, width = self.push(plan.input), len(plan.input.schema)
        if plan.timely:
            # OVER by time drops rows without a time
            time = column_of(below, plan.time_column)
            below = Filter(below, Call(BOOLEAN, False, function="is_not_null", args=(time,)))
        over = replace(
            plan,
            input=below,
            partition=(*plan.partition, *range(width, width + self.size)),
            order=tuple(key.map(lambda e: self._over(e, width)) for key in plan.order),
            calls=tuple(call.map(lambda e: self._over(e, width)) for call in plan.calls),
            timely=False,
            window=None,
        )
        return self._ordered(over, len(plan.schema), width)

    def _unnest(self, plan: Unnest) -> LogicalPlan:
        below, width = self.push(plan.input), len(plan.input.schema)
        function = len(plan.call.columns) + 1
        moved = {i: i if i < width else i + self.size for i in range(width + function)}
        condition = None if plan.condition is None else self._over(plan.condition.remap(moved), width)
        unnested = replace(
            plan,
            input=below,
            call=replace(plan.call, args=tuple(self._over(arg, width) for arg in plan.call.args)),
            keep=(*plan.keep, *range(width, width + self.size)),
            condition=condition,
        )
        return self._ordered(unnested, len(plan.schema), len(plan.keep))


def _first_column(plan: Limit) -> tuple[SortKey, ...]:
    # LIMIT without an order may keep any rows; the order of all columns keeps the same rows everywhere, and
    # a Top-N breaks ties by all columns
    ordered = [i for i, field in enumerate(plan.schema) if not isinstance(field.type, Map)]
    return tuple(SortKey(column_of(plan.input, i)) for i in ordered[:1])


def _hinted(joined: LogicalPlan, plan: BinaryJoin) -> LogicalPlan:
    """Return a join with the hints of another one; a projection may be above it."""
    if isinstance(joined, Project):
        return replace(joined, input=_hinted(joined.input, plan))
    assert isinstance(joined, Join)
    return replace(joined, ttl_ms=plan.ttl_ms, copied=plan.copied, subtasks=plan.subtasks)


def outer_aggregate(call: AggregateCall, span: Span | None) -> PenstockError:
    """Return the error SQL-1601 of an aggregate over outer columns only. By the SQL standard it belongs to
    the outer query, whatever rows the subquery has.
    """
    message = f"{call} is an aggregate of the query around the subquery: it reads only columns of that"
    hint = (
        "write the aggregate in the query around it; for the value of its row, select the column "
        "without an aggregate"
    )
    return PenstockError("SQL-1601", message, span=call.span or span, hint=hint, sqlstate="0A000")


def _of_no_rows(result: Column, nullable: bool) -> Expression:
    """Return an aggregate's result with its value of no rows for NULL: 0 of a count, [] of a list."""
    # SUM, MAX and others are NULL without rows, as the padding is
    if nullable:
        return result
    empty: Expression = (
        Call(result.type, False, function="array", args=()) if isinstance(result.type, Array) else _ZERO
    )
    missing = Call(BOOLEAN, False, function="is_null", args=(result,))
    return Case(result.type, False, whens=((missing, empty),), default=result)
