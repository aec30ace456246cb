"""Coordinators that die, that stand still and come back, that are two: as processes of the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.execution.recorded_jobs import recorded_jobs
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.storage import local
from penstock.engine.storage.local import LocalStorage
from tests.fault_injection.job_process import ROOT, JobProcess
from tests.fault_injection.swept_job import expected, script, unpublished, write_input, written

JOB = "insert-into-counted-1"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[JobProcess]:
    write_input(tmp_path, 1)
    made = JobProcess(tmp_path, script(tmp_path, tmp_path / "out", rate=150), JOB)
    yield made
    made.reap()


def penstock(job: JobProcess, *words: str) -> str:
    line = [sys.executable, "-m", "penstock.repl.cli", *words, "--state", str(job.state_dir)]
    done = subprocess.run(
        line,
        cwd=job.root,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
    )
    return done.stdout + done.stderr


def test_a_dead_job_is_listed_and_run_on_without_its_script(job: JobProcess) -> None:
    job.start()
    job.await_checkpoint()
    assert [(found.job_id, found.status, found.record.epoch) for found in recorded_jobs(job.state_dir)] == [
        (JOB, "RUNNING", 1)
    ]
    assert job.kill()
    listed = json.loads(penstock(job, "jobs", "--jsonl"))
    assert (listed["job"], listed["status"], listed["epoch"]) == (JOB, "DIED", 1)
    (job.root / "job.sql").write_text("", encoding="utf-8")
    job.start("recover")
    assert job.wait() == 0, job.told
    assert "taken over from epoch 1" in job.told
    assert written(job.root / "out") == expected(job.root)
    assert recorded_jobs(job.state_dir)[0].status == "FINISHED"


def test_a_coordinator_that_stood_still_is_superseded(job: JobProcess) -> None:
    second = JobProcess(job.root, job.script, JOB, runs=100)
    job.start()
    job.await_checkpoint()
    with pytest.raises(PenstockError, match="in use"):
        CheckpointStore(LocalStorage(job.state), JOB).open()
    job.signal(signal.SIGSTOP)
    try:
        second.start("recover", "--take-over")
        second.await_checkpoint()
        job.signal(signal.SIGCONT)
        assert job.wait() == 5, job.told
        assert "is superseded by epoch 2" in job.told
        assert second.wait() == 0, second.told
    finally:
        second.reap()
    assert written(job.root / "out") == expected(job.root)
    assert not unpublished(job.root / "out")


def test_a_lock_nobody_renews_is_taken_over_without_being_told(
    job: JobProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = LocalStorage(job.root / "d"), LocalStorage(job.root / "d")
    first.lock()
    with pytest.raises(PenstockError, match="in use"):
        second.lock()
    monkeypatch.setattr(local, "LEASE_S", 0.05)
    assert first.renew()
    time.sleep(0.1)
    second.lock()
    assert not first.renew()
    assert second.renew()
    assert second.in_use()
    first.close()
    assert second.in_use()
    second.close()
    assert not second.in_use()
