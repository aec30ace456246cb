"""INSERT and CREATE TABLE AS: finished when they return where their sources end; else a job, which ends in
order with its connection.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.client.execution.engine_jobs import wait_for_job
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.source_gate import gated

ENDLESS = "CREATE TABLE endless (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000')"
NUMBERS = """CREATE TABLE numbers (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0',
  'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '{}')"""
ROWS = 2_000


def sink(name: str, root: Path) -> str:
    return f"CREATE TABLE {name} (a BIGINT) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{root}/{name}')"


def rows_of(root: Path, name: str) -> list[int]:
    return sorted(ds.dataset(root / name, format="parquet").to_table().column("a").to_pylist())


def opened(root: Path, **settings: str) -> Connection:
    made = penstock.connect(
        settings={
            "bounded.backend": "duckdb",
            "execution.batch.max-rows": "50",
            **{key.replace("_", "."): text for key, text in settings.items()},
        }
    )
    for statement in (ENDLESS, NUMBERS.format(ROWS), sink("o", root), sink("p", root)):
        made.execute(statement)
    return made


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as made:
        yield made


def test_statement_sets_and_create_table_as_are_finished_too(connection: Connection, tmp_path: Path) -> None:
    both = connection.execute(
        "EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT a FROM numbers; INSERT INTO p SELECT a FROM numbers WHERE a <= 10; END"
    )
    assert both.rowcount == ROWS + 10
    assert len(rows_of(tmp_path, "o")) == ROWS
    options = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{tmp_path}/made'"
    assert (
        connection.execute(
            f"CREATE TABLE made WITH ({options}) AS SELECT a FROM numbers WHERE a > 1990"
        ).rowcount
        == 10
    )
    assert connection.execute("SELECT COUNT(*) FROM made").fetchall() == [(10,)]
    assert (
        connection.cursor()
        .executemany("INSERT INTO p SELECT a FROM numbers WHERE a <= ?", [(1,), (2,)])
        .rowcount
        == 3
    )


FILLED = "CREATE TABLE made WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{}') AS SELECT 10 DIV (a - {}) AS x FROM numbers"


@pytest.mark.parametrize("standing", [False, True])
def test_a_table_of_a_query_that_fails_before_a_row_is_committed_is_dropped(
    connection: Connection, tmp_path: Path, standing: bool
) -> None:
    root = tmp_path / "new" / "made"
    if standing:
        root.mkdir(parents=True)
        (root / "other.txt").write_text("not ours")
    with pytest.raises(penstock.DataError, match="zero") as failed:
        connection.execute(FILLED.format(root, 5))
    assert "table made is dropped again: no row of it was committed" in str(failed.value)
    assert "made" not in {name for name, *_ in connection.execute("SHOW TABLES").fetchall()}
    assert root.parent.exists() is standing
    assert connection.execute(FILLED.format(root, ROWS + 1)).rowcount == ROWS
    if standing:
        assert (root / "other.txt").read_text() == "not ours"


def test_a_table_of_a_query_whose_job_cannot_be_submitted_is_dropped(
    connection: Connection, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    connection.execute(f"SET 'execution.checkpointing.dir' = '{tmp_path}/file'")
    with pytest.raises(penstock.Error, match="table made is dropped again: nothing fills it"):
        connection.execute(FILLED.format(tmp_path / "made", ROWS + 1))
    assert "made" not in {name for name, *_ in connection.execute("SHOW TABLES").fetchall()}


def test_a_table_that_has_rows_when_its_query_fails_stays(tmp_path: Path) -> None:
    raised = []

    def execute() -> None:
        with pytest.raises(penstock.DataError, match="zero") as failed:
            connection.execute(FILLED.format(tmp_path / "made", ROWS - 1))
        raised.append(str(failed.value))

    kept = {
        "execution_checkpointing_interval": "10 ms",
        "execution_checkpointing_dir": str(tmp_path / "state"),
    }
    with gated(ROWS // 2) as gate, opened(tmp_path, **kept) as connection:
        thread = threading.Thread(target=execute)
        thread.start()
        await_that(
            lambda: (tmp_path / "made").exists() and any((tmp_path / "made").glob("part-*")),
            "a committed file",
        )
        gate.open()
        thread.join(PATIENCE_S)
        assert raised and "dropped" not in raised[0]
        (count,) = connection.execute("SELECT COUNT(*) FROM made").fetchone()
        assert count > 0
    # goes on from its state and fails, perhaps before it has a checkpoint of its own
    with opened(tmp_path, **kept) as connection:
        with pytest.raises(penstock.DataError, match="zero") as failed:
            connection.execute(FILLED.format(tmp_path / "made", ROWS - 1))
        assert "dropped" not in str(failed.value)
        assert connection.execute("SELECT COUNT(*) FROM made").fetchone() >= (count,)


def test_an_insert_that_fails_raises_where_it_is_executed(connection: Connection) -> None:
    with pytest.raises(penstock.DataError, match="zero"):
        connection.execute("INSERT INTO o SELECT 10 DIV (a - 5) FROM numbers")


def test_an_endless_insert_returns_its_job_and_the_next_statement_runs_beside_it(
    connection: Connection, tmp_path: Path
) -> None:
    cursor = connection.execute("INSERT INTO o SELECT a FROM endless")
    assert cursor.job is not None and not cursor.job.state.terminal
    assert cursor.rowcount == -1
    assert connection.execute("INSERT INTO p SELECT a FROM numbers").rowcount == ROWS
    assert not cursor.job.state.terminal


def waiting(connection: Connection) -> tuple[Any, threading.Thread, list[Any]]:
    """Execute a bounded INSERT in a thread, which waits for it behind a gate; return its cursor, the
    thread, and where it leaves its error.
    """
    cursor, raised = connection.cursor(), []

    def execute() -> None:
        try:
            cursor.execute("INSERT INTO o SELECT a FROM numbers")
        except penstock.Error as error:
            raised.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    await_that(
        lambda: any(job.metrics().rows_in >= ROWS // 4 for job in connection.jobs()), "a quarter of the rows"
    )
    return cursor, thread, raised


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_an_insert_that_is_waited_for_can_be_ended_by_another_thread(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with gated(ROWS // 2):
        connection = opened(tmp_path)
        cursor, thread, raised = waiting(connection)
        if how == "cancel":
            cursor.cancel()
        else:
            connection.close()
        thread.join(PATIENCE_S)
    assert [type(error) for error in raised] == [penstock.OperationalError]
    assert raised[0].code == "RUN-2903"
    connection.close()
    assert ("was stopped before its sources ended, and has no state" in capsys.readouterr().err) is (
        how == "close"
    )


def test_a_connection_that_is_closed_stops_its_jobs_with_a_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {"execution_checkpointing_dir": str(tmp_path / "state"), "table_dml-sync": "false"}
    with gated(ROWS // 2), opened(tmp_path, **kept) as connection:
        job = connection.execute("INSERT INTO o SELECT a FROM numbers").job
        await_that(lambda: job.metrics().rows_in >= ROWS // 4, "a quarter of the rows")
    assert job.stopped
    assert (
        "job insert-into-o-1 was stopped; the same statement resumes from checkpoint 1"
        in capsys.readouterr().err
    )
    before = rows_of(tmp_path, "o")
    assert before == list(range(1, len(before) + 1)) and ROWS // 4 <= len(before) < ROWS
    with opened(tmp_path, execution_checkpointing_dir=str(tmp_path / "state")) as connection:
        assert connection.execute("INSERT INTO o SELECT a FROM numbers").rowcount == -1, (
            "its figures are of the second part only"
        )
        assert rows_of(tmp_path, "o") == list(range(1, ROWS + 1))
    with opened(tmp_path, execution_checkpointing_dir=str(tmp_path / "state")) as connection:
        again = connection.execute("INSERT INTO o SELECT a FROM numbers")
        assert (again.rowcount, again.note) == (
            0,
            "job insert-into-o-1 had finished before: nothing was written",
        )
    assert len(rows_of(tmp_path, "o")) == ROWS
    assert capsys.readouterr().err == ""


def test_each_connection_stops_its_own_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    jobs = [made.execute("INSERT INTO o SELECT a FROM endless").job for made in (first, second)]
    first.close()
    assert jobs[0].stopped and not jobs[1].state.terminal
    assert jobs[1].job_id not in capsys.readouterr().err
    second.close()
    assert f"job {jobs[1].job_id} was stopped" in capsys.readouterr().err


def test_a_job_that_failed_unheard_is_told_of_in_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = opened(tmp_path, **{"table_dml-sync": "false"})
    job = connection.execute("INSERT INTO o SELECT 10 DIV (a - 5) FROM numbers").job
    assert job.wait(PATIENCE_S)
    connection.close()
    assert f"job {job.job_id} failed: RUN-" in capsys.readouterr().err


def test_what_was_asked_to_end_is_not_told_of(
    connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    connection.register("letters", pa.table({"a": pa.array([1, 2], pa.int64())}))
    connection.execute("INSERT INTO o SELECT a FROM letters")
    job = connection.execute("INSERT INTO o SELECT a FROM endless").job
    connection.execute(f"CANCEL JOB '{job.job_id}'")
    connection.execute("SELECT a FROM endless").fetchmany(1)
    connection.close()
    assert capsys.readouterr().err == ""


def test_ctrl_c_cancels_the_insert_that_is_waited_for() -> None:
    class Interrupted:
        cancelled = 0
        waits = 0

        def wait(self, timeout_s: float | None) -> bool:
            self.waits += 1
            if self.waits == 1:
                raise KeyboardInterrupt
            return True

        def cancel(self) -> None:
            self.cancelled += 1

    job: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        wait_for_job(job)
    assert (job.cancelled, job.waits) == (1, 2)
