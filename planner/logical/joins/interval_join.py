"""Interval and window joins. Event time bounds when a row can still match, so that state is freed and results
are final.
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
from penstock.planner.logical.windows import WindowBest, demand

TIME_ROLES = frozenset({Role.EVENT_TIME, Role.WINDOW_TIME, Role.WINDOW_END})


WINDOW_ROLES = frozenset({Role.WINDOW_START, Role.WINDOW_END, Role.WINDOW_TIME})


# How far below the watermark times that are on time may be, microseconds: a row of a window comes until the
# watermark has reached its end.
_SLACK_US = {Role.EVENT_TIME: 0, Role.WINDOW_TIME: 999, Role.WINDOW_END: -1}


# the sides whose unmatched rows are emitted at their deadline
_SETTLED = {JoinKind.LEFT: (0,), JoinKind.RIGHT: (1,), JoinKind.FULL: (0, 1), JoinKind.ANTI: (0,)}


def slack_us(role: Role | None) -> int:
    """Return how far below a watermark the time of an on-time row may be, in microseconds."""
    return 0 if role is None else _SLACK_US[role]


def lateness_us(plan: LogicalPlan) -> int:
    """Return how long after their end windows of a plan may still emit corrections, in microseconds."""
    return max(
        (node.emission.lateness_us for node in plan.walk() if isinstance(node, WindowAggregate)), default=0
    )


@dataclass(frozen=True)
class Deadline:
    """The last time of the other side that a row can match: the value of one of its own columns plus
    ``offset_us``.
    """

    column: int
    offset_us: int

    def __str__(self) -> str:
        return f"{self.column}{self.offset_us:+}us" if self.offset_us else str(self.column)


@dataclass(frozen=True)
class IntervalSide:
    """One side of an interval join: its event-time column, that column's role, and the deadlines of its rows.
    The earliest deadline counts.

    Without deadlines, rows may match at any later time. ``lateness_us``: how long windows below emit
    corrections.
    """

    time_column: int
    role: Role
    deadlines: tuple[Deadline, ...]
    lateness_us: int = 0

    @property
    def slack_us(self) -> int:
        """How far below a watermark the time of an on-time row may be, in microseconds."""
        return slack_us(self.role) + self.lateness_us

    def __str__(self) -> str:
        return f"{self.role.value} {self.time_column} until {' or '.join(map(str, self.deadlines)) or 'ever'}"

    def moved(self, positions: Mapping[int, int]) -> IntervalSide:
        """Return the side for new positions of its columns."""
        # a deadline reads a column of its own side
        deadlines = tuple(replace(d, column=positions[d.column]) for d in self.deadlines)
        return replace(self, time_column=positions[self.time_column], deadlines=deadlines)

    def columns(self) -> frozenset[int]:
        """The time column and the columns of the deadlines."""
        return frozenset({self.time_column, *(d.column for d in self.deadlines)})


@dataclass(frozen=True)
class JoinTime:
    """The time bounds of both sides of a join."""

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
        """Whether rows match rows of their own window only."""
        return all(
            side.role is Role.WINDOW_END and any(d == Deadline(side.time_column, 0) for d in side.deadlines)
            for side in self.sides
        )

    def delay_us(self, port: int) -> int | None:
        """How far behind the watermark rows of a side may be emitted, in microseconds; None when nothing
        bounds it.
        """
        side, other = self.sides[port], self.sides[1 - port]
        # a deadline by another column says nothing about the row's own time
        own = [d.offset_us for d in side.deadlines if d.column == side.time_column]
        # a row is emitted at the latest when its deadline passes; slack moves both watermarks
        return max(0, min(own) + other.slack_us - side.slack_us) if own else None

    def hold_us(self, kind: JoinKind) -> int:
        """How far the join holds the watermark back, in microseconds, so that every emitted row is on time
        above.
        """
        return max(
            (delay for port in _unpadded(kind) if (delay := self.delay_us(port)) is not None), default=0
        )


def _unpadded(kind: JoinKind) -> tuple[int, ...]:
    """The sides whose columns are never padded with NULLs; SEMI and ANTI emit the left one only."""
    padded = {JoinKind.INNER: (0, 1), JoinKind.RIGHT: (1,), JoinKind.FULL: ()}
    return padded.get(kind, (0,))


def can_settle(kind: JoinKind, left: bool, right: bool) -> bool:
    """Whether an interval join of this kind is possible, when ``left`` and ``right`` say which side has
    deadlines. Unmatched rows wait for their deadline, so an outer side needs one.
    """
    has = (left, right)
    # a.ts >= b.ts alone never tells that a left row has no partner
    return any(has) and all(has[port] for port in _SETTLED.get(kind, ()))


@dataclass(frozen=True)
class IntervalJoinFacts(JoinFacts):
    """``time``: the bounds that free rows, with the lateness of the windows below. It is None where a side is
    loaded first: the join then runs as a regular one.
    """

    time: JoinTime | None = None


@dataclass(frozen=True)
class IntervalJoin(BinaryJoin):
    """A join whose condition bounds the times of matching rows. A row is freed when the watermark has passed
    its deadline.

    Unmatched rows of an outer side are emitted at their deadline. A row is late when no partner can be
    buffered or arrive any more.
    """

    no_history = "an interval or window join"

    time: JoinTime = field(kw_only=True)
    # not hashed: it changes no row
    best: WindowBest | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            can_settle(self.kind, bool(self.time.left.deadlines), bool(self.time.right.deadlines)),
            "an interval join that nothing settles",
        )

    def text(self) -> str:
        best = self.best
        return super().text() + ("" if best is None else f", {best.text(self.inputs[best.port].schema)}")

    @property
    def goes_by_time(self) -> bool:
        return True

    @property
    def written_name(self) -> str:
        # the class's earlier name, which operator ids in checkpoints hash
        return "TimedJoin"

    @property
    def allowing(self) -> JoinTime:
        """The time bounds, with the lateness of the windows below."""
        left, right = (
            replace(side, lateness_us=lateness_us(plan))
            for side, plan in zip(self.time.sides, self.inputs, strict=True)
        )
        return JoinTime(left, right)

    @cached_property
    def schema(self) -> Schema:
        width = len(self.left.schema)
        # every role ends, then the sides with a bounded delay get theirs back
        fields = list(without_event_time(super().schema.fields))
        # a padded side has rows whose time is NULL
        for port in _unpadded(self.kind):
            side = self.time.sides[port]
            if self.time.delay_us(port) is None:
                continue
            for index, own in enumerate(self.inputs[port].schema):
                # a delay bounds the side: its time stays a time attribute, of window joins all window columns
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
            # one side loaded first: every row of the other finds its partners at once
            time=None if facts.bounded_ports else self.allowing,
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
        """Time makes results final, unless a side is loaded first."""
        return super().insert_only(inputs, loaded_first) if loaded_first else all(inputs)

    def time_columns(self) -> tuple[frozenset[int], frozenset[int]]:
        return self.time.left.columns(), self.time.right.columns()

    def moved_times(self, left: Mapping[int, int], right: Mapping[int, int]) -> dict[str, Any]:
        return {"time": JoinTime(self.time.left.moved(left), self.time.right.moved(right))}

    @property
    def frees_by_time(self) -> bool:
        return True

    def loaded_ports(self, facts: StateFacts) -> tuple[int, ...]:
        """A bounded side with a watermark is not loaded first: its rows may be late like those
        of any stream.
        """
        sides = self.inputs
        loaded = (p for p in (1, 0) if facts.bounded(sides[p]) and not facts.tells_time(sides[p]))
        return next(((port,) for port in loaded), ())

    def side_bound(self, facts: StateFacts) -> StateBound:
        """A row is freed when its earliest deadline has passed; rows of a side without deadlines are never
        freed.
        """
        if self.loaded_ports(facts):
            return super().side_bound(facts)
        words = [self._freed(port) for port in (0, 1)]
        keeps = (
            "rows of both sides until their window ends"
            if self.time.of_windows
            else f"rows of the left side {words[0]}, of the right side {words[1]}"
        )
        # a.ts >= b.ts alone frees one side only
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
    """Return a join as an interval join with these time bounds."""
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
        subtasks=join.subtasks,
    )


def _late_text(name: str, offset_us: int) -> str:
    if offset_us == 0:
        return name
    return f"{name} {'+' if offset_us > 0 else '-'} {duration_text(abs(offset_us))}"
