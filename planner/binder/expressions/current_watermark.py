"""CURRENT_WATERMARK(ts): the watermark of a row's split, as a column that the table's rows carry upwards."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.expressions.nodes import Call, Column, Expression
from penstock.planner.logical.plan import LogicalPlan, PassThroughNode, UnaryNode
from penstock.planner.logical.projection import Filter, Project, column_of, select_columns
from penstock.planner.logical.time_attributes import CurrentWatermark, WatermarkAssign
from penstock.planner.logical.window_table import WindowTable

NAME = "current_watermark"
_USAGE = "CURRENT_WATERMARK(ts) takes the column of a table that its WATERMARK FOR names"


def current_watermark(args: Sequence[Expression], span: Span | None) -> Call:
    """Return the call, for ``resolve_current_watermarks``. SQL-1701 for anything but one column."""
    if len(args) != 1 or not isinstance(args[0], Column):
        raise PenstockError(
            "SQL-1701",
            "CURRENT_WATERMARK is asked of something that is no time attribute",
            span=span,
            hint=_USAGE,
            sqlstate="42804",
        )
    return Call(args[0].type, True, function=NAME, args=tuple(args), span=span)


def resolve_current_watermarks(plan: LogicalPlan) -> LogicalPlan:
    """Return the plan in which each call reads a column that its table's rows carry. SQL-1701 where the
    column is not the time of a table that rows come from one by one.
    """
    return plan.transform(_resolved)


def _resolved(node: LogicalPlan) -> LogicalPlan:
    found: list[Call] = []

    def collect(whole: Expression) -> Expression:
        found.extend(part for part in whole.walk() if isinstance(part, Call) and part.function == NAME)
        return whole

    node.map_expressions(collect)
    calls = list(dict.fromkeys(found))
    if not calls:
        return node
    if not isinstance(node, UnaryNode):
        raise _elsewhere(calls[0].span)
    below, width = node.input, len(node.input.schema)
    places: dict[Expression, Expression] = {}
    for call in calls:
        (time,) = call.args
        assert isinstance(time, Column)
        below = _with_watermark(below, time.index, call.span)
        places[call] = column_of(below, len(below.schema) - 1)
    above = node.with_inputs((below,))
    read = above.map_expressions(lambda whole: whole.transform(lambda part: places.get(part, part)))
    if not isinstance(node, PassThroughNode):
        return read
    # a filter hands its columns on: those that only it reads, behind its input's own, end here
    more = range(width, len(below.schema))
    return select_columns(read, [i for i in range(len(read.schema)) if i not in more])


def _with_watermark(plan: LogicalPlan, time: int, span: Span | None) -> LogicalPlan:
    """Return a plan with the watermark of one of its columns behind its own columns."""
    match plan:
        case WatermarkAssign(time_column=column) if column == time:
            return CurrentWatermark(plan, time)
        # SELECT CURRENT_WATERMARK(ts) .. WHERE ts > CURRENT_WATERMARK(ts)
        case CurrentWatermark(time_column=column) if column == time:
            width = len(plan.schema)
            return select_columns(plan, [*range(width), width - 1])
        case Filter():
            return plan.with_inputs((_with_watermark(plan.input, time, span),))
        case Project(expressions=expressions, names=names) if isinstance(source := expressions[time], Column):
            below = _with_watermark(plan.input, source.index, span)
            mark = column_of(below, len(below.schema) - 1)
            return Project(below, (*expressions, mark), (*names, mark.name))
        # TUMBLE, HOP and CUMULATE append three columns to rows that they take one by one
        case WindowTable(window=window) if not window.merging and time < len(plan.input.schema):
            width = len(plan.input.schema)
            inner = WindowTable(_with_watermark(plan.input, time, span), window, plan.closes)
            return select_columns(inner, [*range(width), *range(width + 1, width + 4), width])
    raise _elsewhere(span)


def _elsewhere(span: Span | None) -> PenstockError:
    return PenstockError(
        "SQL-1701",
        "CURRENT_WATERMARK is asked of a column that is not the time of a table here",
        span=span,
        hint=f"{_USAGE}; call it below joins, groups and ranks: FROM (SELECT *, CURRENT_WATERMARK(ts) AS w "
        "FROM t)",
        sqlstate="42804",
    )
