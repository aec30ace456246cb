"""Repetition in the logical plan: rows that say how often they stand."""

from __future__ import annotations

from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.types import BIGINT
from penstock.planner.logical.node_digest import ExactTexts, Meaning, hash_parts
from penstock.planner.logical.plan import UnaryNode
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class Repeat(UnaryNode):
    """Each row as often as its last column says, a BIGINT above zero; that column goes."""

    def __post_init__(self) -> None:
        demand(self.input.schema.fields[-1].type == BIGINT, "a repetition by what is no count")

    @cached_property
    def schema(self) -> Schema:
        return Schema(self.input.schema.fields[:-1])

    def text(self) -> str:
        return f"Repeat by {self.input.schema.names[-1]}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        *columns, count = inputs[0].columns
        return Meaning(hash_parts("repeat", inputs[0].rows, count), tuple(columns))
