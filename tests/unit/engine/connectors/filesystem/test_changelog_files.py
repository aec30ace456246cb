"""Files of changes as one sequence: in the order of their names, resumed anywhere, and a file that comes too late."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import ManualClock
from penstock.engine.connectors.filesystem.changelog_files import ChangeSequence
from penstock.engine.connectors.filesystem.listing import FileSplit
from penstock.engine.connectors.generated.split_reader import GeneratedReader


class Files:
    """Files by path, each with numbers; a listing is counted."""

    def __init__(self, **numbers: list[int]) -> None:
        self.numbers, self.listings, self.clock = numbers, 0, ManualClock()

    def list(self) -> list[FileSplit]:
        self.listings += 1
        return [FileSplit(path, len(numbers), 1) for path, numbers in sorted(self.numbers.items())]

    def open(self, split_id: str, position: Any) -> GeneratedReader:
        numbers = self.numbers[FileSplit.parse(split_id).path]

        def make(first: int, count: int) -> pa.RecordBatch:
            return pa.record_batch({"n": numbers[first : first + count]})

        return GeneratedReader(make, len(numbers), position)

    def read(self, watch_ms: int | None = None, position: Any = None) -> ChangeSequence:
        return ChangeSequence(self.list, self.open, watch_ms, self.clock, position)


def polled(sequence: ChangeSequence, most: int = 100, polls: int = 50) -> list[int]:
    found = []
    for _ in range(polls):
        rows = sequence.poll(most)
        if rows is None:
            break
        found += rows.column(0).to_pylist()  # type: ignore[union-attr]
    return found


def test_files_are_read_in_the_order_of_their_names() -> None:
    sequence = Files(b=[3, 4], a=[1, 2], c=[], d=[5]).read()
    assert polled(sequence, 1) == [1, 2, 3, 4, 5] and sequence.ended
    empty = Files().read()
    assert not empty.ended and polled(empty) == [] and empty.ended


def test_it_goes_on_at_any_row_of_any_file() -> None:
    files, position, found = Files(a=[1, 2], b=[], c=[3, 4, 5]), None, list[int]()
    for _ in range(20):
        sequence = files.read(position=position)
        found += polled(sequence, 1, 1)
        position = sequence.position()
        sequence.close()
    assert found == [1, 2, 3, 4, 5] and sequence.ended


def test_a_watched_folder_is_listed_once_an_interval() -> None:
    files = Files(a=[1])
    sequence = files.read(watch_ms=100)
    assert polled(sequence) == [1] and files.listings == 2
    files.numbers["b"] = [2]
    files.clock.advance(99)
    assert polled(sequence) == [] and files.listings == 2
    files.clock.advance(1)
    assert polled(sequence) == [2] and not sequence.ended


@pytest.mark.parametrize("resumes", [False, True])
def test_a_file_that_sorts_before_one_that_was_read_is_refused(resumes: bool) -> None:
    files = Files(b=[1])
    sequence = files.read(watch_ms=0)
    assert polled(sequence) == [1]
    if resumes:
        sequence = files.read(0, sequence.position())
    files.numbers["a"] = [0]
    with pytest.raises(PenstockError, match="DAT-4111.*file a came after b"):  # noqa: RUF043
        polled(sequence)
