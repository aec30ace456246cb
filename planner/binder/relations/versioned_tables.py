"""Versioned tables: whose rows are versions of what their key names, from their time on until the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import INT
from penstock.planner.expressions.nodes import Call, Cast, Column, Expression, Literal
from penstock.planner.logical.joins.join import Join
from penstock.planner.logical.over import Over
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign


@dataclass(frozen=True)
class Versions:
    """A plan whose rows are versions: the positions of their keys, of their time, and of the columns that
    break ties of time, in order.

    The plan may have more columns than the relation it stands for, behind them.
    """

    plan: LogicalPlan
    keys: tuple[int, ...]
    time: int
    ties: tuple[int, ...]


def versions_of(plan: LogicalPlan) -> Versions | None:
    """Return a relation as versions: a table with a primary key and a watermark, or a deduplication that
    keeps the last row of each key by event time, whose every row then is a version; with projections and
    filters above. None for anything else."""
    match plan:
        case Project():
            return _projected(plan)
        case Filter(input=inner, predicate=predicate):
            kept = _before_deduplication(inner, predicate)
            if kept is not None:
                return kept
            below = versions_of(inner)
            return None if below is None else replace(below, plan=Filter(below.plan, predicate))
        case WatermarkAssign():
            return _of_table(plan)
    return None


def _projected(plan: Project) -> Versions | None:
    below = versions_of(plan.input)
    return None if below is None else _through(below, plan)


def _through(below: Versions, plan: Project) -> Versions:
    """Return versions under a projection; what tells their key, time and ties stays, if need be behind the
    columns of the projection.
    """
    expressions, names = list(plan.expressions), list(plan.names)
    places = {e.index: i for i, e in reversed(list(enumerate(expressions))) if isinstance(e, Column)}
    for index in (*below.keys, below.time, *below.ties):
        if index not in places:
            field = below.plan.schema[index]
            places[index] = len(expressions)
            expressions.append(Column(field.type, field.nullable, index=index, name=field.name))
            names.append(field.name)
    moved = Project(below.plan, tuple(expressions), tuple(names))
    return Versions(
        moved,
        tuple(places[key] for key in below.keys),
        places[below.time],
        tuple(places[tie] for tie in below.ties),
    )


def _of_table(plan: WatermarkAssign) -> Versions | None:
    scan = next((node for node in plan.walk() if isinstance(node, Scan)), None)
    if scan is None or not scan.table.primary_key:
        return None
    keys = [plan.schema.index_of(name) for name in scan.table.primary_key]
    known = tuple(key for key in keys if key is not None)
    return (
        Versions(plan, known, plan.time_column, tuple(range(len(plan.schema))))
        if len(known) == len(keys)
        else None
    )


def _before_deduplication(plan: LogicalPlan, predicate: Expression) -> Versions | None:
    """Return the rows a filter on ``ROW_NUMBER() OVER (PARTITION BY .. ORDER BY time DESC) = 1`` chooses
    from.
    """
    rank = _first_by(predicate)
    if rank is None:
        return None
    projections: list[Project] = []
    while isinstance(plan, Project):
        expression = plan.expressions[rank]
        if not isinstance(expression, Column):
            return None
        rank = expression.index
        projections.append(plan)
        plan = plan.input
    if not isinstance(plan, Over) or rank != len(plan.input.schema) or not _keeps_last(plan):
        return None
    found = Versions(
        _numbered_one(plan), plan.partition, plan.time_column, tuple(range(len(plan.input.schema)))
    )
    for project in reversed(projections):
        found = _through(found, project)
    return found


def _first_by(predicate: Expression) -> int | None:
    """Return the column a predicate demands to be 1."""
    if (
        not isinstance(predicate, Call)
        or predicate.function not in ("equal", "less_equal")
        or len(predicate.args) != 2
    ):
        return None
    rank, one = (arg.arg if isinstance(arg, Cast) else arg for arg in predicate.args)
    return rank.index if isinstance(rank, Column) and isinstance(one, Literal) and one.value == 1 else None


def _keeps_last(over: Over) -> bool:
    if (
        [call.function for call in over.calls] != ["row_number"]
        or len(over.order) != 1
        or not over.order[0].descending
    ):
        return False
    timed = over.time_column >= 0 and over.input.schema[over.time_column].is_event_time
    # whose rows come later than their time
    return timed and not any(type(node) is Join for node in over.input.walk())


def _numbered_one(over: Over) -> LogicalPlan:
    fields: Sequence = over.input.schema.fields
    columns = [Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)]
    one = Literal(INT, False, value=1)
    return Project(over.input, (*columns, one), (*(f.name for f in fields), over.names[0]))
