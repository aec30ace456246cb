"""The database ``system``: its rows are the facts of the session's jobs, in both runtimes and as changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.catalog.system_tables import SYSTEM_TABLES
from penstock.catalog.tables import ObjectPath
from penstock.client.connection import Connection

SCRIPT = """
    CREATE TABLE numbers (n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
        'connector' = 'datagen', 'number-of-rows' = '100', 'rows-per-second' = '{rate}');
    CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole');
"""


@pytest.fixture(scope="module")
def made() -> Iterator[Connection]:
    with penstock.connect(settings={"execution.checkpointing.interval": "10 ms"}) as connection:
        connection.executescript(SCRIPT.format(rate=0))
        connection.executescript(
            "SET 'table.dml-sync' = 'true'; SET 'execution.runtime-mode' = 'streaming';"
            "INSERT INTO hole SELECT n FROM numbers; RESET 'execution.runtime-mode'"
        )
        yield connection


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_both_runtimes_read_the_tables(made: Connection, mode: str) -> None:
    made.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    rows = made.execute(
        "SELECT j.name, j.state, o.operator, o.rows_out FROM system.jobs j "
        "JOIN system.operators o ON j.job = o.job WHERE j.name = 'insert-into-hole' AND o.is_source"
    ).fetchall()
    assert rows == [("insert-into-hole", "FINISHED", "source numbers", 100)]
    made.execute("RESET 'execution.runtime-mode'")


@pytest.mark.parametrize("name", sorted(SYSTEM_TABLES))
def test_every_table_can_be_read(made: Connection, name: str) -> None:
    rows = made.execute(f"SELECT * FROM {name}").fetch_arrow_table()
    assert rows.schema.names == list(SYSTEM_TABLES[name].schema.names)
    # nothing has failed, and a job that has ended waits for no watermark
    assert (rows.num_rows > 0) == (name not in ("system.errors", "system.watermarks"))


def test_splits_and_checkpoints(made: Connection) -> None:
    read = "SELECT CAST(SUM(rows_read) AS BIGINT) FROM system.splits WHERE operator = 'source numbers'"
    assert made.execute(read).fetchone() == (100,)
    assert made.execute(
        "SELECT kind FROM system.checkpoints ORDER BY checkpoint_id DESC LIMIT 1"
    ).fetchone() == ("final",)


def test_the_statement_is_shown_without_its_secrets() -> None:
    with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as connection:
        connection.executescript(SCRIPT.format(rate=0))
        connection.execute("SET 'table.dml-sync' = 'true'")
        connection.execute("INSERT INTO hole SELECT n FROM numbers WHERE 'password' = 'hunter22' OR TRUE")
        (statement,) = connection.execute(
            "SELECT statement FROM system.jobs WHERE name = 'insert-into-hole'"
        ).fetchone()
    assert statement.startswith("INSERT INTO hole")
    assert "hunter22" not in statement


def test_a_job_of_the_table_api_has_no_statement() -> None:
    """Neither its own, nor that of the SQL before it: by that it would be started again elsewhere."""
    with penstock.connect(settings={"execution.runtime-mode": "streaming", "table.dml-sync": "true"}) as made:
        made.executescript(SCRIPT.format(rate=0))
        made.table("numbers").select("n").insert_into("hole")
        query = "SELECT statement FROM system.jobs WHERE name = 'insert-into-hole'"
        assert made.execute(query).fetchall() == [("",)]


def test_subscribe_streams_the_changes() -> None:
    with penstock.connect() as connection:
        connection.executescript(SCRIPT.format(rate=10).replace("'number-of-rows' = '100', ", ""))
        connection.execute("INSERT INTO hole SELECT n FROM numbers")
        job = next(iter(connection.jobs()))
        cursor = connection.execute(
            "SUBSCRIBE SELECT job, state FROM system.jobs WHERE name = 'insert-into-hole'"
        )
        assert cursor.fetchone() == ("+I", job.job_id, "RUNNING")
        job.cancel()
        # the key is among the columns: a changed row is an update
        changes = [cursor.fetchone(), cursor.fetchone()]
        assert changes == [("-U", job.job_id, "RUNNING"), ("+U", job.job_id, "CANCELED")]
        cursor.close()


def refused(connection: Connection, statement: str) -> str:
    with pytest.raises(penstock.Error) as caught:
        connection.execute(statement).fetchall()
    return caught.value.code


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE TABLE system.mine (a INT) WITH ('connector' = 'blackhole')", "SQL-1359"),
        ("CREATE VIEW system.mine AS SELECT 1 AS a", "SQL-1359"),
        ("DROP TABLE system.jobs", "SQL-1359"),
        ("CREATE DATABASE system", "SQL-1359"),
        ("DROP DATABASE system CASCADE", "SQL-1359"),
        ("CREATE MATERIALIZED VIEW m AS SELECT job FROM system.jobs", "SQL-1360"),
        ("INSERT INTO system.jobs SELECT * FROM system.jobs", "SQL-1094"),
        ("ALTER TABLE system.jobs RENAME TO jobs", "SQL-1502"),
        ("SELECT * FROM system.job", "SQL-1041"),
    ],
)
def test_they_are_read_only(made: Connection, statement: str, code: str) -> None:
    assert refused(made, statement) == code


def test_the_database_is_listed_and_found_from_every_catalog() -> None:
    with penstock.connect() as connection:
        assert ("system", None) in connection.execute("SHOW DATABASES").fetchall()
        listed = [row[0] for row in connection.execute("SHOW TABLES IN system").fetchall()]
        assert [f"system.{name}" for name in listed] == sorted(SYSTEM_TABLES)
        connection.executescript("CREATE CATALOG other WITH ('type' = 'memory'); USE CATALOG other")
        # drivers list the tables of a database by this method
        listed = connection.session.catalog.relations_of(ObjectPath(database="system"))
        assert [table.name for table in listed] == list(SYSTEM_TABLES)
        for name in ("system.sessions", "default_catalog.system.sessions"):
            assert connection.execute(f"SELECT session FROM {name}").fetchall() == [("local",)]
        connection.execute("USE default_catalog.system")
        assert connection.execute("SELECT session FROM sessions").fetchall() == [("local",)]


def test_a_catalog_on_disk_does_not_store_them(tmp_path: Path) -> None:
    for _ in range(2):
        with penstock.connect(catalog=tmp_path) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS t (a INT) WITH ('connector' = 'blackhole')")
            assert connection.execute("SELECT COUNT(*) FROM system.sessions").fetchone() == (1,)
    stored = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "system" not in stored
    assert "CREATE TABLE" in stored


def test_a_database_of_that_name_in_an_old_catalog_keeps_its_tables(tmp_path: Path) -> None:
    with penstock.connect(catalog=tmp_path) as connection:
        connection.executescript(
            "CREATE DATABASE sys_tem; CREATE TABLE sys_tem.jobs (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
        )
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_text(path.read_text().replace("sys_tem", "system"))
    with penstock.connect(catalog=tmp_path) as connection:
        assert connection.execute("SELECT COUNT(a) FROM system.jobs").fetchone() == (3,)
        assert connection.execute("SELECT COUNT(*) FROM system.sessions").fetchone() == (1,)
        connection.execute("DROP TABLE system.jobs")
        assert connection.execute("SELECT COUNT(*) FROM system.jobs WHERE FALSE").fetchone() == (0,)
