"""INSERT OVERWRITE of files: what it replaces, and that a table is old or new whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.connectors.filesystem import overwrite
from penstock.engine.connectors.filesystem.staged_files import share_staging
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S, await_that

FLAT = "CREATE TABLE t (id INT, name STRING) WITH ('connector' = 'filesystem', 'path' = '{}/t', 'format' = 'csv')"
PARTS = (
    "CREATE TABLE p (id INT, day DATE, hr INT) PARTITIONED BY (day, hr) "
    "WITH ('connector' = 'filesystem', 'path' = '{}/p', 'format' = 'parquet')"
)
ROWS = "(1, DATE '2026-01-01', 1), (2, DATE '2026-01-01', 2), (3, DATE '2026-01-02', 1), (4, NULL, 1)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "parallelism.default": "2"})
    session.execute(FLAT.format(tmp_path))
    session.execute(PARTS.format(tmp_path))
    session.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    session.execute(f"INSERT INTO p VALUES {ROWS}")
    yield session
    session.close()


def rows(session: Session, query: str) -> list[tuple[Any, ...]]:
    found = session.execute(query).final_rows(PATIENCE_S).to_pylist()
    return sorted(tuple(map(str, row.values())) for row in found)


def hidden(place: Path) -> list[str]:
    return [path.name for path in place.rglob("*.penstock.overwrite-*")]


FIRST, SECOND, THIRD, FOURTH = (
    ("1", "2026-01-01", "1"),
    ("2", "2026-01-01", "2"),
    ("3", "2026-01-02", "1"),
    ("4", "None", "1"),
)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        # a partition that constants name
        (
            "INSERT OVERWRITE p PARTITION (day = '2026-01-01', hr = 1) SELECT id + 10 FROM p",
            [("11", *FIRST[1:]), ("12", *FIRST[1:]), ("13", *FIRST[1:]), ("14", *FIRST[1:]), SECOND, THIRD, FOURTH],
        ),
        # .. without new rows
        (
            "INSERT OVERWRITE TABLE p PARTITION (day = '2026-01-01', hr = '1') SELECT id FROM p WHERE id > 9",
            [SECOND, THIRD, FOURTH],
        ),
        # those that the query has rows of
        (
            "INSERT OVERWRITE p PARTITION (day = '2026-01-01', hr) SELECT id * 5, hr FROM p WHERE id IN (2, 3)",
            [("10", *SECOND[1:]), ("15", *FIRST[1:]), THIRD, FOURTH],
        ),
        ("INSERT OVERWRITE p SELECT id + 1, day, hr FROM p WHERE day IS NULL", [FIRST, SECOND, THIRD, ("5", "None", "1")]),
        ("INSERT OVERWRITE p VALUES (7, DATE '2026-05-05', 3)", [FIRST, SECOND, THIRD, FOURTH, ("7", "2026-05-05", "3")]),
        # columns by name
        (
            "INSERT OVERWRITE p PARTITION (day = '2026-01-02') (hr, id) VALUES (1, 9), (2, 8)",
            [FIRST, SECOND, FOURTH, ("8", "2026-01-02", "2"), ("9", "2026-01-02", "1")],
        ),
    ],
)  # fmt: skip
def test_partitions(
    session: Session, statement: str, expected: list[tuple[str, ...]], tmp_path: Path
) -> None:
    session.execute(statement)
    assert rows(session, "SELECT * FROM p") == sorted(expected)
    # the next INSERT adds to what stands, and the log names it
    session.execute("INSERT INTO p VALUES (99, DATE '2026-01-01', 1)")
    assert rows(session, "SELECT * FROM p") == sorted([*expected, ("99", "2026-01-01", "1")])
    assert hidden(tmp_path) == []


def test_a_whole_table(session: Session, tmp_path: Path) -> None:
    session.execute("INSERT OVERWRITE t SELECT id + 10, name FROM t")
    assert rows(session, "SELECT * FROM t") == [("11", "a"), ("12", "b")]
    session.settings.set("table.dml-sync", "false")  # it is waited for all the same
    session.execute("INSERT OVERWRITE t SELECT * FROM t WHERE id > 99")
    assert rows(session, "SELECT * FROM t") == []
    assert hidden(tmp_path) == []


def test_a_query_that_fails_replaces_nothing(session: Session, tmp_path: Path) -> None:
    with pytest.raises(PenstockError):
        session.execute("INSERT OVERWRITE t SELECT id DIV (id - 2), name FROM t")
    assert rows(session, "SELECT * FROM t") == [("1", "a"), ("2", "b")]
    assert hidden(tmp_path) == []


def test_each_partition_is_old_or_new_when_the_disk_fails(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanged: list[Path] = []

    def fail_at_the_second(first: Path, second: Path) -> None:
        if exchanged:
            raise OSError(5, "no disk")
        exchanged.append(second)
        real(first, second)

    real = overwrite.exchange
    monkeypatch.setattr(overwrite, "exchange", fail_at_the_second)
    with pytest.raises(PenstockError) as refused:
        session.execute("INSERT OVERWRITE p SELECT id + 10, day, hr FROM p")
    assert refused.value.code == "DAT-4603"
    found = rows(session, "SELECT * FROM p")
    assert [exchanged[0].name] == ["hr=1"] and len(found) == 4
    assert sum(int(row[0]) > 10 for row in found) == 1
    # the next INSERT finishes it before it adds
    monkeypatch.setattr(overwrite, "exchange", real)
    session.execute("INSERT INTO p VALUES (9, DATE '2026-01-02', 1)")
    found = rows(session, "SELECT * FROM p")
    assert sorted(int(row[0]) for row in found) == [9, 11, 12, 13, 14]
    assert hidden(tmp_path) == []


def test_a_file_system_that_exchanges_no_names_begins_nothing(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An intent that nobody can carry out would be in the way of every later INSERT."""
    before = rows(session, "SELECT * FROM p")
    with monkeypatch.context() as patched:
        patched.setattr(overwrite, "_swap", lambda first, second: OSError(22, "Invalid argument"))
        with pytest.raises(PenstockError) as refused:
            session.execute("INSERT OVERWRITE p SELECT id + 10, day, hr FROM p")
    assert refused.value.code == "DAT-4616"
    assert rows(session, "SELECT * FROM p") == before and hidden(tmp_path) == []
    session.execute("INSERT INTO p VALUES (9, DATE '2026-01-02', 1)")
    assert len(rows(session, "SELECT * FROM p")) == len(before) + 1


class Died(BaseException):
    """The end of a process."""


@pytest.mark.longer
@pytest.mark.parametrize("again", ["INTO", "OVERWRITE"])
def test_a_program_that_dies_at_any_step_leaves_all_old_or_all_new(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    steps, lives = 0, 0
    places = [(overwrite, "exchange"), (overwrite, "sync_directory"), (Path, "rename"), (Path, "unlink")]

    def step(act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > lives:
                raise Died
            return act(*arguments)

        return counted

    publish, discard = overwrite.ReplacementDirectory.publish, overwrite.ReplacementDirectory.discard
    outcomes = []

    def dies(replaced: overwrite.ReplacementDirectory) -> None:
        with monkeypatch.context() as patched:
            for owner, name in places:
                patched.setattr(owner, name, step(getattr(owner, name)))
            publish(replaced)

    def leaves(replaced: overwrite.ReplacementDirectory) -> None:
        if steps <= lives:
            discard(replaced)
        # a process that dies deletes nothing, and its lock is free
        elif replaced._lock is not None:
            os.close(replaced._lock)
            replaced._lock = None

    # in brief each third step: INTO and OVERWRITE of other ones, and the whole
    for lives in of_length([*range(0 if again == "INTO" else 1, 12, 3), 40], range(40)):
        session.execute(f"INSERT OVERWRITE p VALUES {ROWS}")
        steps = 0
        with monkeypatch.context() as patched:
            patched.setattr(overwrite.ReplacementDirectory, "publish", dies)
            patched.setattr(overwrite.ReplacementDirectory, "discard", leaves)
            with contextlib.suppress(Died):
                session.execute("INSERT OVERWRITE p SELECT id + 10, day, hr FROM p WHERE id > 0")
        done = steps <= lives
        session.execute(f"INSERT {again} p VALUES (0, DATE '2030-01-01', 1)")
        found = sorted(int(row[0]) for row in rows(session, "SELECT * FROM p WHERE id > 0"))
        outcomes.append(found)
        assert found in ([1, 2, 3, 4], [11, 12, 13, 14]), lives
        if done:
            break
    # once an intent is written the new rows are there
    assert outcomes == sorted(outcomes) and outcomes[-1] == [11, 12, 13, 14]
    assert all("intent" not in path.name for path in tmp_path.rglob("*"))


def test_other_files_are_not_deleted(session: Session, tmp_path: Path) -> None:
    notes = tmp_path / "p" / "day=2026-01-01" / "hr=1" / "notes.txt"
    notes.write_text("mine")
    with pytest.raises(PenstockError) as refused:
        session.execute(f"INSERT OVERWRITE p VALUES {ROWS}")
    assert refused.value.code == "DAT-4615"
    notes.unlink()
    assert rows(session, "SELECT * FROM p") == sorted([FIRST, SECOND, THIRD, FOURTH])


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("INSERT OVERWRITE t SELECT id, name FROM endless", "SQL-1703"),
        ("INSERT OVERWRITE hole SELECT id, name FROM t", "SQL-1601"),
        ("EXECUTE STATEMENT SET BEGIN INSERT OVERWRITE t SELECT id, name FROM t; END", "SQL-1601"),
        ("INSERT OVERWRITE t PARTITION (id = 1) SELECT name FROM t", "SQL-1042"),
    ],
)
def test_what_is_refused(session: Session, statement: str, code: str) -> None:
    session.execute("CREATE TABLE endless (id INT, name STRING) WITH ('connector' = 'datagen')")
    session.execute("CREATE TABLE hole (id INT, name STRING) WITH ('connector' = 'blackhole')")
    with pytest.raises(PenstockError) as refused:
        session.execute(statement)
    assert refused.value.code == code and refused.value.hint
    assert rows(session, "SELECT * FROM t") == [("1", "a"), ("2", "b")]


def test_a_program_that_ends_in_the_middle_leaves_the_old_rows(tmp_path: Path) -> None:
    slow = "CREATE TABLE slow (id INT) WITH ('connector' = 'datagen', 'number-of-rows' = '100000', 'rows-per-second' = '1000')"
    program = (
        "import penstock; c = penstock.connect(); e = c.cursor().execute\n"
        "e(\"SET 'execution.batch.max-rows' = '100'\")\n"
        f"e({PARTS.format(tmp_path)!r}); e({slow!r})\n"
        "e(\"INSERT INTO p VALUES (1, DATE '2026-01-01', 1)\"); print('begun', flush=True)\n"
        "e(\"INSERT OVERWRITE p PARTITION (day = '2026-01-01', hr = 1) SELECT id FROM slow\")\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        until = time.monotonic() + PATIENCE_S
        while not list(tmp_path.rglob("*.inprogress")):
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert len(hidden(tmp_path)) == 1
    session = Session({"bounded.backend": "duckdb"})
    try:
        session.execute(PARTS.format(tmp_path))
        assert rows(session, "SELECT * FROM p") == [FIRST]
        session.execute("INSERT OVERWRITE p PARTITION (day = '2026-01-01', hr = 1) SELECT id + 1 FROM p")
        assert rows(session, "SELECT * FROM p") == [("2", *FIRST[1:])]
    finally:
        session.close()
    # what the dead process left is gone
    assert hidden(tmp_path) == []


ENDLESS = "CREATE TABLE s (id INT) WITH ('connector' = 'datagen', 'rows-per-second' = '500')"


@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (w)"])
def test_a_job_that_writes_to_the_table_is_not_disturbed(tmp_path: Path, partitions: str) -> None:
    """What it has staged would go with the old directory, and its checkpoint could never be committed."""
    durable = {
        "execution.checkpointing.dir": str(tmp_path / "state"),
        "execution.checkpointing.interval": "50 ms",
    }
    table = f"CREATE TABLE t (id INT, w STRING) {partitions} WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/t', 'format' = 'csv')"
    writer, other = Session({**durable, "table.dml-sync": "false"}), Session({"bounded.backend": "duckdb"})
    try:
        for session in (writer, other):
            session.execute(table)
        writer.execute(ENDLESS)
        job = writer.execute("INSERT INTO t SELECT id, 'w' FROM s").job
        assert job is not None
        await_that(lambda: len(list((tmp_path / "t").rglob("*.csv"))) > 2)
        with pytest.raises(PenstockError) as refused:
            other.execute("INSERT OVERWRITE t VALUES (1, 'w')")
        assert refused.value.code == "DAT-4617" and hidden(tmp_path) == []
        writer.execute(f"STOP JOB '{job.job_id}'")
        # it has ended when the statement returns: nobody waits for its locks
        other.execute("INSERT OVERWRITE t VALUES (-1, 'w')")
        assert rows(other, "SELECT * FROM t") == [("-1", "w")]
        # it resumes from its checkpoint, beside the new rows
        job = writer.execute("INSERT INTO t SELECT id, 'w' FROM s").job
        assert job is not None
        await_that(lambda: len(rows(other, "SELECT * FROM t")) > 1)
        writer.execute(f"STOP JOB '{job.job_id}'")
        assert ("-1", "w") in rows(other, "SELECT * FROM t")
    finally:
        writer.close()
        other.close()
    assert not (tmp_path / "t" / ".penstock.staging").exists()


def test_what_a_killed_job_has_staged_is_kept(session: Session, tmp_path: Path) -> None:
    staged = tmp_path / "t" / ".penstock.staging" / "job-operator" / "0-1-0.inprogress"
    staged.parent.mkdir(parents=True)
    staged.write_text("prepared")
    session.execute("INSERT OVERWRITE t VALUES (3, 'c')")
    assert rows(session, "SELECT * FROM t") == [("3", "c")]
    assert staged.read_text() == "prepared"


def test_a_job_that_begins_while_the_directory_is_replaced_waits(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stage its rows in the old directory."""
    exchange, entered = overwrite.exchange, threading.Event()
    began: list[int | None] = []
    root = tmp_path / "t"
    sink = threading.Thread(target=lambda: began.append(share_staging(root)))

    def slowly(first: Path, second: Path) -> None:
        sink.start()
        entered.wait(0.2)
        assert began == []
        exchange(first, second)

    monkeypatch.setattr(overwrite, "exchange", slowly)
    session.execute("INSERT OVERWRITE t VALUES (3, 'c')")
    sink.join(PATIENCE_S)
    (lock,) = began
    assert lock is not None
    assert os.path.samestat((root / ".penstock.staging").stat(), os.fstat(lock))
    os.close(lock)
