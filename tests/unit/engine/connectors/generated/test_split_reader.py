"""The reader of a generated split: rows by number, so that it goes on at any row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.connectors.generated.split_reader import BATCH_BYTES, GeneratedReader
from tests.harness.length import examples


def squares(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([n * n for n in range(first, first + count)], pa.int64())})


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(rows=st.integers(0, 20), polls=st.lists(st.integers(1, 9)), resume=st.booleans())
def test_each_row_comes_once_whatever_the_polls_and_restores(
    rows: int, polls: list[int], resume: bool
) -> None:
    reader, found = GeneratedReader(squares, rows, None), list[int]()
    for most in [*polls, *[rows + 1] * 2]:
        batch = reader.poll(most)
        if batch is not None:
            assert 0 < batch.num_rows <= most
            found += batch.column(0).to_pylist()
        assert reader.position() == {"row": len(found)}
        assert reader.ended == (len(found) == rows)
        if resume:
            reader.close()
            reader = GeneratedReader(squares, rows, reader.position())
    assert found == [n * n for n in range(rows)]


def test_a_split_without_end_never_ends() -> None:
    reader = GeneratedReader(squares, None, {"row": 2**31})
    assert reader.poll(3) is not None and not reader.ended
    assert reader.position() == {"row": 2**31 + 3}


@pytest.mark.parametrize("row", [5, 6])
def test_a_position_at_or_behind_the_end_has_no_rows(row: int) -> None:
    reader = GeneratedReader(squares, 5, {"row": row})
    assert reader.ended and reader.poll(10) is None and reader.position() == {"row": row}


def test_wide_rows_are_made_a_few_at_once() -> None:
    """8,192 random texts of 200,000 characters are 1.6 GB, and took eight times as much to make."""
    reader, counts = GeneratedReader(squares, 8, None, BATCH_BYTES // 3), list[int]()
    while not reader.ended:
        batch = reader.poll(100)
        assert batch is not None
        counts.append(batch.num_rows)
    assert counts == [3, 3, 2]
    assert GeneratedReader(squares, 8, None, 9 * BATCH_BYTES).poll(100).num_rows == 1  # type: ignore[union-attr]
