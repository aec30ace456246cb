"""Upserts as a changelog: what an upsert or a deletion of a key replaces is retracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.distribution import InputFacts, Requirement, by_keys
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import keys_text
from penstock.planner.logical.plan import (
    ColumnPruner,
    Keys,
    LogicalPlan,
    Needed,
    PassThroughNode,
    Pruned,
    StateBound,
    StateFacts,
)


@dataclass(frozen=True)
class ChangelogNormalize(PassThroughNode):
    """Input rows are upserts: weight +1 is the new row of its ``key``, -1 says that the key is gone, whatever
    its other columns. The output retracts what was emitted of the key before.

    ``marks`` is the column of values that a row leaves out since they are those of its key's row before; -1
    for none. ``bits`` has each column's bit in it, -1 for a column that always has its value.
    """

    key: tuple[int, ...]
    marks: int = -1
    bits: tuple[int, ...] = ()

    def text(self) -> str:
        return f"ChangelogNormalize{keys_text(' by', self.key, self.input.schema)}"

    def operator_name(self) -> str:
        return f"normalize{keys_text(' by', self.key, self.input.schema)}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        columns = inputs[0].columns
        keys = (columns[key] for key in self.key)
        return Digest(hash_parts("changelog normalize", inputs[0].rows, *keys), columns)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return inputs[0] | {frozenset(self.key)}

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return False

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (by_keys(self.key),)

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        # below, a filter on another column would let an old row stand
        return ({key: key for key in self.key},)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        kept = {*needed, *self.key}
        # no column is left that may lack its value: no marks
        marked = self.marks >= 0 and any(self.bits[column] >= 0 for column in kept)
        child, positions = pruner.narrow(self.input, kept | ({self.marks} if marked else set()))
        node = replace(
            self,
            input=child,
            key=tuple(positions[key] for key in self.key),
            marks=positions[self.marks] if marked else -1,
            bits=self._moved_bits(positions) if marked else (),
        )
        return node, positions

    def _moved_bits(self, positions: dict[int, int]) -> tuple[int, ...]:
        bits = {new: self.bits[old] for old, new in positions.items()}
        return tuple(bits[place] for place in range(len(bits)))

    def state_bound(self, facts: StateFacts) -> StateBound:
        names = ", ".join(self.input.schema[key].name for key in self.key)
        return self._grows(
            facts, "the row of each key", f"each distinct ({names}) keeps its row until it is deleted"
        )

    def update_cause(self) -> str:
        return "its rows are replaced and deleted by key"

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)


def normalized(plan: LogicalPlan, key: tuple[str, ...]) -> LogicalPlan:
    """Return the changelog of a plan of upserts by these columns."""
    positions = [plan.schema.index_of(name) for name in key]
    return ChangelogNormalize(plan, tuple(position for position in positions if position is not None))
