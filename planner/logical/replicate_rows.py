"""Repetition in the logical plan: rows that say how often they stand."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.types import BIGINT
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class Repeat(LogicalPlan):
    """Each row as often as its last column says, a BIGINT above zero; that column goes."""

    input: LogicalPlan

    def __post_init__(self) -> None:
        demand(self.input.schema.fields[-1].type == BIGINT, "a repetition by what is no count")

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])

    @cached_property
    def schema(self) -> Schema:
        return Schema(self.input.schema.fields[:-1])
