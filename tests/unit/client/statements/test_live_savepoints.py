"""CREATE SAVEPOINT: a job goes on and ends exactly, and another goes on from the savepoint exactly, at another
parallelism. What is killed while it copies leaves a whole savepoint or none.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.engine.checkpoint import savepoints
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.job.job import Job
from penstock.repl.cli import main
from tests.harness.object_stores import environment_of, moto_server
from tests.harness.patience import await_that
from tests.harness.source_gate import SourceGate, gated
from tests.unit.client.statements.test_savepoints import INSERT, ROWS, opened, told, totals

WHOLE = (ROWS // 6000 * 9, ROWS, ROWS * (ROWS + 1) // 2)


@contextlib.contextmanager
def running(made: Connection) -> Iterator[tuple[Job, SourceGate]]:
    """The INSERT as a job whose sources are held at three quarters of their rows."""
    with gated(ROWS * 3 // 4) as gate:
        job = made.execute(INSERT).job
        assert job is not None
        await_that(lambda: job.metrics().rows_in >= ROWS // 6 or job.state.terminal, "a sixth of the rows")
        yield job, gate


def saved(made: Connection, job: Job, to: object) -> str:
    [(path,)] = made.execute(f"CREATE SAVEPOINT OF JOB '{job.job_id}' TO '{to}'").fetchall()
    return str(path)


def test_a_job_ends_exactly_after_two_savepoints(tmp_path: Path) -> None:
    home = str(tmp_path)
    with opened(f"{home}/state", tmp_path / "out", 30_000) as made, running(made) as (job, gate):
        first, second = saved(made, job, f"{home}/kept"), saved(made, job, f"{home}/kept")
        assert first != second and str(job.state) == "RUNNING"
        gate.open()
        await_that(lambda: job.state.terminal, "the end of the job")
    assert totals(tmp_path / "out") == WHOLE


def stopped_and_resumed(home: str, tmp_path: Path) -> None:
    """A job is cancelled after its savepoint, and another goes on from there."""
    # cut short: nothing is processed after the savepoint but what the gate holds back
    with opened(f"{home}/cut-state", tmp_path / "cut", 0) as made, running(made) as (job, _):
        await_that(lambda: job.metrics().rows_in >= ROWS * 3 // 4, "all rows before the gate")
        path = saved(made, job, f"{home}/kept")
        made.execute(f"CANCEL JOB '{job.job_id}'")
    assert totals(tmp_path / "cut")[1] < ROWS
    # resumed, elsewhere and at another parallelism
    resume(f"{home}/heir", tmp_path / "cut", path)
    assert totals(tmp_path / "cut") == WHOLE


def resume(state: str, out: Path, savepoint: str) -> None:
    more = {"execution.state-recovery.path": savepoint, "parallelism.default": "3", "table.dml-sync": "true"}
    with opened(state, out, 0, **more) as made:
        job = made.execute(INSERT).job
        assert job is not None and job.metrics().rows_in < ROWS, "it was to go on, not to begin again"


def test_another_goes_on_from_it_exactly(tmp_path: Path) -> None:
    stopped_and_resumed(str(tmp_path), tmp_path)


@pytest.mark.at_length
@pytest.mark.xdist_group("moto")
def test_another_goes_on_from_it_exactly_in_a_bucket(tmp_path: Path) -> None:
    server = moto_server()
    with environment_of(server.environment):
        stopped_and_resumed(f"s3://{server.bucket('live-savepoints')}", tmp_path)


@pytest.mark.at_length
def test_of_worker_processes_while_rows_flow(tmp_path: Path) -> None:
    more = {"deployment": "processes", "parallelism.default": "2"}
    with opened(tmp_path / "state", tmp_path / "out", 30_000, **more) as made:
        job = made.execute(INSERT).job
        assert job is not None
        await_that(lambda: job.metrics().rows_in >= ROWS // 6 or job.state.terminal, "a sixth of the rows")
        path = saved(made, job, tmp_path / "kept")
        await_that(lambda: job.state.terminal, "the end of the job")
    assert totals(tmp_path / "out") == WHOLE
    # both write into one table: each window after the savepoint is there twice, each before it once
    resume(str(tmp_path / "heir"), tmp_path / "out", path)
    rows = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    times = Counter(tuple(row.values()) for row in rows)
    assert len(times) == WHOLE[0] and set(times.values()) == {1, 2}
    once = [row[-1] for row, count in times.items() if count == 1]
    assert max(once) < min(row[-1] for row, count in times.items() if count == 2)


def copied_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take a savepoint whose copy begins when four more checkpoints are complete."""
    with opened(tmp_path / "state", tmp_path / "out", 30_000) as made, running(made) as (job, _):
        copy = savepoints._copy

        def late(*arguments: object) -> object:
            before = job.metrics().checkpoints_completed
            await_that(lambda: job.metrics().checkpoints_completed > before + 4, "four checkpoints")
            return copy(*arguments)

        monkeypatch.setattr(savepoints, "_copy", late)
        path = saved(made, job, tmp_path / "kept")
        made.execute(f"CANCEL JOB '{job.job_id}'")
    return path


def test_its_files_are_retained_while_they_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied_slowly(tmp_path, monkeypatch)
    assert main(["checkpoint", "verify", path]) == 0
    # and no longer: what it needed is gone with the checkpoints after it
    (state,) = (tmp_path / "state").glob("insert*")
    assert len([*state.glob("chk-*")]) <= 3


def test_without_that_the_copy_fails_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckpointStore, "pin", lambda self, checkpoint_id: None)
    with pytest.raises(penstock.Error):
        copied_slowly(tmp_path, monkeypatch)
    assert [*(tmp_path / "kept").iterdir()] == []


def test_mistakes(tmp_path: Path) -> None:
    with opened(tmp_path / "state", tmp_path / "out", 30_000) as made, running(made) as (job, gate):
        assert told(made, f"CREATE SAVEPOINT OF JOB '{job.job_id}'") == "STA-3037"
        assert told(made, f"CREATE SAVEPOINT OF JOB 'nothing' TO '{tmp_path}'") == "CLI-6030"
        (tmp_path / "file").write_text("")
        assert told(made, f"CREATE SAVEPOINT OF JOB '{job.job_id}' TO '{tmp_path / 'file'}'").startswith(
            "STA-30"
        )
        assert str(job.state) == "RUNNING"
        gate.open()
        await_that(lambda: job.state.terminal, "the end of the job")
        assert told(made, f"CREATE SAVEPOINT OF JOB '{job.job_id}' TO '{tmp_path}'") == "STA-3040"


KILLED = """
import os, signal, sys
from pathlib import Path
from penstock.engine.checkpoint import savepoints
from penstock.engine.checkpoint.savepoints import start_from, write_savepoint
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.memory import MemoryStorage

state, kept = Path(sys.argv[1]), Path(sys.argv[2])
if sys.argv[3] == "in place":  # the control: under its name from the beginning
    savepoints.ObjectUrl = Path
source = LocalStorage(state)
for number in range(1, 1000):
    child = os.fork()
    if not child:
        calls = iter(range(1, 10**6))
        def counted(verb):
            original = getattr(LocalStorage, verb)
            def call(self, *arguments):
                if self is not source and next(calls) == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(self, *arguments)
            setattr(LocalStorage, verb, call)
        for verb in ("create", "append", "sync", "publish", "sync_directory", "close", "list", "read"):
            counted(verb)
        write_savepoint(source, state.name, kept / str(number))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found = [path for path in (kept / str(number)).glob("*") if not path.name.startswith(".")]
    whole = 0
    for path in found:
        try:
            store = CheckpointStore(MemoryStorage(), "heir")
            start_from(path, store, store.open())
            whole += 1
        except Exception as error:
            print("not whole", number, error)
    print("killed" if status else "copied", number, len(found), whole)
    if not status:
        break
"""


def killed_at_each_step(tmp_path: Path, how: str) -> list[str]:
    with opened(tmp_path / "state", tmp_path / "out", 30_000) as made, running(made) as (job, _):
        made.execute(f"STOP JOB '{job.job_id}'")
    (state,) = (tmp_path / "state").glob("insert*")
    program = [sys.executable, "-c", KILLED, str(state), str(tmp_path / "kept"), how]
    return subprocess.run(
        program, capture_output=True, text=True, check=True, timeout=300
    ).stdout.splitlines()


def test_killed_while_it_copies_there_is_a_whole_savepoint_or_none(tmp_path: Path) -> None:
    lines = killed_at_each_step(tmp_path, "staged")
    assert len(lines) > 15 and lines[-1].startswith("copied"), lines
    assert not [line for line in lines if line.startswith("not whole")]
    assert lines[-1].split()[2:] == ["1", "1"]


@pytest.mark.at_length
def test_copied_under_its_name_there_is_half_of_one(tmp_path: Path) -> None:
    assert [line for line in killed_at_each_step(tmp_path, "in place") if line.startswith("not whole")]
