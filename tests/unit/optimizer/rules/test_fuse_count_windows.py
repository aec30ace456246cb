"""fuse_count_windows: the same rows without the rule, and rows that are retracted are left alone (its golden script
has the plans).
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.unit.optimizer.rules.around import check_rule

ROWS = pa.table(
    {
        "k": ["ab"[n * n % 3 % 2] for n in range(50)],
        "v": pa.array(range(50), pa.int64()),
        "ts": pa.array(range(50), pa.timestamp("s")),
    }
)
QUERY = (
    "SELECT k, window_index, COUNT(*) AS n, SUM(v) AS s FROM TUMBLE(TABLE r PARTITION BY k ORDER BY ts, 7 ROWS)"
    " GROUP BY k, window_index"
)


@pytest.mark.parametrize("disabled", ["", "fuse_count_windows"])
def test_the_rows_are_those_without_the_rule(disabled: str) -> None:
    session = Session({"execution.runtime-mode": "streaming", "optimizer.disabled-rules": disabled})
    try:
        session.register("r", ROWS, time_column="ts")
        result = session.execute(QUERY)
        assert result.shape.insert_only is not bool(disabled)
        rows = result.final_rows(PATIENCE_S)
        got = Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    finally:
        session.close()
    want: Counter[tuple[str, int]] = Counter()
    seen: Counter[str] = Counter()
    sums: Counter[tuple[str, int]] = Counter()
    for key, value in zip(ROWS["k"].to_pylist(), ROWS["v"].to_pylist(), strict=True):
        window = (key, seen[key] // 7)
        seen[key] += 1
        want[window] += 1
        sums[window] += value
    assert got == Counter({(*window, count, sums[window]): 1 for window, count in want.items()})


def test_golden_script() -> None:
    check_rule("fuse_count_windows")
