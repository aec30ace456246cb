"""Sort, TopN, Limit and TemporalSort in the logical plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role, Schema
from penstock.planner.expressions.nodes import Column, Expression, SortKey, columns_read
from penstock.planner.logical.distribution import (
    SINGLE,
    UNKNOWN,
    InputFacts,
    Partitioning,
    Requirement,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import order_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, PartitionFacts, SettingReader
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
from penstock.planner.logical.projection import Project
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class Sort(PassThroughNode):
    """ORDER BY of the whole result. Bounded backends sort; on a finite stream the client sorts the final
    rows.
    """

    no_history = "Sort"

    keys: tuple[SortKey, ...]

    def text(self) -> str:
        return f"Sort {order_text(self.keys, self.input.schema)}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return UNKNOWN

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(keys=tuple(key.map(rewrite) for key in self.keys))

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        # ORDER BY without LIMIT: a row's place depends on no other row being there
        return (), (parts,)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        reads = needed | columns_read(key.expression for key in self.keys)
        child, positions = pruner.prune(self.input, reads)
        # the client sorts, so the columns of its keys are sent to it
        return Sort(child, tuple(key.map(lambda e: e.remap(positions)) for key in self.keys)), positions


@dataclass(frozen=True)
class Limit(PassThroughNode):
    """LIMIT / OFFSET without an order: the first rows that arrive. When rows are retracted, any remaining
    rows fill the limit.
    """

    no_history = "LIMIT without an order"

    limit: int | None
    offset: int = 0

    def text(self) -> str:
        count = "all" if self.limit is None else self.limit
        return f"Limit {count}{f' offset {self.offset}' if self.offset else ''}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        return Digest(hash_parts("limit", below.rows, str(self.limit), str(self.offset)), below.columns)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return UNKNOWN

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        # the first n of all rows are known in one subtask only
        return (SINGLE,)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        child, positions = pruner.prune(self.input, needed)
        return replace(self, input=child), positions

    def state_bound(self, facts: StateFacts) -> StateBound:
        # LIMIT 10 of inserts: the first ten stay, later rows are not stored
        if facts.insert_only(self.input):
            return StateBound("a count")
        return self._grows(facts, "every row", "a retracted row lets any other row take its place")


@dataclass(frozen=True)
class TopN(PassThroughNode):
    """ORDER BY .. LIMIT: the first ``limit`` rows by ``keys`` after ``offset``, kept up to date. All columns
    in order break ties.
    """

    no_history = None

    keys: tuple[SortKey, ...]
    limit: int
    offset: int = 0

    def text(self) -> str:
        offset = f" offset {self.offset}" if self.offset else ""
        return f"TopN {self.limit}{offset} by {order_text(self.keys, self.input.schema)}"

    def operator_name(self) -> str:
        return f"top {self.limit}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> PartitionFacts:
        arrival = derived.arrival_order(self.input, self.keys)
        return PartitionFacts((derived.insert_only(self.input),), arrival=arrival)

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        order = (texts.sort(key, below.columns) for key in self.keys)
        head = ("top", below.rows, str(self.limit), str(self.offset))
        # all columns break ties, so they decide which rows are in
        return Digest(hash_parts(*head, *order, *texts.ties(below.columns)), below.columns)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return UNKNOWN

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return False

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (SINGLE,)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(keys=tuple(key.map(rewrite) for key in self.keys))

    def state_bound(self, facts: StateFacts) -> StateBound:
        if facts.insert_only(self.input):
            # rows before the offset are stored too: a new first row pushes one over it
            return StateBound(f"the first {self.limit + self.offset} rows")
        return self._grows(facts, "every row", "a retracted row may let any other row into the first")

    def update_cause(self) -> str:
        return "ORDER BY .. LIMIT retracts rows that fall out of the first"

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True)
class TemporalSort(PassThroughNode):
    """Rows sorted by ``keys``, the first of which is an ascending event time; all columns break ties. Rows
    are buffered until the watermark passes them.

    Rows without a time, and late ones, are dropped and counted.
    """

    no_history = "ORDER BY time"
    keeps_written_expressions = True

    keys: tuple[SortKey, ...]

    def __post_init__(self) -> None:
        demand(
            isinstance(self.keys[0].expression, Column) and not self.keys[0].descending,
            "the first sort key is not an ascending column",
        )

    @property
    def time_column(self) -> int:
        """The position of the first key."""
        first = self.keys[0].expression
        assert isinstance(first, Column)
        # the binder makes the node only for an order that begins with an event time
        return first.index

    @property
    def of_windows(self) -> bool:
        """Whether the time of a row is window_time, the last millisecond of a window."""
        return self.schema[self.time_column].role is Role.WINDOW_TIME

    @property
    def goes_by_time(self) -> bool:
        return True

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema

    def text(self) -> str:
        return f"TemporalSort {order_text(self.keys, self.input.schema)}"

    def operator_name(self) -> str:
        return f"sort {self.input.schema[self.time_column].name}"

    def drops_late(self, facts: OperatorFacts) -> bool:
        return True

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        order = (texts.sort(key, below.columns) for key in self.keys)
        rows = hash_parts("temporal sort", below.rows, *order, *texts.ties(below.columns))
        return Digest(rows, below.columns)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return UNKNOWN

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return True

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (SINGLE,)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(keys=tuple(key.map(rewrite) for key in self.keys))

    @property
    def reevaluating_ports(self) -> tuple[int, ...]:
        # keys are computed when rows are emitted; by then retracted rows have left the buffer
        return ()

    def state_bound(self, facts: StateFacts) -> StateBound:
        return StateBound("rows until the watermark passes them")

    @property
    def drops_late_rows(self) -> bool:
        return True


def is_time_order(keys: Sequence[SortKey], fields: Sequence[Field]) -> bool:
    """Return whether an order begins with an ascending event time."""
    first = keys[0].expression
    return isinstance(first, Column) and not keys[0].descending and fields[first.index].is_event_time


def last_sort(query: LogicalPlan) -> Sort | None:
    """Return the ORDER BY of a statement's query; None where it has none, or a LIMIT."""
    # SELECT a ORDER BY b: a projection above the sort drops b
    sort = query.input if isinstance(query, Project) else query
    return sort if isinstance(sort, Sort) else None
