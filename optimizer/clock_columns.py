"""The current time below nodes with state: a projection reads it once for each row. A retraction then
computes the values of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.types import BOOLEAN
from penstock.planner.expressions.expression_properties import CLOCK_FUNCTIONS
from penstock.planner.expressions.nodes import Call, Case, Column, Expression
from penstock.planner.logical.plan import LogicalPlan, PassThroughNode, UnaryNode
from penstock.planner.logical.projection import Project, column_of, select_columns


def stamp_clock(plan: LogicalPlan) -> LogicalPlan:
    """Return a streaming plan in which aggregates, OVER, first rows and joins read the clock as a column of
    their input.

    Rows of a join that lie in wait for others meet at the later of their two times.
    """
    return plan.transform(_stamped)


def _stamped(node: LogicalPlan) -> LogicalPlan:
    ports, condition = node.clock_ports, node.pair_condition
    # A join reads the clock in its condition over pairs of rows.
    if condition is not None:
        return _joined(node, condition, ports)
    if not ports or not isinstance(node, UnaryNode):
        return node
    above = _over_columns(node)
    # A node that hands rows on has the new columns behind those of its input; they are dropped above it.
    if isinstance(node, PassThroughNode) and above is not node:
        width, more = len(node.input.schema), len(above.inputs[0].schema)
        return select_columns(above, [i for i in range(len(above.schema)) if not width <= i < more])
    return above


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
    # One column for each clock function, however often it is called.
    calls = _clock_calls(found)
    if not calls:
        return node
    below = _with_columns(node.inputs[0], calls)
    # The new columns are behind those of the input.
    places: dict[Expression, Expression] = {
        call: column_of(below, len(node.inputs[0].schema) + i) for i, call in enumerate(calls)
    }
    above = node.with_inputs((below,))
    return above.map_expressions(lambda whole: whole.transform(lambda part: places.get(part, part)))


def _joined(node: LogicalPlan, residual: Expression, sides: Sequence[int]) -> LogicalPlan:
    """Return a join whose condition reads the time as a column of its sides, the later one where both have
    it.
    """
    calls = _clock_calls([residual])
    if not calls:
        return node
    inputs = tuple(
        _with_columns(plan, calls) if side in sides else plan for side, plan in enumerate(node.inputs)
    )
    # Columns of the join: left, its stamps, right, its stamps. ``other`` is the first stamp of the right.
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
            # Columns of the right side move by the stamps of the left.
            replace(part, index=part.index + shift)
            if isinstance(part, Column) and part.index >= left
            else part
        )

    above = node.with_inputs(inputs)
    joined = replace(above, residual=residual.transform(moved))  # type: ignore[call-arg]  # a join has one
    # Above the join the stamps are dropped again.
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
