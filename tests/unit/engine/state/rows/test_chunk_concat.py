"""Chunks end to end are what Arrow's concatenation is, of all types, slices and NULLs."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.engine.state.rows import chunk_concat
from penstock.engine.state.rows.chunk_concat import concat_chunks

COLUMNS = [
    pa.array([1, 2, 3, 4, 5]),
    pa.array([1, 2, 3, 4, 5], pa.int8()),
    pa.array([1, None, 3, 4, 5]),
    pa.array([0.5, -0.0, float("nan"), 2.0, 3.0]),
    pa.array([True, False, True, True, False]),
    pa.array(["a", "", "é" * 40, "b", "cc"]),
    pa.array(["a", None, "b", "", "c"]),
    pa.array([b"\x00", b"", b"ab", b"c", b"d"]),
    pa.array([1, 2, 3, 4, 5], pa.timestamp("us", "UTC")),
    pa.array([1, 2, 3, 4, 5], pa.date32()),
    pa.array([Decimal(f"{i}.25") for i in range(5)], pa.decimal128(20, 2)),
    pa.array([[1], [], [2, 3], None, [4]]),
    pa.array([{"x": i} for i in range(5)]),
    pa.nulls(5),
]


@pytest.mark.parametrize("least", [0, 1 << 40])
def test_like_arrow(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_concat, "LEAST_BYTES", least)
    whole = pa.RecordBatch.from_arrays(COLUMNS, names=[f"c{i}" for i in range(len(COLUMNS))])
    for chunks in (
        [whole, whole],
        [whole.slice(1, 3), whole.slice(4), whole.slice(0, 0), whole.slice(2, 2)],
        [whole.slice(0, 0), whole.slice(5)],
        [whole.slice(0, 1), whole.slice(2, 1)],
    ):
        found = concat_chunks(chunks)
        found.validate(full=True)
        wanted = pa.concat_batches(chunks)
        assert found.schema == wanted.schema and str(found.to_pylist()) == str(wanted.to_pylist())
        assert [column.null_count for column in found.columns] == [c.null_count for c in wanted.columns]
