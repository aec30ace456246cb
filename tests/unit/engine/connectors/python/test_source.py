"""The source over a user's generator: rows, positions within batches, splits, discovery, what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.python_connectors import ProgramConnectors, PythonSource
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.connectors.python.lookup import PythonConnectors
from penstock.engine.deploy.worker.python_modules import import_by_name
from penstock.engine.operators.source.source import SourceOperator
from tests.harness.patience import await_that
from tests.harness.reading import Taken, open_source, table_of

ROWS = 20


@penstock.source(splits=lambda options: [f"p-{n}" for n in range(int(options["splits"]))])
def numbers(split: str, position: Any, options: dict[str, str]) -> Iterator[tuple[pa.RecordBatch, Any]]:
    """Yield batches of 7, 0, 7 and 6 rows; the position is a dict that is changed afterwards."""
    at = {"next": 0} if position is None else position
    for end in (7, 7, 14, ROWS):
        if at["next"] < end or (end == 7 and at["next"] == 7):
            values = list(range(at["next"], end))
            at["next"] = end
            yield (
                pa.record_batch(
                    {"more": [None] * len(values), "s": pa.array([split] * len(values)), "n": values}
                ),
                at,
            )


def table(name: str = "numbers", splits: int = 1, **options: str) -> CatalogTable:
    given = {"connector": "python", "name": name, "option.splits": str(splits), "scan.bounded": "true"}
    return table_of({"n": BIGINT, "s": STRING}, given | options)


class Ticking(ManualClock):
    """A clock that goes on whenever it is read: a poll without rows is tried again soon."""

    def monotonic_ms(self) -> float:
        self.advance(5)
        return super().monotonic_ms()


def opened(source: PythonSource, where: CatalogTable, **how: Any) -> SourceOperator:
    program = ProgramConnectors()
    program.register(source, where.options["name"])
    services = Services(BadRecords(), PythonConnectors(program, list, import_by_name))
    return open_source(where, services=services, clock=Ticking(), **how)


def read_all(operator: SourceOperator, out: Taken) -> None:
    def ended() -> bool:
        return operator.poll(out).ended

    await_that(ended)
    operator.close()


@pytest.mark.parametrize("batch", [1, 3, 7, 100])
def test_it_goes_on_behind_any_row(batch: int) -> None:
    """A restart after every poll, also within the user's batches."""
    items, out = list[dict[str, Any]](), Taken()
    while not (items and all(item["finished"] for item in items)):
        operator = opened(numbers, table(), batch=batch)
        operator.restore_items(items)
        before = len(out.rows)

        def polled(operator: SourceOperator = operator, before: int = before) -> bool:
            return operator.poll(out).ended or len(out.rows) > before

        await_that(polled)
        items = operator.snapshot_items()
        operator.close()
    assert [row["n"] for row in out.rows] == list(range(ROWS))


def test_subtasks_share_the_splits() -> None:
    out = Taken()
    for subtask in range(2):
        read_all(opened(numbers, table(splits=3), subtask=subtask, parallelism=2), out)
    assert sorted((row["s"], row["n"]) for row in out.rows) == [
        (f"p-{split}", n) for split in range(3) for n in range(ROWS)
    ]


def test_only_the_columns_of_the_query_and_rows_without_any() -> None:
    out = Taken()
    read_all(opened(numbers, table(), columns=["s"]), out)
    assert out.rows == [{"s": "p-0"}] * ROWS
    count = Taken()
    read_all(opened(numbers, table(), columns=[]), count)
    assert sum(batch.num_rows for batch in count.batches) == ROWS


def test_a_generator_that_blocks_does_not_block_its_task_and_is_closed() -> None:
    goes_on, closed = threading.Event(), threading.Event()

    @penstock.source
    def slow(split: str, position: Any) -> Iterator[tuple[pa.RecordBatch, Any]]:
        try:
            goes_on.wait()
            while True:
                yield pa.record_batch({"n": [1], "s": ["x"]}), 1
        finally:
            closed.set()

    operator, out = opened(slow, table("slow", **{"scan.bounded": "false"})), Taken()
    for _ in range(3):
        assert not operator.poll(out).ended
    assert out.rows == []
    goes_on.set()
    await_that(lambda: not operator.poll(out).ended and bool(out.rows))
    operator.close()
    await_that(closed.is_set)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (lambda batch: batch, "yielded a RecordBatch, not (batch, position)"),
        (lambda batch: (batch, None), "yielded the position None"),
        (lambda batch: (batch, {1, 2}), "yielded a position that JSON has no form of: {1, 2}"),
        (lambda batch: (batch.to_pylist(), 1), "yielded a tuple, not (batch, position)"),
        (lambda batch: (batch.select(["n"]), 1), "a batch lacks column s"),
    ],
)
def test_what_is_no_batch_with_a_position_is_refused(item: Any, said: str) -> None:
    @penstock.source
    def wrong(split: str, position: Any) -> Iterator[Any]:
        yield item(pa.record_batch({"n": [1], "s": ["x"]}))

    with pytest.raises(PenstockError) as refused:
        read_all(opened(wrong, table("wrong")), Taken())
    assert refused.value.code in ("DAT-5603", "DAT-4504") and said in refused.value.message


def test_splits_that_are_no_texts_are_refused() -> None:
    source = PythonSource("bad", numbers.read, lambda: [1, 2])
    with pytest.raises(PenstockError, match="DAT-5603"):
        read_all(opened(source, table("bad")), Taken())
