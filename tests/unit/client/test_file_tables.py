"""Files as tables: CREATE TABLE without columns, whose scripts SHOW CREATE TABLE fixes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.catalog.errors import PenstockError

ORDERS = "id,what,price,at\n1,tea,2.5,2024-01-01 10:00:00\n2,,3,2024-01-01 10:00:07\n"


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[penstock.Connection]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(ORDERS)
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as opened:
        yield opened


def run(connection: penstock.Connection, text: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return [] if cursor.description is None else list(cursor.fetchall())


def note(connection: penstock.Connection, text: str) -> str:
    return str(connection.session.execute(text).note)


def test_a_table_without_columns_has_those_of_its_files_in_a_stream_and_in_a_query(
    connection: penstock.Connection,
) -> None:
    run(connection, "CREATE TABLE o WITH ('connector' = 'filesystem', 'path' = 'orders.csv')")
    run(connection, "CREATE TABLE s WITH ('source.replay' = 'true') LIKE o")
    rows = run(connection, "SELECT * FROM o ORDER BY id")
    assert [row[:3] for row in rows] == [(1, "tea", 2.5), (2, None, 3.0)]
    assert sorted(run(connection, "SELECT * FROM s")) == sorted(rows)


def test_a_declaration_adds_to_what_is_inferred_and_show_create_prints_all(
    connection: penstock.Connection,
) -> None:
    run(
        connection,
        "CREATE TABLE o (WATERMARK FOR at AS at - INTERVAL '1' SECOND, cents AS price * 100, "
        "f STRING METADATA FROM 'file.name', PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'filesystem', 'path' = 'orders.csv', 'source.replay' = 'true')",
    )
    rows = run(connection, "SELECT f, cents FROM o")
    assert sorted(rows) == [("orders.csv", 250.0), ("orders.csv", 300.0)]
    times = {row[0]: row[5] for row in run(connection, "DESCRIBE o")}
    assert times["at"] == "event time"
    ((text,),) = run(connection, "SHOW CREATE TABLE o")
    assert "`price` DOUBLE" in text
    assert "`cents` AS price * 100" in text
    # the printed statement is the same table, whatever becomes of the file
    run(connection, "DROP TABLE o")
    Path("orders.csv").unlink()
    run(connection, text)
    assert run(connection, "SHOW CREATE TABLE o") == [(text,)]


def test_the_note_says_what_the_columns_were_inferred_from(connection: penstock.Connection) -> None:
    create = "CREATE TABLE {} WITH ('connector' = 'filesystem', 'path' = 'orders.csv')"
    assert note(connection, create.format("o")) == (
        f"table o created (4 columns: csv, types that fit all rows of {Path.cwd()}/orders.csv)"
    )
    # a declared table is what it says
    assert note(connection, create.format("p (id INT)")) == "table p created"


def test_a_directory_of_partitions_says_its_format_and_its_columns(connection: penstock.Connection) -> None:
    for day in (1, 2):
        path = Path(f"sales/day=2024-01-0{day}")
        path.mkdir(parents=True)
        pq.write_table(pa.table({"n": [day]}), path / "a.parquet")
    run(connection, "CREATE TABLE s WITH ('connector' = 'filesystem', 'path' = 'sales')")
    assert [tuple(map(str, row)) for row in run(connection, "SELECT * FROM s ORDER BY n")] == [
        ("1", "2024-01-01"),
        ("2", "2024-01-02"),
    ]
    ((text,),) = run(connection, "SHOW CREATE TABLE s")
    assert "PARTITIONED BY (`day`)" in text
    assert "'format' = 'parquet'" in text


@pytest.mark.parametrize(
    ("statement", "code", "under", "hint"),
    [
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'order.csv')",
            "DAT-4101",
            "'order.csv'",
            "orders.csv",
        ),
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'out/')",
            "DAT-4101",
            "'out/'",
            "AS SELECT",
        ),
        (
            "CREATE TABLE t (id AS 1) WITH ('connector' = 'filesystem', 'path' = 'orders.csv')",
            "SQL-1301",
            "id",
            "another name",
        ),
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'orders.csv', 'csv.header' = 'x')",
            "SQL-1505",
            "'x'",
            "'true' or 'false'",
        ),
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'orders.csv', 'format' = 'debezium-json')",
            "DAT-4121",
            "'orders.csv'",
            "declare the columns",
        ),
        ("CREATE TABLE t WITH ('connector' = 'datagen')", "SQL-1308", "t", "declare at least one column"),
    ],
)
def test_a_table_whose_columns_nothing_says_is_refused_under_the_path(
    connection: penstock.Connection, statement: str, code: str, under: str, hint: str
) -> None:
    with pytest.raises(PenstockError) as caught:
        connection.session.execute(statement)
    error = caught.value
    assert (error.code, hint in str(error.hint)) == (code, True)
    assert error.span is not None
    assert statement[error.span.start : error.span.end] == under
