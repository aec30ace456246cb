"""A job from stream to stream is killed between the batches of a commit, and resumed: each row is there once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.nats import JOB, SCRIPT, copied, fill
from tests.harness.nats_server import nats_server
from tests.harness.patience import PATIENCE_S, await_that

pytestmark = pytest.mark.xdist_group("nats")
ROWS = 6_000


def test_killed_between_two_batches_and_resumed_with_other_parallelism(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as server:
        fill(server, ROWS)
        script = SCRIPT.format(url=server.url, rate=4_000)
        job = JobProcess(tmp_path, script, JOB, failpoints="S5=kill@7")
        job.start(parallelism=2)
        assert job.wait() == -9, job.told
        killed = copied(server)
        assert 0 < len(killed) < ROWS
        job.failpoints = ""
        job.start(parallelism=3)
        assert job.wait() == 0, job.told
        assert copied(server) == Counter(range(0, 2 * ROWS, 2))


@pytest.mark.at_length
def test_without_epochs_in_the_stream_rows_are_there_twice(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as server:
        fill(server, ROWS)
        script = SCRIPT.format(url=server.url, rate=4_000)
        module = "tests.fault_injection.forgetful_notes"
        job = JobProcess(tmp_path, script, JOB, module=module, failpoints="S5=kill@7")
        job.start(parallelism=2)
        assert job.wait() == -9, job.told
        job.failpoints = ""
        job.start(parallelism=3)
        assert job.wait() == 0, job.told
        assert copied(server) - Counter(range(0, 2 * ROWS, 2))


@pytest.mark.at_length
def test_the_server_is_killed_in_mid_run(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as server:
        fill(server, ROWS)
        script = SCRIPT.format(url=server.url, rate=4_000)
        job = JobProcess(tmp_path, script, JOB, settings=("restart-strategy.attempts=100",))
        job.start()
        await_that(lambda: server.count("doubled") > 2, lambda: job.told, 0.05)
        server.kill()
        server.start()
        assert job.process is not None and job.process.wait(PATIENCE_S) == 0, job.told
        assert copied(server) == Counter(range(0, 2 * ROWS, 2))
