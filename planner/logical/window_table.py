"""Window table functions in the logical plan, and LateMark, which marks rows that are late for all their
windows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BOOLEAN, is_timestamp
from penstock.planner.expressions.expression_properties import select_in_turn, without
from penstock.planner.expressions.nodes import (
    Call,
    Column,
)
from penstock.planner.logical.distribution import (
    ANY,
    InputFacts,
    Requirement,
    by_keys,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts, number_parts
from penstock.planner.logical.node_text import (
    emission_text,
    window_text,
)
from penstock.planner.logical.operator_facts import (
    DerivedFacts,
    OperatorFacts,
    PartitionFacts,
    SettingReader,
)
from penstock.planner.logical.plan import (
    ColumnPruner,
    Conditions,
    Keys,
    LogicalPlan,
    Needed,
    ParallelNode,
    PassThroughNode,
    Pruned,
    StateBound,
    StateFacts,
)
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.windows import (
    Emission,
    Windowing,
    demand,
    fields_in_windows,
    window_fields,
)


@dataclass(frozen=True)
class WindowTable(PassThroughNode, ParallelNode):
    """A windowing table-valued function: each row once per window it falls in, with window_start, window_end,
    window_time appended.

    Rows whose time is NULL are dropped and counted. ``closes``: the watermark closes the windows. Those of
    rows that are updated, such as the last row of a key, never close: their bounds are plain columns, and a
    GROUP BY of them updates. A row that comes or goes may merge or split such sessions, whose other rows are
    then retracted and emitted with new bounds.
    """

    no_history = None

    window: Windowing
    closes: bool = True

    def __post_init__(self) -> None:
        time = self.input.schema[self.window.time_column]
        demand(
            time.is_event_time if self.closes else is_timestamp(time.type),
            "a window on a column that is no time attribute",
        )

    @property
    def goes_by_time(self) -> bool:
        return self.closes

    @property
    def _updates_sessions(self) -> bool:
        return self.window.merging and not self.closes

    @cached_property
    def schema(self) -> Schema:
        # TIMESTAMP or TIMESTAMP_LTZ, as the column that the windows are cut on
        kind = self.input.schema[self.window.time_column].type
        bounds = tuple(replace(f, type=kind) for f in window_fields())
        if not self.closes:
            bounds = tuple(replace(f, role=None) for f in bounds)
        return Schema(fields_in_windows(self.input.schema.fields, self.window) + bounds)

    def text(self) -> str:
        closing = "" if self.closes else ", never closed"
        return f"WindowTable {window_text(self.window, self.input.schema)}{closing}"

    def operator_name(self) -> str:
        return f"{self.window.name} windows"

    def drops_late(self, facts: OperatorFacts) -> bool:
        # TUMBLE, HOP and CUMULATE assign any row; a session that has closed takes none
        return self.drops_late_rows

    @property
    def keeps_state(self) -> bool:
        # the rows of open sessions; other windows are computed from a row alone
        return self.window.merging

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> OperatorFacts:
        return PartitionFacts((derived.insert_only(self.input),), derived.ttl_ms(self))

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        rows = hash_parts("windows", below.rows, texts.window(self.window, below.columns))
        return Digest(rows, below.columns + number_parts("window", rows, 3))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # TUMBLE, and sessions that never close: each row once
        if self._updates_sessions or not (self.window.overlapping or self.window.merging):
            return inputs[0]
        # the row in each of its windows, told apart by window_end
        return frozenset(key | {len(self.input.schema) + 1} for key in inputs[0])

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        # sessions are emitted when they close, in their final form
        return self.drops_late_rows or inputs[0]

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        """Merging windows need all rows of their partition in one subtask."""
        return (by_keys(self.window.partition_keys),) if self.window.merging else (ANY,)

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        """Filters on window bounds stay above. Below merging windows only filters on their partition keys may
        move.
        """
        # dropping one row of a session could split it
        own = self.window.partition_keys if self.window.merging else range(len(self.input.schema))
        passed = select_in_turn(parts, own)
        return without(parts, passed), (passed,)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        width = len(self.input.schema)
        # window columns are positions behind the input's, so they are not read below
        reads = frozenset(i for i in needed if i < width) | self.window.columns()
        child, positions = pruner.prune(self.input, reads)
        # the three columns it appends stay together, behind those of the input
        moved = positions | {width + i: len(child.schema) + i for i in range(3)}
        return replace(self, input=child, window=self.window.moved(positions)), moved

    def state_bound(self, facts: StateFacts) -> StateBound:
        if not self.window.merging:
            return StateBound(None)
        if self.closes:
            return StateBound("rows of open sessions, freed when the watermark passes the session's end")
        why = "rows are kept for ever, as any that goes may split its session; set table.exec.state.ttl"
        return self._grows(facts, "all rows", why)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        # without a partition all rows have one key, which lives as long as any row comes
        return facts.default_ttl_ms if self._updates_sessions and self.window.partition_keys else 0

    @property
    def drops_late_rows(self) -> bool:
        return self.window.merging and self.closes

    @property
    def is_row_wise(self) -> bool:
        return not self.window.merging

    @property
    def history_needs_time(self) -> bool:
        return self.closes


@dataclass(frozen=True)
class LateMark(PassThroughNode):
    """Append to each row whether it is ``late`` for all its windows, the end of the last of them, and the
    deciding watermark.

    A row is late when a window operator above would drop it, with ``lateness_us`` allowed. A row without a
    time is not late.
    """

    no_history = "LATE ROWS INTO"

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

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        window = texts.window(self.window, below.columns)
        # the mark drops no row: only its three columns are new
        mark = hash_parts("late", below.rows, window, str(self.lateness_us))
        return Digest(below.rows, below.columns + tuple(hash_parts(mark, str(i)) for i in range(3)))

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (by_keys(self.window.partition_keys),) if self.window.merging else (ANY,)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        width = len(self.input.schema)
        reads = frozenset(i for i in needed if i < width) | self.window.columns()
        child, positions = pruner.prune(self.input, reads)
        # the three columns it appends stay together, behind those of the input
        moved = positions | {width + i: len(child.schema) + i for i in range(3)}
        return replace(self, input=child, window=self.window.moved(positions)), moved


def late_part(marked: LateMark) -> LogicalPlan:
    """Return the late rows."""
    # WHERE late
    return Filter(marked, _flag(marked))


def timely_part(marked: LateMark) -> LogicalPlan:
    """Return the rows that are not late."""
    # WHERE NOT late
    return Filter(marked, Call(BOOLEAN, False, function="not", args=(_flag(marked),)))


def _flag(marked: LateMark) -> Column:
    return Column(BOOLEAN, False, index=len(marked.input.schema), name="late")
