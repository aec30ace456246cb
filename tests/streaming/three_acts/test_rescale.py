"""A job that keeps its state goes on at any other parallelism: from one subtask to two, back to one, and
up to three.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.length import briefly
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.oracle import QUERIES, assert_same

ROWS = 336_776
STOPS = ((1, ROWS // 6), (2, ROWS // 6), (1, ROWS // 6))


@pytest.mark.parametrize("query", briefly(QUERIES, ["top_airports"]))
def test_one_two_one_three(query: str, tmp_path: Path) -> None:
    script = Script(query, {"execution.batch.max-rows": "4000"})
    try:
        folded = Folded()
        for parallelism, rows in STOPS:
            job, channel = script.submit(parallelism, tmp_path, 100)
            run_and_stop(job, channel, folded, rows)
        job, channel = script.submit(3, tmp_path, 100)
        run_to_end(job, channel, folded)
        assert rows_read(job) < ROWS - ROWS // 2, "the last act was to go on, not to begin again"
        assert_same(folded.rows, query)
    finally:
        script.close()
