"""Tables that are read again on an interval while a job joins with them: old rows, then new ones;
failures; the version a checkpoint names.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.client.session import Session
from penstock.engine.api.clock import ManualClock
from penstock.engine.lookup.cache import TableVersions
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.test_timed_joins import submit

STREAM = (
    "CREATE TABLE ones (id INT, k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', {}'fields.id.kind' = 'sequence', 'fields.id.start' = '1',"
    " 'fields.k.min' = '1', 'fields.k.max' = '2')"
)
JOIN = "SELECT o.id, d.name FROM ones AS o LEFT JOIN dim FOR SYSTEM_TIME AS OF o.p AS d ON o.k = d.k AND d.name <> 'no'"


def write(path: Path, *names: str) -> None:
    """Put a whole file in place of the old one, as those do who publish tables."""
    text = "k,name\n" + "".join(f"{k},{name}\n" for name in names for k in (1, 2))
    path.with_suffix(".part").write_text(text, encoding="utf-8")
    path.with_suffix(".part").rename(path)


def declared(path: Path, interval: str | None = "30 ms") -> str:
    again = "" if interval is None else f", 'scan.reload.interval' = '{interval}'"
    return f"CREATE TABLE dim (k INT, name STRING) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv'{again})"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Connection]:
    write(tmp_path / "dim.csv", "old")
    with penstock.connect(settings={"execution.buffer-timeout": "5 ms"}) as connection:
        connection.execute(declared(tmp_path / "dim.csv"))
        yield connection


def wait_for(
    cursor: penstock.Cursor, holds: Callable[[set[str | None], dict[str, int]], bool]
) -> set[str | None]:
    """Read until what the last rows met, and what the join has counted, is as wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        met = {row[1] for row in cursor.fetchmany(20, timeout=PATIENCE_S)}
        assert cursor.job is not None
        counters = next(
            operator.counters for operator in cursor.job.metrics().operators if "lookup" in operator.name
        )
        if holds(met, counters):
            return met
    raise AssertionError("it does not come to that")


def told(cursor: penstock.Cursor) -> list[tuple[str, str]]:
    assert cursor.job is not None
    return [(event.kind, event.text) for event in cursor.job.metrics().events]


@pytest.mark.parametrize("deployment", ["embedded", "processes"])
def test_rows_meet_what_the_table_was_when_it_was_last_read(
    made: Connection, tmp_path: Path, deployment: str
) -> None:
    made.execute(f"SET 'deployment' = '{deployment}'")
    made.execute(STREAM.format("'rows-per-second' = '400', "))
    cursor = made.execute(JOIN)
    try:
        wait_for(cursor, lambda met, counters: met == {"old"} and counters.get("table_loads", 0) >= 3)
        write(tmp_path / "dim.csv", "new", "no")
        wait_for(cursor, lambda met, counters: met == {"new"})
        write(tmp_path / "dim.csv")
        wait_for(cursor, lambda met, counters: met == {None})
    finally:
        cursor.close()


@pytest.mark.parametrize("deployment", ["embedded", "processes"])
def test_a_failure_keeps_what_was_read_and_is_told_once(
    made: Connection, tmp_path: Path, deployment: str
) -> None:
    made.execute(f"SET 'deployment' = '{deployment}'")
    made.execute("SET 'parallelism.default' = '2'")
    made.execute(STREAM.format("'rows-per-second' = '400', "))
    cursor = made.execute(JOIN)
    try:
        wait_for(cursor, lambda met, counters: met == {"old"})
        (tmp_path / "bad.part").write_text("k,name\nnone,bad\n", encoding="utf-8")
        (tmp_path / "bad.part").rename(tmp_path / "dim.csv")
        met = wait_for(cursor, lambda met, counters: counters.get("failed_table_loads", 0) >= 2)
        assert met == {"old"}
        assert {kind for kind, _ in told(cursor)} == {"WARNING"}
        sentence = (
            "lookup.*: DAT-4201: table dim could not be read again and stays as it was: .*; the job continues"
        )
        assert any(re.search(sentence, text) for _, text in told(cursor))
        write(tmp_path / "dim.csv", "new")
        wait_for(cursor, lambda met, counters: met == {"new"} and told(cursor)[-1][0] == "RECOVERED")
        # Two subtasks load the table, each at its times: one may meet the file just while it is replaced,
        # which is another reason, and one may recover before the other has failed.
        of_one_failure: set[str] = set()
        for kind, text in told(cursor):
            assert text not in of_one_failure, "told once"
            of_one_failure = of_one_failure | {text} if kind == "WARNING" else set()
        recovered = len(told(cursor))
        (tmp_path / "dim.csv").unlink()
        wait_for(
            cursor, lambda met, counters: "DAT-4101" in "".join(text for _, text in told(cursor)[recovered:])
        )
        assert "event" in " ".join(
            name for name, _ in made.execute(f"DESCRIBE JOB '{cursor.job.job_id}'").fetchall()
        )
    finally:
        cursor.close()


def test_a_table_that_cannot_be_read_at_first_fails_the_job(made: Connection, tmp_path: Path) -> None:
    (tmp_path / "dim.csv").write_text("k,name\nnone,bad\n", encoding="utf-8")
    made.execute(STREAM.format("'number-of-rows' = '5', "))
    with pytest.raises(penstock.Error, match="DAT-4201"):
        made.execute(JOIN).fetchall()


@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_a_query_that_ends_is_the_join_with_the_table(
    made: Connection, tmp_path: Path, parallelism: str
) -> None:
    made.execute(f"SET 'parallelism.default' = '{parallelism}'")
    made.execute(STREAM.format("'number-of-rows' = '300', 'rows-per-second' = '0', "))
    write(tmp_path / "dim.csv", "a", "b", "no")
    again = sorted(made.execute(JOIN).fetchall())
    assert again == sorted(made.execute(JOIN.replace(" FOR SYSTEM_TIME AS OF o.p", "")).fetchall())
    assert len(again) == 600


def test_a_restored_job_goes_on_with_the_version_its_checkpoint_names(tmp_path: Path) -> None:
    """It reads again when that is due; a version that is gone is read anew at once."""
    root, state = tmp_path / "dim.csv", tmp_path / "state"
    for expected, loses in (("old", False), ("new", True)):
        write(root, "old")
        session = Session({"execution.batch.max-rows": "20", "execution.runtime-mode": "streaming"})
        try:
            session.execute(declared(root, "1 h"))
            session.execute(STREAM.format("'number-of-rows' = '400', 'rows-per-second' = '400', "))
            first, rest = Folded(), Folded()
            run_and_stop(*submit(session, JOIN, 2, state), first, 100)
            assert {name for _, name in first.rows} == {"old"}
            write(root, "new")
            versions = list(state.glob("*/staged/*/of-*/attempt-*"))
            assert versions, "a subtask stages what it reads"
            for version in versions if loses else ():
                shutil.rmtree(version)
            job, channel = submit(session, JOIN, 3, state)
            run_to_end(job, channel, rest)
            assert {name for _, name in rest.rows} == {expected}
            assert sorted(i for i, _ in (first.rows + rest.rows).elements()) == list(range(1, 401)), (
                "no row is lost or given twice"
            )
        finally:
            session.close()
            shutil.rmtree(state)


def test_only_versions_that_checkpoints_name_are_kept(tmp_path: Path) -> None:
    clock = ManualClock(1)
    versions = TableVersions(tmp_path, 0, 2, clock)
    for number in range(6):
        clock.advance(10)
        versions.keep(pa.RecordBatch.from_pydict({"k": [number]}))
        versions.name(number)
    versions.complete(4)
    assert sorted(path.name for path in (tmp_path / "of-0").iterdir()) == [
        "attempt-4",
        "attempt-5",
        "attempt-6",
    ]
    other = TableVersions(tmp_path, 1, 2, clock)
    other.restore_items(
        [
            {"version": "of-0/attempt-1", "loaded_ms": 99},
            *versions.snapshot_items(),
            {"version": "of-0/attempt-4", "loaded_ms": 41},
        ]
    )
    assert other.restored is not None and other.restored.to_pydict() == {"k": [5]}


def test_what_it_cannot_be(made: Connection, tmp_path: Path) -> None:
    made.execute(STREAM.format("'number-of-rows' = '5', "))
    grouped = "(SELECT k, MAX(name) AS name FROM dim GROUP BY k)"
    for text, code in (
        (JOIN.replace("dim", grouped, 1), "SQL-1730"),
        (JOIN.replace("o.k = d.k", "o.k < d.k"), "SQL-1728"),
        (
            declared(tmp_path)
            .replace("'csv'", "'csv', 'source.replay' = 'true'")
            .replace("TABLE dim", "TABLE r"),
            None,
        ),
        (JOIN.replace("dim", "r", 1), "SQL-1723"),
        (declared(tmp_path, "0 s").replace("TABLE dim", "TABLE z"), "SQL-1505"),
    ):
        if code is None:
            made.execute(text)
            continue
        with pytest.raises(penstock.Error, match=code):
            made.execute(text)


def test_explain_says_it() -> None:
    session = Session({"execution.runtime-mode": "streaming"})
    try:
        session.execute(declared(Path("dims.csv"), "10 min"))
        session.execute(STREAM.format("'number-of-rows' = '5', "))
        lines = [
            line
            for batch in session.execute(f"EXPLAIN {JOIN}").batches()
            for line in batch.column(0).to_pylist()
        ]
    finally:
        session.close()
    assert any(
        "LookupJoin left on k = k, reading dim [k, name] where name <> 'no' again every 10 min, ordered"
        in line
        for line in lines
    )
