"""Processing time in the logical plan: rows stamped by the clock, whose time goes on without them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from catalog.frozen import dataclass
from catalog.schema import Role, Schema, without_event_time
from catalog.types import TimestampLtz
from planner.logical import LogicalPlan
from planner.windowing import demand


@dataclass(frozen=True)
class ProcessingTime(LogicalPlan):
    """Stamp ``time_column`` with the clock as rows pass, and let the clock be the watermark of what stands above.

    So windows and OVER by processing time are windows and OVER by a time no row is late for. The time rows had below ends here.
    """

    input: LogicalPlan
    time_column: int

    def __post_init__(self) -> None:
        demand(isinstance(self.input.schema[self.time_column].type, TimestampLtz), "processing time in a column that is no TIMESTAMP_LTZ")

    @property
    def only_ours(self) -> bool:
        return True

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @cached_property
    def schema(self) -> Schema:
        fields = list(without_event_time(self.input.schema.fields))
        fields[self.time_column] = replace(fields[self.time_column], role=Role.EVENT_TIME, nullable=False)
        return Schema(tuple(fields))
