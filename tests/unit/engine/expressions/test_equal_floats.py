"""Floats that SQL finds equal have several patterns of bits: 0.0 and -0.0, and each NaN. On x86 the NaN of
Infinity - Infinity is another one than that of CAST('NaN' AS DOUBLE).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.engine.changelog.consolidate import group_numbers
from tests.harness.patience import PATIENCE_S

NAN = float("nan")
OTHER = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]


def doubles(*values: float) -> pa.Array:
    return pa.array(np.array(values, np.float64))


def lists(*values: float) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), doubles(*values))


ROW = pa.table(
    {
        "x": doubles(NAN),
        "y": doubles(OTHER),
        "z": doubles(-0.0),
        "a": lists(NAN, OTHER, -0.0, 0.0, 1.0),
        "b": lists(OTHER, 0.0),
        "s": lists(NAN),
    }
)


@pytest.fixture(scope="module", params=["streaming", "batch"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "execution.runtime-mode": request.param})
    session.register("t", ROW)
    yield session
    session.close()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("CARDINALITY(ARRAY_DISTINCT(a))", 3),
        ("CARDINALITY(ARRAY_UNION(a, b))", 3),
        ("CARDINALITY(ARRAY_INTERSECT(a, b))", 2),
        ("ARRAY_EXCEPT(a, b)", [1.0]),
        ("ARRAYS_OVERLAP(s, b)", True),
        ("ARRAY_CONTAINS(s, y)", True),
        ("ARRAY_POSITION(s, y)", 1),
        ("CARDINALITY(ARRAY_REMOVE(a, y))", 3),
        ("MAP(x, 1)[y]", 1),
        ("MAP_CONTAINS_KEY(MAP(x, 1), y)", True),
        ("MAP(z, 1)[0e0]", 1),
        ("y IN (CAST('NaN' AS DOUBLE), 2)", True),
        ("y NOT IN (CAST('NaN' AS DOUBLE), 2)", False),
        ("y IN (1, 2)", False),
        ("z IN (CAST('NaN' AS DOUBLE), 0)", True),
        ("NULLIF(z, 0) IN (CAST('NaN' AS DOUBLE), 2)", None),
        ("ARRAY[y] = s AND ROW(x) = ROW(y)", True),
    ],
)
def test_calls(session: Session, call: str, expected: object) -> None:
    (value,) = session.execute(f"SELECT {call} AS v FROM t").final_rows(PATIENCE_S).column(0).to_pylist()
    assert value == expected


def test_a_change_is_retracted_by_an_equal_row() -> None:
    nested = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, 4, 4], pa.int32()), doubles(NAN, OTHER, 0.0, -0.0)
    )
    rows = pa.table({"v": pa.chunked_array([pa.array([NAN, OTHER, 0.0, -0.0, None, None])]), "l": nested})
    numbers, count = group_numbers(rows)
    assert count == 3 and numbers[0] == numbers[1] and numbers[2] == numbers[3] and numbers[4] == numbers[5]
