"""EXPLAIN ANALYZE JOB and EXPLAIN WHY NO OUTPUT FOR JOB: a user reads what a job waits for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.job.job import Job
from tests.harness.patience import PATIENCE_S, await_that

TIMES = [datetime(2024, 1, 1) + timedelta(seconds=s) for s in (100, 1, 2, 3)]
EVENTS = pa.table({"k": pa.array(range(4), pa.int64()), "ts": pa.array(TIMES, pa.timestamp("us"))})
WINDOWS = "SELECT k, count(*) AS n FROM TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL {}) GROUP BY k, window_start, window_end"


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming"})
    session.register("events", EVENTS, time_column="ts")
    session.execute("CREATE TABLE sink_table (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')")
    session.execute(
        "CREATE TABLE ticks (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR)"
        " WITH ('connector' = 'datagen', 'rows-per-second' = '200', 'fields.ts.kind' = 'sequence')"
    )
    yield session
    session.close()


def started(session: Session, query: str) -> Job:
    job = session.execute(f"INSERT INTO sink_table {query}").job
    assert job is not None
    return job


def lines(session: Session, statement: str) -> list[str]:
    return session.execute(statement).final_rows(PATIENCE_S).column(0).to_pylist()


def test_a_window_that_has_not_closed(session: Session) -> None:
    job = started(session, WINDOWS.format("ticks", "'1' DAY"))
    await_that(lambda: any(operator.state_entries for operator in job.metrics().operators), "a row in state")
    said = lines(session, f"EXPLAIN WHY NO OUTPUT FOR JOB '{job.job_id}'")
    assert " is running: " in said[0] and ", 0 out, 0 late" in said[0]
    assert said[1].startswith("watermark ts: 1 open split") and said[2].endswith("<- delays the watermark")
    assert "its next window closes at 2020-01-02 00:00:00" in said[3] and "short of it" in said[3]
    assert said[-1].startswith(
        "so: tumble aggregate by k buffers its rows until the watermark passes them, and split "
    )
    plan = lines(session, f"EXPLAIN ANALYZE JOB '{job.job_id}'")
    assert any(
        "tumble aggregate by k" in line and "state " in line and "watermark 2019-12-31" in line
        for line in plan
    )
    assert plan[0] == f"job {job.job_id} is running" and plan[-2].startswith("task 0 of source ticks -> ")
    assert plan[-1].startswith("slowest: ")
    job.cancel()
    job.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("query", "verdict"),
    [
        (WINDOWS.format("(SELECT * FROM events WHERE k > 99)", "'1' HOUR"), "has emitted no row"),
        ("SELECT k, 1 FROM events WHERE k > 99", "has emitted no row"),
        ("SELECT k, 1 FROM events", "there is output: 4 rows have reached the sinks"),
    ],
)
def test_a_job_that_has_ended(session: Session, query: str, verdict: str) -> None:
    job = started(session, query)
    assert job.wait(PATIENCE_S)
    assert lines(session, f"EXPLAIN WHY NO OUTPUT FOR JOB '{job.job_id}'")[-1].endswith(verdict)


def test_a_job_is_found_by_its_name(session: Session) -> None:
    for _ in range(2):
        job = started(session, WINDOWS.format("events", "'10' SECONDS"))
        assert job.wait(PATIENCE_S)
    by_id = lines(session, f"EXPLAIN ANALYZE JOB '{job.job_id}'")
    assert job.name != job.job_id and lines(session, f"EXPLAIN ANALYZE JOB '{job.name}'") == by_id


def test_late_rows_show(session: Session) -> None:
    job = started(session, WINDOWS.format("events", "'10' SECONDS"))
    assert job.wait(PATIENCE_S)
    assert ", 3 late" in lines(session, f"EXPLAIN WHY NO OUTPUT FOR JOB '{job.job_id}'")[0]
    assert any("late 3" in line for line in lines(session, f"EXPLAIN ANALYZE JOB '{job.job_id}'"))


@pytest.mark.parametrize(
    "statement", ["EXPLAIN ANALYZE JOB 'nowhere'", "EXPLAIN WHY NO OUTPUT FOR JOB 'nowhere'"]
)
def test_a_job_there_is_not(session: Session, statement: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(statement)
    assert refused.value.code == "CLI-6030"
