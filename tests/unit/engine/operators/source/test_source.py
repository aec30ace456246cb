"""The source operator: its splits read each once, resumed and rescaled anywhere; the split furthest behind first;
a rate that is kept; and a followed view.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.registry import SOURCES
from penstock.engine.operators.source.source import FIRST_ROWS, SourceOperator
from penstock.planner.expressions.nodes import Column
from tests.harness.length import examples
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


@settings(max_examples=examples(25), deadline=None, derandomize=True)
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


def test_a_source_is_caught_up_when_it_gave_all_there_was() -> None:
    """All its rate allows, however many, or fewer rows than were asked for; not while more are there."""
    clock, out = ManualClock(1_000), Taken()
    paced = open_source(numbers(1, **{"rows-per-second": "10"}), clock=clock, batch=100)
    paced.poll(out)
    clock.advance(500)
    assert paced.poll(out).caught_up
    backlog = open_source(numbers(1), batch=4)
    assert [backlog.poll(out).caught_up for _ in range(6)] == [False] * 5 + [True]


def test_every_file_gives_a_few_rows_before_one_gives_many(tmp_path: Path) -> None:
    """The watermark waits for the first row of each file, which few rows are read for."""
    files, rows = 12, 40_000
    for number in range(files):
        times = np.arange(rows, dtype=np.int64) + number * rows
        pq.write_table(
            pa.table({"ts": pa.array(times, pa.timestamp("us"))}), tmp_path / f"{number:02}.parquet"
        )
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "parquet", "source.replay": "true"}
    out = Taken()
    operator = open_source(table_of({"ts": TIMESTAMP}, options, watermark="ts"))
    while {batch.origin for batch in out.batches} != set(range(files)):
        operator.poll(out)
    assert sum(batch.num_rows for batch in out.batches) == files * FIRST_ROWS
    # from then on the file that is furthest behind gives whole batches
    operator.poll(out)
    assert (out.batches[-1].origin, out.batches[-1].num_rows > 20_000) == (0, True)
    drain(operator, out)
    read = np.concatenate([batch.rows.column(0).cast(pa.int64()).to_numpy() for batch in out.batches])
    assert np.array_equal(np.sort(read), np.arange(files * rows))


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


class Topic:
    """A source whose splits are added while it is read: each split has the rows 0 and 1."""

    listed: ClassVar[list[str]] = []

    def __init__(self, request: ScanRequest) -> None:
        self.recalled: list[str] = []

    def splits(self) -> list[str]:
        return sorted(self.listed)

    def recall(self, split_ids: list[str]) -> None:
        self.recalled = split_ids

    def open(self, split_id: str, position: Position | None) -> Any:
        return Partition(split_id, (position or {"row": 0})["row"])

    def discover_every_ms(self) -> int | None:
        return 1000

    def rows_per_second(self) -> int:
        return 0


class Partition:
    """Two rows, then nothing, and never an end."""

    ended = False

    def __init__(self, split_id: str, row: int) -> None:
        self.number, self.row = int(split_id.rpartition("/")[2]), row

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        if self.row == 2:
            return None
        self.row += 1
        return pa.record_batch({"n": [10 * self.number + self.row - 1]})

    def position(self) -> Position:
        return {"row": self.row}

    def close(self) -> None:
        pass


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    listed = [f"orders/{number}" for number in range(4)]
    monkeypatch.setattr(Topic, "listed", listed)
    monkeypatch.setitem(SOURCES, "datagen", Topic)
    return listed


def poll_all(operators: list[SourceOperator], out: Taken) -> list[dict[str, Any]]:
    """Poll so often that all there is was read; return what a checkpoint holds then."""
    for operator in operators:
        for _ in range(50):
            assert not operator.poll(out).ended
    return [item for operator in operators for item in operator.snapshot_items()]


def test_splits_of_any_connector_are_discovered_and_stay_with_their_subtask(topic: list[str]) -> None:
    table, clock, out = table_of({"n": BIGINT}, {"connector": "datagen"}), ManualClock(), Taken()
    operators = [open_source(table, subtask=n, parallelism=2, clock=clock) for n in range(2)]
    poll_all(operators, out)
    assert [len(operator.snapshot_items()) for operator in operators] == [2, 2]
    # sorts before the others: by place in the list every split would change its subtask
    topic.insert(0, "0rders/7")
    clock.advance(1001)
    items = poll_all(operators, out)
    assert sorted(values(out)) == [0, 1, 10, 11, 20, 21, 30, 31, 70, 71]
    assert sorted(item["split"] for item in items) == sorted(topic)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_split_that_was_added_while_the_job_was_down_is_found(topic: list[str], parallelism: int) -> None:
    table, clock, out = table_of({"n": BIGINT}, {"connector": "datagen"}), ManualClock(), Taken()
    items = poll_all([open_source(table, subtask=n, parallelism=2, clock=clock) for n in range(2)], out)
    topic.append("orders/4")
    operators = [
        open_source(table, subtask=n, parallelism=parallelism, clock=clock) for n in range(parallelism)
    ]
    for operator in operators:
        operator.restore_items(items)
    poll_all(operators, out)
    assert sorted(values(out)) == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]


def test_a_table_that_ends_discovers_nothing(topic: list[str]) -> None:
    bounded = table_of({"n": BIGINT}, {"connector": "datagen", "number-of-rows": "8"})
    operator = open_source(bounded, clock=ManualClock())
    assert operator._discover_ms is None


class Listening:
    """A reader that records what it is told of checkpoints."""

    ended = False

    def __init__(self) -> None:
        self.row, self.told = 0, list[dict[str, Any]]()

    def poll(self, max_rows: int) -> None:
        self.row += 1

    def position(self) -> dict[str, Any]:
        return {"row": self.row}

    def checkpoint_completed(self, position: dict[str, Any]) -> None:
        self.told.append(position)

    def close(self) -> None:
        """Nothing is open."""


def test_a_reader_hears_of_the_position_of_each_durable_checkpoint() -> None:
    operator, out, reader = open_source(numbers(1)), Taken(), Listening()
    operator._connector.open = lambda split, position: reader
    for checkpoint in (1, 2, 3):
        operator.poll(out)
        operator._splits[0].again_ms = 0
        operator.before_barrier(checkpoint, out)
    # the first was never reported complete: the second contains it
    operator.on_checkpoint_complete(2)
    assert reader.told == [{"row": 1}, {"row": 2}]
    operator.on_checkpoint_complete(3)
    assert reader.told[2:] == [{"row": 3}] and not operator._reported


def test_a_split_is_polled_at_once_when_rows_arrive() -> None:
    operator, out, reader = open_source(numbers(1)), Taken(), Listening()
    reader.poll = lambda max_rows: None  # type: ignore[method-assign]
    operator._connector.open = lambda split, position: reader
    operator.poll(out)
    split = operator._splits[0]
    paused_until_ms = split.again_ms
    assert paused_until_ms > operator._context.clock.monotonic_ms()
    operator._context.arrivals.notify()
    operator._context.clock.advance(1)
    operator.poll(out)
    # the pause begins anew, at the time of this poll
    assert split.again_ms == paused_until_ms + 1
    operator.poll(out)
    assert split.again_ms == paused_until_ms + 1


@pytest.mark.parametrize("reports", [True, False])
def test_a_reader_that_reports_its_rows_is_seldom_polled_without_any(reports: bool) -> None:
    operator, out, reader = open_source(numbers(1)), Taken(), Listening()
    polls: list[int] = []
    reader.poll = lambda max_rows: polls.append(1)  # type: ignore[method-assign,assignment,func-returns-value]
    reader.reports_arrivals = reports  # type: ignore[attr-defined]
    operator._connector.open = lambda split, position: reader
    for _ in range(1000):
        operator.poll(out)
        operator._context.clock.advance(1)
    assert len(polls) == 1000 // (200 if reports else 10)
