"""Tables of Spark's own catalogs: read with what is asked of them pushed down, joined with streams,
written; and nothing is started too early.
"""

from __future__ import annotations

import datetime as dt
import io
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.client.connection import Connection
from penstock.client.dbapi_errors import Error
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import TableStream
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.repl.output.progress import progress_line
from tests.harness.patience import await_that

DIM = {
    "spark.sql.catalog.dim": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "spark.sql.catalog.dim.url": "jdbc:derby:memory:penstock_dim;create=true",
    "spark.sql.catalog.dim.driver": "org.apache.derby.jdbc.EmbeddedDriver",
    "spark.sql.catalog.dim.pushDownAggregate": "true",
}
LAKE = "CREATE CATALOG lake WITH ('type' = 'spark')"
KINDS = "id BIGINT, item VARCHAR(9), price DECIMAL(10, 2), at TIMESTAMP_NTZ, m INTERVAL YEAR TO MONTH, d INTERVAL DAY TO SECOND, tags ARRAY<STRING>"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A database of Spark's own, and a catalog of a database behind Spark."""
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    spark = SESSIONS.new("UTC", DIM)
    spark.sql(f"CREATE DATABASE shop LOCATION '{tmp_path_factory.mktemp('shop')}'")
    spark.sql(f"CREATE TABLE shop.orders ({KINDS}) USING parquet")
    row = "id, concat('i', id % 3), id * 1.5, timestamp_ntz'2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id), make_ym_interval(0, int(id))"
    spark.sql(
        f"INSERT INTO shop.orders SELECT {row}, make_dt_interval(0, 0, 0, id), array('a', 'b') FROM range(10)"
    )
    yield spark
    spark.sql("DROP DATABASE shop CASCADE")


@pytest.fixture
def conn() -> Iterator[Connection]:
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as made:
        made.execute(LAKE)
        made.execute(
            "CREATE TABLE s (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '8', 'fields.id.kind' = 'sequence')"
        )
        yield made


def rows(conn: Connection, sql: str) -> list[tuple[Any, ...]]:
    return conn.execute(sql).fetchall()


def plan(conn: Connection, sql: str) -> str:
    return "\n".join(line for (line,) in rows(conn, f"EXPLAIN PHYSICAL {sql}"))


def told(conn: Connection, sql: str) -> str:
    with pytest.raises(Error) as caught:
        conn.execute(sql).fetchall()
    return str(caught.value)


def test_nothing_is_started_by_declaring(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("Spark was asked for a session")

    monkeypatch.setattr(SESSIONS, "new", asked)
    conn.execute("CREATE TABLE one (id INT) WITH ('connector' = 'spark', 'table-name' = 'shop.orders')")
    conn.execute(
        "CREATE CATALOG dim WITH ('type' = 'spark', 'catalog' = 'dim', 'spark.sql.catalog.dim.pushDownAggregate' = 'true')"
    )
    conn.execute("USE CATALOG lake")
    assert ("lake", "spark", "yes") in rows(conn, "SHOW CATALOGS")
    assert rows(conn, "SELECT id FROM default_catalog.default_database.s LIMIT 1") == [(0,)]
    assert "SQL-1502" in told(conn, "CREATE CATALOG c WITH ('type' = 'spark', 'path' = 'x')")
    assert "SQL-1358" in told(conn, "CREATE DATABASE lake.other")
    with pytest.raises(AssertionError):
        conn.execute("SHOW DATABASES")


@pytest.mark.spark
def test_what_there_is(conn: Connection, shop: Any) -> None:
    conn.execute("USE lake.shop")
    assert ("shop", "yes") in rows(conn, "SHOW DATABASES")
    assert rows(conn, "SHOW TABLES") == [("orders", "spark", "bounded", "no")]
    assert [row[:2] for row in rows(conn, "DESCRIBE ORDERS")] == [
        ("id", "BIGINT"),
        ("item", "STRING"),
        ("price", "DECIMAL(10, 2)"),
        ("at", "TIMESTAMP(6)"),
        ("m", "INTERVAL YEAR TO MONTH"),
        ("d", "INTERVAL DAY TO SECOND"),
        ("tags", "ARRAY<STRING>"),
    ]
    day = dt.datetime(2026, 1, 1, 0, 0, 2)
    assert rows(conn, "SELECT * FROM orders WHERE id = 2") == [
        (2, "i2", Decimal("3.00"), day, 2, dt.timedelta(seconds=2), ["a", "b"])
    ]
    assert 'did you mean "orders"?' in told(conn, "SELECT * FROM lake.shop.ordrs")
    assert "SQL-1351" in told(conn, "SELECT * FROM lake.shp.orders")
    assert "SQL-1358" in told(conn, "DROP TABLE orders")


@pytest.mark.spark
def test_filters_and_columns_are_pushed(conn: Connection, shop: Any) -> None:
    shown = plan(conn, "SELECT item, SUM(price) FROM lake.shop.orders WHERE id > 3 GROUP BY item")
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,3)]" in shown
    assert "ReadSchema: struct<id:bigint,item:string,price:decimal(10,2)>" in shown
    beside = plan(
        conn, "SELECT s.id, o.item FROM s JOIN lake.shop.orders AS o ON s.id = o.id WHERE o.price > 10"
    )
    assert (
        "bounded lake.shop.orders" in beside
        and "GreaterThan(price,10.00)" in beside
        and "tags" not in beside.split("ReadSchema")[1]
    )


@pytest.mark.spark
def test_aggregates_are_pushed_into_a_database_behind_spark(conn: Connection, shop: Any) -> None:
    shop.sql("CREATE TABLE dim.APP.PARTS (ID INT, NAME VARCHAR(10))")
    shop.sql("INSERT INTO dim.APP.PARTS VALUES (1, 'one'), (2, 'two'), (3, 'two')")
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in DIM.items())
    conn.execute(
        f"CREATE CATALOG dim WITH ('type' = 'spark', 'catalog' = 'dim', 'default-database' = 'APP', {settings})"
    )
    query = "SELECT name, COUNT(*) AS n, MAX(id) AS last FROM dim.app.parts WHERE id > 1 GROUP BY name"
    assert "PushedAggregates: [COUNT(*), MAX(ID)]" in plan(conn, query)
    assert rows(conn, query) == [("two", 2, 3)]
    shop.sql("CREATE TABLE dim.APP.small (id INT)")
    # its name is written as it is, its database's is not
    assert rows(conn, "SELECT COUNT(*) FROM dim.app.small") == [(0,)]
    conn.execute("USE dim.app")
    assert ("app", "yes") in rows(conn, "SHOW DATABASES")


@pytest.mark.spark
def test_a_stream_meets_a_table(conn: Connection, shop: Any) -> None:
    joined = "SELECT s.id, o.item FROM s JOIN lake.shop.orders AS o ON s.id = o.id WHERE o.price > 7"
    assert sorted(rows(conn, joined)) == [(5, "i2"), (6, "i0"), (7, "i1")]


@pytest.mark.spark
def test_one_table_with_types_of_ours(conn: Connection, shop: Any) -> None:
    conn.execute(
        "CREATE TABLE one (ID INT, price STRING, at TIMESTAMP(3)) WITH ('connector' = 'spark', 'table-name' = 'shop.orders')"
    )
    assert rows(conn, "SELECT * FROM one WHERE id = 3") == [(3, "4.50", dt.datetime(2026, 1, 1, 0, 0, 3))]
    conn.execute(
        "CREATE TABLE bad (id INT, prise INT) WITH ('connector' = 'spark', 'table-name' = 'shop.orders')"
    )
    assert "DAT-4703" in told(conn, "SELECT prise FROM bad") and 'did you mean "price"?' in told(
        conn, "SELECT prise FROM bad"
    )
    conn.execute("CREATE TABLE none (id INT) WITH ('connector' = 'spark', 'table-name' = 'shop.nothing')")
    assert "DAT-4702" in told(conn, "SELECT * FROM none")


@pytest.mark.spark
def test_rows_are_written_by_spark(conn: Connection, shop: Any) -> None:
    shop.sql(f"CREATE TABLE shop.kept ({KINDS}) USING parquet")
    conn.execute("INSERT INTO lake.shop.kept SELECT * FROM lake.shop.orders WHERE id < 4")
    assert rows(conn, "SELECT * FROM lake.shop.kept") == rows(
        conn, "SELECT * FROM lake.shop.orders WHERE id < 4"
    )
    conn.execute("INSERT INTO lake.shop.kept (item, id) VALUES ('x', 7)")
    assert rows(conn, "SELECT id, item, m FROM lake.shop.kept WHERE id = 7") == [(7, "x", None)]
    shown = plan(conn, "INSERT INTO lake.shop.kept (id) SELECT id FROM lake.shop.orders")
    assert "INSERT INTO IDENTIFIER('`spark_catalog`.`shop`.`kept`')" in shown
    assert "SQL-1313" in told(conn, "INSERT INTO lake.shop.kept (id) SELECT id FROM s")


@pytest.mark.spark
def test_a_refused_insert_is_not_sent_to_duckdb(conn: Connection, shop: Any) -> None:
    shop.sql("CREATE TABLE shop.narrow (t TIME(3)) USING parquet")
    message = told(conn, "INSERT INTO lake.shop.narrow SELECT CAST('12:00:00.5' AS TIME)")
    assert "BND-5003" in message and "Cannot safely cast" in message and "duckdb" not in message


@pytest.mark.spark
def test_text_that_is_no_utf_8_is_called_so(conn: Connection, shop: Any) -> None:
    shop.sql("CREATE VIEW shop.broken AS SELECT id, CAST(X'C328' AS STRING) AS s FROM range(2)")
    assert "RUN-2012" in told(conn, "SELECT s FROM lake.shop.broken") and "no UTF-8" in told(
        conn, "SELECT s FROM lake.shop.broken"
    )
    assert rows(conn, "SELECT COUNT(s) FROM lake.shop.broken") == [(2,)]


@pytest.mark.spark
def test_names_of_a_catalog_that_is_not_the_current_one(conn: Connection, shop: Any) -> None:
    assert ("shop", None) in rows(conn, "SHOW DATABASES IN lake")
    assert ("orders", "spark", "bounded", "no") in rows(conn, "SHOW TABLES IN lake.shop")


@pytest.mark.spark
def test_settings_that_are_too_late(conn: Connection, shop: Any) -> None:
    conn.execute("CREATE CATALOG late WITH ('type' = 'spark', 'spark.jars' = 'x.jar')")
    assert "BND-5013" in told(conn, "SELECT * FROM late.shop.orders")
    warehouse = shop.conf.get("spark.sql.warehouse.dir")
    assert warehouse.startswith("file:")  # as Spark writes what it was started with
    conn.execute(
        f"CREATE CATALOG same WITH ('type' = 'spark', 'spark.sql.warehouse.dir' = '{warehouse.removeprefix('file:')}')"
    )
    assert rows(conn, "SELECT COUNT(*) FROM same.shop.orders") == [(10,)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.spark
def test_progress_is_shown_and_a_cancel_ends_the_work(conn: Connection, shop: Any) -> None:
    """10¹² rows would keep Spark busy for hours; closing the result ends its tasks, and the next query
    runs.
    """
    shop.sql("CREATE VIEW shop.many AS SELECT id, id % 7 AS g FROM range(1000000000000)")
    result = conn.session.execute("SELECT MAX(id % (g + 1)) FROM lake.shop.many")
    tracker, terminal = shop.sparkContext.statusTracker(), Terminal()
    with progress_line(result, terminal, 0.02, 0.02):
        await_that(lambda: "tasks of stage" in terminal.getvalue(), "a line of progress")
        assert tracker.getActiveStageIds()  # the control: without a cancel it runs on
    assert "Spark: 0 of " in terminal.getvalue() and terminal.getvalue().endswith("\r\x1b[K")
    result.cancel()
    await_that(lambda: not tracker.getActiveStageIds(), "the end of Spark's tasks")
    assert rows(conn, "SELECT COUNT(*) FROM lake.shop.orders") == [(10,)]


def test_no_progress_where_nobody_looks() -> None:
    out = io.StringIO()
    with progress_line(Result(Shape(Schema(())), TableStream()), out, 0.0, 0.01):
        time.sleep(0.03)
    assert out.getvalue() == ""
