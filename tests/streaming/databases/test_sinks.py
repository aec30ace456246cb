"""Sinks into databases: a row is there once or not yet, whatever crashes between two steps, whoever
commits twice, whoever should be gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.engine.api.sink import Origin
from penstock.engine.connectors.database.staged_transactions import EPOCHS
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.databases.places import SECRET, Place
from tests.streaming.databases.test_scans import COLUMNS, FULL, filled, opened
from tests.streaming.databases.two_phase import batch, chaos, sink
from tests.unit.client.execution.test_jobs_of_one_table import (
    ROWS,
    ended,
    started,
    stopped_in_mid_run,
    times,
)
from tests.unit.client.execution.test_jobs_of_one_table import opened as numbers_opened


@pytest.fixture
def out(place: Place) -> Callable[[], list[int]]:
    place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    return lambda: sorted(row[0] for row in place.ask("SELECT k FROM out"))


def test_rows_are_seen_when_they_are_committed_and_once(place: Place, out: Callable[[], list[int]]) -> None:
    writer = sink(place)
    writer.recover([])
    writer.write(batch(1, 2))
    writer.write(batch(3))
    items = writer.prepare(7)
    assert out() == []
    writer.commit(items)
    writer.commit(items)
    assert out() == [1, 2, 3]
    writer.close()
    assert place.staged() == 0
    assert place.ask("SELECT job, subtask, checkpoint_id FROM penstock_epochs") == [("owner1", 0, 7)]


def test_an_attempt_that_was_taken_over_from_writes_nothing(
    place: Place, out: Callable[[], list[int]]
) -> None:
    old = sink(place)
    old.recover([])
    old.write(batch(1))
    pending = old.prepare(1)
    old.write(batch(2))
    new = sink(place)
    new.recover(pending)
    new.commit(pending)
    with pytest.raises(PenstockError, match="STA-3504"):
        old.prepare(2)
    with pytest.raises(PenstockError, match="STA-3504"):
        old.commit(pending)
    assert out() == [1]
    old.close()
    new.close()


@pytest.mark.parametrize("case", ["ended", "resumes", "stopped", "not committed", "a second attempt"])
def test_the_note_of_a_job_that_nobody_goes_on_with_is_deleted_at_its_end(
    place: Place, out: Callable[[], list[int]], case: str
) -> None:
    if case == "a second attempt":
        sink(place).recover([])
    writer = sink(place, resumes=case == "resumes")
    writer.recover([])
    writer.write(batch(1, 2))
    if case != "stopped":
        writer.end()
    items = writer.prepare(1)
    if case != "not committed":
        writer.commit(items)
    writer.close()
    assert out() == ([] if case == "not committed" else [1, 2])
    assert place.ask("SELECT COUNT(*) FROM penstock_epochs") == [(0 if case == "ended" else 1,)]


@pytest.mark.parametrize("keeps", [True, False])
def test_inserts_without_checkpoints_leave_no_note(
    place: Place, out: Callable[[], list[int]], tmp_path: Path, keeps: bool
) -> None:
    state = {"execution.checkpointing.dir": str(tmp_path / "state")} if keeps else {}
    numbers = "WITH ('connector' = 'datagen', 'number-of-rows' = '7', 'splits' = '2', 'fields.k.kind' = 'sequence', 'fields.k.start' = '0')"
    with penstock.connect(settings={"parallelism.default": "2", **state}) as made:
        made.executescript(
            f"CREATE TABLE numbers (k INT) {numbers}; CREATE TABLE o (k INT) {place.options('out')};"
        )
        for _ in range(2):
            made.execute("INSERT INTO o SELECT k FROM numbers")
    assert out() == sorted([*range(7)] * 2)
    assert (place.ask("SELECT COUNT(*) FROM penstock_epochs") == [(0,)]) == (not keeps)


def test_jobs_of_one_name_write_side_by_side_and_a_copy_commits_once(
    place: Place, out: Callable[[], list[int]]
) -> None:
    first, other = sink(place, owner="a"), sink(place, owner="b")
    for number, writer in enumerate((first, other)):
        writer.recover([])
        writer.write(batch(1 + number))
    pending, of_other = first.prepare(1), other.prepare(1)
    copy = sink(place, owner="c", origin=Origin("a", "abcdef0123", 1))
    copy.recover(pending)
    first.write(batch(5))
    later = first.prepare(2)
    copy.commit(pending)
    other.commit(of_other)
    first.commit(pending)
    first.commit(later)
    copy.write(batch(7))
    copy.commit(copy.prepare(2))
    assert out() == [1, 2, 5, 7]
    assert place.staged() == 0
    for writer in (first, other, copy):
        writer.close()


def test_what_a_checkpoint_of_an_early_version_holds_is_committed_once(
    place: Place, out: Callable[[], list[int]]
) -> None:
    """It names no owner: rows were staged under the job's id, and so is the note of what was moved."""
    early = sink(place, owner="job1")
    early.recover([])
    for values in ((1, 2), (3,)):
        early.write(batch(*values))
        early._stage()
    items = [
        {key: item[key] for key in ("subtask", "number", "rows", "checkpoint")} for item in early.prepare(1)
    ]
    early.commit(items[:1])
    early.close()
    for _ in range(2):
        again = sink(place, owner="b", origin=Origin("job1", "abcdef0123", 1))
        again.recover(items)
        again.commit(items)
        again.close()
    assert out() == [1, 2, 3]


def test_jobs_of_one_name_into_a_database(place: Place, tmp_path: Path) -> None:
    """The same INSERT three times at once, then once more from a state of its own, stopped in mid-run and
    gone on with.
    """
    place.run("CREATE TABLE out (k INTEGER)")
    table = f"CREATE TABLE o (k INT) {place.options('out')};"
    insert = "INSERT INTO o SELECT k FROM numbers"
    with numbers_opened(tmp_path / "out", tmp_path / "state", rate=3_000, parallelism_default="2") as made:
        made.executescript(table)
        ended(*[started(made, insert) for _ in range(3)])
    with numbers_opened(tmp_path / "out", tmp_path / "other", rate=100) as made:
        made.executescript(table)
        stopped_in_mid_run(made, started(made, insert))
    with numbers_opened(tmp_path / "out", tmp_path / "other") as made:
        made.executescript(table)
        ended(started(made, insert))
    assert Counter(row[0] for row in place.ask("SELECT k FROM out")) == times(4)
    assert place.staged() == 0


def test_two_subtasks_make_the_tables_of_the_sink_at_one_moment(tmp_path: Path) -> None:
    place = Place("postgres", tmp_path)
    place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    writer = sink(place)
    with place.connection() as other, ThreadPoolExecutor(1) as pool:
        other.execute("BEGIN")
        other.execute(EPOCHS)
        taken = pool.submit(writer.recover, [])
        await_that(
            lambda: place.ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"),
            "a session that waits for a lock",
        )
        other.execute("COMMIT")
        taken.result(PATIENCE_S)
    writer.close()


def test_what_is_refused_for_good_fails_and_stays_staged(place: Place) -> None:
    place.run("CREATE TABLE out (k INTEGER CHECK (k < 10), v VARCHAR(20))")
    writer = sink(place)
    writer.recover([])
    writer.write(batch(1, 11))
    items = writer.prepare(41)
    with pytest.raises(PenstockError, match="checkpoint 41 cannot be committed to table out") as caught:
        writer.commit(items)
    assert not caught.value.retriable
    assert "check" in str(caught.value.detail).lower()
    writer.close()
    assert place.ask("SELECT k FROM out") == []
    assert place.staged() == 1


def test_the_last_change_of_a_key_is_what_stays(place: Place) -> None:
    place.run("CREATE TABLE out (k INTEGER PRIMARY KEY, v VARCHAR(20))")
    writer = sink(place, key=True)
    writer.recover([])
    writer.write(batch(1, 2, 3, value="a"))
    writer.commit(writer.prepare(1))
    writer.write(batch(1, value="a", weights=[-1]))
    writer.write(batch(2, value="a", weights=[-1]))
    writer.write(batch(2, 4, value="b"))
    writer.commit(writer.prepare(2))
    writer.close()
    assert sorted(place.ask("SELECT k, v FROM out")) == [(2, "b"), (3, "a"), (4, "b")]


def test_nothing_is_lost_or_doubled_whatever_crashes(place: Place, out: Callable[[], list[int]]) -> None:
    hit, written = chaos(place, 1)
    assert out() == list(range(written))
    assert sum(hit.values()) >= 5, hit
    assert place.staged() == 0, "staged rows are left"


def test_a_hasty_writer_is_caught(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    _, written = chaos(place, 1, hasty=True, checkpoints=12)
    assert [row[0] for row in place.ask("SELECT k FROM out ORDER BY k")] != list(range(written))


def test_every_type_is_written_as_it_is(place: Place) -> None:
    filled(place)
    place.run("CREATE TABLE copy AS SELECT * FROM facts WHERE 1 = 0")
    with opened(**{"execution.checkpointing.dir": str(place.directory / "state")}) as made:
        made.execute(f"CREATE TABLE facts ({COLUMNS}) {place.options('facts')}")
        made.execute(f"CREATE TABLE copied ({COLUMNS.partition(', PRIMARY')[0]}) {place.options('copy')}")
        job = made.execute("INSERT INTO copied SELECT * FROM facts").job
        assert job is not None
        job.wait(PATIENCE_S)
        assert job.error is None, job.error
        rows = [tuple(row) for row in made.execute("SELECT * FROM copied ORDER BY id").fetchall()]
    assert rows == [FULL, (8, *[None] * 10)]


def test_a_query_that_updates_its_rows_keeps_a_table_up_to_date(place: Place) -> None:
    place.run("CREATE TABLE out (k INTEGER PRIMARY KEY, n BIGINT)")
    with penstock.connect(
        settings={"parallelism.default": "2", "execution.checkpointing.interval": "50 ms"}
    ) as made:
        made.execute(
            "CREATE TABLE s (id INT, k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3000', 'rows-per-second' = '6000', 'splits' = '2', "
            "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.k.min' = '1', 'fields.k.max' = '9', 'seed' = '3')"
        )
        made.execute(f"CREATE TABLE o (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) {place.options('out')}")
        job = made.execute("INSERT INTO o SELECT k, COUNT(*) FROM s GROUP BY k").job
        assert job is not None
        job.wait(PATIENCE_S)
        assert job.error is None, job.error
        expected = sorted(made.execute("SELECT k, COUNT(*) FROM s GROUP BY k").fetchall())
    assert sorted(place.ask("SELECT k, n FROM out")) == [tuple(row) for row in expected]
    assert place.staged() == 0


def test_passwords_are_in_no_byte_of_the_state(tmp_path: Path) -> None:
    place, state = Place("postgres", tmp_path), tmp_path / "state"
    place.run(
        "CREATE TABLE out (k INTEGER, v VARCHAR(20))",
        "CREATE TABLE dim (k INTEGER)",
        "INSERT INTO dim VALUES (1), (2)",
    )
    secret = {"username": "postgres", "password": SECRET}
    with penstock.connect(
        settings={"execution.checkpointing.dir": str(state), "execution.checkpointing.interval": "50 ms"}
    ) as made:
        made.execute(
            "CREATE TABLE s (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.k.min' = '1', "
            "'fields.k.max' = '9')"
        )
        made.execute(f"CREATE TABLE dim (k INT) {place.options('dim', **secret)}")
        made.execute(f"CREATE TABLE o (k INT, v STRING) {place.options('out', **secret)}")
        job = made.execute(
            "INSERT INTO o SELECT s.k, 'x' FROM s JOIN dim FOR SYSTEM_TIME AS OF s.p AS d ON s.k = d.k"
        ).job
        assert job is not None
        await_that(
            lambda: place.ask("SELECT 1 FROM out LIMIT 1"), lambda: f"a row of {job.state} {job.error}"
        )
        made.execute(f"STOP JOB '{job.job_id}' WITH SAVEPOINT '{tmp_path / 'saved'}'").fetchall()
    files = [
        path for directory in (state, tmp_path / "saved") for path in directory.rglob("*") if path.is_file()
    ]
    assert any(path.name.endswith(".manifest.json") for path in files), files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_groups_that_end_are_deleted_by_their_keys_and_a_restart_goes_on(tmp_path: Path) -> None:
    """No old row of an update comes: what is left are new rows and deletions, in the order of each key."""
    place = Place("sqlite", tmp_path)
    place.run("CREATE TABLE out (n BIGINT PRIMARY KEY, m BIGINT)")
    table = f"CREATE TABLE o (n BIGINT, m BIGINT, PRIMARY KEY (n) NOT ENFORCED) {place.options('out')};"
    groups = "SELECT k % 37 AS g, COUNT(*) AS n FROM numbers GROUP BY k % 37"
    insert = f"INSERT INTO o SELECT n, COUNT(*) AS m FROM ({groups}) GROUP BY n"
    with numbers_opened(tmp_path / "out", tmp_path / "state", rate=300, parallelism_default="2") as made:
        made.executescript(table)
        assert ", upserts" in str(made.execute(f"EXPLAIN {insert}").fetchall())
        stopped_in_mid_run(made, started(made, insert))
    with numbers_opened(tmp_path / "out", tmp_path / "state", parallelism_default="3") as made:
        made.executescript(table)
        ended(started(made, insert))
    sizes = Counter(Counter(k % 37 for k in range(ROWS)).values())
    assert dict(place.ask("SELECT n, m FROM out")) == sizes
