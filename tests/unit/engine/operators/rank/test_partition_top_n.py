"""Top-N per partition against a naive reference: ranks, ties, retractions, batch cuts, restore, rescale;
and within windows.
"""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import INT
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.factory import build_operator
from penstock.planner.expressions.nodes import AggregateCall, SortKey
from penstock.planner.logical.over import RUNNING
from penstock.planner.logical.windows import AttachedWindow
from penstock.planner.physical.operator_specs import AnyOperatorSpec
from tests.harness.length import examples
from tests.harness.operator_specs import partition_top_spec
from tests.unit.engine.operators.changelogs import Change, fold, listed
from tests.unit.engine.operators.partition_runs import (
    ROW,
    SCHEMA,
    START,
    Rows,
    Subtasks,
    column,
    micros,
    over,
)

KEY = st.builds(
    lambda index, descending, nulls: SortKey(column(index), descending, nulls),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)


@st.composite
def specs(draw: st.DrawFn, insert_only: bool, window: AttachedWindow | None = None) -> AnyOperatorSpec:
    order = tuple(draw(st.lists(KEY, min_size=1, max_size=2)))
    rank, limit, shows = (
        draw(st.sampled_from(["row_number", "rank", "dense_rank"])),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
    )
    partition = (1,) if window is not None else draw(st.sampled_from([(0,), (), (0, 3)]))
    schema = Schema((*SCHEMA.fields, Field("r", INT, False))) if shows else SCHEMA
    return partition_top_spec(
        "t", "top", schema, SCHEMA, partition, order, rank, limit, shows, window, insert_only
    )


def expected(rows: Rows, spec: AnyOperatorSpec) -> Rows:
    found: Rows = Rows()
    for row, count in over(
        rows, spec.node.partition, spec.node.order, RUNNING, (AggregateCall(spec.node.rank, (), INT, False),)
    ).items():
        if row[-1] <= spec.node.limit:
            found[row if spec.node.shows_rank else row[:-1]] += count
    return found


def subtasks(spec: AnyOperatorSpec) -> Subtasks:
    return Subtasks(lambda: build_operator(spec, JobOptions()), spec.node.partition)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(data=st.data())
def test_first_rows_are_kept_up_to_date(data: st.DataObject) -> None:
    retract = data.draw(st.booleans())
    spec = data.draw(specs(not retract))
    run = subtasks(spec)
    alive: list[tuple[object, ...]] = []
    changes: list[Change] = []
    for _ in range(data.draw(st.integers(0, 40))):
        if retract and alive and data.draw(st.booleans()):
            changes.append((alive.pop(data.draw(st.integers(0, len(alive) - 1))), -1))
        else:
            alive.append(data.draw(ROW))
            changes.append((alive[-1], 1))
    done = 0
    while done < len(changes):
        size = data.draw(st.sampled_from([1, 4, 20]))
        given = len(run.out.batches)
        run.feed(changes[done : done + size])
        done += size
        assert run.out.folded() == expected(fold(changes[:done]), spec)
        for batch in run.out.batches[given:]:
            signs = {(row, weight > 0) for row, weight in listed(batch)}
            assert len(signs) == len({row for row, _ in signs}), "a row is given and taken back in one batch"
        if data.draw(st.sampled_from([False, False, True])):
            run.rescale(data.draw(st.integers(1, 3)))
    if retract and alive:
        run.feed([(row, -1) for row in alive])
        assert not run.out.folded() and not run.kept()


def test_only_what_can_be_shown_is_kept_of_rows_that_stay() -> None:
    spec = partition_top_spec(
        "t",
        "top",
        SCHEMA,
        SCHEMA,
        (0,),
        (SortKey(column(1), True, False),),
        "row_number",
        1,
        False,
        None,
        True,
    )
    run = subtasks(spec)
    for second in range(100):
        run.feed([((second % 3, START + timedelta(seconds=second), 1, "a"), 1)])
    assert run.kept() == 3
    assert sorted(row[1].second for row in run.out.folded()) == [37, 38, 39]


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(data=st.data())
def test_within_windows_first_rows_come_once_when_the_window_closes(data: st.DataObject) -> None:
    """The time column stands for the window's end, so a partition is a window."""
    spec = data.draw(specs(True, AttachedWindow(1, 1)))
    run = subtasks(spec)
    rows = sorted(data.draw(st.lists(ROW, max_size=40)), key=lambda row: row[1])
    done = 0
    while done < len(rows):
        size = data.draw(st.sampled_from([1, 3, 10]))
        run.feed([(row, 1) for row in rows[done : done + size]])
        done += size
        if done < len(rows) and data.draw(st.booleans()):
            run.watermark(micros(rows[done][1]) - 1)
            assert all(row[1] < rows[done][1] for row in run.out.folded())
        if data.draw(st.sampled_from([False, False, True])):
            run.rescale(data.draw(st.integers(1, 3)))
    run.watermark(MAX_WATERMARK_US)
    assert all(weight == 1 for _, weight in run.out.changes()) and not run.kept()
    assert run.out.folded() == expected(fold([(row, 1) for row in rows]), spec)


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(data=st.data())
def test_within_windows_changes_are_followed_until_the_window_closes(data: st.DataObject) -> None:
    spec = data.draw(specs(False, AttachedWindow(1, 1)))
    run = subtasks(spec)
    rows = data.draw(st.lists(ROW, max_size=20))
    run.feed([(row, 1) for row in rows]) if rows else None
    run.rescale(2)
    gone = rows[::3]
    run.feed([(row, -1) for row in gone]) if gone else None
    run.watermark(MAX_WATERMARK_US - 1)
    assert (
        run.out.folded() == expected(fold([(row, 1) for row in rows] + [(row, -1) for row in gone]), spec)
        and not run.kept()
    )
    late = [((1, START, 1, "a"), 1)]
    run.feed(late)
    assert not run.kept()
