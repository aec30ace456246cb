"""Keys of many columns: NULL is equal to NULL, NaN to NaN."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.connectors.iceberg.equality_deletes import DeletedKeys


def test_keys_of_many_columns() -> None:
    random = np.random.default_rng(3)
    texts = pa.array([f"{x}" if x else None for x in random.integers(0, 5, 500)])
    columns = [pa.array(random.integers(0, 40, 500)), texts]
    columns.append(pa.array([[0.0, float("nan"), 1.5][x] for x in random.integers(0, 3, 500)]))
    index = DeletedKeys([column.slice(0, 200) for column in columns])
    rows = [str(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]
    known = set(rows[:200])
    assert index.size == len(known)
    assert (index.find(columns) >= 0).tolist() == [row in known for row in rows]
    numbers = dict(zip(index.find(columns).tolist(), rows, strict=True))
    assert all(numbers[number] == row for number, row in zip(index.numbers.tolist(), rows[:200], strict=True))
