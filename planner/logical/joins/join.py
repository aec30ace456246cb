"""The base of binary joins in the logical plan, the regular join, and the kinds of joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.planner.expressions.nodes import Expression, columns_read
from penstock.planner.logical.distribution import (
    ALL,
    ANY,
    UNKNOWN,
    InputFacts,
    Partitioning,
    Requirement,
    by_keys,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import duration_text, join_condition_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader
from penstock.planner.logical.plan import (
    ColumnPruner,
    Keys,
    LogicalPlan,
    Needed,
    ParallelNode,
    Pruned,
    StateBound,
    StateFacts,
)
from penstock.planner.logical.scan import BoundedInput, Scan
from penstock.planner.logical.windows import demand


class JoinKind(StrEnum):
    """Join kinds. SEMI and ANTI emit left rows with a match, or without."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


# For each side, the kinds of joins that give its columns as they are: of these a WHERE may be tested below.
_NOT_PADDED = (
    frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}),
    frozenset({JoinKind.INNER, JoinKind.RIGHT}),
)


@dataclass(frozen=True)
class JoinFacts(OperatorFacts):
    """The planner's decisions for a join. ``bounded_ports``: the side that is loaded to its end first.

    ``copied``: the side that every subtask receives. ``ttl_ms``: the time to live of rows of each side, in
    milliseconds (0: for ever). ``copied`` and ``ttl_ms`` of the node are only the hints. ``read``: the
    columns of pairs that the operator above reads, ascending (None: all). The others may be anything.
    """

    bounded_ports: tuple[int, ...] = ()
    copied: int | None = None
    ttl_ms: tuple[int, int] = (0, 0)
    read: tuple[int, ...] | None = None


@dataclass(frozen=True)
class BinaryJoin(ParallelNode):
    """Base of joins of two inputs by equal keys, with an optional residual condition over left ++ right
    columns. Output: left columns, then right columns (none for SEMI, ANTI).

    ``ttl_ms`` are hints: the time to live of rows of each side, in milliseconds (0: for ever). ``copied`` is
    the side that a hint broadcasts.

    ``pruned`` is the side with a runtime filter (``runtime_filters``). The other side is loaded first; rows
    of ``pruned`` without a key in it may be dropped before the join.
    """

    no_history: ClassVar[str | None] = None

    left: LogicalPlan
    right: LogicalPlan
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None = None
    ttl_ms: tuple[int | None, int | None] | None = None
    copied: int | None = None
    pruned: int | None = None

    def __post_init__(self) -> None:
        demand(len(self.left_keys) == len(self.right_keys), "a join with unequal key lists")
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        demand(
            all(self.left.schema[a].type == self.right.schema[b].type for a, b in pairs),
            "a join of unlike key types",
        )

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, left=inputs[0], right=inputs[1])

    @cached_property
    def schema(self) -> Schema:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            # SEMI and ANTI filter left rows
            return self.left.schema
        left, right = self.left.schema, self.right.schema
        # the outer side's partner is padded with NULLs
        if self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            left = left.nullable()
        if self.kind in (JoinKind.LEFT, JoinKind.FULL):
            right = right.nullable()
        return left.concat(right)

    def text(self) -> str:
        conditions = join_condition_text(
            (self.left.schema, self.right.schema), self.left_keys, self.right_keys, self.residual
        )
        # EXPLAIN: "Join cross" for FROM a, b
        kind = "cross" if self.kind is JoinKind.INNER and not conditions else self.kind.value
        pruning = "" if self.pruned is None else f", {self._pruning(self.pruned)}"
        on = f" on {conditions}" if conditions else ""
        return f"{self.timing}Join {kind}{on}{self.loading_text()}{pruning}"

    def operator_name(self) -> str:
        return f"{self.kind.value} {f'{self.timing.lower()} ' if self.timing else ''}join"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> JoinFacts:
        return JoinFacts(
            tuple(map(derived.insert_only, self.inputs)),
            derived.bounded_ports(self),
            derived.copied(self),
            (derived.side_ttl_ms(self, 0), derived.side_ttl_ms(self, 1)),
        )

    @property
    def timing(self) -> str:
        """The kind of time bounds, as the word before ``Join``; empty for a regular join."""
        return ""

    def loading_text(self) -> str:
        """Return until when a side is loaded first, in words."""
        return ""

    def _pruning(self, port: int) -> str:
        """The runtime filter in words: its key columns, and the tables they are read from."""
        side, keys = (self.left, self.left_keys) if port == 0 else (self.right, self.right_keys)
        reads = (
            below
            for node in side.walk()
            for below in (node.plan.walk() if isinstance(node, BoundedInput) else (node,))
        )
        tables = dict.fromkeys(scan.table.name for scan in reads if isinstance(scan, Scan))
        return f"runtime filter on {', '.join(side.schema[key].name for key in keys)} of {', '.join(tables)}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        left, right = inputs
        keys, residual = digest_join_condition(
            inputs, (self.left_keys, self.right_keys), self.residual, texts
        )
        # hints (ttl_ms, copied) and the runtime filter are not hashed: they change no row
        timing = self.timing_digest(inputs)
        rows = hash_parts("join", self.kind.value, left.rows, right.rows, residual, timing, *keys)
        columns = mark_side("left", rows, left.columns)
        if self.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            columns += mark_side("right", rows, right.columns)
        return Digest(rows, columns)

    def timing_digest(self, inputs: tuple[Digest, ...]) -> str:
        """Return the digest of the time bounds; empty for a regular join."""
        return ""

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        left, right = inputs
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            # a left row is emitted at most once
            return left
        width = len(self.left.schema)
        # positions of right columns in the output
        shifted = frozenset(frozenset(i + width for i in key) for key in right)
        # a pair is identified by a key of both sides
        unique = {a | b for a in left for b in shifted}
        left_meets_one = any(key <= set(self.right_keys) for key in right)
        right_meets_one = any(key <= set(self.left_keys) for key in left)
        # the join keys contain a key of the other side: each row has at most one partner
        if left_meets_one and self.kind in (JoinKind.INNER, JoinKind.LEFT):
            unique |= left
        if right_meets_one and self.kind in (JoinKind.INNER, JoinKind.RIGHT):
            unique |= shifted
        return frozenset(unique)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        """Rows of the preserved side stay in their subtask. Rows of an inner join are partitioned by the
        equal keys of both sides.

        Restored state moves by the join's keys. Where a side is broadcast, the other side need not be
        partitioned so.
        """
        # FULL: padded rows of both sides have NULL keys on one side
        if self.copied is not None or self.kind is JoinKind.FULL:
            return UNKNOWN
        width = len(self.left.schema)
        right = frozenset(tuple(key + width for key in keys) for keys in inputs[1])
        if self.kind is JoinKind.INNER:
            # equal keys: l.k = r.k are hashed alike, so rows are partitioned by either
            return inputs[0] | right
        return right if self.kind is JoinKind.RIGHT else inputs[0]

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        """A side that is loaded first is joined in its final form. A side that is padded or filtered by
        absence of matches is final only if the other is loaded first.
        """
        # an unmatched row of LEFT or ANTI is retracted when its match arrives, unless that side is complete
        steady = [port in loaded_first or inserts for port, inserts in enumerate(inputs)]
        waits_for = {
            JoinKind.LEFT: (1,),
            JoinKind.ANTI: (1,),
            JoinKind.RIGHT: (0,),
            JoinKind.FULL: (0, 1),
        }.get(self.kind, ())
        return all(steady) and all(port in loaded_first for port in waits_for)

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        if copied is not None:
            # /*+ BROADCAST(t) */: t goes to every subtask, the other side stays where it is
            return (ALL, ANY) if copied == 0 else (ANY, ALL)
        return by_keys(self.left_keys), by_keys(self.right_keys)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self if self.residual is None else self._changed(residual=rewrite(self.residual))

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        """The columns of a side that is never padded with NULLs: a filter on them may move below."""
        of_left, of_right = self.side_columns()
        return (
            of_left if self.kind in _NOT_PADDED[0] else {},
            of_right if self.kind in _NOT_PADDED[1] else {},
        )

    def side_columns(self) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Return for each side a map from its columns in left ++ right to its own positions."""
        width = len(self.left.schema)
        of_left = {i: i for i in range(width)}
        return of_left, {width + i: i for i in range(len(self.right.schema))}

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        width = len(self.left.schema)
        reads = needed | columns_read([self.residual])
        of_left, of_right = self.time_columns()
        # narrow, not prune: rows of both sides are stored, so each dropped column is saved state
        left, left_positions = pruner.narrow(
            self.left, {i for i in reads if i < width} | set(self.left_keys) | of_left
        )
        right, right_positions = pruner.narrow(
            self.right, {i - width for i in reads if i >= width} | set(self.right_keys) | of_right
        )
        moved = left_positions | {width + old: len(left.schema) + new for old, new in right_positions.items()}
        pruned = replace(
            self,
            left=left,
            right=right,
            left_keys=tuple(left_positions[key] for key in self.left_keys),
            right_keys=tuple(right_positions[key] for key in self.right_keys),
            residual=None if self.residual is None else self.residual.remap(moved),
            # the side of a runtime filter is decided after pruning
            pruned=None,
            **self.moved_times(left_positions, right_positions),
        )
        return pruned, left_positions if self.kind in (JoinKind.SEMI, JoinKind.ANTI) else moved

    def time_columns(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the columns of each side that the join reads besides its keys and its condition."""
        return frozenset(), frozenset()

    def moved_times(self, left: Mapping[int, int], right: Mapping[int, int]) -> dict[str, Any]:
        """Return the fields that hold these columns, for new positions of the sides' columns."""
        return {}

    def state_bound(self, facts: StateFacts) -> StateBound:
        """The bound of both sides, with the time to live of each."""
        bound, times = self.side_bound(facts), [self.side_ttl_ms(facts, port) for port in (0, 1)]
        # no time to live on either side
        if not any(times):
            return bound
        sides = ("left", "right")
        # one side expires, the other is still kept for ever
        endless = [port for port in (0, 1) if not times[port] and not facts.finite(self.inputs[port])]
        words = [f"{duration_text(t * 1000)} {side}" for t, side in zip(times, sides, strict=True) if t]
        text = duration_text(times[0] * 1000) if times[0] == times[1] else ", ".join(words)
        why = "rows of the {} side are kept for ever; give it a STATE_TTL as well"
        return StateBound(bound.keeps, why.format(sides[endless[0]]) if endless else None, text)

    def side_bound(self, facts: StateFacts) -> StateBound:
        """Return the state of both sides and its bound, time to live aside."""
        first = self.loaded_ports(facts)
        # a bounded side is loaded whole, and rows of the other pass without being stored
        if first:
            return StateBound("the left side" if first == (0,) else "the right side")
        named = zip(("left", "right"), self.inputs, strict=True)
        endless = [name for name, side in named if not facts.finite(side)]
        sides = " and the ".join(endless)
        grows = (
            f"rows of the {sides} side are kept for ever, as any may match later; join within a window or "
            "an interval, or a bounded table"
        )
        return StateBound("rows of both sides", grows if endless else None)

    def side_ttl_ms(self, facts: StateFacts, port: int) -> int:
        """Return the time to live of a row of a side since its last use, in milliseconds. 0: for ever, or
        until event time or a complete side frees it.
        """
        if self.frees_by_time or self.loaded_ports(facts):
            return 0
        # a hint of 0 is for ever, None is no hint
        hint = None if self.ttl_ms is None else self.ttl_ms[port]
        return facts.default_ttl_ms if hint is None else hint

    @property
    def frees_by_time(self) -> bool:
        """Whether the watermark frees rows."""
        return False

    def loaded_ports(self, facts: StateFacts) -> tuple[int, ...]:
        """Return the side that is loaded to its end before rows of the other are joined: a bounded one, the
        right one if both are.
        """
        return next(((port,) for port in (1, 0) if facts.bounded(self.inputs[port])), ())

    def update_cause(self) -> str:
        return f"the {self.kind.value.upper()} JOIN retracts a row without a match when its match arrives"

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0, 1)

    @property
    def pair_condition(self) -> Expression | None:
        return self.residual


@dataclass(frozen=True)
class Join(BinaryJoin):
    """The regular join: a row may match any row of the other side, whenever that arrives."""


def digest_join_condition(
    inputs: tuple[Digest, ...],
    keys: tuple[tuple[int, ...], tuple[int, ...]],
    residual: Expression | None,
    texts: ExactTexts,
) -> tuple[list[str], str]:
    """Return the digests of the key pairs of a join, and of its condition over both sides."""
    left, right = (one.columns for one in inputs)
    pairs = [part for a, b in zip(*keys, strict=True) for part in (left[a], right[b])]
    if residual is None:
        return pairs, ""
    # a self join: equal columns of both sides must differ in the residual
    sides = tuple(hash_parts("left", c) for c in left) + tuple(hash_parts("right", c) for c in right)
    return pairs, texts.expression(residual, sides)


def mark_side(side: str, rows: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the digests of a side's columns in the output of a join."""
    return tuple(hash_parts(side, rows, column) for column in columns)
