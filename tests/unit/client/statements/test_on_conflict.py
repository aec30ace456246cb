"""INSERT .. ON CONFLICT: which row of a primary key is written, over inserts, updates and retractions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError

ROWS = "(1, 'a', NULL), (1, 'b', 5), (2, 'c', 6), (3, 'd', 7)"
# one row of each s, whose k grows with the rows: rows of one k come and go
GROUPS = "SELECT MAX(k) AS k, s, CAST(COUNT(*) AS INT) AS n FROM v GROUP BY s"


@pytest.fixture(params=[("streaming", 1), ("streaming", 2), ("batch", 1)], ids=str)
def connection(request: pytest.FixtureRequest) -> Any:
    mode, slots = request.param
    settings = {"execution.runtime-mode": mode, "parallelism.default": str(slots)}
    with penstock.connect(settings=settings) as connection:
        yield connection


def written(connection: penstock.Connection, folder: Path, statement: str, rows: str = ROWS) -> list[Any]:
    """Return the rows of a table of SQLite behind an INSERT, by its key."""
    with sqlite3.connect(folder / "t.db") as database:
        database.execute("CREATE TABLE t (k INT PRIMARY KEY, s TEXT, n INT)")
    connection.execute(f"CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES {rows}) AS r(k, s, n)")
    connection.execute(
        "CREATE TEMPORARY TABLE t (k INT, s STRING, n INT, PRIMARY KEY (k) NOT ENFORCED)"
        f" WITH ('connector' = 'sqlite', 'path' = '{folder}/t.db', 'table-name' = 't')"
    )
    job = connection.execute(f"INSERT INTO t {statement}").job
    job.wait()
    if job.error is not None:
        raise job.error
    with sqlite3.connect(folder / "t.db") as database:
        return database.execute("SELECT * FROM t ORDER BY k").fetchall()


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("SELECT * FROM v", (1, "a", None), (1, "b", 5)),
        (GROUPS, (1, "a", 1), (1, "b", 1)),
        # a is written, and leaves the rows again: the next one of its key takes its place
        (GROUPS + " HAVING COUNT(*) = 1", (1, "b", 1), (1, "b", 1)),
    ],
)
def test_the_first_or_the_last_row_of_a_key_is_written(
    connection: penstock.Connection, tmp_path: Path, query: str, first: Any, last: Any
) -> None:
    rows = ROWS + (", (1, 'a', 8)" if "HAVING" in query else "")
    others = [(2, "c", 6), (3, "d", 7)] if query.endswith("v") else [(2, "c", 1), (3, "d", 1)]
    for action, expected in (("NOTHING", first), ("DEDUPLICATE", last)):
        folder = tmp_path / action
        folder.mkdir()
        assert written(connection, folder, f"{query} ON CONFLICT DO {action}", rows) == [expected, *others]
        connection.execute("DROP TEMPORARY TABLE t")
        connection.execute("DROP TEMPORARY VIEW v")


@pytest.mark.parametrize("query", ["SELECT * FROM v", GROUPS])
def test_several_rows_of_a_key_are_an_error_where_the_statement_says_so(
    connection: penstock.Connection, tmp_path: Path, query: str
) -> None:
    with pytest.raises(PenstockError, match="several rows have one primary key") as raised:
        written(connection, tmp_path, f"{query} ON CONFLICT DO ERROR")
    assert raised.value.code == "RUN-2027"


@pytest.mark.parametrize("action", ["NOTHING", "DEDUPLICATE", "ERROR"])
def test_without_a_conflict_all_rows_are_written(
    connection: penstock.Connection, tmp_path: Path, action: str
) -> None:
    query = GROUPS.replace("GROUP BY", "WHERE s <> 'b' GROUP BY")
    expected = [(1, "a", 1), (2, "c", 1), (3, "d", 1)]
    assert written(connection, tmp_path, f"{query} ON CONFLICT DO {action}") == expected


def test_a_query_whose_key_is_that_of_the_table_is_as_without_the_words(tmp_path: Path) -> None:
    with penstock.connect() as connection:
        connection.execute("CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (1, 2)) AS r(k, n)")
        connection.execute(
            "CREATE TEMPORARY TABLE t (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'sqlite', "
            f"'path' = '{tmp_path}/t.db', 'table-name' = 't')"
        )
        insert = "INSERT INTO t SELECT k, SUM(n) FROM v GROUP BY k"
        plain, said = (
            connection.execute(f"EXPLAIN LOGICAL {insert}{words}").fetchall()
            for words in ("", " ON CONFLICT DO NOTHING")
        )
        assert plain == said


@pytest.mark.parametrize(
    ("table", "statement", "code", "says"),
    [
        ("'print'", "SELECT 1 ON CONFLICT DO NOTHING", "SQL-1317", "needs a table that replaces rows"),
        ("'print'", "SELECT 1 ON CONFLICT DO UPDATE", "SQL-1001", "DEDUPLICATE, ERROR or NOTHING"),
        ("'print'", "SELECT 1 ON CONFLICT (k) DO NOTHING", "SQL-1001", "behind the query"),
    ],
)
def test_what_is_refused(table: str, statement: str, code: str, says: str) -> None:
    with penstock.connect() as connection:
        connection.execute(f"CREATE TEMPORARY TABLE t (k INT) WITH ('connector' = {table})")
        with pytest.raises(PenstockError) as raised:
            connection.execute(f"INSERT INTO t {statement}")
        assert raised.value.code == code and says in str(raised.value)
