"""A disk that is full or broken: the checkpoint is given up and told, what was published stays whole, the
next one succeeds when there is space.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.engine.api.clock import SystemClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.restart_strategy import FixedDelay
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.job.job import Job
from penstock.engine.job.job_manager import JobManager
from penstock.engine.job.job_state import JobState
from penstock.engine.storage.local import LocalStorage
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.runtime import fakes
from tests.harness.runtime.fakes import Faults, Ledger, expected, make_splits, services, window_job

ROOT = Path(__file__).resolve().parents[4]
SPLITS = make_splits(2, 60, 4)
STEPS = [
    ("create", "seg-"),
    ("append", "seg-"),
    ("sync", "seg-"),
    ("create", "chk-"),
    ("append", "chk-"),
    ("sync", "chk-"),
    ("publish", "chk-"),
    ("append", "CURRENT"),
    ("publish", "CURRENT"),
    ("sync_directory", ""),
]


class FullStorage(LocalStorage):
    """A directory in which one kind of step fails while ``broken`` says so."""

    broken: tuple[str, str, int] | None = None
    failed = 0

    def create(self, name: str) -> None:
        self._maybe("create", name)
        super().create(name)

    def append(self, name: str, data: bytes) -> None:
        if self._is_broken("append", name):
            super().append(name, data[: len(data) // 2])
        self._maybe("append", name)
        super().append(name, data)

    def sync(self, name: str) -> None:
        self._maybe("sync", name)
        super().sync(name)

    def sync_directory(self) -> None:
        self._maybe("sync_directory", "")
        super().sync_directory()

    def publish(self, name: str, target: str) -> None:
        self._maybe("publish", target)
        super().publish(name, target)

    def _is_broken(self, verb: str, name: str) -> bool:
        broken = FullStorage.broken
        return broken is not None and broken[0] == verb and name.startswith(broken[1])

    def _maybe(self, verb: str, name: str) -> None:
        if self._is_broken(verb, name):
            FullStorage.failed += 1
            with self._translate_errors(name):
                raise OSError(FullStorage.broken[2], os.strerror(FullStorage.broken[2]))  # type: ignore[index]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr("penstock.engine.storage.locations.LocalStorage", FullStorage)
    FullStorage.broken, FullStorage.failed = None, 0
    yield tmp_path
    FullStorage.broken = None


def until(holds: Callable[[], bool], job: Job) -> None:
    await_that(
        lambda: holds() or job.state.terminal, lambda: f"what was waited for of {job.metrics().events[-3:]}"
    )
    assert holds(), f"the job has ended: {job.state} {job.error}"


def endless(ledger: Ledger, state: Path, **options: object) -> tuple[JobManager, Job]:
    """Start a job whose sources give all they have and then wait."""
    manager = JobManager(services(ledger, Faults()), SystemClock(), fakes.build)
    words = {
        "checkpoint_interval_ms": 20,
        "state_dir": state,
        "restart": FixedDelay(attempts=10, delay=1.0),
        **options,
    }
    return manager, manager.submit(window_job(SPLITS, endless=True), JobOptions(**words), "full")  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize(("verb", "name"), STEPS, ids=lambda word: word or "any")
def test_a_step_that_fails_costs_its_checkpoint_only(
    directory: Path, verb: str, name: str, code: int
) -> None:
    ledger = Ledger()
    manager, job = endless(ledger, directory, tolerable_failed_checkpoints=1_000)
    until(lambda: len(job.checkpoints) >= 2, job)
    FullStorage.broken = (verb, name, code)
    until(lambda: job.metrics().checkpoints_failed >= 2, job)
    events = [event.text for event in job.metrics().events if event.kind == "CHECKPOINT FAILED"]
    assert (
        os.strerror(code) in events[-1]
        and str(directory / "full") in events[-1]
        and "last good: " in events[-1]
    ), events[-1]
    reader = CheckpointReader(LocalStorage(directory / "full"))
    assert reader.damage(reader.manifest()) == []
    FullStorage.broken = None
    done = job.metrics().checkpoints_completed
    until(lambda: job.metrics().checkpoints_completed > done, job)
    assert job.metrics().restarts == 0
    job.stop(drain=True)
    assert job.wait(PATIENCE_S)
    manager.close()
    assert job.state is JobState.FINISHED, job.error
    assert ledger.rows() == expected(SPLITS, 10)
    assert not [path.name for path in (directory / "full").iterdir() if path.name.endswith(".tmp")]


def test_a_disk_that_stays_full_fails_the_job_and_names_the_directory(directory: Path) -> None:
    manager, job = endless(Ledger(), directory, tolerable_failed_checkpoints=2)
    until(lambda: len(job.checkpoints) >= 2, job)
    FullStorage.broken = ("append", "seg-", errno.ENOSPC)
    assert job.wait(PATIENCE_S)
    manager.close()
    assert job.error is not None and job.error.code == "STA-3011"
    assert str(directory / "full") in str(job.error.detail)


def test_what_the_job_cannot_go_on_without_is_an_error_with_a_code_and_the_directory(directory: Path) -> None:
    """The last parts of tasks that have ended are no checkpoint that another can make up for."""
    FullStorage.broken = ("append", "seg-", errno.ENOSPC)
    manager = JobManager(services(Ledger(), Faults()), SystemClock(), fakes.build)
    job = manager.submit(
        window_job(SPLITS), JobOptions(checkpoint_interval_ms=60_000, state_dir=directory), "full"
    )
    assert job.wait(PATIENCE_S)
    manager.close()
    assert job.error is not None and job.error.code == "STA-3053"
    assert "No space left on device" in job.error.message and str(directory / "full") in job.error.message


PROGRAM = """
import os, resource, sys
from pathlib import Path
from penstock.engine.api.clock import SystemClock
from penstock.engine.job.job_manager import JobManager
from penstock.engine.api.job_options import JobOptions
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.runtime import fakes
from tests.harness.runtime.fakes import Faults, Ledger, expected, services, window_job
from tests.unit.engine.checkpoint.test_disk_full import SPLITS

state, how = Path(sys.argv[1]), sys.argv[2]

def fill():
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        return
    with open(state / "filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass

def empty():
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        (state / "filler").unlink()

def until(holds):
    await_that(holds, lambda: f"what was waited for of {job.state} {job.error} {job.metrics().events[-3:]}")

ledger = Ledger()
manager = JobManager(services(ledger, Faults()), SystemClock(), fakes.build)
options = JobOptions(checkpoint_interval_ms=20, state_dir=state, tolerable_failed_checkpoints=100_000)
job = manager.submit(window_job(SPLITS, endless=True), options, "full")
until(lambda: len(job.checkpoints) >= 2)
fill()
until(lambda: job.metrics().checkpoints_failed >= 2)
done, told = job.metrics().checkpoints_completed, job.metrics().events[-1].text
empty()
until(lambda: job.metrics().checkpoints_completed > done)
job.stop(drain=True)
job.wait(PATIENCE_S)
manager.close()
print(job.state, ledger.rows() == expected(SPLITS, 10), told)
"""


def told_by_program(state: Path, how: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", PROGRAM, str(state), how]
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    told = told_by_program(tmp_path, "limit")
    assert told.startswith("FINISHED True ")
    assert "File too large" in told and str(tmp_path) in told


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
    ).returncode:
        pytest.skip("no tmpfs can be mounted here; files that may not grow stand for it")
    yield place
    subprocess.run(["umount", str(place)], check=False)


def test_a_real_disk_that_is_full(small_disk: Path) -> None:
    told = told_by_program(small_disk, "disk")
    assert told.startswith("FINISHED True ")
    assert "No space left on device" in told and "0.0 MB free" in told
