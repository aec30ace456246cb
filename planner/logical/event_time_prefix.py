"""A plan over the rows its inputs hold up to a moment of event time."""

from __future__ import annotations

from datetime import datetime

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import BOOLEAN, STRING
from penstock.planner.expressions.nodes import Call, Cast, Column, Literal
from penstock.planner.logical.plan import Filter, LogicalPlan, WatermarkAssign


def up_to(plan: LogicalPlan, moment: str, span: Span) -> LogicalPlan:
    """Return a plan that reads only rows whose event time is at most ``moment``; tables without a watermark
    are read whole.

    VER-7004 for a text that is no timestamp, VER-7003 for a plan of whose tables none has a watermark.
    """
    try:
        datetime.fromisoformat(moment.strip())
    except ValueError:
        hint = "write UP TO TIMESTAMP '2026-01-01 00:00:00'"
        raise PenstockError(
            "VER-7004", f"'{moment[:60]}' is no timestamp", span=span, hint=hint, sqlstate="22007"
        ) from None
    if not any(isinstance(node, WatermarkAssign) for node in plan.walk()):
        hint = "declare WATERMARK FOR in a table of the query, or leave UP TO out"
        raise PenstockError(
            "VER-7003",
            "no table of the query has a watermark, so nothing says what is up to a moment",
            span=span,
            hint=hint,
        )
    return _cut(plan, moment.strip())


def _cut(plan: LogicalPlan, moment: str) -> LogicalPlan:
    inputs = tuple(_cut(child, moment) for child in plan.inputs)
    if isinstance(plan, WatermarkAssign):
        field = inputs[0].schema[plan.time_column]
        time = Column(field.type, field.nullable, index=plan.time_column, name=field.name)
        last = Cast(field.type, False, arg=Literal(STRING, False, value=moment))
        inputs = (Filter(inputs[0], Call(BOOLEAN, field.nullable, function="less_equal", args=(time, last))),)
    return plan.with_inputs(inputs) if inputs else plan
