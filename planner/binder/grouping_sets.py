"""GROUPING SETS, ROLLUP and CUBE: a union of one aggregate per set, with NULL for the keys that a set leaves
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT
from penstock.planner.binder.group_by import Groups, group
from penstock.planner.binder.subqueries.scalar_subqueries import column
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression, Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.set_operations import Union


def group_sets(
    plan: LogicalPlan,
    fields: Sequence[Field],
    sets: Sequence[Sequence[Expression]],
    calls: Sequence[AggregateCall],
) -> Groups:
    """Return the union of one aggregate per set.

    Its columns: all keys, the aggregates, one flag per key (1: the set leaves it out). The window time
    follows if every set has it.
    """
    keys: list[Expression] = []
    for chosen in sets:
        # All keys of all sets, each once: the columns of the union.
        keys += [key for key in chosen if key not in keys]
    # GROUP BY ROLLUP (a, b) is the union of GROUP BY a, b; GROUP BY a; GROUP BY ()
    groups = [group(plan, fields, chosen, [str(key) for key in chosen], calls) for chosen in sets]
    # window_time is only a column of the union if every branch has it.
    timed = all(one.window_time is not None for one in groups)
    branches = tuple(_branch(one, keys, len(calls), timed) for one in groups)
    united: LogicalPlan = Union(branches) if len(branches) > 1 else branches[0]
    first = len(keys) + len(calls)
    placed = tuple((key, i) for i, key in enumerate(keys))
    results = tuple(range(len(keys), first))
    # keys, then aggregates, then flags
    marks = tuple((key, first + i) for i, key in enumerate(keys))
    time = groups[0].window_time
    window_time = (time[0], first + len(keys)) if timed and time is not None else None
    shown = tuple(
        _field(field, key)
        for field, key in zip(united.schema, [*keys, *[None] * (len(united.schema) - len(keys))], strict=True)
    )
    return Groups(united, shown, placed, results, window_time, marks)


def _field(field: Field, key: Expression | None) -> Field:
    return replace(field, name=key.name) if isinstance(key, Column) else field


def _branch(groups: Groups, keys: Sequence[Expression], calls: int, timed: bool) -> LogicalPlan:
    # positions: position of a key among all keys to its column in this set's aggregate
    positions: dict[int, int] = {}
    for key, position in groups.keys:
        positions[next(i for i, known in enumerate(keys) if known == key)] = position
    expressions: list[Expression] = []
    for i, key in enumerate(keys):
        # A key that this set leaves out is NULL.
        expressions.append(
            column(groups.plan, positions[i]) if i in positions else Literal(key.type, True, value=None)
        )
    expressions += [column(groups.plan, groups.results[i]) for i in range(calls)]
    # The flags tell such a NULL from a NULL in the data; GROUPING() reads them.
    expressions += [Literal(BIGINT, False, value=int(i not in positions)) for i in range(len(keys))]
    names = [f"key{i + 1}" for i in range(len(keys))]
    for i, key in enumerate(keys):
        names[i] = key.name if isinstance(key, Column) else names[i]
    names += [groups.fields[groups.results[i]].name for i in range(calls)] + [
        f"left_out{i + 1}" for i in range(len(keys))
    ]
    if timed and groups.window_time is not None:
        expressions.append(column(groups.plan, groups.window_time[1]))
        names.append("window_time")
    return Project(groups.plan, tuple(expressions), tuple(names))
