"""What penstock keeps for itself is its user's alone, whatever the umask: states, records, locks,
savepoints, staged rows, copies. Output is not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.engine.checkpoint.job_directory import OWNER
from penstock.engine.storage.local import LocalStorage, make_private
from tests.harness.patience import PATIENCE_S, await_that

SCRIPT = """
CREATE TABLE s (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'number-of-rows' = '200', 'rows-per-second' = '%d', 'fields.k.min' = '0',
  'fields.k.max' = '9');
CREATE TABLE named (k INT, v STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'named');
CREATE TABLE t (k INT, v STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'out');
"""
INSERT = "INSERT INTO t SELECT s.k, n.v FROM s JOIN (SELECT k, MAX(v) AS v FROM named GROUP BY k) AS n ON s.k = n.k"


@pytest.fixture(params=[0o000, 0o022])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "a.csv").write_text("k,v\n" + "".join(f"{k},name {k}\n" for k in range(10)))
    before = os.umask(request.param)
    yield tmp_path
    os.umask(before)


def modes(root: Path) -> dict[str, set[int]]:
    """Return the modes of the directories and of the files in a directory, itself included."""
    paths = [root, *root.rglob("*")]
    return {
        kind: {
            stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir() == (kind == "directories")
        }
        for kind in ("directories", "files")
    }


def stopped(state: Path, rate: int, statement: str) -> None:
    settings = {
        "execution.checkpointing.dir": str(state),
        "execution.checkpointing.interval": "20 ms",
        "bounded.backend": "duckdb",
    }
    with penstock.connect(
        settings={**settings, "table.dml-sync": "false", "state.spill.dir": str(state.parent / "spilled")}
    ) as made:
        made.executescript(SCRIPT % rate)
        job = made.execute(INSERT).job
        assert job is not None
        await_that(lambda: len(job.metrics().checkpoints) >= 2 or job.state.terminal, "two checkpoints")
        if statement:
            made.execute(statement % job.job_id)
        assert job.wait(PATIENCE_S) and job.error is None, job.error


def test_states_are_their_users_alone(home: Path) -> None:
    stopped(home / "deep" / "state", 100, f"STOP JOB '%s' WITH SAVEPOINT '{home / 'saved'}'")
    stopped(home / "deep" / "state", 100_000, "")
    private = {"directories": {0o700}, "files": {0o600}}
    assert modes(home / "deep") == private and modes(home / "saved") == private
    names = {path.name for path in (home / "deep").rglob("*")}
    assert {"JOB", "LOCK", "CURRENT", "FINISHED", OWNER, "COMPLETE"} <= names, (
        "all kinds of files are among them"
    )


def test_output_is_as_the_umask_says(home: Path) -> None:
    stopped(home / "state", 100_000, "")
    umask = os.umask(0)
    os.umask(umask)
    assert modes(home / "out") == {"directories": {0o777 & ~umask}, "files": {0o666 & ~umask}}


def test_a_directory_of_an_early_version_is_shut_once(home: Path) -> None:
    stopped(home / "state", 100, "STOP JOB '%s'")
    (job,) = (home / "state").iterdir()
    (job / OWNER).unlink()
    job.chmod(0o755)
    stopped(home / "state", 100, "STOP JOB '%s'")
    assert stat.S_IMODE(job.stat().st_mode) == 0o700
    job.chmod(0o750)
    stopped(home / "state", 100_000, "")
    assert stat.S_IMODE(job.stat().st_mode) == 0o750, "who lets others in has the say"


def test_directories_that_are_there_stay_as_they_are(home: Path) -> None:
    (home / "mine").mkdir(mode=0o755)
    make_private(home / "mine" / "a" / "b")
    LocalStorage(home / "mine" / "a").create("x")
    assert [stat.S_IMODE((home / "mine" / place).stat().st_mode) for place in ("", "a", "a/b", "a/x")] == [
        0o755,
        0o700,
        0o700,
        0o600,
    ]
