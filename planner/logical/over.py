"""OVER in the logical plan: rows with the values of window functions, and the first rows of
each partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import INT, Timestamp, TimestampLtz
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression, SortKey, columns_read
from penstock.planner.logical.distribution import InputFacts, Requirement, by_keys
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import calls_text, duration_text, keys_text, order_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, PartitionFacts, SettingReader
from penstock.planner.logical.plan import (
    ColumnPruner,
    Keys,
    LogicalPlan,
    Needed,
    ParallelNode,
    PassThroughNode,
    Pruned,
    StateBound,
    StateFacts,
)
from penstock.planner.logical.windows import AttachedWindow, demand

RANKS = frozenset({"row_number", "rank", "dense_rank"})
WINDOW_ROLES = frozenset({Role.WINDOW_START, Role.WINDOW_END, Role.WINDOW_TIME})
NEIGHBOURS = frozenset({"lag", "lead"})
PLACES = NEIGHBOURS | {"first_value", "last_value", "nth_value"}
"""Functions of the value of one row. A call with a FILTER takes the rows that pass it: IGNORE NULLS."""

COMPOSED_RANKS = frozenset({"ntile", "percent_rank", "cume_dist"})
"""Ranks that the binder writes with the others: no node has them."""

OVER_ONLY = RANKS | PLACES | COMPOSED_RANKS


class FrameUnit(StrEnum):
    """The unit of a frame: rows, distances of the order key, or groups of peers."""

    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class FrameExclusion(StrEnum):
    """The rows that a frame leaves out: none, the current row, it and its peers, or its peers alone."""

    NO_OTHERS = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@dataclass(frozen=True)
class Frame:
    """The frame of a window function, as signed distances from the current row. They count rows or
    groups of peers, or are microseconds or units of the one order key.

    None is unbounded on that side. In RANGE and GROUPS the peers of a row, equal in all order keys, are at
    distance 0.
    """

    unit: FrameUnit = FrameUnit.RANGE
    start: int | None = None
    end: int | None = 0
    exclude: FrameExclusion = FrameExclusion.NO_OTHERS

    def __str__(self) -> str:
        first = _bound_text(self.start, "UNBOUNDED PRECEDING")
        last = _bound_text(self.end, "UNBOUNDED FOLLOWING")
        without = "" if self.exclude is FrameExclusion.NO_OTHERS else f" EXCLUDE {self.exclude.value.upper()}"
        return f"{self.unit.value.upper()} BETWEEN {first} AND {last}{without}"

    @property
    def has_distance(self) -> bool:
        """Whether a bound is a distance along the order key."""
        return self.unit is FrameUnit.RANGE and bool(self.start or self.end)


def _bound_text(distance: int | None, endless: str) -> str:
    # UNBOUNDED PRECEDING, CURRENT ROW, 3 PRECEDING
    if distance is None:
        return endless
    if distance == 0:
        return "CURRENT ROW"
    return f"{abs(distance)} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"


def nth_of(call: AggregateCall) -> int:
    """Return which row a call of ``PLACES`` takes: from the first, or below zero from the last. For LAG and
    LEAD it is the distance; 0 for other calls.
    """
    if call.function == "first_value":
        return 1
    if call.function == "last_value":
        return -1
    number = getattr(call.args[1], "value", 0) if call.function in PLACES else 0
    return int(number)


RUNNING = Frame()
WHOLE = Frame(FrameUnit.RANGE, None, None)


def settled_roles(fields: Sequence[Field], window: AttachedWindow | None) -> tuple[Field, ...]:
    """Return fields without the time roles that end when rows may be emitted again, later than their time.
    Within windows the window columns keep their roles.
    """
    lasting = {Role.PROCESSING_TIME} | (WINDOW_ROLES if window is not None else frozenset())
    return tuple(
        field if field.role in lasting or field.role is None else replace(field, role=None)
        for field in fields
    )


@dataclass(frozen=True)
class OverFacts(PartitionFacts):
    """``in_time``: each row is emitted once, when the watermark has passed its first order key."""

    in_time: bool = False


@dataclass(frozen=True)
class Over(PassThroughNode, ParallelNode):
    """Each input row with one column appended per call. All calls share partition, order and frame; ranks,
    LAG and LEAD ignore the frame.

    The input's columns break ties. ``timely``: the order begins with an ascending event-time attribute.
    Rows without a time are then dropped and counted, and a stream's rows are buffered until the watermark
    passes them.

    ``window`` are the window columns, when the partition is within windows. ``ttl_ms`` is a hint: the time to
    live of a partition since its last row, in milliseconds (0: for ever).
    """

    no_history = "OVER"

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    timely: bool = False
    window: AttachedWindow | None = None
    ttl_ms: int | None = None

    def __post_init__(self) -> None:
        demand(len(self.calls) == len(self.names), "OVER with unequal names and calls")
        demand(
            not self.frame.has_distance or len(self.order) == 1,
            "a frame of distances without its one order key",
        )
        demand(not self.timely or self.time_column >= 0, "OVER by time whose first order key is no column")

    @property
    def time_column(self) -> int:
        """The position of the first order key, -1 when it is not a column."""
        first = self.order[0].expression if self.order else None
        return first.index if isinstance(first, Column) else -1

    @property
    def goes_by_time(self) -> bool:
        return self.timely

    @property
    def breaks_ties(self) -> bool:
        """Whether the result depends on the order of peers, and therefore on the columns that break ties."""
        # a ROWS frame cuts between peers, and these functions number or pick one of them
        ordinal = {"row_number", *PLACES}
        return self.frame.unit is FrameUnit.ROWS or any(call.function in ordinal for call in self.calls)

    @property
    def history(self) -> int:
        """The number of earlier rows of the partition that a row needs in time order, besides those within a
        RANGE distance and those of ``retained_calls``.
        """
        # LAG(x, n) and ROWS n PRECEDING reach n rows back
        reach = [nth_of(call) for call in self.calls if call.function == "lag" and call.filter is None]
        return max([*reach, -(self.frame.start or 0) if self.frame.unit is FrameUnit.ROWS else 0])

    @property
    def retained_calls(self) -> tuple[tuple[AggregateCall, int], ...]:
        """The calls whose rows may be any time ago in time order, each with how many rows are kept for it.
        They are the first of those that it takes, or the last where the number is negative.
        """
        kept = []
        for call in self.calls:
            number = nth_of(call)
            # LAG(x, 2) IGNORE NULLS: the last two rows with a value
            if call.function == "lag" and call.filter is not None:
                kept.append((call, -number))
            # the frame begins with the partition: FIRST_VALUE and NTH_VALUE need its first rows
            elif call.function in PLACES - NEIGHBOURS and self.frame.start is None:
                # LAST_VALUE(x) is of the current row or of a peer, which comes with it
                newest = number == -1 and call.filter is None and not self._excludes
                kept += [] if newest else [(call, number)]
        return tuple(kept)

    @property
    def _excludes(self) -> bool:
        return self.frame.exclude is not FrameExclusion.NO_OTHERS

    @property
    def numbers(self) -> bool:
        """Whether some call numbers the rows of a partition from its first."""
        return any(call.function in RANKS for call in self.calls)

    @property
    def remembers(self) -> str | None:
        """The state per partition that event time never frees; None when it frees everything."""
        # with UNBOUNDED PRECEDING aggregates see all earlier rows
        framed = [call for call in self.calls if call.function not in RANKS | NEIGHBOURS]
        if self.frame.start is None and any(call.keeps_values for call in framed):
            return "each different value"
        # RANK() and SUM(x) OVER (ORDER BY ts): one row of totals, however many rows there were
        if self.numbers or (framed and self.frame.start is None):
            return "a row of totals"
        places = sum(abs(number) for _, number in self.retained_calls)
        if self.history or places:
            return f"its last {self.history + places} rows"
        # GROUPS 2 PRECEDING: the peers of two earlier times
        groups = self.frame.unit is FrameUnit.GROUPS and -(self.frame.start or 0)
        return f"its last {groups} groups of peers" if groups else None

    @cached_property
    def schema(self) -> Schema:
        # a timely OVER emits each row once, as the watermark passes it
        fields = (
            self.input.schema.fields if self.timely else settled_roles(self.input.schema.fields, self.window)
        )
        return Schema(
            (*fields, *(Field(n, c.type, c.nullable) for n, c in zip(self.names, self.calls, strict=True)))
        )

    def text(self) -> str:
        calls = calls_text(self.calls, self.names, self.input.schema)
        framed = any(call.function not in RANKS | NEIGHBOURS for call in self.calls)
        frame = ""
        # default frames are not written
        if framed and self.frame not in (RUNNING, WHOLE):
            frame = f" {frame_text(self.frame, self.order)}"
        return f"Over{' in time' if self.timely else ''}{_specification(self)}{frame}: {calls}"

    def operator_name(self) -> str:
        return f"over{keys_text('', self.partition, self.input.schema)}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> OverFacts:
        return OverFacts(
            (derived.insert_only(self.input),),
            derived.ttl_ms(self),
            derived.arrival_order(self.input, self.order),
            derived.is_settled_by_time(self),
        )

    def drops_late(self, facts: OperatorFacts) -> bool:
        return isinstance(facts, OverFacts) and facts.in_time

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        """All columns take part where the result depends on ties."""
        columns, rows = inputs[0].columns, inputs[0].rows
        order = (texts.sort(key, columns) for key in self.order)
        ties = texts.ties(columns) if self.breaks_ties else ()
        partition = (columns[key] for key in self.partition)
        within = hash_parts(
            "within", str(self.timely), str(self.frame), *partition, "by", *order, "ties", *ties
        )
        # rows without a time are dropped, so the rows depend on the time column
        if self.timely:
            rows = hash_parts("over in time", rows, columns[self.time_column])
        calls = (hash_parts("over", rows, within, texts.call(call, columns)) for call in self.calls)
        return Digest(rows, (*columns, *calls))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        width = len(self.input.schema)
        # ROW_NUMBER() OVER (PARTITION BY k ..): (k, n) is unique
        numbers = {width + i for i, call in enumerate(self.calls) if call.function == "row_number"}
        return inputs[0] | {frozenset({*self.partition, number}) for number in numbers}

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return self.timely and inputs[0]

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (by_keys(self.partition),)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        calls = tuple(call.map(rewrite) for call in self.calls)
        return self._changed(order=tuple(key.map(rewrite) for key in self.order), calls=calls)

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        # WHERE on a partition column drops whole partitions; any other filter would change ranks and frames
        return ({key: key for key in self.partition},)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Drop unread calls, and the node with the last of them, unless it drops rows without a time."""
        width = len(self.input.schema)
        # a timely node drops rows without a time, so one call stays to keep the node
        keep = [i for i in range(len(self.calls)) if width + i in needed] or ([0] if self.timely else [])
        if not keep:
            return pruner.prune(self.input, needed)
        calls, names = tuple(self.calls[i] for i in keep), tuple(self.names[i] for i in keep)
        smaller = replace(self, calls=calls, names=names)
        reads = _columns_of_specification(self, needed)
        reads |= columns_read(e for call in calls for e in (*call.args, call.filter))
        # rows that are equal in all that is read are alike to every reader
        every = pruner.keeps_ties and smaller.breaks_ties
        child, positions = pruner.narrow(self.input, range(width) if every else reads)
        moved = tuple(call.map(lambda expression: expression.remap(positions)) for call in calls)
        pruned = replace(smaller, input=child, calls=moved, **_moved_specification(self, positions))
        return pruned, positions | {width + old: len(child.schema) + new for new, old in enumerate(keep)}

    def state_bound(self, facts: StateFacts) -> StateBound:
        inserts = facts.insert_only(self.input)
        # no time order, or retractions: any earlier row may change any later one
        if not (self.timely and inserts):
            why = "any row may still change; order by a time attribute to make rows final by time"
            return self._grows(facts, "every row", why if inserts else f"the input retracts rows, and {why}")
        keeps = "rows until the watermark passes them"
        if self.window is not None:
            return StateBound(f"{keeps}, and what each partition needs until its window ends")
        # event time frees rows that are behind the frame
        if self.remembers is None:
            return StateBound(f"{keeps}, and those within the frame; freed by the watermark")
        if not self.partition:
            return StateBound(f"{keeps}, and {self.remembers}")
        names = ", ".join(self.input.schema[key].name for key in self.partition)
        why = f"each distinct ({names}) keeps {self.remembers} for ever"
        return self._grows(facts, f"{keeps}, and per partition {self.remembers}", why)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        # only what event time never frees needs a time to live
        freed_by_time = self.timely and facts.insert_only(self.input) and self.remembers is None
        if not self.partition or freed_by_time or self.window is not None:
            return 0
        return facts.default_ttl_ms if self.ttl_ms is None else self.ttl_ms

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True)
class PartitionTop(PassThroughNode, ParallelNode):
    """Top-N per partition: the rows whose ``rank`` (row_number, rank, dense_rank) is at most ``limit``, kept
    up to date.

    ``rank_name`` appends the rank as a column. The columns of the input break ties of row_number. ``window``
    are the window columns, when the partition is within windows. Rows of an insert-only stream are then
    emitted once, when their window closes.

    ``ttl_ms`` is a hint: the time to live of a partition since its last row, in milliseconds (0: for ever).
    ``arrival`` 1: rows equal in the order are in that of their arrival, -1: in its reverse. A row that is
    updated arrives anew.
    """

    no_history = None

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    rank: str
    limit: int
    rank_name: str | None = None
    window: AttachedWindow | None = None
    ttl_ms: int | None = None
    arrival: int | None = None

    def __post_init__(self) -> None:
        demand(self.rank in RANKS and self.limit >= 1, "the first rows by no rank")

    @cached_property
    def schema(self) -> Schema:
        fields = settled_roles(self.input.schema.fields, self.window)
        return Schema(fields if self.rank_name is None else (*fields, Field(self.rank_name, INT, False)))

    def text(self) -> str:
        shown = "" if self.rank_name is None else f" AS {self.rank_name}"
        arrived = {None: "", 1: ", first to arrive", -1: ", last to arrive"}[self.arrival]
        return f"PartitionTop {self.rank}{shown} <= {self.limit}{_specification(self)}{arrived}"

    def operator_name(self) -> str:
        return f"top {self.limit}{keys_text(' per', self.partition, self.input.schema)}"

    @property
    def breaks_ties(self) -> bool:
        """Whether the result depends on the order of peers, and therefore on the columns that break ties."""
        return self.rank == "row_number"

    @property
    def only_ours(self) -> bool:
        # a table of a backend has no order of arrival
        return self.arrival is not None

    @property
    def shows_rank(self) -> bool:
        """Whether the rank is a column of the output."""
        return self.rank_name is not None

    def drops_late(self, facts: OperatorFacts) -> bool:
        return self.window is not None

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> PartitionFacts:
        return PartitionFacts(
            (derived.insert_only(self.input),),
            derived.ttl_ms(self),
            self.arrival or derived.arrival_order(self.input, self.order),
        )

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below, columns = inputs[0], inputs[0].columns
        order = (texts.sort(key, columns) for key in self.order)
        ties = texts.ties(columns) if self.breaks_ties else ()
        # within windows rows are emitted once, at the end: another state
        arrival = () if self.arrival is None else (f"arrival {self.arrival}",)
        head = (
            "partition top",
            below.rows,
            self.rank,
            str(self.limit),
            str(self.window is not None),
            *arrival,
        )
        rows = hash_parts(*head, *(columns[key] for key in self.partition), "by", *order, "ties", *ties)
        return Digest(rows, columns if self.rank_name is None else (*columns, hash_parts("rank", rows)))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        """With row_number, the partition and the number are a key; with limit 1 the partition alone is."""
        keys = frozenset(self.partition)
        # RANK() <= 1 may keep several rows of equal order
        if self.rank != "row_number":
            return inputs[0]
        if self.limit == 1:
            return inputs[0] | {keys}
        return inputs[0] if self.rank_name is None else inputs[0] | {keys | {len(self.input.schema)}}

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        # a window's rows are ranked when it closes; without one a better row displaces another
        return self.window is not None and inputs[0]

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (by_keys(self.partition),)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(order=tuple(key.map(rewrite) for key in self.order))

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        return ({key: key for key in self.partition},)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Rows that are equal in the columns that stay are alike to every reader, so these can break ties."""
        width = len(self.input.schema)
        every = pruner.keeps_ties and self.breaks_ties
        reads = range(width) if every else _columns_of_specification(self, needed)
        child, positions = pruner.narrow(self.input, reads)
        shown = self.rank_name if width in needed else None
        pruned = replace(self, input=child, rank_name=shown, **_moved_specification(self, positions))
        return pruned, positions | ({} if shown is None else {width: len(child.schema)})

    def state_bound(self, facts: StateFacts) -> StateBound:
        inserts = facts.insert_only(self.input)
        keeps = f"the first {self.limit} of each partition" if inserts else "every row"
        if self.window is not None and inserts:
            return StateBound(f"{keeps}, freed when the watermark passes the window's end")
        # ORDER BY price LIMIT 3 per key over updates: the fourth row may come back
        if not inserts:
            why = "a retracted row may let any other row of its partition into the first"
            return self._grows(facts, keeps, why)
        if not self.partition:
            return StateBound(f"the first {self.limit} rows")
        names = ", ".join(self.input.schema[key].name for key in self.partition)
        why = f"each distinct ({names}) keeps its first rows for ever; partition by a window as well"
        return self._grows(facts, keeps, why)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        if not self.partition or self.window is not None:
            return 0
        return facts.default_ttl_ms if self.ttl_ms is None else self.ttl_ms

    @property
    def history_needs_time(self) -> bool:
        return self.window is not None

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)


def _columns_of_specification(node: Over | PartitionTop, needed: Needed) -> Needed:
    """Return the input columns that are needed, or that partition, order and window read."""
    width = len(node.input.schema)
    window = frozenset[int]() if node.window is None else node.window.columns()
    order = columns_read(key.expression for key in node.order)
    return frozenset(i for i in needed if i < width) | frozenset(node.partition) | order | window


def _moved_specification(node: Over | PartitionTop, positions: Mapping[int, int]) -> dict[str, Any]:
    """Return the fields partition, order and window for new positions of the input's columns."""
    order = tuple(key.map(lambda e: e.remap(dict(positions))) for key in node.order)
    window = None if node.window is None else node.window.moved(positions)
    return {"partition": tuple(positions[key] for key in node.partition), "order": order, "window": window}


def _specification(node: Over | PartitionTop) -> str:
    schema = node.input.schema
    order = f" by {order_text(node.order, schema)}" if node.order else ""
    return f"{keys_text(' per', node.partition, schema)}{order}"


def frame_text(frame: Frame, order: Sequence[SortKey]) -> str:
    """Return a frame in words, with distances of time in their largest unit."""
    timed = frame.has_distance and isinstance(order[0].expression.type, Timestamp | TimestampLtz)
    # RANGE BETWEEN 600000000 PRECEDING: BETWEEN 10 min PRECEDING
    return re.sub(r"\d+", lambda size: duration_text(int(size[0])), str(frame)) if timed else str(frame)
