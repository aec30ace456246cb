"""Every streaming query in three acts: alone straight through; two slots with checkpoints, stopped; finished
by three. One expected result.

The result is DuckDB's, over the same files (``oracle``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.oracle import QUERIES, assert_same

ROWS = 336_776


@pytest.mark.parametrize(
    "query", [*QUERIES, "worst_delays", "busy_planes", "delay_shapes", "route_shapes", "growing_delays"]
)
def test_three_acts(query: str, tmp_path: Path) -> None:
    script = Script(query, {"execution.batch.max-rows": "2000"})
    try:
        straight = Folded()
        run_to_end(*script.submit(1, None, 0), straight)
        assert_same(straight.rows, query)

        folded = Folded()
        job, channel = script.submit(2, tmp_path, 100)
        run_and_stop(job, channel, folded, ROWS // 3)
        assert rows_read(job) < ROWS, "act two was to stop in the middle"

        job, channel = script.submit(3, tmp_path, 100)
        run_to_end(job, channel, folded)
        assert rows_read(job) < ROWS, "act three was to go on, not to begin again"
        assert_same(folded.rows, query)
    finally:
        script.close()
