"""A job dies while its history is loaded, while that becomes its first checkpoint, or right behind it:
nothing is lost, nothing is written twice.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault_injection.job_process import JobProcess
from tests.streaming.three_acts.backfill import COLUMNS, DELAY_S, Past, folded, replayed

QUERY = "SELECT k, window_end, COUNT(*), SUM(v) FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY k, window_start, window_end"
SETTINGS = ("bounded.backend=duckdb", "execution.batch.max-rows=100", "pipeline.name=backfilled")


def job_over(past: Past, root: Path) -> JobProcess:
    script = f"""
CREATE TABLE a ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '{DELAY_S}' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{past.root / "a"}', 'format' = 'parquet', 'source.replay' = 'true');
CREATE TABLE out (c0 BIGINT, c1 TIMESTAMP(3), c2 BIGINT, c3 BIGINT)
WITH ('connector' = 'filesystem', 'path' = '{root / "out"}', 'format' = 'json', 'changelog.mode' = 'retract');
INSERT INTO out {QUERY} WITH HISTORY;
"""
    return JobProcess(root, script, "backfilled-1", settings=SETTINGS)


@pytest.mark.parametrize("failpoints", ["C8=kill@1", "C11=kill@1", "S5=raise(times=1)@1"])
def test_killed_around_its_first_checkpoint(failpoints: str, tmp_path: Path) -> None:
    past = Past(tmp_path / "data", 5)
    for _ in range(3):
        past.come("a")
    job = job_over(past, tmp_path)
    job.failpoints = failpoints
    job.start(parallelism=2)
    job.wait()
    assert f"failpoint {failpoints.partition('=')[0]}" in job.told, job.told
    if "kill" in failpoints:
        assert not job.finished
        job.failpoints = ""
        job.start(parallelism=1)
        job.wait()
    assert job.finished, job.told
    assert folded(tmp_path / "out") == replayed(past, QUERY, tmp_path / "replay")
