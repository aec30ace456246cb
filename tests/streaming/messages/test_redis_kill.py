"""A job from stream to stream is killed between the scripts of a commit, and resumed: each row is there once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.fault_injection.job_process import JobProcess
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.redis_server import RedisProcess, redis_server

ROWS = 4_000
SCRIPT = """
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'redis-stream', 'url' = '%s', 'stream' = 'a;b',
  'scan.bounded.mode' = 'latest', 'scan.rows-per-second' = '4000', 'format' = 'json');
CREATE TABLE doubled (n BIGINT) WITH ('connector' = 'redis-stream', 'url' = '%s', 'stream' = 'out',
  'format' = 'json');
SET 'pipeline.name' = 'doubled';
INSERT INTO doubled SELECT n * 2 FROM numbers;
"""


def filled(server: RedisProcess) -> None:
    with server.client.pipeline() as many:
        for n in range(ROWS):
            many.xadd("ab"[n % 2], {"value": json.dumps({"n": n})})
        many.execute()


@pytest.mark.parametrize("failpoint", ["S5=kill@3", "C12=kill@2"])
def test_killed_between_two_steps_of_a_commit(failpoint: str, tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    with redis_server(tmp_path / "redis") as server:
        filled(server)
        script = SCRIPT.replace("%s", server.url)
        job = JobProcess(tmp_path, script, "doubled-1", failpoints=failpoint)
        job.start(parallelism=2)
        assert job.wait() == -9, job.told
        job.failpoints = ""
        job.start(parallelism=1)
        assert job.wait() == 0, job.told
        found = [json.loads(entry["value"])["n"] for _, entry in server.client.xrange("out")]
    assert Counter(found) == Counter(range(0, 2 * ROWS, 2))


@pytest.mark.at_length
def test_the_server_is_killed_in_mid_run(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    with redis_server(tmp_path / "redis") as server:
        filled(server)
        job = JobProcess(
            tmp_path,
            SCRIPT.replace("%s", server.url),
            "doubled-1",
            settings=("restart-strategy.attempts=100",),
        )
        job.start()
        await_that(lambda: server.client.xlen("out") > 0, lambda: job.told)
        server.kill()
        server.start()
        assert job.process is not None and job.process.wait(PATIENCE_S) == 0, job.told
        found = [json.loads(entry["value"])["n"] for _, entry in server.client.xrange("out")]
    assert Counter(found) == Counter(range(0, 2 * ROWS, 2))
