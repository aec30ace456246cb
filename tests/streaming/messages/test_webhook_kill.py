"""A job that sends rows to a server is killed between two requests of an epoch: a server that heeds the keys
of requests takes each row once.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.fault_injection.job_process import JobProcess
from tests.harness.http_server import http_server
from tests.harness.patience import PATIENCE_S

ROWS = 3_000
SCRIPT = f"""
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}',
  'rows-per-second' = '3000', 'splits' = '2', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0');
CREATE TABLE hook (n BIGINT) WITH ('connector' = 'http', 'url' = '%s', 'format' = 'json',
  'sink.request.max-rows' = '20');
SET 'pipeline.name' = 'hook';
INSERT INTO hook SELECT n FROM numbers WHERE n % 2 = 0;
"""


def test_requests_that_are_sent_again_have_their_keys(tmp_path: Path) -> None:
    with http_server() as server:
        job = JobProcess(tmp_path, SCRIPT.replace("%s", server.url), "hook", failpoints="S5=kill@7")
        job.start(parallelism=2)
        assert job.process is not None and job.process.wait(PATIENCE_S) == -9, job.told
        job.failpoints = ""
        job.start(parallelism=1)
        assert job.process.wait(PATIENCE_S) == 0, job.told
        asked = list(server.asked)
    wanted = [{"n": n} for n in range(0, ROWS, 2)]
    by_key = {one.headers["idempotency-key"]: one.body for one in asked}
    assert all(by_key[one.headers["idempotency-key"]] == one.body for one in asked)
    assert (
        sorted((row for body in by_key.values() for row in json.loads(body)), key=lambda r: r["n"]) == wanted
    )
    # the control: without the keys rows are there twice
    assert len(asked) > len(by_key)
