"""Sessions that share an engine: what each sees of the others, and that none waits for another."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.persistence.catalog_store import CatalogStore
from penstock.catalog.settings import Settings
from penstock.client.connection import Connection
from penstock.client.execution.engine_state import EngineState
from penstock.client.session import Session
from penstock.engine.job.job_state import JobState

ENDLESS = "CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
FILES = "WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{}')"


@pytest.fixture
def engine() -> Iterator[EngineState]:
    made = EngineState(Settings({"bounded.backend": "duckdb"}), is_shared=True)
    yield made
    made.close()


@pytest.fixture
def opened(engine: EngineState) -> Callable[..., Session]:
    return lambda **settings: Session(
        {key.replace("_", "."): v for key, v in settings.items()}, engine=engine
    )


def rows(session: Session, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in session.execute(sql).final_rows().to_pylist()]


def refused(session: Session, sql: str) -> str:
    with pytest.raises(PenstockError) as raised:
        session.execute(sql)
    return raised.value.code


def test_permanent_names_are_shared_and_a_name_is_created_once(opened: Callable[..., Session]) -> None:
    one, two = opened(), opened()
    one.execute(ENDLESS)
    assert [row[0] for row in rows(two, "SHOW TABLES")] == ["ticks"]
    assert refused(two, ENDLESS) == "SQL-1302"
    one.execute("CREATE VIEW v AS SELECT 1 AS x")
    two.execute("CREATE OR REPLACE VIEW v AS SELECT 2 AS x")
    assert rows(one, "SELECT x FROM v") == [(2,)]
    two.execute("DROP VIEW v")
    assert refused(one, "SELECT x FROM v") == "SQL-1041"


def test_temporary_names_settings_and_use_are_of_one_session(opened: Callable[..., Session]) -> None:
    one, two = opened(), opened()
    one.execute("CREATE TEMPORARY VIEW v AS SELECT 1 AS x")
    two.execute("CREATE TEMPORARY VIEW v AS SELECT 2 AS x")
    one.register("t", pa.table({"x": [1]}))
    two.register("t", pa.table({"x": [2]}))
    assert [rows(each, "SELECT x FROM v") + rows(each, "SELECT x FROM t") for each in (one, two)] == [
        [(1,), (1,)],
        [(2,), (2,)],
    ]
    one.execute("SET 'parallelism.default' = '3'")
    assert (one.settings.get("parallelism.default"), two.settings.is_set("parallelism.default")) == (3, False)
    one.execute("CREATE DATABASE d")
    one.execute("USE d")
    one.execute("CREATE VIEW inside AS SELECT 3 AS x")
    assert refused(two, "SELECT * FROM inside") == "SQL-1041"
    assert rows(two, "SELECT * FROM d.inside") == [(3,)]
    one.execute("CREATE TEMPORARY FUNCTION f AS 'tests.unit.client.program_functions.seven' LANGUAGE PYTHON")
    assert ("f" in one.catalog.functions, "f" in two.catalog.functions) == (True, False)


def test_a_closed_session_leaves_no_rows_and_no_names(
    engine: EngineState, opened: Callable[..., Session]
) -> None:
    one, two = opened(), opened()
    one.register("t", pa.table({"x": [1]}))
    one.close()
    assert engine.registered.names() == []
    assert refused(two, "SELECT * FROM t") == "SQL-1041"


def test_a_table_that_another_session_drops_is_read_to_the_end(
    opened: Callable[..., Session], tmp_path: Path
) -> None:
    one, two = opened(), opened()
    (tmp_path / "a.csv").write_text("x\n1\n2\n3\n")
    one.execute(f"CREATE TABLE t (x BIGINT) {FILES.format(tmp_path)}")
    result = one.execute("SELECT x FROM t")
    two.execute("DROP TABLE t")
    assert sorted(row["x"] for row in result.final_rows().to_pylist()) == [1, 2, 3]
    assert refused(one, "SELECT x FROM t") == "SQL-1041"


def test_columns_that_two_sessions_add_are_both_there(opened: Callable[..., Session]) -> None:
    sessions = [opened() for _ in range(4)]
    sessions[0].execute(ENDLESS)
    at_once([lambda n=n, s=s: s.execute(f"ALTER TABLE ticks ADD c{n} INT") for n, s in enumerate(sessions)])
    names = {row[0] for row in rows(sessions[0], "DESCRIBE ticks")}
    assert names == {"n", "c0", "c1", "c2", "c3"}


def test_a_closed_session_ends_its_queries_and_no_others(
    engine: EngineState, opened: Callable[..., Session]
) -> None:
    one, two = opened(), opened()
    one.execute(ENDLESS)
    endless, other = one.execute("SELECT n FROM ticks"), two.execute("SELECT n FROM ticks")
    assert endless.next(30) is not None and other.next(30) is not None
    assert endless.job is not None and other.job is not None
    one.close()
    assert endless.job.wait(30) and endless.job.state is JobState.CANCELED
    assert other.next(30) is not None and not other.job.state.terminal
    # a query that is started while its session closes is closed as well
    late = one.execute("SELECT n FROM ticks")
    assert late.job is not None and late.job.wait(30)


def test_inserts_and_views_outlive_their_session(opened: Callable[..., Session], tmp_path: Path) -> None:
    one, two = opened(), opened()
    one.execute(ENDLESS)
    one.execute(f"CREATE TABLE out (n BIGINT) {FILES.format(tmp_path)}")
    inserted = Connection(one).execute("INSERT INTO out SELECT n FROM ticks").job
    one.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM ticks")
    one.close()
    assert inserted is not None and not inserted.state.terminal
    assert inserted in two.jobs()
    assert len(rows(two, "SELECT c FROM v")) == 1
    two.execute(f"STOP JOB '{inserted.job_id}'")
    assert inserted.state is JobState.FINISHED
    two.execute("DROP MATERIALIZED VIEW v")


def test_a_closed_connection_leaves_the_insert_it_waits_for(opened: Callable[..., Session]) -> None:
    one, two = opened(), opened()
    one.execute(ENDLESS)
    one.execute("CREATE TABLE nothing (n BIGINT) WITH ('connector' = 'blackhole')")
    one.execute("SET 'table.dml-sync' = 'true'")
    started = threading.Event()
    connection = Connection(one)
    cursor = connection.cursor()
    one.state.wait_for = lambda job: (started.set(), job.wait(None), "ended")[2]  # type: ignore[func-returns-value]
    waiting = threading.Thread(target=cursor.execute, args=("INSERT INTO nothing SELECT n FROM ticks",))
    waiting.start()
    assert started.wait(30)
    connection.close()
    (job,) = two.jobs()
    assert not job.state.terminal
    two.execute(f"CANCEL JOB '{job.job_id}'")
    waiting.join(30)
    assert not waiting.is_alive()


def test_a_session_that_waits_delays_no_other(opened: Callable[..., Session]) -> None:
    one, two = opened(), opened()
    waits = threading.Event()
    with one.state.lock:  # a statement of the first session takes as long as it likes
        done = threading.Thread(target=lambda: (rows(two, "SELECT 1 AS x"), waits.set()))
        done.start()
        assert waits.wait(30)
    done.join()


def test_settings_of_the_engine_are_no_settings_of_a_session(engine: EngineState) -> None:
    session = Session({}, engine=engine)
    assert refused(session, "SET 'metrics.prometheus.port' = '9091'") == "CLI-6206"
    assert refused(session, "SET 'spark.executor.memory' = '1g'") == "CLI-6206"
    with pytest.raises(PenstockError) as raised:
        Session({"python.modules": "os"}, engine=engine)
    assert raised.value.code == "CLI-6206"


def test_reset_returns_to_the_settings_of_the_engine(engine: EngineState) -> None:
    session = Session({}, engine=engine)
    session.execute("SET 'bounded.backend' = 'spark'")
    session.execute("SET 'parallelism.default' = '2'")
    assert session.state.settings.own() == {"bounded.backend": "spark", "parallelism.default": "2"}
    session.execute("RESET 'bounded.backend'")
    assert session.settings.get("bounded.backend") == "duckdb"
    session.execute("RESET")
    assert (session.state.settings.own(), session.settings.get("bounded.backend")) == ({}, "duckdb")


def test_a_view_is_dropped_once(engine: EngineState, opened: Callable[..., Session]) -> None:
    session = opened()
    session.execute(ENDLESS)
    session.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM ticks")
    assert engine.views.begin_drop("v")
    assert refused(session, "DROP MATERIALIZED VIEW v") == "SQL-1344"
    engine.views.end_drop("v")
    session.execute("DROP MATERIALIZED VIEW v")
    assert engine.views.by_name == {} and engine.catalog.permanent() == [engine.catalog.find("ticks")]


def at_once(actions: list[Callable[[], object]]) -> list[BaseException]:
    """Run actions in threads that begin together; return what they raised."""
    gate, raised = threading.Barrier(len(actions)), []

    def run(action: Callable[[], object]) -> None:
        gate.wait()
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - reported below
            raised.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return raised


# what sessions may get from each other: a name that is there already, or is gone
MEANWHILE = {"SQL-1302", "SQL-1041", "SQL-1303", "SQL-1344", "SQL-1351", "SQL-1352", "SQL-1355", "SQL-1330"}


def random_statements(seed: int, session: Session, count: int, wrong: list[str]) -> None:
    chance = random.Random(seed)
    choices = [
        "CREATE TABLE t{0} (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '5')",
        "DROP TABLE t{0}",
        "ALTER TABLE t{0} ADD c{1} INT",
        "CREATE OR REPLACE VIEW v{0} AS SELECT {1} AS x",
        "DROP VIEW IF EXISTS v{0}",
        "SELECT x FROM v{0}",
        "SELECT COUNT(*) AS c FROM t{0}",
        "SHOW TABLES",
        "CREATE DATABASE IF NOT EXISTS d{0}",
        "DROP DATABASE IF EXISTS d{0} CASCADE",
        "CREATE TABLE d{0}.t (n BIGINT) WITH ('connector' = 'blackhole')",
        "SET 'parallelism.default' = '{1}'",
    ]
    mine: str | None = None
    for _ in range(count):
        sql = chance.choice(choices).format(chance.randrange(3), chance.randrange(1, 4))
        try:
            result = session.execute(sql).final_rows().to_pylist()
        except PenstockError as error:
            if error.code not in MEANWHILE and not (error.code == "SQL-1301" and "ADD" in sql):
                wrong.append(f"{sql}: {error}")
            continue
        if sql.startswith("SET"):
            mine = sql[-2]
        if sql.startswith("SELECT COUNT") and result != [{"c": 5}]:
            wrong.append(f"{sql}: {result}")
        if mine is not None and session.settings.text("parallelism.default") != mine:
            wrong.append("a setting of another session")


def test_many_sessions_at_once(engine: EngineState, opened: Callable[..., Session], tmp_path: Path) -> None:
    """Seeded statements of six sessions at once: no error but those of names, and the file has the catalog."""
    engine.stores["default_catalog"] = CatalogStore(tmp_path)
    wrong: list[str] = []
    sessions = [opened() for _ in range(6)]
    raised = at_once(
        [lambda s=s, n=n: random_statements(n, s, 60, wrong) for n, s in enumerate(sessions)]  # type: ignore[misc]
    )
    assert not raised and not wrong, (raised, wrong)
    again = Session(catalog_dir=tmp_path)
    assert [r.name for r in again.catalog.permanent()] == [r.name for r in engine.catalog.permanent()]
    again.close()


def test_a_closed_session_does_not_wait_for_the_first_state_of_a_view(
    engine: EngineState, opened: Callable[..., Session]
) -> None:
    one = opened()
    # a view whose job has no checkpoint yet: its first state never comes
    one.execute(ENDLESS)
    one.execute("SET 'execution.checkpointing.interval' = '1 h'")
    one.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM ticks")
    raised: list[PenstockError] = []

    def read() -> None:
        try:
            one.execute("SELECT c FROM v")
        except PenstockError as error:
            raised.append(error)

    reading = threading.Thread(target=read)
    reading.start()
    one.close()
    # far less than the minute that a session waits
    reading.join(30)
    assert not reading.is_alive() and [error.code for error in raised] == ["CLI-6237"]
