"""The temporal join in the logical plan: each left row is joined with the version that was
valid at its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema, without_event_time
from penstock.planner.expressions.nodes import Expression, columns_read
from penstock.planner.logical.distribution import (
    InputFacts,
    Partitioning,
    Requirement,
    by_keys,
)
from penstock.planner.logical.joins.interval_join import WINDOW_ROLES, lateness_us, slack_us
from penstock.planner.logical.joins.join import JoinKind, digest_join_condition, mark_side
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import join_condition_text
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
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class TemporalJoinFacts(OperatorFacts):
    """``slacks_us``: by side, how far below a watermark the time of an on-time row may be. ``ttl_ms``: the
    time to live of a key's versions since its last one, in milliseconds (0: for ever).
    """

    slacks_us: tuple[int, int] = (0, 0)
    ttl_ms: int = 0


@dataclass(frozen=True)
class TemporalJoin(ParallelNode):
    """``left JOIN right FOR SYSTEM_TIME AS OF left.time``, INNER or LEFT. A right row is the version of its
    keys from its time until the next version. Output: left columns, then right columns.

    Among versions of one time the columns ``ties`` choose the first, as in a deduplication by time. The
    residual, over left ++ right, is tested on the valid version.

    A retraction of a version removes it from history. A retraction of a row that never arrived, such as a
    deletion with its own time, ends the valid version. Rows behind their own split's watermark are dropped
    and counted. A left row without a time matches nothing.
    """

    no_history = "a join FOR SYSTEM_TIME AS OF"
    keeps_written_expressions = True

    left: LogicalPlan
    right: LogicalPlan
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left_time: int
    right_time: int
    ties: tuple[int, ...]
    residual: Expression | None = None

    def __post_init__(self) -> None:
        demand(self.kind in (JoinKind.INNER, JoinKind.LEFT), "a temporal join that is neither inner nor left")
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        demand(
            all(self.left.schema[a].type == self.right.schema[b].type for a, b in pairs),
            "a temporal join of unlike key types",
        )

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, left=inputs[0], right=inputs[1])

    @property
    def goes_by_time(self) -> bool:
        return True

    @property
    def times(self) -> tuple[int, int]:
        """The time columns, by side."""
        return self.left_time, self.right_time

    @property
    def slacks_us(self) -> tuple[int, int]:
        """How far below a watermark the time of an on-time row of each side may be, in microseconds."""
        left, right = (
            slack_us(self.left.schema[self.left_time].role),
            slack_us(self.right.schema[self.right_time].role),
        )
        return left + lateness_us(self.left), right + lateness_us(self.right)

    @cached_property
    def schema(self) -> Schema:
        left, right = list(self.left.schema), self.right.schema
        plain = without_event_time(left)
        own = left[self.left_time].role
        # the left time stays a time attribute; of windows all window columns do
        timed = [
            i == self.left_time or (own in WINDOW_ROLES and field.role in WINDOW_ROLES)
            for i, field in enumerate(left)
        ]
        shown = tuple(
            field if keep else without for field, keep, without in zip(left, timed, plain, strict=True)
        )
        return Schema(shown + without_event_time(right.nullable() if self.kind is JoinKind.LEFT else right))

    def text(self) -> str:
        left, right = self.left.schema, self.right.schema
        conditions = join_condition_text((left, right), self.left_keys, self.right_keys, self.residual)
        return (
            f"TemporalJoin {self.kind.value} on {conditions} as of {left[self.left_time].name}, "
            f"versions by {right[self.right_time].name}"
        )

    def operator_name(self) -> str:
        return f"{self.kind.value} temporal join"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> TemporalJoinFacts:
        inserts = tuple(map(derived.insert_only, self.inputs))
        return TemporalJoinFacts(inserts, self.slacks_us, derived.ttl_ms(self))

    def drops_late(self, facts: OperatorFacts) -> bool:
        return True

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        left, right = inputs
        keys, residual = digest_join_condition(
            inputs, (self.left_keys, self.right_keys), self.residual, texts
        )
        times = (left.columns[self.left_time], right.columns[self.right_time])
        ties = texts.ties(tuple(right.columns[i] for i in self.ties))
        head = ("temporal join", self.kind.value, left.rows, right.rows, residual)
        rows = hash_parts(*head, *times, *keys, "ties", *ties)
        return Digest(rows, mark_side("left", rows, left.columns) + mark_side("right", rows, right.columns))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # each left row has at most one version: the LEFT or INNER join multiplies nothing
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return inputs[0]

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return inputs[0]

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        # a row and the versions of its key meet in one subtask
        return by_keys(self.left_keys), by_keys(self.right_keys)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self if self.residual is None else self._changed(residual=rewrite(self.residual))

    @property
    def reevaluating_ports(self) -> tuple[int, ...]:
        # the residual is tested once per left row; retracting a version retracts no emitted row
        return (0,)

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        # a filter on versions would let an older version be valid instead of none
        return ({i: i for i in range(len(self.left.schema))}, {})

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        width = len(self.left.schema)
        reads = needed | columns_read([self.residual])
        left, of_left = pruner.narrow(
            self.left, {i for i in reads if i < width} | {*self.left_keys, self.left_time}
        )
        right, of_right = pruner.narrow(
            self.right,
            {i - width for i in reads if i >= width} | {*self.right_keys, self.right_time, *self.ties},
        )
        # ties must stay: they decide which of two versions of one time is valid
        moved = of_left | {width + old: len(left.schema) + new for old, new in of_right.items()}
        pruned = replace(
            self,
            left=left,
            right=right,
            left_keys=tuple(of_left[key] for key in self.left_keys),
            right_keys=tuple(of_right[key] for key in self.right_keys),
            left_time=of_left[self.left_time],
            right_time=of_right[self.right_time],
            ties=tuple(of_right[tie] for tie in self.ties),
            residual=None if self.residual is None else self.residual.remap(moved),
        )
        return pruned, moved

    def state_bound(self, facts: StateFacts) -> StateBound:
        keeps = (
            "rows of the left side until the watermark passes them, and per key the version in force and "
            "later ones"
        )
        # finite versions bound the state by their number
        if facts.finite(self.right):
            return StateBound(keeps)
        names = ", ".join(self.right.schema[key].name for key in self.right_keys)
        return StateBound(keeps, f"each distinct ({names}) of the right side keeps its last version for ever")

    def state_ttl_ms(self, facts: StateFacts) -> int:
        return 0 if facts.finite(self.right) else facts.default_ttl_ms

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)

    @property
    def pair_condition(self) -> Expression | None:
        return self.residual
