"""INSERT .. ON CONFLICT over updates and deletes, killed with ``kill -9`` and run again with another number of
slots: which row of a key is there is what a plain walk over the changes says.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fault_injection.job_process import JobProcess
from tests.harness.length import of_length
from tests.streaming.three_acts.change_files import Changes, declared

CHANGES, IDS, KILLS = 2_000, 40, of_length(2, 5)
# of few values, so that several rows have one key at nearly every moment
KEYS: dict[str, Callable[[dict[str, Any]], tuple[Any, ...]]] = {
    "k": lambda row: (row["k"] or "",),
    "k, v": lambda row: (row["k"] or "", row["v"] or 0),
}


def written(lines: list[str], key: str, action: str) -> list[tuple[Any, ...]]:
    """Return the rows of the table: of each key the first or the last of its rows to arrive."""
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for change in map(json.loads, lines):
        before, after = change["before"], change["after"]
        if before is not None:
            rows[KEYS[key](before)].remove(before)
        if after is not None:
            rows.setdefault(KEYS[key](after), []).append(after)
    chosen = [those[0 if action == "NOTHING" else -1] for those in rows.values() if those]
    return sorted((row["k"] or "", row["v"] or 0, row["d"], row["id"]) for row in chosen)


def script(folder: Path, path: str, key: str, action: str, rate: int) -> str:
    pace = f", 'source.rows-per-second' = '{rate}'"
    return (
        declared("changes", path, pace)
        + f"CREATE TABLE t (k STRING, v BIGINT, d DOUBLE, id BIGINT, PRIMARY KEY ({key}) NOT ENFORCED)"
        f" WITH ('connector' = 'sqlite', 'path' = '{folder}/t.db', 'table-name' = 't');\n"
        "INSERT INTO t SELECT COALESCE(k, ''), COALESCE(v, 0), d, id FROM changes"
        f" ON CONFLICT DO {action};\n"
    )


def kill_and_finish(folder: Path, key: str, action: str, chance: random.Random) -> list[tuple[Any, ...]]:
    """Return the rows of the table behind a job that was killed again and again, and then ended."""
    path = Changes(7, ids=IDS).happen(CHANGES).write(folder / "changes")
    with sqlite3.connect(folder / "t.db") as database:
        database.execute(f"CREATE TABLE t (k TEXT, v BIGINT, d DOUBLE, id BIGINT, PRIMARY KEY ({key}))")
    slow = script(folder, path, key, action, CHANGES // 4)
    job = JobProcess(folder, slow, "insert-into-t-1", settings=("execution.batch.max-rows=7",))
    try:
        for _ in range(KILLS):
            job.start(parallelism=chance.choice((1, 2, 3)))
            job.await_checkpoint()
            assert job.kill() and not job.finished, job.told
        job.script = script(folder, path, key, action, 1_000_000)
        job.start(parallelism=2)
        assert job.wait() == 0, job.told
    finally:
        job.reap()
    with sqlite3.connect(folder / "t.db") as database:
        return sorted(database.execute("SELECT k, v, d, id FROM t").fetchall())


@pytest.mark.longer
@pytest.mark.parametrize(("action", "key"), [("NOTHING", "k"), ("DEDUPLICATE", "k, v")])
def test_killed_at_any_moment_the_same_row_of_a_key_is_written(tmp_path: Path, action: str, key: str) -> None:
    lines = Changes(7, ids=IDS).happen(CHANGES).lines
    expected = written(lines, key, action)
    assert kill_and_finish(tmp_path, key, action, random.Random(action)) == expected
    # the control: the other row of a key is another table
    assert written(lines, key, "DEDUPLICATE" if action == "NOTHING" else "NOTHING") != expected
