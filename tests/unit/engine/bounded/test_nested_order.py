"""ORDER BY arrays and rows: a NULL inside comes first, in a query of DuckDB as in a stream."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

NAN = float("nan")
ARRAYS = [
    [[None, 1.0]],
    [[2.0]],
    [[NAN]],
    [[]],
    [None],
    [],
    None,
    [[2.0], None],
    [[2.0], [None]],
    [[-1.0, None]],
]
PAIR = pa.struct([("in it", pa.list_(pa.float64())), ("b", pa.struct([("c", pa.float64())]))])
ROWS = [
    {"in it": list_, "b": b}
    for list_ in (None, [], [None], [1.0], [NAN])
    for b in (None, {"c": None}, {"c": 1.0})
] + [None]


@pytest.mark.parametrize("way", ["", "DESC", "NULLS LAST", "DESC NULLS FIRST"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(ARRAYS, pa.list_(pa.list_(pa.float64()))),
        pa.array(ROWS, PAIR),
        pa.array([[row] for row in ROWS], pa.list_(PAIR)),
    ],
    ids=["array", "row", "array of rows"],
)
def test_on_duckdb_as_in_a_stream(column: pa.Array, way: str) -> None:
    found = []
    for mode in ("batch", "streaming"):
        session = Session({"bounded.backend": "duckdb", "execution.runtime-mode": mode})
        try:
            session.register("t", pa.table({"i": range(len(column)), "v": column}))
            ordered = session.execute(f"SELECT i FROM t ORDER BY v {way}, i LIMIT 8").final_rows(PATIENCE_S)
            ranked = session.execute(f"SELECT i, RANK() OVER (ORDER BY v {way}) AS n FROM t").final_rows(
                PATIENCE_S
            )
            found.append(
                (
                    ordered.column(0).to_pylist(),
                    sorted(zip(*(c.to_pylist() for c in ranked.columns), strict=True)),
                )
            )
        finally:
            session.close()
    assert found[0] == found[1]
