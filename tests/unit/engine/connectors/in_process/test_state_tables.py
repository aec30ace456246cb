"""The reader of a state's pieces: cuts, positions, and columns that are not asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.engine.connectors.in_process.state_tables import StateReader

SIZES = (3, 0, 5, 1)


def pieces() -> Iterator[pa.Table]:
    begin = 0
    for size in SIZES:
        numbers = list(range(begin, begin + size))
        yield pa.table({"key_group": numbers, "k0": numbers})
        begin += size


def read(reader: StateReader, most: int) -> list[int]:
    rows: list[int] = []
    while not reader.ended:
        batch = reader.poll(most)
        assert batch is not None
        assert 0 < batch.num_rows <= most
        rows += batch.column("k0").to_pylist()
    assert reader.poll(most) is None
    return rows


@pytest.mark.parametrize("most", [1, 2, 100])
def test_all_rows_are_read_in_order_whatever_the_cuts(most: int) -> None:
    assert read(StateReader(pieces(), ["k0"], 0), most) == list(range(sum(SIZES)))


@pytest.mark.parametrize("begin", range(sum(SIZES) + 1))
def test_a_reader_resumes_behind_a_position(begin: int) -> None:
    assert read(StateReader(pieces(), ["k0"], begin), 2) == list(range(begin, sum(SIZES)))


def test_the_position_is_behind_what_was_read() -> None:
    reader = StateReader(pieces(), ["k0"], 0)
    reader.poll(2)
    assert reader.position() == {"row": 2}
    reader.close()
    assert reader.ended


def test_without_columns_only_rows_are_counted() -> None:
    reader, rows = StateReader(pieces(), [], 0), 0
    while not reader.ended:
        batch = reader.poll(4)
        assert batch is not None
        rows += batch.num_rows
    assert rows == sum(SIZES)
