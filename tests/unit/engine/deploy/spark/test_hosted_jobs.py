"""Workers on a Spark of two executors: the answer is exact when a Python worker is killed, a bounded part
does not wait for them, nothing is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.bounded.spark import relations
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.bounded.spark_results import served_rows
from penstock.engine.bounded.spark_results.served_rows import ServedRows
from tests.fault_injection import hosted_job as hosted
from tests.harness.patience import await_that

pytestmark = pytest.mark.spark
MASTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    SESSIONS.close()
    made = Session({**hosted.SETTINGS, "spark.master": MASTER, "taskmanager.idle-timeout": "1 min"})
    yield made
    made.close()
    SESSIONS.close()


def release_cores(session: Session) -> None:
    """Dismiss the idle workers, whose cores would be kept for a minute."""
    while session.state.jobs.manager.worker_processes():
        session.state.jobs.manager.worker_processes()[0].dismiss()
        time.sleep(0.1)


def test_a_killed_python_worker_costs_no_row(session: Session, tmp_path: Path) -> None:
    job = hosted.started(session, tmp_path / "out", 1_000_000_000, 40_000)
    pid = hosted.worker_pid(job)
    hosted.outage_s(job, hosted.kill(pid))
    assert hosted.worker_pid(job) != pid
    assert hosted.drained(job, tmp_path / "out") == []
    assert job.metrics().workers_lost == 1


def test_bounded_parts_are_computed_before_the_cores_are_taken(session: Session, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"k": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}), tmp_path / "names.parquet"
    )
    session.execute(
        f"CREATE TABLE names (k BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet')"
    )
    session.execute("SET 'bounded.backend' = 'spark'")
    session.execute(hosted.numbers_sql(1000, 10_000).replace("numbers", "few"))
    release_cores(session)
    query = "SELECT d.name, COUNT(*) AS c FROM few AS n JOIN (SELECT k, MAX(name) AS name FROM names GROUP BY k) AS d ON n.n % 7 = d.k GROUP BY d.name"
    rows = session.execute(query).final_rows().to_pylist()
    assert sorted((row["name"], row["c"]) for row in rows) == [("a", 143), ("b", 143)]


def test_executors_fetch_rows_spark_does_not_read(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file whose directory they cannot look for any more when they run."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "t.json").write_text(
        "".join(f'{{"k": {k}, "r": {{"a": {k % 3}}}}}\n' for k in range(100)), encoding="utf-8"
    )
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/there', 'format' = 'json'"
    session.execute(f"CREATE TABLE jsons (k BIGINT, r ROW<a BIGINT>) WITH ({options})")
    session.execute("SET 'bounded.backend' = 'spark'")
    release_cores(session)
    monkeypatch.setattr(relations, "_HANDED_OVER_BYTES", 0)
    monkeypatch.setattr(served_rows, "SEGMENT_BYTES", 500)
    frame = ServedRows.frame

    def out_of_sight(self: ServedRows, *rest: Any) -> Any:
        made = frame(self, *rest)
        assert list(self._scratch.iterdir()) == [] and made.rdd.getNumPartitions() > 1
        (tmp_path / "there").rename(tmp_path / "elsewhere")
        return made

    monkeypatch.setattr(ServedRows, "frame", out_of_sight)
    rows = (
        session.execute("SELECT r.a, COUNT(*) AS c, SUM(k) AS s FROM jsons GROUP BY r.a")
        .final_rows()
        .to_pylist()
    )
    assert sorted((row["a"], row["c"], row["s"]) for row in rows) == [
        (0, 34, 1683),
        (1, 33, 1617),
        (2, 33, 1650),
    ]


def test_what_spark_reads_when_it_starts_is_too_late(session: Session) -> None:
    late = Session({**hosted.SETTINGS, "spark.master": "local[2]"})
    late.execute(hosted.numbers_sql(1000, 1000))
    with pytest.raises(
        PenstockError, match=r"Spark runs already, and spark\.\w+ is read only when it starts"
    ):
        late.execute("SELECT COUNT(*) AS c FROM numbers").final_rows()
    late.close()


def test_another_session_of_the_same_spark(session: Session) -> None:
    release_cores(session)
    other = Session({**hosted.SETTINGS, "spark.master": MASTER})
    other.execute(hosted.numbers_sql(1000, 10_000))
    assert other.execute("SELECT COUNT(*) AS c FROM numbers").final_rows().to_pylist() == [{"c": 1000}]
    other.close()


def test_nothing_is_left(session: Session) -> None:
    spark = SESSIONS.new("UTC").sparkContext
    session.close()
    await_that(lambda: not spark.statusTracker().getActiveJobsIds(), "the end of all Spark jobs")
