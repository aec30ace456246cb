"""Nexmark in three acts: alone straight through; two slots with checkpoints, stopped; finished by three.
DuckDB answers the same questions.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.streaming.nexmark.site import QUERIES, expected, rounded, script
from tests.streaming.three_acts.acts import Folded, Script, run_and_stop, run_to_end
from tests.streaming.three_acts.oracle import sample

COUNT, RATE = 20_000, 1_000
BIDS = COUNT * 46 // 50
# rows that its source gives until it is stopped: that of q3 gives one auction of five, and no bids
STOPPED_AFTER = {"q3": 50}


def same(query: str, got: Counter[tuple[Any, ...]]) -> None:
    want, got = rounded(expected(query, COUNT, RATE)), rounded(got)
    assert got == want, (
        f"{sum(got.values())} rows, expected {sum(want.values())}\nmissing:\n{sample(want - got)}\nextra:\n{sample(got - want)}"
    )


@pytest.mark.parametrize("query", QUERIES)
def test_three_acts(query: str, tmp_path: Path) -> None:
    acts = Script(
        query,
        {"execution.batch.max-rows": "1000"},
        script(query, COUNT, RATE, **{"rows-per-second": "50000"}),
    )
    try:
        straight = Folded()
        run_to_end(*acts.submit(1, None, 0), straight)
        same(query, straight.rows)

        folded = Folded()
        run_and_stop(*acts.submit(2, tmp_path, 100), folded, STOPPED_AFTER.get(query, 500))
        run_to_end(*acts.submit(3, tmp_path, 100), folded)
        same(query, folded.rows)
    finally:
        acts.close()


@pytest.mark.parametrize("query", ["q4", "q8", "q14"])
def test_views_over_one_table_of_all_events_are_the_same_tables(query: str) -> None:
    acts = Script(query, {}, script(query, COUNT, RATE, tables="one_table"))
    try:
        folded = Folded()
        run_to_end(*acts.submit(2, None, 0), folded)
        same(query, folded.rows)
    finally:
        acts.close()
