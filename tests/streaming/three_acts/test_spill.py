"""A join whose rows do not fit the memory they are given: the same answer over a stop, or an error by
name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.storage import spill_files
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end

ROWS = 6_000


def _table(name: str, seed: int) -> str:
    return f"""CREATE TABLE {name} (k BIGINT, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'seed' = '{seed}',
  'fields.k.min' = '0', 'fields.k.max' = '5000', 'fields.v.min' = '0', 'fields.v.max' = '1000000');
CREATE VIEW wide_{name} AS SELECT k, v, repeat(CAST(v AS STRING), 60) AS text FROM {name};"""


def _script(budget: str) -> Script:
    query = "SELECT a.k, a.v, length(a.text) AS n, b.v AS w, length(b.text) AS m FROM wide_a AS a JOIN wide_b AS b ON a.k = b.k;"
    settings = {"execution.batch.max-rows": "200", "state.memory.budget-per-slot": budget}
    return Script("spill", settings, f"{_table('a', 1)}\n{_table('b', 2)}\n{query}")


def test_the_same_answer_from_memory_and_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = spill_files._written

    def counted(*given: Any) -> spill_files.SpilledRows:
        rows = write(*given)
        written.append(rows.size)
        return rows

    monkeypatch.setattr(spill_files, "_written", counted)
    wanted, folded = Folded(), Folded()
    run_to_end(*_script("0").submit(1, None, 0), wanted)
    assert not written
    script = _script("2 mb")
    job, channel = script.submit(2, tmp_path, 50)
    run_and_stop(job, channel, folded, ROWS * 3 // 4)
    assert rows_read(job) < ROWS and sum(written) > 1_000_000
    written.clear()
    run_to_end(*script.submit(1, tmp_path, 50), folded)
    assert folded.rows == wanted.rows and sum(written) > 1_000_000


def test_state_that_cannot_go_to_disk_fails_by_name() -> None:
    job, channel = _script("200 kb").submit(1, None, 0)
    with pytest.raises(PenstockError, match="over the budget of 204,800 bytes per slot") as caught:
        run_to_end(job, channel, Folded())
    assert caught.value.code == "STA-3050" and caught.value.operator == "inner join"
