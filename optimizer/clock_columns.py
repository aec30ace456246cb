"""The current time in nodes that remember rows: read once of each row, in a projection beneath, so that
what is computed of a row stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.types import BOOLEAN
from penstock.planner.expressions.expression_properties import CLOCK_FUNCTIONS
from penstock.planner.expressions.nodes import Call, Case, Column, Expression
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project, column_of, select_columns
from penstock.planner.logical.sort import TopN


def stamp_clock(plan: LogicalPlan) -> LogicalPlan:
    """Return a streaming plan in which aggregates, OVER, first rows and joins read the clock as a column of
    their input.

    Rows of a join that lie in wait for others meet at the later of their two times.
    """
    return plan.transform(_stamped)


def _stamped(node: LogicalPlan) -> LogicalPlan:
    match node:
        case Aggregate() | WindowAggregate():
            return _over_columns(node)
        case Over() | PartitionTop() | TopN():
            width, above = len(node.inputs[0].schema), _over_columns(node)
            more = len(above.inputs[0].schema) - width
            return (
                select_columns(above, [i for i in range(len(above.schema)) if not width <= i < width + more])
                if more
                else node
            )
        case TemporalJoin(residual=residual) | LookupJoin(residual=residual) if residual is not None:
            return _joined(node, residual, (0,))
        case BinaryJoin(residual=residual) if residual is not None:
            return _joined(node, residual, (0, 1))
    return node


def _clock_calls(expressions: Sequence[Expression]) -> list[Call]:
    """Return the calls that ask for the time, each once."""
    nodes = (node for expression in expressions for node in expression.walk())
    return list(
        dict.fromkeys(node for node in nodes if isinstance(node, Call) and node.function in CLOCK_FUNCTIONS)
    )


def _with_columns(plan: LogicalPlan, calls: Sequence[Call]) -> LogicalPlan:
    """Return rows with the time they come at in columns behind their own."""
    own = tuple(column_of(plan, i) for i in range(len(plan.schema)))
    return Project(plan, (*own, *calls), (*plan.schema.names, *map(str, calls)))


def _over_columns(node: LogicalPlan) -> LogicalPlan:
    """Return a node of one input whose expressions read columns instead of the clock; the node itself when
    they do not read it.
    """
    found: list[Expression] = []

    def collect(expression: Expression) -> Expression:
        found.append(expression)
        return expression

    node.map_expressions(collect)
    calls = _clock_calls(found)
    if not calls:
        return node
    below = _with_columns(node.inputs[0], calls)
    places: dict[Expression, Expression] = {
        call: column_of(below, len(node.inputs[0].schema) + i) for i, call in enumerate(calls)
    }
    above = node.with_inputs((below,))
    return above.map_expressions(lambda whole: whole.transform(lambda part: places.get(part, part)))


def _joined(
    node: BinaryJoin | TemporalJoin | LookupJoin, residual: Expression, sides: Sequence[int]
) -> LogicalPlan:
    """Return a join whose condition reads the time as a column of its sides, the later one where both have
    it.
    """
    calls = _clock_calls([residual])
    if not calls:
        return node
    inputs = tuple(
        _with_columns(plan, calls) if side in sides else plan for side, plan in enumerate(node.inputs)
    )
    left, shift = len(node.inputs[0].schema), len(calls)
    other = left + shift + (len(node.inputs[1].schema) if len(sides) == 2 else 0)

    def moved(part: Expression) -> Expression:
        if isinstance(part, Call) and part in calls:
            return _later(
                [_stamp(part, left + calls.index(part)), _stamp(part, other + calls.index(part))][
                    : len(sides)
                ]
            )
        return (
            replace(part, index=part.index + shift)
            if isinstance(part, Column) and part.index >= left
            else part
        )

    above = node.with_inputs(inputs)
    assert isinstance(above, BinaryJoin | TemporalJoin | LookupJoin)
    joined = replace(above, residual=residual.transform(moved))
    stamps = {*range(left, left + shift), *(range(other, other + shift) if len(sides) == 2 else ())}
    return select_columns(joined, [i for i in range(len(joined.schema)) if i not in stamps])


def _stamp(call: Call, place: int) -> Column:
    return Column(call.type, call.nullable, index=place, name=str(call), span=call.span)


def _later(stamps: Sequence[Column]) -> Expression:
    if len(stamps) == 1:
        return stamps[0]
    left, right = stamps
    return Case(
        left.type,
        False,
        whens=((Call(BOOLEAN, False, function="greater", args=(left, right)), left),),
        default=right,
    )
