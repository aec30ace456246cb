"""EMIT in the logical plan: when a query emits its rows."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema, without_event_time
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.distribution import ANY, InputFacts, Requirement, by_keys
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import trigger_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader
from penstock.planner.logical.plan import (
    ColumnPruner,
    Conditions,
    LogicalPlan,
    Needed,
    PassThroughNode,
    Pruned,
    StateBound,
    StateFacts,
)
from penstock.planner.logical.windows import Emission


class EmitKind(StrEnum):
    """EMIT modes: on window close, changes as they occur, or final rows only."""

    CLOSE = "on window close"
    CHANGES = "changes"
    FINAL = "final"


@dataclass(frozen=True)
class EmitFacts(OperatorFacts):
    """``keys``: the columns by which changes of one row meet."""

    keys: tuple[int, ...] = ()


@dataclass(frozen=True)
class Emit(PassThroughNode):
    """The EMIT clause of a query. ``penstock.optimizer.emit_strategy`` checks it and leaves only those nodes
    that have an operator:

    FINAL buffers all rows and emits the final ones at the end of input. CHANGES emits accumulated changes
    ``emission.every_us`` or ``emission.every_rows`` apart.
    """

    no_history = None

    kind: EmitKind
    emission: Emission

    @cached_property
    def schema(self) -> Schema:
        # EMIT CHANGES and FINAL emit rows at other times than their event time
        fields = self.input.schema.fields
        return Schema(fields if self.kind is EmitKind.CLOSE else without_event_time(fields))

    def text(self) -> str:
        return f"Emit {self.kind.value}{trigger_text(self.emission)}"

    def operator_name(self) -> str:
        return f"emit {self.kind.value}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> EmitFacts:
        keys = final_keys(derived.upsert_key(self.input), len(self.schema))
        return EmitFacts((derived.insert_only(self.input),), keys)

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        rows = hash_parts("emit", inputs[0].rows, self.kind.value, str(self.emission))
        if self.emission.every_rows:
            rows = hash_parts("emit after changes", rows, str(self.emission.every_rows))
        return Digest(rows, inputs[0].columns)

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        # FINAL emits at the end of input, when nothing changes any more
        return self.kind is EmitKind.FINAL or inputs[0]

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        # CHANGES passes changes on; FINAL folds those of one row in one subtask
        if self.kind is not EmitKind.FINAL:
            return (ANY,)
        return (by_keys(final_keys(inputs[0].upsert_key, len(self.input.schema))),)

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        # a filter treats a row and its retraction alike, so it may move below
        return (), (parts,)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        child, positions = pruner.prune(self.input, needed)
        return replace(self, input=child), positions

    def state_bound(self, facts: StateFacts) -> StateBound:
        final = self.kind is EmitKind.FINAL
        return StateBound("every row until all have come" if final else "changes until they are emitted")

    @property
    def history_needs_time(self) -> bool:
        return True


def with_emission(plan: LogicalPlan, emission: Emission) -> LogicalPlan:
    """Return a plan whose window aggregates have this emission. Subqueries with an EMIT of their own keep
    theirs.
    """
    # a subquery with an EMIT of its own
    if isinstance(plan, Emit):
        return plan
    plan = (
        # EMIT applies to every window aggregate of the query, also those in subqueries without an EMIT
        plan.with_inputs(tuple(with_emission(child, emission) for child in plan.inputs))
        if plan.inputs
        else plan
    )
    return replace(plan, emission=emission) if isinstance(plan, WindowAggregate) else plan


def has_windows(plan: LogicalPlan) -> bool:
    """Return whether a query has window aggregates, apart from subqueries with an EMIT of their own."""
    return isinstance(plan, WindowAggregate) or (
        not isinstance(plan, Emit) and any(has_windows(child) for child in plan.inputs)
    )


def final_keys(upsert_key: tuple[int, ...] | None, width: int) -> tuple[int, ...]:
    """Return the columns by which changes of one row meet: its key, or all columns."""
    # without a key an update is a retraction and an insertion of whole rows
    return tuple(range(width)) if upsert_key is None else upsert_key
