"""Jobs that write into one table at once, each exactly once: of one session or several, of one name,
stopped and gone on with, copied with state.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.engine.checkpoint.job_directory import OWNER, decode_owner
from penstock.engine.job.job import Job
from tests.fault_injection.shared_table import misnamed
from tests.harness.patience import PATIENCE_S, await_that

ROWS = 300
SCRIPT = f"""
CREATE TABLE numbers (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'rows-per-second' = '%d', 'splits' = '2',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0');
CREATE TABLE a_table_with_a_name_of_more_than_twenty_four_letters (k INT)
  WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '%s', 'sink.rolling.rows' = '40');
"""
INSERT = "INSERT INTO a_table_with_a_name_of_more_than_twenty_four_letters SELECT k FROM numbers"


def opened(out: Path, state: Path, rate: int = 1_000_000, **settings: str) -> Connection:
    made = penstock.connect(
        settings={
            "execution.checkpointing.dir": str(state),
            "execution.checkpointing.interval": "20 ms",
            "execution.batch.max-rows": "20",
            "table.dml-sync": "false",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    made.executescript(SCRIPT % (rate, out))
    return made


def started(made: Connection, statement: str = INSERT) -> Job:
    job = made.execute(statement).job
    assert job is not None
    return job


def ended(*jobs: Job) -> None:
    for job in jobs:
        assert job.wait(PATIENCE_S) and job.error is None, job.error


def written(out: Path) -> Counter[int]:
    assert not misnamed(out, "*.parquet") and not list(out.rglob("*.inprogress"))
    return Counter(ds.dataset(out, format="parquet").to_table().column("k").to_pylist())


def times(count: int) -> Counter[int]:
    return Counter(dict.fromkeys(range(ROWS), count))


def stopped_in_mid_run(made: Connection, job: Job, words: str = "") -> None:
    await_that(lambda: len(job.metrics().checkpoints) >= 2 or job.state.terminal, "two checkpoints")
    made.execute(f"STOP JOB '{job.job_id}' {words}")
    ended(job)
    assert job.metrics().rows_in < ROWS


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_the_same_insert_twice_at_once_in_one_session(tmp_path: Path, parallelism: str) -> None:
    with opened(tmp_path / "out", tmp_path / "state", rate=3_000, parallelism_default=parallelism) as made:
        ended(*[started(made) for _ in range(3)])
    assert written(tmp_path / "out") == times(3)


def test_the_same_script_in_two_working_directories(tmp_path: Path) -> None:
    """One is stopped in mid-run and goes on when the other has ended: its files and checkpoints have the
    same numbers.
    """
    one, other = (
        opened(tmp_path / "out", tmp_path / name / "state", rate=rate)
        for name, rate in (("a", 100), ("b", 1_000_000))
    )
    with one, other:
        stopped_in_mid_run(one, started(one))
        ended(started(other))
    with opened(tmp_path / "out", tmp_path / "a" / "state") as again:
        ended(started(again))
    assert written(tmp_path / "out") == times(2)


def test_two_inserts_of_a_statement_set(tmp_path: Path) -> None:
    with opened(tmp_path / "out", tmp_path / "state") as made:
        ended(started(made, f"EXECUTE STATEMENT SET BEGIN {INSERT}; {INSERT} WHERE k < 100; END"))
    assert written(tmp_path / "out") == times(1) + Counter(range(100))


@pytest.mark.parametrize("how", ["savepoint", "copied state"])
def test_two_jobs_go_on_from_one_state(tmp_path: Path, how: str) -> None:
    """What was committed before is there once, what each of them adds once for each."""
    out = tmp_path / "out"
    with opened(out, tmp_path / "a", rate=100) as made:
        stopped_in_mid_run(made, started(made), f"WITH SAVEPOINT '{tmp_path / 'saved'}'")
    before = written(out)
    assert 0 < before.total() < ROWS and set(before.values()) == {1}
    homes, settings = (tmp_path / "a", tmp_path / "b"), {}
    if how == "savepoint":
        (saved,) = (tmp_path / "saved").iterdir()
        homes, settings = (tmp_path / "b", tmp_path / "c"), {"execution.state-recovery.path": str(saved)}
    else:
        shutil.copytree(tmp_path / "a", tmp_path / "b")
    one, other = (opened(out, home, rate=3_000, **settings) for home in homes)
    with one, other:
        ended(started(one), started(other))
    assert written(out) == before + (times(1) - before) + (times(1) - before)
    owners = {decode_owner(path.read_bytes()).owner for home in homes for path in home.glob(f"*/{OWNER}")}
    assert len(owners) == 2


@pytest.mark.at_length
def test_jobs_on_worker_processes(tmp_path: Path) -> None:
    with opened(
        tmp_path / "out", tmp_path / "state", rate=3_000, deployment="processes", parallelism_default="2"
    ) as made:
        ended(*[started(made) for _ in range(2)])
    assert written(tmp_path / "out") == times(2)
