"""The snapshot join in the logical plan. A table is loaded up to a point in time; then each row is joined
with its current contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema, without_event_time
from penstock.planner.logical.joins.join import BinaryJoin, Join, JoinKind
from penstock.planner.logical.node_digest import Digest, hash_parts
from penstock.planner.logical.node_text import duration_text
from penstock.planner.logical.plan import StateBound, StateFacts
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class SnapshotJoin(BinaryJoin):
    """``left JOIN LATERAL SNAPSHOT(right)``, INNER or LEFT. Left rows are buffered until the right side is
    loaded; each is emitted once.

    A change of the right side applies when its own watermark has reached its ``build_time``. Loading ends
    when that watermark reaches ``loaded_us``, was absent for ``idle_ms``, or the input ends. ``loaded_us`` is
    in microseconds; None is the moment of the job's first start.

    ``ttl_ms[1]`` is the time to live of right rows. Event time follows the left side alone, and stops until
    the right one is loaded.
    """

    build_time: int = field(kw_only=True)
    loaded_us: int | None = field(default=None, kw_only=True)
    idle_ms: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(self.kind in (JoinKind.INNER, JoinKind.LEFT), "a snapshot join that is neither inner nor left")

    @property
    def goes_by_time(self) -> bool:
        return True

    @cached_property
    def schema(self) -> Schema:
        # event time follows the left side, so the left time attribute stays
        right = self.right.schema.nullable() if self.kind is JoinKind.LEFT else self.right.schema
        return Schema(tuple(self.left.schema) + without_event_time(right))

    @property
    def timing(self) -> str:
        return "Snapshot"

    def loading_text(self) -> str:
        time = self.right.schema[self.build_time].name
        until = "the job's start"
        if self.loaded_us is not None:
            # integer arithmetic: fromtimestamp would use the machine's zone
            until = str(datetime(1970, 1, 1) + timedelta(microseconds=self.loaded_us))
        idle = "" if self.idle_ms is None else f" or is idle for {duration_text(self.idle_ms * 1000)}"
        return f", the right side loaded until {time} reaches {until}{idle}"

    def timing_digest(self, inputs: tuple[Digest, ...]) -> str:
        return hash_parts(
            # another end of loading joins other rows
            "snapshot",
            inputs[1].columns[self.build_time],
            str(self.loaded_us),
            str(self.idle_ms),
        )

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        # a change of the table revises no row that was joined before
        return inputs[0]

    def time_columns(self) -> tuple[frozenset[int], frozenset[int]]:
        # build_time decides when a change applies, though no condition reads it
        return frozenset(), frozenset({self.build_time})

    def moved_times(self, left: Mapping[int, int], right: Mapping[int, int]) -> dict[str, Any]:
        return {"build_time": right[self.build_time]}

    def loaded_ports(self, facts: StateFacts) -> tuple[int, ...]:
        """None: the right side is loaded up to a point in time, not to its end."""
        return ()

    def state_bound(self, facts: StateFacts) -> StateBound:
        keeps = "the right side as it is, and rows of the left side until that is loaded"
        ttl_ms = self.side_ttl_ms(facts, 1)
        if ttl_ms:
            return StateBound(keeps, None, duration_text(ttl_ms * 1000))
        # without a time to live only retractions free rows of the right side
        why = "rows of the right side are kept until they are retracted; set state_ttl"
        return StateBound(keeps, None if facts.finite(self.right) else why)

    def refuse_updates(self, port: int) -> PenstockError | None:
        # the table may change: that is what it is for
        if port == 1:
            return None
        return PenstockError(
            "SQL-1323",
            "LATERAL SNAPSHOT needs an append-only left side, but it retracts rows: by then the "
            "table may have another row",
            hint="join before the rows are grouped or joined, or window them, or write EMIT "
            "FINAL; or join the table itself: JOIN t ON ..",
            sqlstate="0A000",
        )


def as_snapshot_join(join: Join, build_time: int, loaded_us: int | None, idle_ms: int | None) -> SnapshotJoin:
    """Return a join as a snapshot join with this end of loading."""
    sides = join.left, join.right, join.kind, join.left_keys, join.right_keys, join.residual, join.ttl_ms
    return SnapshotJoin(
        *sides, build_time=build_time, loaded_us=loaded_us, idle_ms=idle_ms, subtasks=join.subtasks
    )
