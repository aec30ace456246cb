"""Aggregates of the logical plan: unbounded GROUP BY, window aggregates and count windows, in one phase or
two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role, Schema
from penstock.planner.expressions.nodes import AggregateCall, Expression, columns_read
from penstock.planner.logical.distribution import (
    ANY,
    InputFacts,
    Partitioning,
    Requirement,
    by_keys,
    move_keys,
)
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts, number_parts
from penstock.planner.logical.node_text import (
    calls_text,
    duration_text,
    emission_text,
    keys_text,
    window_text,
)
from penstock.planner.logical.operator_facts import (
    DerivedFacts,
    GroupFacts,
    OperatorFacts,
    PartitionFacts,
    SettingReader,
)
from penstock.planner.logical.plan import (
    NO_KEYS,
    ColumnPruner,
    Keys,
    LogicalPlan,
    Needed,
    ParallelNode,
    Pruned,
    StateBound,
    StateFacts,
    UnaryNode,
)
from penstock.planner.logical.windows import (
    ON_CLOSE,
    AttachedWindow,
    Emission,
    WindowBest,
    Windowing,
    demand,
    window_fields,
)


class Phase(StrEnum):
    """The phase of an aggregate. LOCAL emits partial results, GLOBAL merges them, SINGLE does
    both at once.
    """

    SINGLE = "single"
    LOCAL = "local"
    GLOBAL = "global"


# the state of LOCAL aggregates, which a checkpoint never contains
_PARTIAL_STATE = StateBound("partial results until the next watermark or batch")
# Aggregates of which a retraction may bring back an earlier value, so that they keep all values then.
_BEST = frozenset({"min", "max", "any_value", "max_by", "min_by", "first_value", "last_value"})


def _is_count_of_rows(call: AggregateCall) -> bool:
    return call.function == "count" and not call.args and call.filter is None


@dataclass(frozen=True)
class Aggregate(UnaryNode, ParallelNode):
    """Unbounded GROUP BY: one row per key, retracted and replaced as it changes. Output: keys, then
    aggregates.

    ``keys`` are input positions. Without keys there is one row for the whole input, even for an empty input
    (COUNT 0). Without aggregates the node is DISTINCT.

    LOCAL keeps no state past a barrier and emits partial rows per key. GLOBAL is an ordinary aggregate over
    those rows; it merges a count by ``sum0``. The rule that splits an aggregate makes both equal SINGLE.

    ``ttl_ms`` is a hint: the time to live of a group since its last row, in milliseconds (0: for ever).
    ``upserts``: an update is the new row alone, as every reader replaces rows by the keys. State is as
    without it, so no digest has it.
    """

    no_history = None

    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    phase: Phase = Phase.SINGLE
    ttl_ms: int | None = None
    upserts: bool = False

    def __post_init__(self) -> None:
        demand(
            all(0 <= key < len(self.input.schema) for key in self.keys), "an aggregate key outside its input"
        )

    @cached_property
    def schema(self) -> Schema:
        # a group is emitted again whenever it changes, so no key is a time attribute
        keys = tuple(replace(self.input.schema[key], role=None) for key in self.keys)
        return Schema(
            keys
            + tuple(Field(n, a.type, a.nullable) for n, a in zip(self.names, self.aggregates, strict=True))
        )

    def text(self) -> str:
        return _text(self, "") + (", upserts" if self.upserts else "")

    def operator_name(self) -> str:
        return _phase_name(self, "aggregate" if self.aggregates else "distinct")

    @property
    def keeps_state(self) -> bool:
        return self.phase is not Phase.LOCAL

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> GroupFacts:
        insert_only = derived.insert_only(self.input)
        return GroupFacts((insert_only,), derived.ttl_ms(self), counts_rows=insert_only and self._counts_rows)

    @property
    def _counts_rows(self) -> bool:
        """Whether some aggregate is COUNT(*). A merged one is the sum of partials, each at least 1."""
        if self.phase is not Phase.GLOBAL:
            return any(_is_count_of_rows(call) for call in self.aggregates)
        local = self.input.input if isinstance(self.input, Exchange) else self.input
        return isinstance(local, Aggregate) and any(
            merge.function == "sum0" and _is_count_of_rows(call)
            for merge, call in zip(self.aggregates, local.aggregates, strict=True)
        )

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        return _digest(self, inputs[0], "", texts)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # LOCAL emits a partial row per key and flush; without keys there is one row: the empty key
        return NO_KEYS if self.phase is Phase.LOCAL else frozenset({frozenset(range(len(self.keys)))})

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return move_keys(inputs[0], {key: i for i, key in enumerate(self.keys)})

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        # partial rows of inserts are never retracted
        if self.phase is Phase.LOCAL:
            return inputs[0]
        # SELECT DISTINCT of inserts emits each row once; a group with aggregates is replaced
        return not self.aggregates and bool(self.keys) and inputs[0]

    def emits_upserts(self, inputs: tuple[bool, ...]) -> bool:
        return self.upserts

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (ANY if self.phase is Phase.LOCAL else by_keys(self.keys),)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(aggregates=tuple(call.map(rewrite) for call in self.aggregates))

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        """The keys: a filter on them drops whole groups."""
        return (dict(enumerate(self.keys)),)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Keep the keys, which define the groups, and drop unread aggregates. Without keys one aggregate
        stays, so that the row stays.
        """
        # LOCAL and GLOBAL agree on columns by position, so neither drops one alone
        if self.phase is not Phase.SINGLE:
            return super().prune_columns(needed, pruner)
        keep = _needed_calls(self, needed) or ([0] if not self.keys and self.aggregates else [])
        child, positions, calls = _prune_input(self, keep, frozenset(), pruner)
        names, keys = tuple(self.names[i] for i in keep), tuple(positions[key] for key in self.keys)
        return Aggregate(child, keys, calls, names, ttl_ms=self.ttl_ms, subtasks=self.subtasks), _moved_calls(
            self, keep
        )

    def state_bound(self, facts: StateFacts) -> StateBound:
        if self.phase is Phase.LOCAL:
            return _PARTIAL_STATE
        source = self.input.schema
        if self.keys:
            keys = ", ".join(source[key].name for key in self.keys)
            why = f"each distinct ({keys}) keeps an entry for ever; group by a window as well"
            return self._grows(facts, "one entry per key", why)
        # One row for all: it grows where an aggregate keeps the values it has seen.
        # COUNT(DISTINCT x)
        if any(call.distinct for call in self.aggregates):
            why = "DISTINCT keeps every value it has seen; aggregate within a window"
            return self._grows(facts, "the distinct values", why)
        # COLLECT_LIST, PERCENTILE, ..
        if keepers := [call.function for call in self.aggregates if call.keeps_values]:
            why = f"{keepers[0]} keeps every value it has seen; aggregate within a window"
            return self._grows(facts, "every value", why)
        # MIN, MAX, .. over retractions
        if any(call.function in _BEST for call in self.aggregates) and not facts.insert_only(self.input):
            return self._grows(
                facts, "every value", "a retracted value may make any earlier one the result again"
            )
        return StateBound("one row")

    def state_ttl_ms(self, facts: StateFacts) -> int:
        # the one row of a whole input must not expire: COUNT would begin again at 0
        if not self.keys or self.phase is Phase.LOCAL:
            return 0
        return facts.default_ttl_ms if self.ttl_ms is None else self.ttl_ms

    @property
    def is_row_wise(self) -> bool:
        return self.phase is Phase.LOCAL

    def update_cause(self) -> str:
        names = ", ".join(self.input.schema[key].name for key in self.keys)
        if not self.keys:
            return "the aggregate of all rows changes with every row"
        return f"GROUP BY {names} replaces a row whenever its group changes"

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True)
class WindowAggregate(UnaryNode, ParallelNode):
    """GROUP BY window_start, window_end, keys. A row is emitted when the watermark passes the window's end;
    only an ``emission`` that corrects retracts rows.

    Output: keys, then aggregates, then window_start, window_end, window_time. ``window`` is a Windowing over
    the input's time column, whose state is per slice. It is an AttachedWindow when the rows carry their
    window already.

    LOCAL works for a Windowing only. Its output is keys, partial columns, then a ``slice_end`` column. It
    flushes before every barrier, and before the watermark reaches the slice's end.

    GLOBAL reads that through a Windowing whose ``time_column`` is ``slice_end`` and whose ``sliced`` is set.
    Its aggregates merge partial results.
    """

    no_history = None

    window: Windowing | AttachedWindow
    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    phase: Phase = Phase.SINGLE
    emission: Emission = ON_CLOSE
    # not hashed: it changes no row
    best: WindowBest | None = field(default=None, kw_only=True)

    @property
    def goes_by_time(self) -> bool:
        return True

    @cached_property
    def schema(self) -> Schema:
        source = self.input.schema
        fields = tuple(replace(source[key], role=None) for key in self.keys)
        fields += tuple(
            Field(n, a.type, a.nullable) for n, a in zip(self.names, self.aggregates, strict=True)
        )
        # window columns have the type of the time they are cut from: TIMESTAMP or TIMESTAMP_LTZ
        time = self.window.time_column if isinstance(self.window, Windowing) else self.window.end_column
        if self.phase is Phase.LOCAL:
            return Schema((*fields, Field("slice_end", source[time].type, False, Role.EVENT_TIME)))
        return Schema(fields + tuple(replace(f, type=source[time].type) for f in window_fields()))

    def text(self) -> str:
        best = "" if self.best is None else f", {self.best.text(self.input.schema)}"
        window = window_text(self.window, self.input.schema)
        return _text(self, f" {window}{emission_text(self.emission)}") + best

    def operator_name(self) -> str:
        if isinstance(self.window, AttachedWindow):
            return _phase_name(self, "window aggregate")
        return _phase_name(self, f"{self.window.name} aggregate")

    def drops_late(self, facts: OperatorFacts) -> bool:
        # GLOBAL reads slices, whose rows LOCAL has already tested
        return self.phase is not Phase.GLOBAL

    @property
    def keeps_state(self) -> bool:
        return self.phase is not Phase.LOCAL

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        # emission is part of the identity: its state is another one
        window = texts.window(self.window, inputs[0].columns) + emission_text(self.emission)
        return _digest(self, inputs[0], window, texts)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        """A group and its window. Attached windows may share a start or an end, so they need both bounds."""
        # LOCAL groups by slice, not by window
        if self.phase is Phase.LOCAL:
            return NO_KEYS
        keys = frozenset(range(len(self.keys)))
        start = len(self.keys) + len(self.aggregates)
        if isinstance(self.window, AttachedWindow):
            return frozenset({keys | {start, start + 1}})
        # the end identifies a window; the start does too, unless windows such as CUMULATE's share it
        unique = {keys | {start + 1}}
        if not self.window.ends_share_start:
            unique.add(keys | {start})
        return frozenset(unique)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return move_keys(inputs[0], {key: i for i, key in enumerate(self.keys)})

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return inputs[0] if self.phase is Phase.LOCAL else not self.emission.corrects

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (ANY if self.phase is Phase.LOCAL else by_keys(self.keys),)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(aggregates=tuple(call.map(rewrite) for call in self.aggregates))

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        """The keys: a filter on them drops whole groups. Of merging windows only the partition keys: their
        filter drops whole windows.
        """
        merging = isinstance(self.window, Windowing) and self.window.merging
        own = self.window.partition_keys if isinstance(self.window, Windowing) and merging else self.keys
        return ({i: key for i, key in enumerate(self.keys) if key in own},)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Drop unread aggregates. The window columns are always part of the output, so no aggregate has to
        stay.
        """
        if self.phase is not Phase.SINGLE:
            return super().prune_columns(needed, pruner)
        keep = _needed_calls(self, needed)
        child, positions, calls = _prune_input(self, keep, self.window.columns(), pruner)
        names, keys = tuple(self.names[i] for i in keep), tuple(positions[key] for key in self.keys)
        window = self.window.moved(positions)
        pruned = WindowAggregate(
            child, window, keys, calls, names, emission=self.emission, subtasks=self.subtasks
        )
        width = len(self.keys)
        # window_start, window_end, window_time move left with the dropped aggregates
        bounds = {width + len(self.aggregates) + i: width + len(keep) + i for i in range(3)}
        return pruned, _moved_calls(self, keep) | bounds

    def state_bound(self, facts: StateFacts) -> StateBound:
        if self.phase is Phase.LOCAL:
            return _PARTIAL_STATE
        us = self.emission.lateness_us
        late = f" by {duration_text(us)}" if us else ""
        merging = isinstance(self.window, Windowing) and self.window.merging
        # a retraction may split a session, so its rows are kept
        if merging and not facts.insert_only(self.input):
            keeps = "rows of open sessions, freed when the watermark passes the session's end"
        else:
            keeps = "one entry per key and open window, dropped when the watermark passes the window's end"
        return StateBound(f"{keeps}{late}")

    @property
    def is_row_wise(self) -> bool:
        return self.phase is Phase.LOCAL

    @property
    def history_needs_time(self) -> bool:
        return True

    def update_cause(self) -> str:
        if not self.emission.corrects:
            return super().update_cause()
        return "EMIT CHANGES and WITH LATENESS retract results that windows emitted early"

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True)
class CountWindowAggregate(UnaryNode, ParallelNode):
    """GROUP BY a partition and the number of a window of ``size`` rows. Output: keys, then aggregates.

    ``keys`` are input positions, of the partition and of the window number, in the order of GROUP BY. The
    input is insert-only and numbers each row of a partition once, so a window is complete at its ``size``-th
    row. Incomplete windows are emitted when the input ends.

    ``ttl_ms`` is a hint: the time to live of an incomplete window since its last row, in milliseconds (0: for
    ever).
    """

    no_history = "a window of rows"

    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    size: int
    ttl_ms: int | None = None

    def __post_init__(self) -> None:
        demand(self.size > 0, "a count window of no rows")
        demand(
            all(0 <= key < len(self.input.schema) for key in self.keys), "an aggregate key outside its input"
        )

    @cached_property
    def schema(self) -> Schema:
        keys = tuple(replace(self.input.schema[key], role=None) for key in self.keys)
        calls = zip(self.names, self.aggregates, strict=True)
        return Schema(keys + tuple(Field(name, call.type, call.nullable) for name, call in calls))

    def text(self) -> str:
        calls = calls_text(self.aggregates, self.names, self.input.schema)
        keys = keys_text(" by", self.keys, self.input.schema)
        return f"CountWindowAggregate {self.size} rows{keys}{f': {calls}' if calls else ''}"

    def operator_name(self) -> str:
        return f"count window aggregate{keys_text(' by', self.keys, self.input.schema)}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> PartitionFacts:
        return PartitionFacts((derived.insert_only(self.input),), derived.ttl_ms(self))

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        keys = tuple(inputs[0].columns[key] for key in self.keys)
        rows = hash_parts("count windows", inputs[0].rows, str(self.size), *keys)
        calls = (
            hash_parts("aggregate", rows, texts.call(call, inputs[0].columns)) for call in self.aggregates
        )
        return Digest(rows, (*keys, *calls))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return frozenset({frozenset(range(len(self.keys)))})

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return move_keys(inputs[0], {key: i for i, key in enumerate(self.keys)})

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return True

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (by_keys(self.keys),)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(aggregates=tuple(call.map(rewrite) for call in self.aggregates))

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        """The keys: a filter on them drops whole windows."""
        return (dict(enumerate(self.keys)),)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Keep the keys, which define the windows, and drop unread aggregates."""
        keep = _needed_calls(self, needed)
        child, positions, calls = _prune_input(self, keep, frozenset(), pruner)
        names, keys = tuple(self.names[i] for i in keep), tuple(positions[key] for key in self.keys)
        pruned = CountWindowAggregate(
            child, keys, calls, names, self.size, ttl_ms=self.ttl_ms, subtasks=self.subtasks
        )
        return pruned, _moved_calls(self, keep)

    def state_bound(self, facts: StateFacts) -> StateBound:
        names = [self.input.schema[key].name for key in self.keys]
        # TUMBLE(.., 100 ROWS) of a key that has 99 rows
        why = f"each distinct ({', '.join(names)}) may keep a window that is never full"
        return self._grows(facts, "one window per partition, dropped when it is full", why)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        return facts.default_ttl_ms if self.ttl_ms is None else self.ttl_ms


AnyAggregate = Aggregate | WindowAggregate | CountWindowAggregate


def _needed_calls(node: AnyAggregate, needed: Needed) -> list[int]:
    return [i for i in range(len(node.aggregates)) if len(node.keys) + i in needed]


def _prune_input(
    node: AnyAggregate, keep: list[int], more: Needed, pruner: ColumnPruner
) -> tuple[LogicalPlan, dict[int, int], tuple[AggregateCall, ...]]:
    """Return the pruned input, the new positions of its columns, and the calls ``keep`` over it. The input
    keeps the columns that keys, ``more`` and these calls read.
    """
    calls = tuple(node.aggregates[i] for i in keep)
    reads = columns_read(e for call in calls for e in (*call.args, call.filter))
    child, positions = pruner.narrow(node.input, frozenset(node.keys) | reads | more)
    return child, positions, tuple(call.map(lambda e: e.remap(positions)) for call in calls)


def _moved_calls(node: AnyAggregate, keep: list[int]) -> dict[int, int]:
    width = len(node.keys)
    # keys keep their positions; aggregates close up
    return {i: i for i in range(width)} | {width + old: width + new for new, old in enumerate(keep)}


def _text(node: Aggregate | WindowAggregate, window: str) -> str:
    phase = "" if node.phase is Phase.SINGLE else f"{node.phase.value.capitalize()} "
    calls = calls_text(node.aggregates, node.names, node.input.schema)
    keys = keys_text(" by", node.keys, node.input.schema)
    return f"{phase}{type(node).__name__}{window}{keys}{f': {calls}' if calls else ''}"


def _phase_name(node: Aggregate | WindowAggregate, what: str) -> str:
    phase = "" if node.phase is Phase.SINGLE else f"{node.phase.value} "
    return f"{phase}{what}{keys_text(' by', node.keys, node.input.schema)}"


def _digest(node: Aggregate | WindowAggregate, below: Digest, window: str, texts: ExactTexts) -> Digest:
    keys = tuple(below.columns[key] for key in node.keys)
    rows = hash_parts("groups", below.rows, window, node.phase.value, *keys)
    calls = tuple(hash_parts("aggregate", rows, texts.call(call, below.columns)) for call in node.aggregates)
    # the window columns, or slice_end of LOCAL
    added = len(node.schema) - len(keys) - len(calls)
    return Digest(rows, keys + calls + number_parts("window", rows, added))
