"""The snapshot join step by step: what waits until when, which changes count when, NULLs, idleness, TTL,
restored and rescaled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.join.snapshot_join import SnapshotJoinOperator
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.physical.operator_specs import AnyOperatorSpec
from tests.harness.operator_specs import snapshot_join_spec, with_facts, with_node
from tests.harness.operators import done
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    owners,
    restored,
    snapshots,
)

SIDE = Schema((Field("k", BIGINT), Field("id", BIGINT), Field("ts", TIMESTAMP, role=Role.EVENT_TIME)))
S = 1_000_000
SPEC = snapshot_join_spec(
    "j",
    "j",
    SIDE.concat(SIDE),
    SIDE,
    SIDE,
    JoinKind.LEFT,
    (0,),
    (0,),
    None,
    (),
    (True, False),
    build_time=2,
    loaded_us=10 * S,
)


def at(second: int | None) -> datetime | None:
    return None if second is None else datetime(1970, 1, 1) + timedelta(seconds=second)


@dataclass
class Timed(Collected):
    """An output that keeps times too."""

    times: list[int | None] = field(default_factory=list)

    def watermark(self, time_us: int) -> None:
        self.times.append(time_us)

    def idle(self) -> None:
        self.times.append(None)


class Run:
    """One operator at work."""

    def __init__(self, spec: AnyOperatorSpec = SPEC, now_ms: int = 0, **options: Any) -> None:
        self.context = context()
        self.context.clock.advance(now_ms)  # type: ignore[attr-defined]  # a manual clock
        self.operator = SnapshotJoinOperator(spec, JobOptions(**options))
        self.operator.open(self.context)
        self.out = Timed()

    def rows(self, *rows: tuple[Any, ...]) -> None:
        done(
            self.operator.on_batch(
                batch_of([((k, i, at(t)), 1) for k, i, t in rows], SIDE.to_arrow()), 0, self.out
            )
        )

    def table(self, *changes: Change) -> None:
        done(
            self.operator.on_batch(
                batch_of([((k, i, at(t)), w) for (k, i, t), w in changes], SIDE.to_arrow()), 1, self.out
            )
        )

    def tick(self, now_ms: int, wall_ms: int | None = None) -> None:
        self.context.clock.now_ms = now_ms  # type: ignore[attr-defined]  # a manual clock
        done(self.operator.on_processing_time(now_ms if wall_ms is None else wall_ms, self.out))

    def time(self, port: int, second: int | None) -> None:
        done(self.operator.on_port_time(port, None if second is None else second * S, self.out))

    def pairs(self) -> list[tuple[Any, Any]]:
        given = sorted(
            [(row[1], row[4]) for row, weight in self.out.changes() for _ in range(weight)], key=str
        )
        self.out.batches.clear()
        return given


def test_rows_and_their_time_wait_until_the_table_is_loaded() -> None:
    run = Run()
    run.table(((1, 101, 3), 1), ((2, 102, 11), 1))
    run.rows((1, 1, 5), (2, 2, 5), (None, 3, 5))
    run.time(0, 5)
    run.time(1, 9)
    assert run.pairs() == [] and run.out.times == []
    assert run.context.metrics.state_entries == 5
    run.time(1, 10)  # loaded: what is of 11 does not count yet
    assert run.pairs() == [(1, 101), (2, None), (3, None)]
    assert run.out.times == [5 * S]
    run.rows((2, 4, 6))
    assert run.pairs() == [(4, None)]
    run.time(1, 12)
    run.rows((2, 5, 7))
    assert run.pairs() == [(5, 102)], "rows that have gone on are never given anew"
    run.time(0, None)
    assert run.out.times == [5 * S, None]


def test_a_row_with_the_time_of_the_loading_is_loaded() -> None:
    """The row that moves the table's time to load_completed_time belongs to what waiting rows meet, and
    what comes at that time counts at once.
    """
    run = Run()
    run.rows((1, 1, 16), (2, 2, 17))
    run.table(((1, 101, 8), 1), ((2, 102, 9), 1), ((1, 103, 10), 1))
    run.time(1, 10)
    assert run.pairs() == [(1, 101), (1, 103), (2, 102)]
    run.table(((2, 104, 10), 1), ((2, 105, 11), 1))
    run.rows((2, 3, 18))
    assert run.pairs() == [(3, 102), (3, 104)]


def test_an_update_counts_whole_when_its_time_has_passed() -> None:
    run = Run()
    run.table(((1, 101, 3), 1))
    run.time(1, 10)
    run.table(((1, 101, 3), -1), ((1, 103, 12), 1))  # the old row carries its own time, which has passed
    run.rows((1, 1, 5))
    assert run.pairs() == [(1, 101)]
    run.time(1, 13)
    run.rows((1, 2, 5))
    assert run.pairs() == [(2, 103)]
    run.table(((1, 103, 12), -1))
    run.rows((1, 3, 5))
    assert run.pairs() == [(3, None)], "a deletion has the time of what it deletes"


def test_changes_without_a_time_count_at_once_and_without_a_key_never() -> None:
    run = Run()
    run.table(((1, 101, None), 1), ((None, 102, 3), 1))
    run.time(1, 10)
    run.rows((1, 1, 5), (None, 2, 5))
    assert run.pairs() == [(1, 101), (2, None)]
    run.table(((1, 104, 4), 1))
    run.rows((1, 3, 5))
    assert run.pairs() == [(3, 101), (3, 104)]


def test_the_end_of_the_table_is_when_it_is_loaded() -> None:
    run = Run()
    run.table(((1, 101, 99), 1))
    run.rows((1, 1, 5))
    run.time(0, 7)
    done(run.operator.on_port_end(1, run.out))
    assert run.pairs() == [(1, 101)] and run.out.times == [7 * S]
    run.rows((1, 2, 8))
    assert run.pairs() == [(2, 101)]
    done(run.operator.on_port_end(0, run.out))
    done(run.operator.on_watermark(MAX_WATERMARK_US, run.out))
    assert run.context.metrics.state_entries == 0


def test_rows_that_end_first_still_meet_the_table() -> None:
    run = Run()
    run.rows((1, 1, 5))
    done(run.operator.on_port_end(0, run.out))
    run.table(((1, 101, 3), 1))
    run.time(1, 10)
    assert run.pairs() == [(1, 101)]
    run.table(((1, 102, 30), 1))
    run.time(1, 40)
    assert run.context.metrics.state_entries == 0


def test_a_table_whose_time_stands_still_counts_as_loaded() -> None:
    run = Run(with_node(SPEC, idle_ms=1000))
    run.table(((1, 101, 3), 1))
    run.rows((1, 1, 5))
    run.tick(100)
    run.time(1, 4)
    for now_ms in (900, 1800):
        run.tick(now_ms)
    assert run.pairs() == []
    run.tick(1900)
    assert run.pairs() == [(1, 101)]
    assert not Run().operator.wants_ticks and run.operator.wants_ticks


def test_a_clock_that_is_set_is_no_time_that_stands_still() -> None:
    run = Run(with_node(SPEC, idle_ms=1000))
    run.table(((1, 101, 3), 1))
    run.rows((1, 1, 5))
    run.time(1, 4)
    run.tick(100)
    # an hour forward, and two back
    run.tick(200, wall_ms=3_600_000)
    assert run.pairs() == [], "the table is still being read"
    run.tick(1099, wall_ms=-3_600_000)
    assert run.pairs() == []
    run.tick(1100, wall_ms=-3_600_000)
    assert run.pairs() == [(1, 101)]


@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("Asia/Kolkata", 5.5)])
def test_without_a_time_it_is_the_start_of_the_job(zone: str, hours: float) -> None:
    run = Run(with_node(SPEC, loaded_us=None), now_ms=50_000, time_zone=zone)
    start = 50 + int(hours * 3600)
    run.rows((1, 1, 5))
    run.time(1, start - 1)
    assert run.pairs() == []
    saved = snapshots([run.operator])
    later = context()
    later.clock.advance(9_000_000)  # type: ignore[attr-defined]  # a manual clock
    run.operator = restored(
        SnapshotJoinOperator(with_node(SPEC, loaded_us=None), JobOptions(time_zone=zone)), later, saved
    )  # type: ignore[assignment]
    run.time(1, start)
    assert run.pairs() == [(1, None)], "the first start counts, not the one after a failure"


def test_rows_of_the_table_live_as_long_as_they_may() -> None:
    run = Run(with_facts(SPEC, ttl_ms=(0, 60_000)))
    run.table(((1, 101, 3), 1))
    run.time(1, 10)
    run.context.clock.advance(70_000)  # type: ignore[attr-defined]  # a manual clock
    done(run.operator.on_processing_time(70_000, run.out))
    run.rows((1, 1, 5))
    assert run.pairs() == [(1, None)]


@pytest.mark.parametrize("to", [1, 2, 3])
@pytest.mark.parametrize("loaded", [(True, True), (True, False), (False, False)])
def test_restored_and_rescaled(to: int, loaded: tuple[bool, bool]) -> None:
    """Subtasks that were not all done loading go on loading together; nothing is lost or given twice."""
    first = [SnapshotJoinOperator(SPEC, JobOptions()) for _ in range(2)]
    out, arrow = Timed(), SIDE.to_arrow()
    table = [((k, 100 + k, at(k)), 1) for k in range(8)] + [((k, 200 + k, at(20)), 1) for k in range(8)]

    def feed(operators: list[SnapshotJoinOperator], changes: list[Change], port: int) -> None:
        batch = batch_of(changes, arrow)
        owner = owners(batch.rows, (0,), len(operators))
        for index, operator in enumerate(operators):
            done(operator.on_batch(batch.take((owner == index).nonzero()[0]), port, out))

    for index, operator in enumerate(first):
        operator.open(context(index, 2))
    feed(first, table, 1)
    feed(first, [((k, k, at(5)), 1) for k in range(8)], 0)
    for operator, complete in zip(first, loaded, strict=True):
        done(operator.on_port_time(1, (10 if complete else 9) * S, out))
    saved = snapshots(list(first))
    again = [restored(SnapshotJoinOperator(SPEC, JobOptions()), context(i, to), saved) for i in range(to)]
    feed(again, [((k, 50 + k, at(6)), 1) for k in range(8)], 0)  # type: ignore[arg-type]
    for operator in again:
        done(operator.on_port_time(1, 10 * S, out))
    expected = sorted([(k, 100 + k) for k in range(8)] + [(50 + k, 100 + k) for k in range(8)])
    assert sorted((row[1], row[4]) for row, _ in out.changes()) == expected
    feed(again, [((1, 99, at(6)), 1)], 0)  # type: ignore[arg-type]
    for operator in again:
        done(operator.on_port_time(1, 21 * S, out))
    feed(again, [((1, 98, at(6)), 1)], 0)  # type: ignore[arg-type]
    assert sorted((row[1], row[4]) for row, _ in out.changes())[-3:] == [(98, 101), (98, 201), (99, 101)]
