"""OVER against a naive reference: in time and under changes; frames, ties, batch cuts, retractions,
restore, rescale, lateness.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.row_pieces import TooLarge
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.over.over_frames import OverFrames
from penstock.planner.expressions.nodes import AggregateCall, Call, Literal, SortKey
from penstock.planner.logical.over import Frame, FrameExclusion, FrameUnit
from penstock.planner.logical.windows import AttachedWindow
from penstock.planner.physical.operator_specs import AnyOperatorSpec, InputSchema
from tests.harness.length import examples
from tests.harness.operator_specs import over_spec, with_node
from tests.unit.engine.operators.changelogs import Change, fold
from tests.unit.engine.operators.partition_runs import ROW, SCHEMA, START, Subtasks, column, micros, over

SECOND = 1_000_000
BY_TIME = (SortKey(column(1)),)
X, S = column(2), column(3)


def neighbour(name: str, rows: int, default: int | None) -> AggregateCall:
    return AggregateCall(
        name, (X, Literal(BIGINT, False, value=rows), Literal(BIGINT, True, value=default)), BIGINT
    )


def nth(number: int) -> AggregateCall:
    return AggregateCall("nth_value", (X, Literal(BIGINT, False, value=number)), BIGINT)


def without_nulls(call: AggregateCall) -> AggregateCall:
    return replace(call, filter=Call(BOOLEAN, False, function="is_not_null", args=call.args[:1]))


RANKED = [AggregateCall(name, (), INT, False) for name in ("row_number", "rank", "dense_rank")]
SETTLED = [
    *RANKED,
    neighbour("lag", 1, None),
    neighbour("lag", 3, 7),
    AggregateCall("first_value", (X,), BIGINT),
    AggregateCall("last_value", (S,), STRING),
    AggregateCall("count", (), BIGINT, False),
    AggregateCall("sum", (X,), BIGINT),
    AggregateCall("avg", (X,), DOUBLE),
    AggregateCall("min", (X,), BIGINT),
    AggregateCall("max", (S,), STRING),
    AggregateCall("mode", (X,), BIGINT),
    AggregateCall("listagg", (S, Literal(STRING, False, value="-")), STRING),
    AggregateCall("percentile_approx", (X, Literal(DOUBLE, False, value=0.5)), BIGINT),
    AggregateCall("max_by", (S, X), STRING),
    nth(2),
    nth(-2),
    without_nulls(neighbour("lag", 2, 7)),
    *(without_nulls(AggregateCall(name, (X,), BIGINT)) for name in ("first_value", "last_value")),
    without_nulls(nth(2)),
    without_nulls(nth(-3)),
]


@st.composite
def frames(draw: st.DrawFn, ahead: bool) -> Frame:
    unit = draw(st.sampled_from(list(FrameUnit)))
    start = draw(st.sampled_from([None, -3, -1, 0, *([1] if ahead else [])]))
    end = draw(st.sampled_from([0, -1, *([1, 2, None] if ahead else [])]))
    if start is not None and end is not None and start > end:
        start = end
    # in time a frame from the first row ends with its row
    if not ahead and start is None:
        end = 0
    size = SECOND if unit is FrameUnit.RANGE else 1
    exclude = draw(st.sampled_from([FrameExclusion.NO_OTHERS, *FrameExclusion]))
    return Frame(unit, None if start is None else start * size, None if end is None else end * size, exclude)


@st.composite
def specs(draw: st.DrawFn, in_time: bool, insert_only: bool) -> AnyOperatorSpec:
    order = BY_TIME if in_time else draw(st.sampled_from([BY_TIME, (SortKey(column(1), True, False),)]))
    frame = draw(frames(ahead=not in_time))
    lead = neighbour("lead", 2, 9)
    choice = SETTLED if in_time else [*SETTLED, lead, without_nulls(lead)]
    calls = tuple(draw(st.lists(st.sampled_from(choice), min_size=1, max_size=4)))
    partition = draw(st.sampled_from([(0,), (), (0, 3)]))
    names = tuple(f"v{i}" for i in range(len(calls)))
    schema = Schema(
        (*SCHEMA.fields, *(Field(name, call.type) for name, call in zip(names, calls, strict=True)))
    )
    return over_spec("o", "over", schema, SCHEMA, partition, order, frame, calls, None, in_time, insert_only)


def subtasks(spec: AnyOperatorSpec) -> Subtasks:
    return Subtasks(lambda: build_operator(spec, JobOptions()), spec.node.partition)


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(data=st.data())
def test_in_time_every_row_gets_its_values_once(data: st.DataObject) -> None:
    spec = data.draw(specs(True, True))
    run = subtasks(spec)
    rows = sorted(
        data.draw(st.lists(ROW, max_size=40)),
        key=lambda row: row[1] + timedelta(seconds=data.draw(st.integers(0, 2))),
    )
    done, time = 0, START
    while done < len(rows):
        size = data.draw(st.sampled_from([1, 3, 10]))
        run.feed([(row, 1) for row in rows[done : done + size]])
        done += size
        time = max([time, *([min(row[1] for row in rows[done:])] if done < len(rows) else [])])
        if data.draw(st.booleans()):
            run.watermark(micros(time))
        if data.draw(st.sampled_from([False, False, True])):
            run.rescale(data.draw(st.integers(1, 3)))
            assert all(row[1] < time for row in run.out.folded())
    run.watermark(MAX_WATERMARK_US)
    assert all(weight == 1 for _, weight in run.out.changes())
    expected = over(
        fold([(row, 1) for row in rows]),
        spec.node.partition,
        spec.node.order,
        spec.node.frame,
        spec.node.calls,
    )
    assert run.out.folded() == expected


LONG_AGO = (
    *(without_nulls(AggregateCall(name, (X,), BIGINT)) for name in ("first_value", "last_value")),
    *(
        AggregateCall("first_value", (X,), BIGINT),
        nth(2),
        nth(-2),
        without_nulls(nth(2)),
        without_nulls(nth(-3)),
    ),
    *(neighbour("lag", 3, 7), without_nulls(neighbour("lag", 2, 7))),
)


def in_time_with_a_watermark_a_row(frame: Frame) -> tuple[Counter[object], Counter[object]]:
    """Return what is emitted of rows that pass one at a time, moved to other subtasks on the way, and what
    should be.
    """
    schema = Schema((*SCHEMA.fields, *(Field(f"v{i}", BIGINT) for i in range(len(LONG_AGO)))))
    run = subtasks(over_spec("o", "over", schema, SCHEMA, (0,), BY_TIME, frame, LONG_AGO, None, True, True))
    values = [None, 1, None, None, 5, -2, None, None, None, 1, None, 5]
    rows = [(1 + i % 2, START + timedelta(seconds=i // 3), values[i * 5 % 12], "a") for i in range(36)]
    for i, row in enumerate(rows):
        run.feed([(row, 1)])
        run.watermark(micros(row[1]) - 1)
        if i % 12 == 7:
            run.rescale(1 + i % 3)
    run.watermark(MAX_WATERMARK_US)
    return run.out.folded(), over(fold([(row, 1) for row in rows]), (0,), BY_TIME, frame, LONG_AGO)


@pytest.mark.parametrize(
    "frame",
    [
        Frame(FrameUnit.RANGE, None, 0),
        Frame(FrameUnit.ROWS, None, 0, FrameExclusion.CURRENT_ROW),
        Frame(FrameUnit.GROUPS, -2, -1),
    ],
    ids=str,
)
def test_in_time_rows_of_long_ago_stay(frame: Frame, monkeypatch: pytest.MonkeyPatch) -> None:
    found, expected = in_time_with_a_watermark_a_row(frame)
    assert found == expected
    # a state that forgets them is found
    monkeypatch.setattr(OverFrames, "retained", lambda _, part, *call: np.zeros(part.rows.num_rows, np.bool_))
    found, expected = in_time_with_a_watermark_a_row(frame)
    assert found != expected


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(data=st.data())
def test_under_changes_the_values_follow(data: st.DataObject) -> None:
    retract = data.draw(st.booleans())
    spec = data.draw(specs(False, not retract))
    run = subtasks(spec)
    alive: list[tuple[object, ...]] = []
    changes: list[Change] = []
    for _ in range(data.draw(st.integers(0, 25))):
        if retract and alive and data.draw(st.booleans()):
            changes.append((alive.pop(data.draw(st.integers(0, len(alive) - 1))), -1))
        else:
            alive.append(data.draw(ROW))
            changes.append((alive[-1], 1))
    done = 0
    while done < len(changes):
        size = data.draw(st.sampled_from([1, 4, 10]))
        run.feed(changes[done : done + size])
        done += size
        expected = over(
            fold(changes[:done]), spec.node.partition, spec.node.order, spec.node.frame, spec.node.calls
        )
        assert run.out.folded() == expected
        if data.draw(st.sampled_from([False, False, True])):
            run.rescale(data.draw(st.integers(1, 3)))
    if retract:
        run.feed([(row, -1) for row in alive]) if alive else None
        assert not run.out.folded() and not run.kept()


def in_time(frame: Frame, *calls: AggregateCall) -> AnyOperatorSpec:
    schema = Schema((*SCHEMA.fields, *(Field(f"v{i}", call.type) for i, call in enumerate(calls))))
    return over_spec("o", "over", schema, SCHEMA, (0,), BY_TIME, frame, calls, None, True, True)


def at(second: int, key: int = 1) -> tuple[object, ...]:
    return key, START + timedelta(seconds=second), 1, "a"


def test_what_no_distance_reaches_is_let_go() -> None:
    run = subtasks(in_time(Frame(FrameUnit.RANGE, -2 * SECOND, 0), AggregateCall("count", (), BIGINT, False)))
    run.feed([(at(second, second % 5), 1) for second in range(100)])
    run.watermark(micros(START) + 50 * SECOND)
    assert run.kept() == 50 + 2
    run.watermark(MAX_WATERMARK_US)
    assert run.kept() == 0 and len(run.out.changes()) == 100


def test_totals_are_all_that_stays_of_a_running_sum() -> None:
    run = subtasks(in_time(Frame(), AggregateCall("sum", (X,), BIGINT), RANKED[0]))
    run.feed([(at(second, second % 5), 1) for second in range(100)])
    run.watermark(MAX_WATERMARK_US)
    assert run.kept() == 5
    assert max(row[-1] for row in run.out.folded()) == 20


def test_late_rows_and_rows_without_a_time_are_dropped_and_counted() -> None:
    run = subtasks(in_time(Frame(), RANKED[0]))
    run.feed([(at(5), 1), ((1, None, 1, "a"), 1)])
    run.feed([(at(3), 1)], behind=micros(START) + 4 * SECOND)
    run.watermark(micros(START) + 6 * SECOND)
    run.feed([(at(5), 1), (at(6), 1)])
    run.watermark(MAX_WATERMARK_US)
    assert sorted(row[-1] for row in run.out.folded()) == [1, 2]


def test_rows_of_a_window_pass_when_its_end_is_passed() -> None:
    """window_time is a millisecond before the end, and the window's rows come only when the watermark has
    reached the end.
    """
    spec = in_time(Frame(), RANKED[0])
    fields = list(SCHEMA.fields)
    fields[1] = replace(fields[1], role=Role.WINDOW_TIME)
    run = subtasks(with_node(spec, input=InputSchema(Schema(tuple(fields)))))
    end = START + timedelta(seconds=10)
    run.watermark(micros(end) - 500)
    run.feed([((1, end - timedelta(milliseconds=1), 1, "a"), 1)])
    run.watermark(micros(end) - 1)
    assert not run.out.changes()
    run.watermark(micros(end))
    assert len(run.out.changes()) == 1


def test_partitions_within_windows_are_forgotten_when_their_window_ends() -> None:
    """The time column stands for the window's end too; the totals of a window go with it, a restored one's
    as well.
    """
    spec = with_node(in_time(Frame(), RANKED[0]), partition=(0, 1), window=AttachedWindow(1, 1))
    run = subtasks(spec)
    run.feed([(at(second), 1) for second in range(10)])
    run.watermark(micros(START) + 5 * SECOND)
    assert run.kept() == 5
    run.feed([(at(5), 1), (at(9), 1)])
    run.rescale(2)
    run.watermark(MAX_WATERMARK_US)
    assert run.kept() == 0 and sorted(row[-1] for row in run.out.folded()) == [1] * 10 + [2, 2]


def test_a_row_that_is_there_too_often_to_be_numbered_is_refused() -> None:
    call = AggregateCall("row_number", (), BIGINT, False)
    schema = Schema((*SCHEMA.fields, Field("v0", call.type)))
    spec = over_spec("o", "over", schema, SCHEMA, (0,), BY_TIME, Frame(), (call,), None, False, False)
    run = subtasks(spec)
    run.feed([(at(1), 1_000)])
    assert sum(run.out.folded().values()) == 1_000
    with pytest.raises(TooLarge, match="bytes of rows are wanted at once"):
        run.feed([(at(2), 10**12)])
