"""A process table function in worker processes and in Spark's executors, killed with ``kill -9`` in the middle
and run again: counts and timers of the files are those of one run.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.harness.patience import PATIENCE_S, await_that

ROWS, KEYS = 3_000, 7
MODULE = '''
import numpy as np
import penstock
import pyarrow as pa
import pyarrow.compute as pc


@penstock.ptf({"n": "BIGINT", "fired": "BOOLEAN"})
class Counting:
    """Emits the running count of each row's key, and the count again at each full ten seconds of the rows."""

    input = penstock.table_input(requires_time=True)
    seen = penstock.value_state("BIGINT")

    def process(self, ctx):
        before = np.asarray(pc.fill_null(ctx.state.seen, 0))
        counts = np.diff(ctx.offsets)
        numbers = np.arange(ctx.rows.num_rows) - ctx.offsets[ctx.partitions] + 1
        ctx.emit([before[ctx.partitions] + numbers, False], rows=np.arange(ctx.rows.num_rows))
        ctx.state.seen = before + counts
        times = (ctx.times_us // 10_000_000 + 1) * 10_000_000
        ctx.set_timer(times, partitions=ctx.partitions)

    def on_timer(self, ctx):
        ctx.emit([0, True])
'''
SCRIPT = """
    SET 'python.modules' = 'company_counts';
    SET 'deployment' = '{deployment}';
    SET 'spark.master' = 'local[2]';
    SET 'parallelism.default' = '2';
    SET 'execution.checkpointing.interval' = '30 ms';
    SET 'pipeline.name' = 'company';
    CREATE FUNCTION Counting AS 'company_counts.Counting' LANGUAGE PYTHON;
    CREATE TABLE numbers (n BIGINT, at AS TO_TIMESTAMP_LTZ(n * 100, 3), k AS n % {keys}, WATERMARK FOR at AS at)
      WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}', 'fields.n.kind' = 'sequence',
      'fields.n.start' = '1', 'fields.n.end' = '{rows}');
    CREATE TABLE counted (k BIGINT, n BIGINT, fired BOOLEAN, rowtime TIMESTAMP_LTZ(3))
      WITH ('connector' = 'filesystem', 'path' = '{folder}/counted', 'format' = 'json');
    INSERT INTO counted SELECT * FROM Counting(TABLE numbers PARTITION BY k, on_time => DESCRIPTOR(at));
"""


def start(folder: Path, deployment: str, rate: int) -> subprocess.Popen[str]:
    (folder / "company_counts.py").write_text(MODULE, encoding="utf-8")
    script = SCRIPT.format(folder=folder, deployment=deployment, rate=rate, rows=ROWS, keys=KEYS)
    (folder / "job.sql").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "penstock", "run", "job.sql", "--state", "state"]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )


def counted(folder: Path) -> Counter[tuple[int, int, bool, str]]:
    """The rows of committed files, and how often each is there."""
    lines = [
        line for file in sorted((folder / "counted").glob("[!._]*")) for line in file.read_text().splitlines()
    ]
    return Counter((r["k"], r["n"], r["fired"], r["rowtime"]) for r in map(json.loads, lines))


def expected_shape(found: Counter[tuple[int, int, bool, str]]) -> None:
    """Each count of each key once, and a timer of each key for each ten seconds that had a row."""
    assert set(found.values()) == {1}
    counts = Counter((k, n) for k, n, fired, _ in found if not fired)
    per_key = Counter(n % KEYS for n in range(1, ROWS + 1))
    assert counts == Counter((k, n) for k, total in per_key.items() for n in range(1, total + 1))
    timers = {(n % KEYS, n * 100 // 10_000) for n in range(1, ROWS + 1)}
    assert sum(fired for _, _, fired, _ in found) == len(timers)


@pytest.mark.parametrize(
    "deployment",
    ["embedded", *(pytest.param(other, marks=pytest.mark.at_length) for other in ("processes", "spark"))],
)
def test_killed_and_run_again(tmp_path: Path, deployment: str) -> None:
    first = start(tmp_path, deployment, 300)
    try:
        await_that(lambda: sum(counted(tmp_path).values()) > 100, f"rows of {deployment}")
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=PATIENCE_S)
    before = sum(counted(tmp_path).values())
    second = start(tmp_path, deployment, 100_000)
    output, _ = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, output
    found = counted(tmp_path)
    assert 0 < before < sum(found.values()), "it was to be killed in the middle"
    expected_shape(found)


def test_a_row_lost_or_doubled_would_be_seen() -> None:
    """The control: what the check is for."""
    whole: Counter[tuple[int, int, bool, str]] = Counter()
    seen: Counter[int] = Counter()
    for n in range(1, ROWS + 1):
        seen[n % KEYS] += 1
        whole[n % KEYS, seen[n % KEYS], False, str(n)] += 1
        whole[n % KEYS, 0, True, str(n * 100 // 10_000)] = 1
    expected_shape(whole)
    row = next(iter(whole))
    for wrong in (whole - Counter([row]), whole + Counter([row])):
        with pytest.raises(AssertionError):
            expected_shape(wrong)
