"""Every streaming query in three acts: alone straight through; two slots with checkpoints, stopped; finished
by three. One expected result.

The result is DuckDB's, over the same files (``oracle``). The main job reads the whole year, the others each
twelfth flight, and the whole year too in ``make soak``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.source_gate import gated
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.main_job import sample
from tests.streaming.three_acts.oracle import FLIGHTS, QUERIES, ROOT, assert_same

ROWS = 336_776
EVERY = 12
NAMES = (*QUERIES, "worst_delays", "busy_planes", "delay_shapes", "route_shapes", "growing_delays")


@pytest.fixture(scope="module")
def twelfth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with each twelfth flight of the year."""
    return sample(tmp_path_factory.mktemp("twelfth") / "flights", EVERY)


@pytest.mark.parametrize("query", NAMES)
def test_three_acts(query: str, twelfth: Path, tmp_path: Path) -> None:
    check(query, twelfth, ROWS // EVERY, tmp_path)


@pytest.mark.at_length
@pytest.mark.parametrize("query", NAMES)
def test_three_acts_of_the_year(query: str, tmp_path: Path) -> None:
    check(query, FLIGHTS, ROWS, tmp_path)


def check(query: str, flights: Path, rows: int, tmp_path: Path) -> None:
    text = (ROOT / "queries" / f"{query}.sql").read_text(encoding="utf-8")
    data = f"{ROOT}/queries/data/"
    text = text.replace("queries/data/", data).replace(f"{data}flights'", f"{flights}'")
    script = Script(query, {"execution.batch.max-rows": "2000"}, text)
    try:
        straight = Folded()
        run_to_end(*script.submit(1, None, 0), straight)
        assert_same(straight.rows, query, flights)

        folded = Folded()
        with gated(rows * 2 // 3):
            job, channel = script.submit(2, tmp_path, 100)
            run_and_stop(job, channel, folded, rows // 3)
        assert rows_read(job) < rows, "act two was to stop in the middle"

        job, channel = script.submit(3, tmp_path, 100)
        run_to_end(job, channel, folded)
        assert rows_read(job) < rows, "act three was to go on, not to begin again"
        assert_same(folded.rows, query, flights)
    finally:
        script.close()
