"""The join settled by time against a naive reference: all kinds, rows taken back, NULLs, batch cuts,
restore and rescale; state that stays flat.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, DAY_TIME_INTERVAL, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.operators.join.interval_join import IntervalJoinOperator
from penstock.planner.expressions.nodes import Call, Column, Literal
from penstock.planner.logical.joins.interval_join import Deadline, IntervalSide, JoinTime
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.physical.operator_specs import AnyOperatorSpec
from tests.harness.length import examples
from tests.harness.operator_specs import join_spec
from tests.harness.operators import done
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    fold,
    owners,
    restored,
    snapshots,
)

SIDE = Schema((Field("k", BIGINT), Field("id", BIGINT), Field("ts", TIMESTAMP, role=Role.EVENT_TIME)))
S = 1_000_000
BEFORE, AFTER = 2, 5  # seconds: right.ts in [left.ts - BEFORE, left.ts + AFTER]
TIME = JoinTime(
    IntervalSide(2, Role.EVENT_TIME, (Deadline(2, AFTER * S),)),
    IntervalSide(2, Role.EVENT_TIME, (Deadline(2, BEFORE * S),)),
)


def _shifted(index: int, seconds: int) -> Call:
    by = Literal(DAY_TIME_INTERVAL, False, value=timedelta(seconds=seconds))
    return Call(TIMESTAMP, True, function="add", args=(Column(TIMESTAMP, True, index=index), by))


def _at_least(later: Any, earlier: Any) -> Call:
    return Call(BOOLEAN, True, function="greater_equal", args=(later, earlier))


CONDITION = Call(
    BOOLEAN,
    True,
    function="and",
    args=(
        _at_least(Column(TIMESTAMP, True, index=5), _shifted(2, -BEFORE)),
        _at_least(_shifted(2, AFTER), Column(TIMESTAMP, True, index=5)),
    ),
)


def spec(kind: JoinKind, insert_only: bool) -> AnyOperatorSpec:
    schema = SIDE if kind in (JoinKind.SEMI, JoinKind.ANTI) else SIDE.concat(SIDE)
    return join_spec(
        "join", "join", schema, SIDE, SIDE, kind, (0,), (0,), CONDITION, (), (insert_only, insert_only), TIME
    )


def at(second: int | None) -> datetime | None:
    return None if second is None else datetime(1970, 1, 1) + timedelta(seconds=second)


def seconds_of(row: tuple[Any, ...]) -> float | None:
    return None if row[2] is None else row[2].replace(tzinfo=UTC).timestamp()


def reference(kind: JoinKind, left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
    result: Counter[Any] = Counter()
    met: Counter[Any] = Counter()
    for a, n in left.items():
        found = 0
        for b, m in right.items():
            if a[0] is None or a[0] != b[0] or a[2] is None or b[2] is None:
                continue
            if seconds_of(a) - BEFORE <= seconds_of(b) <= seconds_of(a) + AFTER:
                found += m
                met[b] += n
                if kind not in (JoinKind.SEMI, JoinKind.ANTI):
                    result[a + b] += n * m
        if not found and kind in (JoinKind.LEFT, JoinKind.FULL):
            result[a + (None,) * 3] += n
        if (kind is JoinKind.SEMI and found) or (kind is JoinKind.ANTI and not found):
            result[a] += n
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        for b, m in right.items():
            if not met[b]:
                result[(None,) * 3 + b] += m
    return Counter({row: weight for row, weight in result.items() if weight})


@st.composite
def histories(draw: st.DrawFn, retract: bool) -> list[tuple[int, Change] | int]:
    """Changes of both ports and watermarks (seconds); every change is on time, and a row is taken back
    only while it is on time.
    """
    alive: tuple[list[Any], list[Any]] = ([], [])
    events: list[tuple[int, Change] | int] = []
    watermark = 0
    for number in range(draw(st.integers(0, 40))):
        port = draw(st.integers(0, 1))
        still = [row for row in alive[port] if seconds_of(row) is None or (seconds_of(row) or 0) >= watermark]
        choice = draw(st.integers(0, 5))
        if choice == 0:
            watermark += draw(st.integers(0, 4))
            events.append(watermark)
        elif choice == 1 and retract and still:
            row = draw(st.sampled_from(still))
            alive[port].remove(row)
            events.append((port, (row, -1)))
        else:
            second = draw(st.one_of(st.none(), st.integers(watermark, watermark + 8)))
            row = (draw(st.sampled_from([None, 1, 2])), number % 3, at(second))
            alive[port].append(row)
            events.append((port, (row, 1)))
    return events


@pytest.mark.parametrize("kind", list(JoinKind))
@pytest.mark.parametrize("retract", [False, True])
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(data=st.data())
def test_equals_reference(kind: JoinKind, retract: bool, data: st.DataObject) -> None:
    events = data.draw(histories(retract))
    restore_after, to = data.draw(st.integers(-1, len(events))), data.draw(st.sampled_from([1, 2, 3]))
    size = data.draw(st.sampled_from([1, 3, 50]))
    join = spec(kind, not retract)
    out = Collected()
    operators = [IntervalJoinOperator(join, JobOptions())]
    operators[0].open(context())
    place = 0
    while place < len(events):
        if restore_after >= 0 and place >= restore_after:
            restore_after, saved = -1, snapshots(list(operators))
            operators = [
                restored(IntervalJoinOperator(join, JobOptions()), context(i, to), saved) for i in range(to)
            ]  # type: ignore[misc]
        event = events[place]
        if isinstance(event, int):
            for operator in operators:
                done(operator.on_watermark(event * S, out))
            place += 1
            continue
        run = [event[1]]
        while len(run) < size and place + len(run) < len(events):
            following = events[place + len(run)]
            if isinstance(following, int) or following[0] != event[0]:
                break
            run.append(following[1])
        feed(operators, run, event[0], out)
        place += len(run)
    for operator in operators:
        done(operator.on_watermark(MAX_WATERMARK_US, out))
        assert operator._metrics.state_entries == 0
        assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())
    sides = [
        fold([event[1] for event in events if not isinstance(event, int) and event[0] == port])
        for port in (0, 1)
    ]
    assert fold(out.changes()) == reference(kind, *sides)
    if not retract:
        assert all(weight > 0 for _, weight in out.changes()), "time settles what is given"


@st.composite
def changes_in_disorder(draw: st.DrawFn) -> list[tuple[int, Change, int | None, int]]:
    """Changes of two splits for each port, as (port, change, the watermark of its split where it is behind
    it, the least watermark of all).
    """
    reached = {(port, split): 0 for port in (0, 1) for split in (0, 1)}
    alive: dict[tuple[int, int], list[Any]] = {place: [] for place in reached}
    events = []
    for number in range(draw(st.integers(0, 40))):
        place = draw(st.sampled_from(sorted(reached)))
        if alive[place] and draw(st.integers(0, 2)) == 0:
            row, weight = alive[place].pop(draw(st.integers(0, len(alive[place]) - 1))), -1
        else:
            second = max(0, reached[place] + draw(st.integers(-6, 8)))
            row, weight = (draw(st.sampled_from([None, 1, 2])), 2 * (number % 3) + place[1], at(second)), 1
            alive[place].append(row)
        second = int(seconds_of(row) or 0)
        events.append(
            (
                place[0],
                (row, weight),
                reached[place] if second < reached[place] else None,
                min(reached.values()),
            )
        )
        reached[place] = max(reached[place], second - draw(st.integers(0, 3)))
    return events


@pytest.mark.parametrize("kind", list(JoinKind))
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(data=st.data())
def test_a_change_of_an_input_that_is_retracted_counts_whole_or_not_at_all(
    kind: JoinKind, data: st.DataObject
) -> None:
    """Late is what is behind its split's watermark, wherever time stands here, however batches are cut;
    what retracts a late row is late as well.
    """
    events = data.draw(changes_in_disorder())
    on_time = [(port, change) for port, change, behind, _ in events if behind is None]
    sides = [fold([change for side, change in on_time if side == port]) for port in (0, 1)]
    assert all(weight >= 0 for side in sides for weight in side.values()), (
        "no row is retracted that was dropped"
    )
    lag, size = data.draw(st.sampled_from([0, 2, 100])), data.draw(st.sampled_from([1, 3, 50]))
    operator, out, place, time = IntervalJoinOperator(spec(kind, False), JobOptions()), Collected(), 0, 0
    operator.open(context())
    while place < len(events):
        port, _, _, least = events[place]
        run = [event for event in events[place : place + size] if event[0] == port]
        run = run if run == events[place : place + len(run)] else [events[place]]
        if least - lag > time:
            time = least - lag
            done(operator.on_watermark(time * S, out))
        batch = batch_of([change for _, change, _, _ in run], SIDE.to_arrow())
        behind = np.array([MIN_WATERMARK_US if event[2] is None else event[2] * S for event in run])
        weights = np.array([change[1] for _, change, _, _ in run])
        done(
            operator.on_batch(
                Batch(batch.rows, weights, behind if (behind > MIN_WATERMARK_US).any() else None), port, out
            )
        )
        place += len(run)
    done(operator.on_watermark(MAX_WATERMARK_US, out))
    assert fold(out.changes()) == reference(kind, *sides)
    assert operator._metrics.late_rows == len(events) - len(on_time)
    assert operator._metrics.state_entries == 0


def feed(operators: list[IntervalJoinOperator], changes: list[Change], port: int, out: Collected) -> None:
    batch = batch_of(changes, SIDE.to_arrow())
    owner = owners(batch.rows, (0,), len(operators))
    for index, operator in enumerate(operators):
        mine = np.flatnonzero(owner == index)
        if mine.size:
            done(operator.on_batch(batch.take(mine), port, out))


def test_rows_held_stay_few_over_a_long_stream() -> None:
    operator = IntervalJoinOperator(spec(JoinKind.FULL, True), JobOptions())
    operator.open(context())
    out = Collected()
    held = []
    for second in range(300):
        for port in (0, 1):
            rows = [((number % 5, number, at(second)), 1) for number in range(20)]
            done(operator.on_batch(batch_of(rows, SIDE.to_arrow()), port, out))
        done(operator.on_watermark(second * S, out))
        held.append(operator._metrics.state_entries)
    assert max(held) == held[20] == 20 * (AFTER + 1) + 20 * (BEFORE + 1)


def test_late_rows_are_dropped_and_the_watermark_is_held_back() -> None:
    operator = IntervalJoinOperator(spec(JoinKind.LEFT, True), JobOptions())
    operator.open(context())
    out = Collected()
    batch = batch_of([((1, 1, at(10 - AFTER - BEFORE - 1)), 1), ((1, 2, at(10)), 1)], SIDE.to_arrow())
    done(operator.on_batch(type(batch)(batch.rows, None, np.array([10 * S, 10 * S])), 0, out))
    assert operator._metrics.late_rows == 1, (
        "its last partner, which may have waited for rows BEFORE it, is gone"
    )
    done(operator.on_watermark((10 + AFTER) * S, out))
    assert not out.changes(), "a match may still come"
    assert operator.passes_on((10 + AFTER) * S) == 10 * S
    done(operator.on_watermark((10 + AFTER) * S + 1, out))
    assert out.changes() == [((1, 2, at(10), None, None, None), 1)]


def late(rows: list[tuple[Any, ...]], watermark: int) -> Batch:
    batch = batch_of([(row, 1) for row in rows], SIDE.to_arrow())
    return Batch(batch.rows, None, np.full(batch.num_rows, watermark * S))


@pytest.mark.parametrize("lagging", [False, True])
def test_a_row_behind_the_watermark_meets_what_its_bounds_still_allow(lagging: bool) -> None:
    """Whether the operator's own time has come as far as that of the row's split, or not yet, and so more
    rows are still there.
    """
    operator = IntervalJoinOperator(spec(JoinKind.FULL, True), JobOptions())
    operator.open(context())
    out = Collected()
    done(operator.on_batch(batch_of([((1, 11, at(9)), 1), ((1, 12, at(11)), 1)], SIDE.to_arrow()), 1, out))
    if not lagging:
        done(operator.on_watermark(12 * S, out))
        assert out.changes() == [((None, None, None, 1, 11, at(9)), 1)]
    done(operator.on_batch(late([(1, 1, at(8)), (1, 2, at(4)), (1, 3, at(6))], 12), 0, out))
    assert operator._metrics.late_rows == 1, "of 4: its last partner, of 9, waited until 11"
    done(operator.on_batch(batch_of([((1, 13, at(13)), 1)], SIDE.to_arrow()), 1, out))
    done(operator.on_watermark(MAX_WATERMARK_US, out))
    assert out.folded() == Counter(
        {
            (1, 1, at(8), 1, 12, at(11)): 1,
            (1, 1, at(8), 1, 13, at(13)): 1,
            (1, 3, at(6), 1, 12, at(11)): 1,
            (None, None, None, 1, 11, at(9)): 1,
        }
    ), "what was given alone, or would have been, meets nobody later"


def test_what_a_late_row_was_behind_is_in_a_checkpoint() -> None:
    operator = IntervalJoinOperator(spec(JoinKind.INNER, True), JobOptions())
    operator.open(context())
    done(operator.on_batch(late([(1, 1, at(8))], 12), 0, Collected()))
    again = restored(
        IntervalJoinOperator(spec(JoinKind.INNER, True), JobOptions()), context(), snapshots([operator])
    )
    out = Collected()
    again.on_batch(batch_of([((1, 11, at(9)), 1), ((1, 12, at(11)), 1)], SIDE.to_arrow()), 1, out)
    assert [row[4] for row, _ in out.changes()] == [12], "11 was gone when the row came"
    (given,) = out.batches
    assert list(given.behind) == [(12 - max(BEFORE, AFTER)) * S], "windows above know it for late"
