"""ORDER BY and LIMIT in the logical plan: all rows in an order, some rows, the first rows by an order."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.nodes import SortKey
from penstock.planner.logical.distribution import (
    SINGLE,
    UNKNOWN,
    InputFacts,
    Partitioning,
    Requirement,
)
from penstock.planner.logical.node_digest import ExactTexts, Meaning, hash_parts
from penstock.planner.logical.node_text import order_text
from penstock.planner.logical.plan import PassThroughNode


@dataclass(frozen=True)
class Sort(PassThroughNode):
    """ORDER BY of the whole result: bounded backends sort; on a finite stream the client sorts the folded
    rows.
    """

    keys: tuple[SortKey, ...]

    def text(self) -> str:
        return f"Sort {order_text(self.keys, self.input.schema)}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return UNKNOWN


@dataclass(frozen=True)
class Limit(PassThroughNode):
    """LIMIT / OFFSET without an order: the first rows that come, and of rows that change any that are
    left, as many as there may be.
    """

    limit: int | None
    offset: int = 0

    def text(self) -> str:
        count = "all" if self.limit is None else self.limit
        return f"Limit {count}{f' offset {self.offset}' if self.offset else ''}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        below = inputs[0]
        return Meaning(hash_parts("limit", below.rows, str(self.limit), str(self.offset)), below.columns)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return UNKNOWN

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (SINGLE,)


@dataclass(frozen=True)
class TopN(PassThroughNode):
    """ORDER BY .. LIMIT: the first ``limit`` rows by ``keys`` after ``offset``, kept up to date. Ties are
    broken by all columns in order.
    """

    keys: tuple[SortKey, ...]
    limit: int
    offset: int = 0

    def text(self) -> str:
        offset = f" offset {self.offset}" if self.offset else ""
        return f"TopN {self.limit}{offset} by {order_text(self.keys, self.input.schema)}"

    def operator_name(self) -> str:
        return f"top {self.limit}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        below = inputs[0]
        order = (texts.sort(key, below.columns) for key in self.keys)
        head = ("top", below.rows, str(self.limit), str(self.offset))
        return Meaning(hash_parts(*head, *order, *texts.ties(below.columns)), below.columns)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return UNKNOWN

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return False

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (SINGLE,)
