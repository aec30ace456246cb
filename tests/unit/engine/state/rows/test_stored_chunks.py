"""Rows of stored chunks are what Arrow takes from their concatenation, of all types, slices and NULLs."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge, row_sizes
from penstock.engine.state.rows.stored_chunks import StoredChunks

COLUMNS = [
    pa.array(range(40)),
    pa.array(range(40), pa.int8()),
    pa.array(range(40), pa.int16()),
    pa.array(range(40), pa.date32()),
    pa.array([None if i % 3 == 0 else i for i in range(40)]),
    pa.array([0.5 * i for i in range(39)] + [float("nan")]),
    pa.array([i % 3 == 0 for i in range(40)]),
    pa.array([None if i % 5 == 0 else i % 3 == 0 for i in range(40)]),
    pa.array(["é" * (i % 7) + str(i) for i in range(40)]),
    pa.array([None if i % 4 == 0 else "x" * i for i in range(40)]),
    pa.array([b"\x00" * (i % 3) for i in range(40)]),
    pa.array([Decimal(f"{i}.25") for i in range(40)], pa.decimal128(20, 2)),
    pa.array(range(40), pa.timestamp("us", "UTC")),
]
NESTED = [
    pa.array([[i] * (i % 3) if i % 4 else None for i in range(40)]),
    pa.array([{"x": i} for i in range(40)]),
    pa.nulls(40),
]


def chunks_of(columns: list[pa.Array]) -> StoredChunks:
    """Slices that begin within a byte of a bitmap, an empty one, and enough for the arrays to grow."""
    whole = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
    chunks = StoredChunks(whole.schema)
    for first, count in ((3, 5), (0, 0), (0, 1), (1, 40), *((i, 2) for i in range(9, 19)), (39, 1)):
        chunks.append([whole.slice(first, count)])
    return chunks


def same(chunks: StoredChunks, rows: list[dict[str, object]]) -> bool:
    """Whether chunks hold these rows; as text, for NaN differs from itself."""
    return str(chunks.take(np.arange(chunks.num_rows)).to_pylist()) == str(rows)


@pytest.mark.parametrize("columns", [COLUMNS, NESTED, [*NESTED, *COLUMNS]])
def test_like_arrow(columns: list[pa.Array]) -> None:
    chunks = chunks_of(columns)
    assert chunks.one_pass == (columns is COLUMNS)
    whole = pa.concat_batches(chunks.batches)
    assert chunks.num_rows == whole.num_rows and chunks.nbytes(0).sum() == sum(
        batch.nbytes for batch in chunks.batches
    )
    chance = np.random.default_rng(1)
    for positions in (
        np.arange(whole.num_rows),
        np.arange(whole.num_rows)[::-1].copy(),
        chance.integers(0, whole.num_rows, 200),
        np.zeros(0, np.int64),
        np.array([whole.num_rows - 1]),
    ):
        found, wanted = chunks.take(positions), whole.take(array_of(positions))
        found.validate(full=True)
        assert found.schema == wanted.schema and str(found.to_pylist()) == str(wanted.to_pylist())
        assert [c.null_count for c in found.columns] == [c.null_count for c in wanted.columns]
        assert chunks.sizes(positions).tolist() == row_sizes(whole, positions).tolist()
        some = chunks.take(positions, [2, 0])
        assert str(some.to_pylist()) == str(wanted.select([2, 0]).to_pylist())


def test_chunks_that_were_frozen_do_not_change() -> None:
    chunks = chunks_of(COLUMNS)
    frozen, rows = chunks.frozen(), chunks.num_rows
    before = frozen.take(np.arange(rows)).to_pylist()
    first = len(chunks) - 4
    kept = sum(batch.num_rows for batch in chunks.batches[:first])
    chunks.replace(first, [pa.concat_batches(chunks.batches[first:])])
    assert len(chunks) == first + 1 and same(chunks, before)
    chunks.replace(first, [])
    assert chunks.num_rows == kept and same(chunks, before[:kept])
    assert same(frozen, before)


def test_no_rows_have_the_schema_and_too_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = StoredChunks(pa.schema([("t", pa.string())]))
    assert chunks.take(np.zeros(0, np.int64)).schema == chunks.schema
    assert chunks.sizes(np.zeros(0, np.int64)).size == 0
    chunks.append([pa.record_batch({"t": ["x" * 30]})])
    monkeypatch.setattr(LIMITS, "array_bytes", 50)
    assert chunks.take(np.zeros(1, np.int64)).num_rows == 1
    with pytest.raises(TooLarge):
        chunks.take(np.zeros(2, np.int64))


@pytest.mark.parametrize("wrong", [-1, 2, 1 << 40])
def test_no_memory_is_read_that_is_not_the_chunks(wrong: int) -> None:
    chunks = StoredChunks(pa.schema([("n", pa.int64())]))
    chunks.append([pa.record_batch({"n": [1, 2]})])
    for read in (chunks.take, chunks.sizes):
        with pytest.raises(IndexError):
            read(np.array([0, wrong]))
