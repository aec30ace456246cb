"""The source operator: its splits read each once, resumed and rescaled anywhere; the split furthest behind first;
a rate that is kept; and a followed view.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.planner.expressions.nodes import Column
from tests.harness.reading import Taken, drain, open_source, table_of
from tests.unit.optimizer.plans import call, lit

ROWS = 23


def numbers(splits: int, **options: str) -> Any:
    return table_of(
        {"n": BIGINT},
        {
            "connector": "datagen",
            "number-of-rows": str(ROWS),
            "splits": str(splits),
            "fields.n.kind": "sequence",
            "rows-per-second": "0",
        }
        | options,
    )


def values(out: Taken) -> list[int]:
    return [row["n"] for row in out.rows]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    splits=st.integers(1, 5),
    batch=st.integers(1, 9),
    runs=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6)), max_size=4),
)
def test_each_row_is_read_once_however_the_job_is_stopped_and_rescaled(
    splits: int, batch: int, runs: list[tuple[int, int]]
) -> None:
    table, items, out = numbers(splits), list[dict[str, Any]](), Taken()
    for parallelism, polls in [*runs, (2, 1000)]:
        saved = []
        for subtask in range(parallelism):
            operator = open_source(table, batch=batch, subtask=subtask, parallelism=parallelism)
            operator.restore_items(items)
            drain(operator, out, polls=polls)
            saved += operator.snapshot_items()
        items = saved
        assert len({item["split"] for item in items}) == len(items) == splits
    assert sorted(values(out)) == list(range(ROWS)) and all(item["finished"] for item in items)


def test_a_split_is_opened_and_ended_once() -> None:
    operator = open_source(numbers(2), batch=4)
    out = drain(operator)
    assert sorted(out.split_events) == sorted(
        [(kind, split) for kind in ("opened", "ended") for split in (0, 1)]
    )
    assert operator._context.metrics.counters["splits_finished"] == 2
    assert operator.poll(out).ended


def test_only_rows_that_the_predicate_keeps_are_emitted_and_the_position_passes_the_others() -> None:
    column = Column(BIGINT, True, index=0, name="n")
    operator = open_source(numbers(1), predicate=call("less", column, lit(3, BIGINT)), batch=10)
    out = drain(operator, polls=2)
    assert values(out) == [0, 1, 2]
    assert operator.snapshot_items()[0]["position"] == {"row": 20}


def test_a_rate_is_kept_and_what_was_missed_is_caught_up_on_for_a_second_at_most() -> None:
    clock = ManualClock(1_000)
    operator = open_source(numbers(1, **{"rows-per-second": "10"}), clock=clock, batch=100)
    out = Taken()

    def poll_all() -> int:
        before = len(out.rows)
        while operator.poll(out).more:
            pass
        return len(out.rows) - before

    assert poll_all() == 1, "the first row is due at once"
    clock.advance(299)
    assert poll_all() == 2
    clock.advance(1)
    assert poll_all() == 1
    clock.advance(60_000)
    assert poll_all() == 10


@pytest.mark.parametrize("subtask", [0, 1])
def test_a_subtask_without_splits_ends_at_once(subtask: int) -> None:
    operator = open_source(numbers(1), subtask=subtask, parallelism=2)
    assert operator.poll(Taken()).ended is (subtask == 1)
