"""States of jobs as tables: of running jobs, of ended ones, and of savepoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.client.connection import Connection
from penstock.client.session import Session

KEYS = 10
TABLES = f"""
CREATE TABLE ticks (k INT, n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1000', 'fields.k.min' = '0',
    'fields.k.max' = '{KEYS - 1}');
CREATE TABLE sums (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'blackhole');
"""


@pytest.fixture(scope="module")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.fixture(scope="module")
def connection(state_dir: Path) -> Iterator[Connection]:
    """A job that has ended, its state in the last checkpoint."""
    settings = {"bounded.backend": "duckdb", "execution.runtime-mode": "streaming", "pipeline.name": "sums"}
    with Connection(Session(settings, state_dir=state_dir)) as connection:
        connection.executescript(TABLES + "INSERT INTO sums SELECT k, COUNT(*) FROM ticks GROUP BY k")
        yield connection


def rows(connection: Connection, text: str) -> list[tuple[object, ...]]:
    return connection.execute(text).fetchall()


def code_of(connection: Connection, text: str) -> str:
    with pytest.raises(penstock.Error) as raised:
        rows(connection, text)
    return str(raised.value.code)


def test_the_states_of_a_job_are_listed(connection: Connection) -> None:
    listed = rows(connection, "SELECT state, kind, entries FROM STATE OF JOB 'sums-1'")
    assert ("groups", "keyed", KEYS) in listed
    assert any(kind == "list" for _, kind, _ in listed)


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_the_entries_of_a_state_are_rows(connection: Connection, mode: str) -> None:
    (operator,) = [
        name
        for name, state in rows(connection, "SELECT operator, state FROM STATE OF JOB 'sums-1'")
        if state == "groups"
    ]
    connection.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    try:
        text = f"SELECT COUNT(*), COUNT(DISTINCT g.k0), SUM(a0_0) FROM STATE OF JOB 'sums-1' OPERATOR '{operator}' AS g"
        assert rows(connection, text) == [(KEYS, KEYS, 1000)]
        # joined, filtered, and of a checkpoint by its number
        ((number,),) = rows(connection, "SELECT DISTINCT checkpoint FROM STATE OF JOB 'sums-1'")
        text = f"""SELECT s.a0_0 FROM STATE OF JOB 'sums-1' CHECKPOINT {number} OPERATOR '{operator}' STATE 'groups' AS s
            JOIN (VALUES (3)) AS v(k) ON s.k0 = v.k"""
        assert len(rows(connection, text)) == 1
    finally:
        connection.execute("SET 'execution.runtime-mode' = 'streaming'")


def test_a_list_state_has_its_items_as_json(connection: Connection) -> None:
    items = rows(connection, "SELECT item FROM STATE OF JOB 'sums-1' OPERATOR 'source ticks'")
    assert ["finished" in str(item) for (item,) in items] == [True]


def test_a_job_of_another_process_is_read_from_the_state_directory(
    connection: Connection, state_dir: Path
) -> None:
    with Connection(Session({"bounded.backend": "duckdb"}, state_dir=state_dir)) as other:
        assert rows(other, "SELECT COUNT(*) FROM STATE OF JOB 'sums-1'") == rows(
            connection, "SELECT COUNT(*) FROM STATE OF JOB 'sums-1'"
        )
        text = f"SELECT COUNT(*) FROM STATE OF SAVEPOINT '{state_dir / 'sums-1'}'"
        assert rows(other, text) == rows(connection, "SELECT COUNT(*) FROM STATE OF JOB 'sums-1'")


def test_what_is_not_there_is_said(connection: Connection, state_dir: Path) -> None:
    for reference, code in {
        "JOB 'sum-1'": "STA-3033",
        "JOB '..'": "STA-3033",
        "JOB ''": "STA-3033",
        f"JOB '{state_dir / 'sums-1'}'": "STA-3033",
        "JOB 'sums-1' CHECKPOINT 99": "STA-3031",
        "JOB 'sums-1' OPERATOR 'group'": "STA-3061",
        "JOB 'sums-1' OPERATOR 'source ticks' STATE 'x'": "STA-3061",
        f"SAVEPOINT '{state_dir}/none'": "STA-3033",
    }.items():
        assert code_of(connection, f"SELECT * FROM STATE OF {reference}") == code, reference
    for text in ("SELECT * FROM STATE OF TASK 'x'", "SELECT * FROM STATE OF JOB x"):
        assert code_of(connection, text) == "SQL-1001"
    # a table may be called state
    assert rows(connection, "WITH state AS (SELECT 1 AS a) SELECT a FROM state") == [(1,)]
    assert (
        code_of(connection, "CREATE MATERIALIZED VIEW v AS SELECT * FROM STATE OF JOB 'sums-1'") == "SQL-1360"
    )


def test_a_job_without_checkpoints_has_no_state_to_read() -> None:
    settings = {"bounded.backend": "duckdb", "execution.runtime-mode": "streaming", "pipeline.name": "plain"}
    with Connection(Session(settings)) as connection:
        connection.executescript(TABLES + "INSERT INTO sums SELECT k, COUNT(*) FROM ticks GROUP BY k")
        (job,) = connection.jobs()
        assert code_of(connection, f"SELECT * FROM STATE OF JOB '{job.job_id}'") == "STA-3061"
