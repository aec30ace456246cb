"""Late rows in the logical plan: rows marked as late for all their windows, so that these may go one way
and the others another.
"""

from __future__ import annotations

from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BOOLEAN
from penstock.planner.expressions.nodes import Call, Column
from penstock.planner.logical.distribution import ANY, InputFacts, Requirement, by_keys
from penstock.planner.logical.node_digest import ExactTexts, Meaning, hash_parts
from penstock.planner.logical.node_text import emission_text, window_text
from penstock.planner.logical.plan import Filter, LogicalPlan, PassThroughNode
from penstock.planner.logical.windows import Emission, Windowing


@dataclass(frozen=True)
class LateMark(PassThroughNode):
    """Each row with whether it is ``late`` for every window it falls in, the end of the last of them, and the
    watermark that says so.

    Late is what a window operator above would call so, ``lateness_us`` allowed for. A row without a time is
    not late.
    """

    window: Windowing
    lateness_us: int = 0

    @property
    def only_ours(self) -> bool:
        return True

    @property
    def goes_by_time(self) -> bool:
        return True

    @cached_property
    def schema(self) -> Schema:
        fields = self.input.schema.fields
        kind = fields[self.window.time_column].type
        return Schema(
            (*fields, Field("late", BOOLEAN, False), Field("window_end", kind), Field("watermark", kind))
        )

    def text(self) -> str:
        lateness = emission_text(Emission(lateness_us=self.lateness_us))
        return f"LateMark {window_text(self.window, self.input.schema)}{lateness}"

    def operator_name(self) -> str:
        return "mark late rows"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        below = inputs[0]
        window = texts.window(self.window, below.columns)
        mark = hash_parts("late", below.rows, window, str(self.lateness_us))
        return Meaning(below.rows, below.columns + tuple(hash_parts(mark, str(i)) for i in range(3)))

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (by_keys(self.window.partition_keys),) if self.window.merging else (ANY,)


def late_part(marked: LateMark) -> LogicalPlan:
    """Return the late rows."""
    return Filter(marked, _flag(marked))


def timely_part(marked: LateMark) -> LogicalPlan:
    """Return the other rows."""
    return Filter(marked, Call(BOOLEAN, False, function="not", args=(_flag(marked),)))


def _flag(marked: LateMark) -> Column:
    return Column(BOOLEAN, False, index=len(marked.input.schema), name="late")
