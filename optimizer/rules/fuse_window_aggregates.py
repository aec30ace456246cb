"""A window function under its own GROUP BY is one operator that aggregates by slices and never copies a
row per window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.nodes import Column, Expression, conjunction, conjuncts
from penstock.planner.logical.aggregate import Phase, WindowAggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, select_columns
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import AttachedWindow, Windowing


def fuse_windows(plan: LogicalPlan) -> LogicalPlan:
    """Turn an aggregate over windows attached by a WindowTable below it into one that assigns windows itself.

    Projections and filters between the two move below; a filter on the window itself moves above. Left as it
    is where an aggregated expression reads the window, and where session windows are not grouped by exactly
    the columns that partition them.
    """
    return plan.transform(_rewrite)


def _rewrite(node: LogicalPlan) -> LogicalPlan:
    if (
        not isinstance(node, WindowAggregate)
        or not isinstance(node.window, AttachedWindow)
        or node.phase is not Phase.SINGLE
    ):
        return node
    # WindowAggregate over Project and Filter over WindowTable: the steps between move below the windows.
    steps, bottom = _between(node.input)
    if not isinstance(bottom, WindowTable):
        return node
    lowered = _lower(steps, bottom)
    return node if lowered is None else _fused(node, node.window, bottom.window, lowered)


def _between(node: LogicalPlan) -> tuple[list[Project | Filter], LogicalPlan]:
    """Return the projections and filters above the first other node, the lowest first, and that node."""
    steps: list[Project | Filter] = []
    while isinstance(node, Project | Filter):
        steps.append(node)
        node = node.input
    return steps[::-1], node


@dataclass
class _Lowered:
    """The steps rebuilt below the window function: where columns went, which are the window's (0 start, 1
    end, 2 time), what waits above.
    """

    plan: LogicalPlan
    positions: dict[int, int]
    window_parts: dict[int, int]
    time_column: int
    partition_keys: tuple[int, ...]
    waiting: list[Expression]  # predicates over the window's three parts, as columns 0, 1, 2


def _lower(steps: list[Project | Filter], bottom: WindowTable) -> _Lowered | None:
    width = len(bottom.input.schema)
    positions = {i: i for i in range(width)}
    window = bottom.window
    state = _Lowered(
        bottom.input,
        positions,
        {width + i: i for i in range(3)},
        window.time_column,
        window.partition_keys,
        [],
    )
    for step in steps:
        moved = (
            _lower_filter(state, step, window) if isinstance(step, Filter) else _lower_project(state, step)
        )
        if not moved:
            return None
    return state


def _lower_filter(state: _Lowered, step: Filter, window: Windowing) -> bool:
    below: list[Expression] = []
    for part in conjuncts(step.predicate):
        # A part over window_start, window_end or window_time only: tested once a window, above.
        if part.columns() <= state.window_parts.keys() and part.columns() and is_deterministic(part):
            state.waiting.append(part.remap(state.window_parts))
        # A part over the input's columns. Below a session it may drop whole sessions only.
        elif part.columns() <= state.positions.keys() and (
            not window.merging or _reads_partition(state, part)
        ):
            below.append(part.remap(state.positions))
        # A part over both, such as ts < window_end - 10: it has another answer in each window.
        else:
            return False
    if below:
        state.plan = Filter(state.plan, conjunction(tuple(below)))
    return True


def _reads_partition(state: _Lowered, part: Expression) -> bool:
    return {state.positions[i] for i in part.columns()} <= set(state.partition_keys)


def _lower_project(state: _Lowered, step: Project) -> bool:
    """Keep the expressions that read no window column; carry the time column and the sessions' keys along."""
    expressions: list[Expression] = []
    names: list[str] = []
    positions: dict[int, int] = {}
    parts: dict[int, int] = {}
    for index, expression in enumerate(step.expressions):
        # A window column passed on: nothing is computed below.
        if isinstance(expression, Column) and expression.index in state.window_parts:
            parts[index] = state.window_parts[expression.index]
        # An expression that reads both kinds has no position: whoever reads it ends the fusion.
        elif expression.columns() <= state.positions.keys():
            positions[index] = len(expressions)
            expressions.append(expression.remap(state.positions))
            names.append(step.names[index])
    # The window function needs its time and its partition even if the projection drops them.
    carried = {}
    for column in (state.time_column, *state.partition_keys):
        carried[column] = _carry(state.plan, column, expressions, names)
    state.plan = Project(state.plan, tuple(expressions), tuple(names))
    state.positions, state.window_parts = positions, parts
    state.time_column = carried[state.time_column]
    state.partition_keys = tuple(carried[key] for key in state.partition_keys)
    return True


def _carry(plan: LogicalPlan, column: int, expressions: list[Expression], names: list[str]) -> int:
    for index, expression in enumerate(expressions):
        if isinstance(expression, Column) and expression.index == column:
            return index
    field = plan.schema[column]
    expressions.append(Column(field.type, field.nullable, index=column, name=field.name))
    names.append(field.name)
    return len(expressions) - 1


def _fused(
    node: WindowAggregate, attached: AttachedWindow, window: Windowing, lowered: _Lowered
) -> LogicalPlan:
    parts, positions = lowered.window_parts, lowered.positions
    # The aggregate groups by columns that are not these windows' bounds.
    if parts.get(attached.start_column) != 0 or parts.get(attached.end_column) != 1:
        return node
    reads = {
        i for call in node.aggregates for e in (*call.args, call.filter) if e is not None for i in e.columns()
    }
    plain = [key for key in node.keys if key not in parts]
    # An aggregate or key reads an expression over the window.
    if not reads | set(plain) <= positions.keys():
        return node
    keys = tuple(positions[key] for key in plain)
    # Sessions grow by partition: other groups would cut them at other rows.
    if window.merging and set(keys) != set(lowered.partition_keys):
        return node
    own = replace(window, time_column=lowered.time_column, partition_keys=lowered.partition_keys)
    calls = tuple(call.map(lambda expression: expression.remap(positions)) for call in node.aggregates)
    fused: LogicalPlan = WindowAggregate(
        lowered.plan, own, keys, calls, node.names, emission=node.emission, subtasks=node.subtasks
    )
    # The fused node's columns: keys, aggregates, window_start, window_end, window_time.
    first = len(keys) + len(calls)
    if lowered.waiting:
        shifted = tuple(part.remap({i: first + i for i in range(3)}) for part in lowered.waiting)
        fused = Filter(fused, conjunction(shifted))
    # A key that is a column of the window is an output column of the fused node already.
    origin = [first + parts[key] if key in parts else plain.index(key) for key in node.keys]
    order = origin + list(range(len(keys), first + 3))
    return select_columns(fused, order, node.schema.names)
