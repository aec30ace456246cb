"""Joins settled by time: event times say until when a row can still meet rows of the other side, so state
is freed and rows are given once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Role, Schema, without_event_time
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin, Join, JoinFacts, JoinKind
from penstock.planner.logical.node_digest import Digest, hash_parts
from penstock.planner.logical.node_text import duration_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader
from penstock.planner.logical.plan import LogicalPlan, StateBound, StateFacts
from penstock.planner.logical.windows import demand

TIME_ROLES = frozenset({Role.EVENT_TIME, Role.WINDOW_TIME, Role.WINDOW_END})


WINDOW_ROLES = frozenset({Role.WINDOW_START, Role.WINDOW_END, Role.WINDOW_TIME})


# How far below the watermark times that are on time may be, microseconds: a row of a window comes until the
# watermark has reached its end.
_SLACK_US = {Role.EVENT_TIME: 0, Role.WINDOW_TIME: 999, Role.WINDOW_END: -1}


_SETTLED = {JoinKind.LEFT: (0,), JoinKind.RIGHT: (1,), JoinKind.FULL: (0, 1), JoinKind.ANTI: (0,)}


def slack_us(role: Role | None) -> int:
    """Return how far below a watermark the time of a row may be that is on time."""
    return 0 if role is None else _SLACK_US[role]


def lateness_us(plan: LogicalPlan) -> int:
    """Return how long after their end windows of a plan still give rows: as long as they correct them."""
    return max(
        (node.emission.lateness_us for node in plan.walk() if isinstance(node, WindowAggregate)), default=0
    )


@dataclass(frozen=True)
class Deadline:
    """The last time of the other side a row can meet: the value of a column of its own plus microseconds."""

    column: int
    offset_us: int

    def __str__(self) -> str:
        return f"{self.column}{self.offset_us:+}us" if self.offset_us else str(self.column)


@dataclass(frozen=True)
class IntervalSide:
    """One side of an interval join: its event-time column with that column's role, and the deadlines of its
    rows, the earliest of which counts.

    Without deadlines its rows may meet rows of the other side at any later time. ``lateness_us``: how long
    windows beneath correct what they gave.
    """

    time_column: int
    role: Role
    deadlines: tuple[Deadline, ...]
    lateness_us: int = 0

    @property
    def slack_us(self) -> int:
        """How far below a watermark the time of a row may be that is on time."""
        return slack_us(self.role) + self.lateness_us

    def __str__(self) -> str:
        return f"{self.role.value} {self.time_column} until {' or '.join(map(str, self.deadlines)) or 'ever'}"

    def moved(self, positions: Mapping[int, int]) -> IntervalSide:
        """Return the side when its columns have moved."""
        deadlines = tuple(replace(d, column=positions[d.column]) for d in self.deadlines)
        return replace(self, time_column=positions[self.time_column], deadlines=deadlines)

    def columns(self) -> frozenset[int]:
        """The columns that tell time."""
        return frozenset({self.time_column, *(d.column for d in self.deadlines)})


@dataclass(frozen=True)
class JoinTime:
    """What time says of both sides of a join."""

    left: IntervalSide
    right: IntervalSide

    def __str__(self) -> str:
        return f"[left {self.left}, right {self.right}]"

    @property
    def sides(self) -> tuple[IntervalSide, IntervalSide]:
        """Both sides, by port."""
        return self.left, self.right

    @property
    def of_windows(self) -> bool:
        """Whether rows meet rows of their own window only."""
        return all(
            side.role is Role.WINDOW_END and any(d == Deadline(side.time_column, 0) for d in side.deadlines)
            for side in self.sides
        )

    def delay_us(self, port: int) -> int | None:
        """How far behind the watermark rows of a side may come out; None when nothing says."""
        side, other = self.sides[port], self.sides[1 - port]
        own = [d.offset_us for d in side.deadlines if d.column == side.time_column]
        return max(0, min(own) + other.slack_us - side.slack_us) if own else None

    def hold_us(self, kind: JoinKind) -> int:
        """How far the watermark is held back behind the join, so that every row given is on time above it."""
        return max(
            (delay for port in _unpadded(kind) if (delay := self.delay_us(port)) is not None), default=0
        )


def _unpadded(kind: JoinKind) -> tuple[int, ...]:
    """The sides whose columns are never padded with NULLs (SEMI and ANTI show the left one only)."""
    padded = {JoinKind.INNER: (0, 1), JoinKind.RIGHT: (1,), JoinKind.FULL: ()}
    return padded.get(kind, (0,))


def can_settle(kind: JoinKind, left: bool, right: bool) -> bool:
    """Whether a join of this kind can be timed when rows of its left, and of its right, have deadlines:
    rows without a match wait for theirs.
    """
    has = (left, right)
    return any(has) and all(has[port] for port in _SETTLED.get(kind, ()))


@dataclass(frozen=True)
class IntervalJoinFacts(JoinFacts):
    """``time``: what frees rows, with the lateness of the windows beneath; None where a side is loaded first,
    so that the join runs as a regular one.
    """

    time: JoinTime | None = None


@dataclass(frozen=True)
class IntervalJoin(BinaryJoin):
    """A join whose condition bounds the times of matching rows: rows are freed when the watermark has passed
    their deadline.

    Rows without a match are given when their deadline has passed. Rows that come when no partner can be there
    or come any more are late.
    """

    no_history = "an interval or window join"

    time: JoinTime = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            can_settle(self.kind, bool(self.time.left.deadlines), bool(self.time.right.deadlines)),
            "an interval join that nothing settles",
        )

    @property
    def goes_by_time(self) -> bool:
        return True

    @property
    def written_name(self) -> str:
        return "TimedJoin"

    @property
    def allowing(self) -> JoinTime:
        """What time says, with what the windows beneath allow for corrections."""
        left, right = (
            replace(side, lateness_us=lateness_us(plan))
            for side, plan in zip(self.time.sides, self.inputs, strict=True)
        )
        return JoinTime(left, right)

    @cached_property
    def schema(self) -> Schema:
        width = len(self.left.schema)
        fields = list(without_event_time(super().schema.fields))
        for port in _unpadded(self.kind):
            side = self.time.sides[port]
            if self.time.delay_us(port) is None:
                continue
            for index, own in enumerate(self.inputs[port].schema):
                if index == side.time_column or (side.role in WINDOW_ROLES and own.role in WINDOW_ROLES):
                    fields[index + port * width] = replace(fields[index + port * width], role=own.role)
        return Schema(tuple(fields))

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> IntervalJoinFacts:
        facts = super().operator_facts(derived, settings)
        return IntervalJoinFacts(
            facts.insert_only_inputs,
            facts.bounded_ports,
            facts.copied,
            facts.ttl_ms,
            None if facts.bounded_ports else self.allowing,
        )

    def drops_late(self, facts: OperatorFacts) -> bool:
        return isinstance(facts, IntervalJoinFacts) and facts.time is not None

    @property
    def timing(self) -> str:
        return "Window" if self.time.of_windows else "Interval"

    def timing_digest(self, inputs: tuple[Digest, ...]) -> str:
        sides = zip(self.time.sides, inputs, strict=True)
        return hash_parts("timed", *(below.columns[side.time_column] for side, below in sides))

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        """Time settles what meets, unless a side is loaded first."""
        return super().insert_only(inputs, loaded_first) if loaded_first else all(inputs)

    def time_columns(self) -> tuple[frozenset[int], frozenset[int]]:
        return self.time.left.columns(), self.time.right.columns()

    def moved_times(self, left: Mapping[int, int], right: Mapping[int, int]) -> dict[str, Any]:
        return {"time": JoinTime(self.time.left.moved(left), self.time.right.moved(right))}

    @property
    def frees_by_time(self) -> bool:
        return True

    def loaded_ports(self, facts: StateFacts) -> tuple[int, ...]:
        """A side whose event time a watermark tells is not loaded first, though it ends: its rows may be late
        as those of any stream.
        """
        sides = self.inputs
        loaded = (p for p in (1, 0) if facts.bounded(sides[p]) and not facts.tells_time(sides[p]))
        return next(((port,) for port in loaded), ())

    def side_bound(self, facts: StateFacts) -> StateBound:
        """A row is freed when its earliest deadline has passed; a side without deadlines keeps its rows."""
        if self.loaded_ports(facts):
            return super().side_bound(facts)
        words = [self._freed(port) for port in (0, 1)]
        keeps = (
            "rows of both sides until their window ends"
            if self.time.of_windows
            else f"rows of the left side {words[0]}, of the right side {words[1]}"
        )
        for port, side in enumerate(self.time.sides):
            # also of a side that ends: what it keeps grows with it, and the words for it say "for ever"
            if not side.deadlines:
                mine, theirs = ("left", "right")[port], ("left", "right")[1 - port]
                time = self.inputs[1 - port].schema[self.time.sides[1 - port].time_column].name
                why = (
                    f"rows of the {mine} side are kept for ever, as nothing bounds {time} of the {theirs} "
                    "side from above; bound it from both sides"
                )
                return StateBound(keeps, why)
        return StateBound(keeps)

    def _freed(self, port: int) -> str:
        side, schema = self.time.sides[port], self.inputs[port].schema
        if not side.deadlines:
            return "for ever"
        times = sorted({_late_text(schema[d.column].name, d.offset_us) for d in side.deadlines})
        return f"until the watermark passes {' or '.join(times)}"


def as_interval_join(join: Join, time: JoinTime) -> IntervalJoin:
    """Return a join with what time says of its sides."""
    return IntervalJoin(
        join.left,
        join.right,
        join.kind,
        join.left_keys,
        join.right_keys,
        join.residual,
        join.ttl_ms,
        join.copied,
        time=time,
    )


def _late_text(name: str, offset_us: int) -> str:
    if offset_us == 0:
        return name
    return f"{name} {'+' if offset_us > 0 else '-'} {duration_text(abs(offset_us))}"
