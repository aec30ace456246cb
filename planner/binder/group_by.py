"""GROUP BY: collects the aggregate calls of the select list, projects the keys, and rewrites the list over
the groups.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role
from penstock.planner.binder.aggregate_calls import bind_aggregate_call
from penstock.planner.binder.composed_calls import composed
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.function_rewrites import GroupingMark, bits
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression, Literal
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.windows import AttachedWindow
from penstock.planner.parser.syntax_nodes import FunctionCall


@dataclass(frozen=True)
class AggregateResult(Expression):
    """A placeholder for the result of the ``index``-th aggregate. It exists while the select list is bound
    over the ungrouped rows and never leaves the binder.
    """

    index: int = 0


@dataclasses.dataclass
class AggregateList:
    """The distinct aggregate calls of one SELECT, in the order in which the binder meets them."""

    calls: list[AggregateCall] = field(default_factory=list)

    def add(self, call: FunctionCall, binder: ExpressionBinder) -> Expression:
        """Bind an aggregate call over the ungrouped rows and return a placeholder for its result."""
        # TRY_SUM and others are expressions of aggregates
        whole = composed(call, binder, lambda part: self.add(part, binder))
        if whole is not None:
            return whole
        bound = bind_aggregate_call(
            call,
            ExpressionBinder(
                # aggregates=None: SUM(SUM(x)) is refused
                binder.scope,
                binder.context,
                "an aggregate",
                None,
                binder.depth,
                binder.subqueries,
            ),
        )
        # SELECT SUM(x), SUM(x) + 1 computes one SUM
        if bound not in self.calls:
            self.calls.append(bound)
        return AggregateResult(bound.type, bound.nullable, index=self.calls.index(bound), span=bound.span)


@dataclass(frozen=True)
class Groups:
    """A bound GROUP BY: the node, its fields, and the output position of each key expression and aggregate.

    ``marks`` (of grouping sets): the position of the flag that says whether the row's set leaves out a key.
    """

    plan: LogicalPlan
    fields: tuple[Field, ...]
    keys: tuple[tuple[Expression, int], ...]
    results: tuple[int, ...]
    window_time: tuple[int, int] | None = None
    marks: tuple[tuple[Expression, int], ...] = ()

    def over(self, expression: Expression) -> Expression:
        """Return an expression over the input rows as one over the groups. Raises SQL-1061 for a column that
        is neither a key nor aggregated.
        """
        # A subtree equal to a key is that key's column: GROUP BY a + b allows SELECT (a + b) * 2.
        for key, position in self.keys:
            if key == expression:
                return self._column(position, expression)
        # The placeholder of an aggregate becomes its output column.
        if isinstance(expression, AggregateResult):
            return self._column(self.results[expression.index], expression)
        # GROUPING(a, b)
        if isinstance(expression, GroupingMark):
            return self._marked(expression)
        if isinstance(expression, Column):
            # window_time depends on window_end, so a window's groups may read it without naming it.
            if self.window_time is not None and expression.index == self.window_time[0]:
                return self._column(self.window_time[1], expression)
            raise _ungrouped(expression, bool(self.keys))
        # SUM(x) + k: each operand by itself
        return expression.with_children(tuple(self.over(child) for child in expression.children))

    def _marked(self, mark: GroupingMark) -> Expression:
        """Return the bits of GROUPING: from the flags of the row's grouping set, and always 0 for a plain
        GROUP BY.
        """
        # GROUPING() without arguments has a bit for every key
        known = [key for key, _ in self.keys]
        for key in mark.keys:
            if key not in known:
                hint = "GROUPING takes keys of GROUP BY"
                raise PenstockError(
                    "SQL-1063",
                    f"{key} is no key of GROUP BY",
                    span=key.span or mark.span,
                    hint=hint,
                    sqlstate="42803",
                )
        flags = dict(self.marks)
        # A plain GROUP BY leaves no key out.
        zero = Literal(mark.type, False, value=0)
        return bits([self._column(flags[key], mark) if self.marks else zero for key in mark.keys or known])

    def _column(self, position: int, was: Expression) -> Expression:
        group = self.fields[position]
        return Column(group.type, group.nullable, index=position, name=group.name, span=was.span)


def _ungrouped(column: Column, keyed: bool) -> PenstockError:
    hint = (
        f"add it to GROUP BY, or write any_value({column.name})"
        if keyed
        else f"write any_value({column.name}), or GROUP BY {column.name}"
    )
    message = f'column "{column.name}" is neither in GROUP BY nor in an aggregate'
    return PenstockError("SQL-1061", message, span=column.span, hint=hint, sqlstate="42803")


def group(
    plan: LogicalPlan,
    fields: Sequence[Field],
    keys: Sequence[Expression],
    names: Sequence[str],
    calls: Sequence[AggregateCall],
) -> Groups:
    """Return the aggregate of ``calls`` by ``keys``. With window_start and window_end among the keys it is a
    window aggregate.
    """
    # GROUP BY a + b: computed keys are projected first, so that keys are columns.
    below, rows, positions = _project_keys(plan, fields, keys, names)
    labels = tuple(str(call) for call in calls)
    # only positions of keys: a window's columns that are not grouped by do not bound the groups
    starts = [i for i in positions if rows[i].role is Role.WINDOW_START]
    ends = [i for i in positions if rows[i].role is Role.WINDOW_END]
    # Both window bounds among the keys make it a window aggregate, which emits when the window closes.
    if not starts or not ends:
        return _plain(below, rows, keys, positions, calls, labels)
    return _windowed(below, rows, keys, positions, calls, labels, AttachedWindow(starts[0], ends[0]))


def _project_keys(
    plan: LogicalPlan, fields: Sequence[Field], keys: Sequence[Expression], names: Sequence[str]
) -> tuple[LogicalPlan, list[Field], list[int]]:
    """Project the keys that are no plain columns behind all input columns. Return the plan, its fields and
    the keys' positions.
    """
    rows, positions = list(fields), []
    expressions: list[Expression] = [
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)
    ]
    # A key that is a column needs no projection.
    for key, name in zip(keys, names, strict=True):
        if isinstance(key, Column):
            positions.append(key.index)
            continue
        positions.append(len(rows))
        rows.append(Field(name, key.type, key.nullable))
        expressions.append(key)
    if len(rows) == len(fields):
        return plan, rows, positions
    labels = tuple(f.name for f in plan.schema) + tuple(f.name for f in rows[len(fields) :])
    return Project(plan, tuple(expressions), labels), rows, positions


def _unique(positions: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(positions))


def _result_fields(calls: Sequence[AggregateCall], labels: Sequence[str]) -> tuple[Field, ...]:
    return tuple(Field(label, call.type, call.nullable) for label, call in zip(labels, calls, strict=True))


def _plain(
    below: LogicalPlan,
    rows: Sequence[Field],
    keys: Sequence[Expression],
    positions: Sequence[int],
    calls: Sequence[AggregateCall],
    labels: tuple[str, ...],
) -> Groups:
    # GROUP BY a, a AS b: two keys may be one column
    columns = _unique(positions)
    plan = Aggregate(below, columns, tuple(calls), labels)
    # a group is updated long after its rows' time, so no key is an event time any more
    fields = tuple(replace(rows[i], role=None) for i in columns) + _result_fields(calls, labels)
    placed = tuple((key, columns.index(position)) for key, position in zip(keys, positions, strict=True))
    return Groups(plan, fields, placed, tuple(range(len(columns), len(columns) + len(calls))))


def _windowed(
    below: LogicalPlan,
    rows: Sequence[Field],
    keys: Sequence[Expression],
    positions: Sequence[int],
    calls: Sequence[AggregateCall],
    labels: tuple[str, ...],
    window: AttachedWindow,
) -> Groups:
    # the rows' own time may be that of an earlier window
    times = [i for i, f in enumerate(rows) if f.role is Role.WINDOW_TIME][-1:]
    # The node appends its window's bounds and time itself, behind the aggregates.
    of_window = {window.start_column, window.end_column, *times}
    columns = _unique([position for position in positions if position not in of_window])
    plan = WindowAggregate(below, window, columns, tuple(calls), labels)
    first = len(columns) + len(calls)
    # output_of: input position of a key to its position in the output
    output_of = {
        **{position: i for i, position in enumerate(columns)},
        window.start_column: first,
        window.end_column: first + 1,
    }
    if times:
        output_of[times[0]] = first + 2
    fields = (
        tuple(replace(rows[i], role=None) for i in columns)
        + _result_fields(calls, labels)
        + plan.schema.fields[-3:]
    )
    placed = tuple((key, output_of[position]) for key, position in zip(keys, positions, strict=True))
    results = tuple(range(len(columns), first))
    return Groups(plan, fields, placed, results, (times[0], first + 2) if times else None)


def has_aggregate(tree: object, is_aggregate: Callable[[str], bool]) -> bool:
    """Return whether a tree has an aggregate call without OVER, subqueries aside. ``is_aggregate`` recognizes
    a name.
    """
    if not isinstance(tree, exp.Expr):
        return False
    calls = (
        node
        # (SELECT MAX(x) ..) aggregates its own rows
        for node in tree.walk(prune=lambda node: isinstance(node, exp.Subquery))
        if isinstance(node, FunctionCall)
    )
    return any(is_aggregate(str(call.this)) and call.args.get("over") is None for call in calls)
