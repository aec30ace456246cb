"""Names of jobs and the directories of their states: one for each name, those of earlier versions are
found, another job's state is never taken.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.client.execution import recorded_jobs as job_records
from penstock.client.execution.recorded_jobs import job_id_of, recorded_jobs
from penstock.client.session import Session
from penstock.engine.checkpoint.job_directory import JOB, OWNER
from penstock.engine.storage.storage import NAME, directory_name
from penstock.repl.cli import main
from tests.harness.patience import PATIENCE_S

ODD = (
    "a/b",
    "a:b",
    "a b",
    "a-b",
    "é",
    "e",
    "ü",
    "e\u0301",
    "",
    ".",
    "..",
    "-",
    "/",
    "job",
    "x" * 81,
    "x" * 80,
    "x" * 81 + "y",
    "A-b",
    "a.dropped",
    "a-b-1",
)


def opened(root: Path, name: str, **settings: str) -> Connection:
    made = penstock.connect(
        settings={"execution.checkpointing.dir": str(root / "state"), "pipeline.name": name, **settings}
    )
    made.executescript(
        f"CREATE TABLE t (k INT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{root}/out');"
    )
    return made


def inserted(root: Path, name: str, value: int = 1, **settings: str) -> str:
    with opened(root, name, **settings) as made:
        job = made.execute(f"INSERT INTO t VALUES ({value})").job
        assert job is not None and job.wait(PATIENCE_S) and job.error is None, job and job.error
        return job.job_id


def rows(root: Path) -> list[int]:
    return sorted(
        json.loads(line)["k"]
        for path in (root / "out").glob("part-*")
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def test_every_name_has_a_directory_of_its_own(tmp_path: Path) -> None:
    ids = [inserted(tmp_path, name) for name in ODD if name]
    assert len(set(ids)) == len(ids) and rows(tmp_path) == [1] * len(ids)
    assert {job.record.name for job in recorded_jobs(tmp_path / "state")} == set(ODD) - {""}
    assert [inserted(tmp_path, name) for name in ODD if name] == ids
    assert rows(tmp_path) == [1] * len(ids), "all of them had finished"


# drawing texts is slow on a machine that is shared by many, and that is no failure
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.text(max_size=100) | st.sampled_from(ODD) | st.text("aA.-_/ é", max_size=6),
        min_size=2,
        max_size=9,
        unique=True,
    )
)
def test_no_two_names_share_a_directory(names: list[str]) -> None:
    found = [directory_name(name) for name in names]
    ids = [f"{one}-{number}" for one, number in itertools.product(found, (1, 11))]
    assert len(set(ids)) == len(ids)
    assert all(NAME.fullmatch(one) and one not in (".", "..") and one.strip("-.") == one for one in found)


def test_names_that_may_be_directories_are(tmp_path: Path) -> None:
    for name in ("insert-into-t", "a_b.c-d", "X9", "x" * 80):
        assert job_id_of(tmp_path, name, 3) == f"{name}-3"
    assert directory_name(directory_name("a/b")) != directory_name("a/b")


@pytest.mark.parametrize(
    ("name", "early"),
    [("täglich", "t-glich-1"), ("a/b", "a-b-1"), ("/", "job-1"), ("y" * 90, "y" * 80 + "-1")],
)
def test_a_state_of_an_early_version_is_found_by_its_recorded_name(
    tmp_path: Path, name: str, early: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(job_records, "directory_name", lambda name: early.removesuffix("-1"))
        assert inserted(tmp_path, name) == early
    (tmp_path / "state" / early / OWNER).unlink()
    assert inserted(tmp_path, name) == early and rows(tmp_path) == [1]
    assert inserted(tmp_path, f"{name}?", 2) != early and rows(tmp_path) == [1, 2]
    for path in (OWNER, JOB):
        (tmp_path / "state" / early / path).unlink(missing_ok=True)
    assert inserted(tmp_path, name) == early and rows(tmp_path) == [1, 2], (
        "one whose statement had parameters has no record"
    )


@pytest.mark.parametrize("known_by", [JOB, OWNER])
def test_another_jobs_state_is_refused(tmp_path: Path, known_by: str) -> None:
    held = inserted(tmp_path, "Daily")
    for name in {JOB, OWNER} - {known_by}:
        (tmp_path / "state" / held / name).unlink()
    # what a file system does that ignores case
    shutil.move(tmp_path / "state" / held, tmp_path / "state" / "daily-1")
    with pytest.raises(penstock.Error, match=r"STA-3012.*that of job 'Daily', not of 'daily'") as refused:
        inserted(tmp_path, "daily", 2)
    assert isinstance(refused.value, PenstockError | penstock.Error) and "pipeline.name" in str(refused.value)
    assert inserted(tmp_path, "another", 2) == "another-1" and rows(tmp_path) == [1, 2]


def test_jobs_are_listed_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job_id = inserted(tmp_path, "täglich/Umsatz")
    assert job_id.startswith("taglich-Umsatz.")
    assert main(["jobs", "--state", str(tmp_path / "state"), "--jsonl"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert (listed["job"], listed["name"], listed["status"]) == (job_id, "täglich/Umsatz", "FINISHED")
    assert main(["recover", "--job", "täglich/Umsatz", "--state", str(tmp_path / "state")]) == 0
    assert f"job {job_id} (täglich/Umsatz): taken over from epoch 1, finished" in capsys.readouterr().err


def test_a_view_of_any_name_keeps_its_state(tmp_path: Path) -> None:
    with opened(tmp_path, "views") as made:
        made.executescript("CREATE TABLE s (k INT) WITH ('connector' = 'datagen', 'rows-per-second' = '10');")
        made.execute("CREATE MATERIALIZED VIEW `größte Werte/1` AS SELECT MAX(k) AS k FROM s")
        assert any(path.name.startswith("materialized-view-") for path in (tmp_path / "state").iterdir())


def test_a_job_resumes_beside_the_stored_catalog_that_has_its_tables(tmp_path: Path) -> None:
    """The record makes names that are there already."""
    ticks = "CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
    catalog, state = tmp_path / "catalog", tmp_path / "state"
    for run in range(2):
        session = Session({"bounded.backend": "duckdb"}, state_dir=state, catalog_dir=catalog)
        if run:
            (recorded,) = recorded_jobs(state)
            job = session.resume(recorded).job
            assert job is not None and job.job_id == recorded.job_id
        else:
            session.execute(ticks)
            session.execute("CREATE TABLE nothing (n BIGINT) WITH ('connector' = 'blackhole')")
            session.execute("INSERT INTO nothing SELECT n FROM ticks")
        session.close()
