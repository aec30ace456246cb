"""The temporal join against a naive reference: deletions, rows taken back, NULLs, ties, batch cuts,
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
from penstock.catalog.types import BIGINT, BOOLEAN, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.join.temporal_join import TemporalJoinOperator
from penstock.planner.expressions.nodes import Call, Column
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.physical.operator_specs import AnyOperatorSpec
from tests.harness.layered import checkpoint
from tests.harness.length import examples
from tests.harness.operator_specs import temporal_join_spec
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
UNLIKE = Call(
    BOOLEAN, True, function="not_equal", args=(Column(BIGINT, True, index=1), Column(BIGINT, True, index=4))
)


def spec(kind: JoinKind, residual: bool, insert_only: bool) -> AnyOperatorSpec:
    condition = UNLIKE if residual else None
    both = (insert_only, insert_only)
    return temporal_join_spec(
        "join",
        "join",
        SIDE.concat(SIDE),
        SIDE,
        SIDE,
        kind,
        (0,),
        (0,),
        (2, 2),
        (0, 1, 2),
        (0, 0),
        condition,
        both,
    )


def at(second: int | None) -> datetime | None:
    return None if second is None else datetime(1970, 1, 1) + timedelta(seconds=second)


def seconds_of(row: tuple[Any, ...]) -> float:
    return float("inf") if row[2] is None else row[2].replace(tzinfo=UTC).timestamp()


def reference(kind: JoinKind, residual: bool, left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
    result: Counter[Any] = Counter()
    for a, n in left.items():
        events = [
            (b[2], w > 0, b)
            for b, w in right.items()
            if a[0] is not None and b[0] == a[0] and a[2] and b[2] and b[2] <= a[2]
        ]
        version = None
        if events:
            latest = max(time for time, _, _ in events)
            starting = sorted(b[1] for time, begins, b in events if time == latest and begins)
            version = (a[0], starting[0], latest) if starting else None
        if version is not None and residual and a[1] == version[1]:
            version = None
        if version is not None or kind is JoinKind.LEFT:
            result[a + (version or (None,) * 3)] += n
    return Counter({row: weight for row, weight in result.items() if weight})


@st.composite
def histories(draw: st.DrawFn, retract: bool) -> list[tuple[int, Change] | int]:
    """Changes of both ports and watermarks (seconds), all on time; with ``retract`` rows are taken back,
    and versions ended by rows never given.
    """
    alive: tuple[list[Any], list[Any]] = ([], [])
    events: list[tuple[int, Change] | int] = []
    watermark = 0
    for number in range(draw(st.integers(0, 40))):
        port = draw(st.integers(0, 1))
        still = [row for row in alive[port] if seconds_of(row) >= watermark]
        choice = draw(st.integers(0, 6))
        if choice <= 1:
            watermark += draw(st.integers(0, 4))
            events.append(watermark)
        elif choice == 2 and retract and still:
            row = draw(st.sampled_from(still))
            alive[port].remove(row)
            events.append((port, (row, -1)))
        else:
            second = draw(st.one_of(st.none(), st.integers(watermark, watermark + 6)))
            ends = retract and port == 1 and choice == 3
            row = (draw(st.sampled_from([None, 1, 2])), 100 + number if ends else number % 3, at(second))
            if not ends:
                alive[port].append(row)
            events.append((port, (row, -1 if ends else 1)))
    return events


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT])
@pytest.mark.parametrize("retract", [False, True])
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(data=st.data())
def test_equals_reference(kind: JoinKind, retract: bool, data: st.DataObject) -> None:
    events = data.draw(histories(retract))
    restore_after, to = data.draw(st.integers(-1, len(events))), data.draw(st.sampled_from([1, 2, 3]))
    size, residual = data.draw(st.sampled_from([1, 3, 50])), data.draw(st.booleans())
    join = spec(kind, residual, not retract)
    out = Collected()
    operators = [TemporalJoinOperator(join, JobOptions())]
    operators[0].open(context())
    place = 0
    while place < len(events):
        if restore_after >= 0 and place >= restore_after:
            restore_after, saved = -1, snapshots(list(operators))
            operators = [
                restored(TemporalJoinOperator(join, JobOptions()), context(i, to), saved) for i in range(to)
            ]  # type: ignore[misc]
        event = events[place]
        if isinstance(event, int):
            for operator in operators:
                operator.on_watermark(event * S, out)
                checkpoint(operator)
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
        operator.on_watermark(MAX_WATERMARK_US, out)
        assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())
    sides = [
        fold([event[1] for event in events if not isinstance(event, int) and event[0] == port])
        for port in (0, 1)
    ]
    assert fold(out.changes()) == reference(kind, residual, *sides)


def feed(operators: list[TemporalJoinOperator], changes: list[Change], port: int, out: Collected) -> None:
    batch = batch_of(changes, SIDE.to_arrow())
    owner = owners(batch.rows, (0,), len(operators))
    for index, operator in enumerate(operators):
        mine = np.flatnonzero(owner == index)
        if mine.size:
            operator.on_batch(batch.take(mine), port, out)


def test_rows_held_stay_few_over_a_long_stream() -> None:
    operator = TemporalJoinOperator(spec(JoinKind.LEFT, False, True), JobOptions())
    at_work = context()
    operator.open(at_work)
    out = Collected()
    held = []
    for second in range(300):
        for port in (0, 1):
            operator.on_batch(
                batch_of([((number % 5, number, at(second)), 1) for number in range(20)], SIDE.to_arrow()),
                port,
                out,
            )
        operator.on_watermark(second * S, out)
        held.append(at_work.metrics.state_entries)
    assert max(held) == held[20] == 20 + 20 + 5
    assert len(out.changes()) == 299 * 20


def test_versions_of_many_keys_far_apart_in_time() -> None:
    join = spec(JoinKind.LEFT, False, True)
    operator = TemporalJoinOperator(join, JobOptions())
    operator.open(context())
    out = Collected()
    day = timedelta(days=1)
    versions = [
        (key, number, datetime(1, 1, 2) + day * ((key * 7919 + number * 99_991) % 3_600_000))
        for key in range(60)
        for number in range(9)
    ]
    asking = [
        (key, number, datetime(1, 1, 2) + day * (key * 104_729 % 3_600_000))
        for key in range(61)
        for number in range(2)
    ]
    operator.on_batch(batch_of([(row, 1) for row in versions], SIDE.to_arrow()), 1, out)
    operator.on_batch(batch_of([(row, 1) for row in asking], SIDE.to_arrow()), 0, out)
    operator.on_watermark(MAX_WATERMARK_US, out)
    assert fold(out.changes()) == reference(JoinKind.LEFT, False, Counter(asking), Counter(versions))
