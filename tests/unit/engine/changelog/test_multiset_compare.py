"""Rows compared a part at a time: what differs is the same however many parts there are, and parts are
files once rows are many.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.client.statements.verify import DifferenceSoFar, difference
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import summed
from penstock.engine.changelog.multiset_compare import ComparedRows

ROWS = 20_000


def rows(seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "k": pa.array(random.integers(0, 500, ROWS), mask=random.random(ROWS) < 0.1),
            "s": pa.array([None if n % 7 == 0 else f"n{n}" for n in random.integers(0, 50, ROWS).tolist()]),
            "d": random.random(ROWS),
        }
    )


def compared(ours: pa.Table, theirs: pa.Table, directory: Path, buffered_rows: int) -> tuple[int, int, int]:
    """Return how many rows only one side has, and in how many parts that was found out."""
    both = ComparedRows(ours.schema, directory, buffered_rows)
    for side, table in ((1, ours), (-1, theirs)):
        for batch in table.to_batches(1_000):
            both.take(Batch(batch), side)
    parts = list(both.parts())
    kept = [summed(part, weights)[1] for part, weights in parts]
    return sum(int(c[c > 0].sum()) for c in kept), -sum(int(c[c < 0].sum()) for c in kept), len(parts)


@pytest.mark.parametrize("buffered_rows", [ROWS * 3, 7_000])
def test_one_changed_row_is_found(buffered_rows: int, tmp_path: Path) -> None:
    ours = rows()
    turned = ours.take(np.random.default_rng(2).permutation(ROWS))
    parts = 1 if buffered_rows > 2 * ROWS else 64
    assert compared(ours, turned, tmp_path, buffered_rows) == (0, 0, parts)
    assert not list(tmp_path.iterdir()), "files of parts are left"
    one_less = turned.slice(1)
    assert compared(ours, one_less, tmp_path, buffered_rows) == (1, 0, parts)
    values = turned.column("k").to_pylist()
    values[4_321] = 1_000
    assert compared(ours, turned.set_column(0, "k", pa.array(values)), tmp_path, buffered_rows) == (
        1,
        1,
        parts,
    )


def test_rounding_stays_within_its_part(tmp_path: Path) -> None:
    ours = rows()
    near = ours.set_column(2, "d", pa.array(ours.column("d").to_numpy() * (1 + 1e-13)))
    assert difference(ours, near).rows.num_rows == 0
    added, removed, parts = compared(ours, near, tmp_path, 7_000)
    assert added == removed > 0 and parts == 64, (
        "rows that differ by rounding were to come to one part, and be told apart by difference() only"
    )
    assert compared(ours.select(["d"]), ours.select(["d"]), tmp_path, 7_000) == (0, 0, 1)


def test_the_first_differences_are_shown_and_all_counted() -> None:
    found = DifferenceSoFar()
    one = pa.table({"k": list(range(30))})
    for _ in range(2):
        found.add(difference(one, one.slice(0, 5)))
    assert (found.extra, found.missing) == (50, 0)
    assert len(found.shown()) == 21 and found.shown()[-1] == ".. and 30 more"
