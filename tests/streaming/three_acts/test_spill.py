"""State that does not fit the memory it is given: the same answers over a stop, beside another job and after a
full disk, or an error by name.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.state import mapped_arrays
from penstock.engine.storage import spill_files
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.main_job import rows_in

ROWS = 6_000
KEYS = 3_000

QUERIES = {
    "join": "SELECT a.k, a.v, length(a.text) AS n, b.v AS w, length(b.text) AS m FROM wide_a AS a "
    "JOIN wide_b AS b ON a.k = b.k;",
    "outer join of texts": "SELECT a.t, a.v, b.v AS w FROM wide_a AS a FULL JOIN wide_b AS b ON a.t = b.t AND a.k = b.k;",
    "groups": "SELECT k, t, COUNT(*) AS n, SUM(v) AS total, MAX(v) AS most FROM wide_a GROUP BY k, t;",
    "groups of changing groups": "SELECT n, COUNT(*) AS keys, SUM(total) AS total, MIN(total) AS least, COUNT(DISTINCT total % 10) AS ends "
    "FROM (SELECT k, COUNT(*) AS n, SUM(v) AS total FROM wide_a GROUP BY k) AS g GROUP BY n;",
    "join of groups": "SELECT a.k, a.total, b.total AS other FROM (SELECT k, SUM(v) AS total FROM wide_a GROUP BY k) AS a "
    "JOIN (SELECT k, SUM(v) AS total FROM wide_b GROUP BY k) AS b ON a.k = b.k;",
}


def _table(name: str, seed: int) -> str:
    return f"""CREATE TABLE {name} (k BIGINT, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'seed' = '{seed}',
  'fields.k.min' = '0', 'fields.k.max' = '{KEYS}', 'fields.v.min' = '0', 'fields.v.max' = '1000000');
CREATE VIEW wide_{name} AS SELECT k, v, CONCAT('key ', CAST(k AS STRING)) AS t, repeat(CAST(v AS STRING), 60) AS text FROM {name};"""


def _script(query: str, budget: str, **settings: str) -> Script:
    given = {"execution.batch.max-rows": "200", "state.memory.budget-per-slot": budget}
    return Script(
        "spill",
        given | settings,
        f"{_table('a', 1)}\n{_table('b', 2)}\n{QUERIES[query]}",
    )


class Disk:
    """Counts the bytes that go to disk; full at the writes of these numbers."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.written, self.writes, self.full_at = 0, 0, frozenset[int]()
        rows, piece = spill_files._written, spill_files._write

        def write_rows(*given: Any) -> spill_files.SpilledRows:
            self._count()
            spilled = rows(*given)
            self.written += spilled.size
            return spilled

        def write_piece(file: Any, octets: np.ndarray) -> None:
            self._count()
            self.written += octets.size
            piece(file, octets)

        patch.setattr(spill_files, "_written", write_rows)
        patch.setattr(spill_files, "_write", write_piece)

    def _count(self) -> None:
        self.writes += 1
        if self.writes in self.full_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def small_arrays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 4_096)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def _in_memory(query: str) -> Folded:
    wanted = Folded()
    run_to_end(*_script(query, "0").submit(1, None, 0), wanted)
    return wanted


@pytest.mark.parametrize(
    ("query", "ttl"),
    list(zip(QUERIES, ("0", "1 h", "0", "1 h", "1 h"), strict=True)),
    ids=list(QUERIES),
)
def test_the_same_answer_from_memory_and_from_disk(query: str, ttl: str, tmp_path: Path, disk: Disk) -> None:
    wanted, folded = _in_memory(query), Folded()
    assert not disk.written
    script = _script(query, "200 kb", **{"table.exec.state.ttl": ttl})
    job, channel = script.submit(2, tmp_path, 50)
    run_and_stop(job, channel, folded, ROWS // 3)
    assert rows_read(job) < ROWS and disk.written > 50_000
    disk.written = 0
    run_to_end(*script.submit(1, tmp_path, 50), folded)
    assert folded.rows == wanted.rows and disk.written > 50_000


def test_two_jobs_share_a_directory(tmp_path: Path, disk: Disk) -> None:
    queries = ("join", "groups of changing groups")
    wanted = [_in_memory(query) for query in queries]
    scripts = [_script(query, "400 kb", **{"state.spill.dir": str(tmp_path)}) for query in queries]
    # both run before the first one ends
    jobs = [script.submit(1, None, 0) for script in scripts]
    for (job, channel), its in zip(jobs, wanted, strict=True):
        folded = Folded()
        run_to_end(job, channel, folded)
        assert folded.rows == its.rows
    assert disk.written and list(tmp_path.iterdir()) == []


def test_every_row_comes_once_when_the_disk_has_space_again(tmp_path: Path, disk: Disk) -> None:
    wanted = _in_memory("join")
    settings = {
        "table.dml-sync": "true",
        "execution.batch.max-rows": "200",
        "execution.checkpointing.interval": "20 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.attempts": "20",
        "restart-strategy.delay": "5 ms",
        "state.memory.budget-per-slot": "400 kb",
        "state.spill.dir": str(tmp_path / "spill"),
    }
    disk.full_at = frozenset({5, 15, 30})
    session = Session({"bounded.backend": "duckdb", **settings}, state_dir=tmp_path / "state")
    out = (
        "CREATE TABLE result (k BIGINT, v BIGINT, n INT, w BIGINT, m INT) WITH ("
        f"'connector' = 'filesystem', 'path' = '{tmp_path / 'out'}', 'format' = 'parquet');"
    )
    try:
        for statement in session.parse(
            f"{_table('a', 1)}\n{_table('b', 2)}\n{out}\nINSERT INTO result {QUERIES['join']}"
        ):
            session.run(statement)
    finally:
        session.close()
    assert disk.writes > max(disk.full_at) and list((tmp_path / "spill").iterdir()) == []
    assert rows_in(tmp_path / "out") == wanted.rows


def test_a_full_disk_is_named_where_nothing_is_tried_again(disk: Disk) -> None:
    disk.full_at = frozenset({5})
    with pytest.raises(PenstockError, match="No space left on device") as caught:
        run_to_end(*_script("join", "400 kb").submit(1, None, 0), Folded())
    assert caught.value.code == "STA-3051" and caught.value.operator == "inner join"


def test_state_that_cannot_go_to_disk_fails_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1 << 20)
    job, channel = _script("join", "200 kb").submit(1, None, 0)
    with pytest.raises(PenstockError, match="over the budget of 204,800 bytes per slot") as caught:
        run_to_end(job, channel, Folded())
    assert caught.value.code == "STA-3050" and caught.value.operator == "inner join"
