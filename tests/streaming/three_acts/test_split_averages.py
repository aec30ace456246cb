"""AVG of BIGINT in two phases: the mean is that of one phase to the last bit, however batches are cut."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

# of "wide" the sum needs more than 64 bits, in both directions; of "none" there is no value
_VALUES = {
    "wide": [2**63 - 1 - 3 * i for i in range(40)],
    "low": [-(2**63) + 7 * i for i in range(40)],
    "small": [None if i % 5 == 2 else i * i - 300 for i in range(40)],
    "none": [None] * 40,
}
_ROWS = [(key, _VALUES[key][i]) for i in range(40) for key in _VALUES]
_TABLE = pa.table({"k": [key for key, _ in _ROWS], "v": pa.array([value for _, value in _ROWS], pa.int64())})
_QUERY = (
    "SELECT k, AVG(v) AS mean, AVG(v) FILTER (WHERE v > 0) AS some, COUNT(v) AS n FROM numbers GROUP BY k"
)


def _mean(values: list[int]) -> float | None:
    return float(sum(values)) / len(values) if values else None


def _expected() -> list[tuple[object, ...]]:
    known = {key: [value for value in values if value is not None] for key, values in _VALUES.items()}
    return sorted(
        (key, _mean(values), _mean([value for value in values if value > 0]), len(values))
        for key, values in known.items()
    )


@pytest.mark.parametrize("parallelism", ["1", "2", "3"])
@pytest.mark.parametrize("batch_rows", ["7", "65536"])
def test_means_are_exact(parallelism: str, batch_rows: str) -> None:
    settings = {"execution.runtime-mode": "streaming", "execution.batch.max-rows": batch_rows}
    session = Session({**settings, "parallelism.default": parallelism})
    try:
        session.register("numbers", _TABLE)
        columns = session.execute(_QUERY).final_rows(PATIENCE_S).columns
        assert sorted(zip(*(column.to_pylist() for column in columns), strict=True)) == _expected()
    finally:
        session.close()
