"""Rows that are read and not fetched: in order, as tuples and as Arrow, and no more of them than wait."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.results.row_buffer import RowBuffer


def table(first: int, count: int) -> pa.Table:
    return pa.table({"n": range(first, first + count)})


@pytest.mark.parametrize("size", [1, 7, 10, 64])
def test_an_endless_result_holds_no_rows_that_were_taken(size: int) -> None:
    buffer, given, taken = RowBuffer(), 0, []
    for _ in range(200):
        while len(buffer) < size + 3:
            buffer.add(table(given, 10))
            given += 10
        taken += buffer.take(size)
        # at most the table whose last rows wait, and those behind it
        assert sum(t.num_rows for t in buffer._tables) < len(buffer) + 10
        assert buffer._table_rows == sum(t.num_rows for t in buffer._tables)
    assert taken == [(n,) for n in range(200 * size)]


def test_tuples_and_arrow_are_taken_from_one_front() -> None:
    buffer = RowBuffer()
    buffer.add(table(0, 5))
    buffer.add(table(5, 5))
    assert buffer.first(3) == [(0,), (1,), (2,)] and len(buffer) == 10
    assert buffer.take(2) == [(0,), (1,)]
    assert buffer.take_arrow(4) == pa.table({"n": [2, 3, 4, 5]})
    assert buffer.take_arrow() == pa.table({"n": [6, 7, 8, 9]})
    assert buffer.take_arrow() is None and buffer.take(1) == [] and not buffer._tables


def test_what_is_fetched_whole_is_held_no_longer() -> None:
    buffer = RowBuffer()
    buffer.add(table(0, 5))
    assert len(buffer.take(10**9)) == 5 and not buffer._tables
    buffer.add(table(0, 0))
    assert buffer.take(1) == [] and buffer.take_arrow() is None
    buffer.add(table(0, 0))
    buffer.add(table(0, 3))
    assert buffer.take(1) == [(0,)] and buffer.take_arrow() == pa.table({"n": [1, 2]})
