"""A program whose Spark is a server of Spark Connect (SPARK_REMOTE): what it saw, as JSON. The last thing
it does is to end the server.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import penstock
from penstock.client.dbapi_errors import Error
from penstock.engine.bounded.spark.connect_application import SparkServer
from penstock.engine.bounded.spark.sessions import SESSIONS

# 10,000 million rows: no machine, however slow its reader, has sent them all before the test acts
ENDLESS = "SELECT a.n, b.t FROM n AS a JOIN n AS b ON a.n % 1 = b.n % 1"


@penstock.udf(["BIGINT"], "BIGINT")
def twice(n: int) -> int:
    """Return the double."""
    return n * 2


def told(connection: Any, sql: str) -> list[str]:
    try:
        connection.execute(sql).fetchall()
    except Error as error:
        return [error.code, error.sqlstate, str(error)]
    return []


def main(path: str, java_pid: int) -> None:
    """Use everything that goes another way over Connect."""
    saw: dict[str, Any] = {}
    with penstock.connect(settings={"bounded.backend": "spark"}) as connection:
        connection.execute(
            f"CREATE TABLE n (n BIGINT, t STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}/n.csv')"
        )
        saw["small"] = connection.execute("SELECT 1 + 1 AS two").fetchall()
        saw["ordered"] = [
            row[0] for row in connection.execute("SELECT n FROM n ORDER BY n DESC").fetchall()
        ] == list(range(99_999, -1, -1))
        saw["place"] = isinstance(SESSIONS.application, SparkServer)
        connection.create_function(twice)
        saw["python"] = connection.execute("SELECT SUM(twice(n)) FROM n").fetchall()
        spark = SESSIONS.new("UTC")
        spark.sql(f"CREATE DATABASE shop LOCATION '{path}/shop'")
        spark.sql("CREATE TABLE shop.orders (id BIGINT, item STRING) USING parquet")
        connection.execute("CREATE CATALOG lake WITH ('type' = 'spark')")
        connection.execute("INSERT INTO lake.shop.orders SELECT n, t FROM n WHERE n < 5")
        connection.execute("USE lake.shop")
        saw["tables"] = connection.execute("SHOW TABLES").fetchall()
        connection.execute("USE default_catalog.default_database")
        saw["rows"] = connection.execute(
            "SELECT id, item FROM lake.shop.orders WHERE id > 2 ORDER BY id"
        ).fetchall()
        saw["plan"] = connection.execute(
            "EXPLAIN PHYSICAL SELECT id FROM lake.shop.orders WHERE id > 2"
        ).fetchall()
        saw["errors"] = [
            told(connection, "SELECT CAST(t AS INT) FROM n"),
            told(connection, "SELECT 1 / (n - n) FROM n"),
            told(connection, "SELECT * FROM lake.shop.ordrs"),
        ]
        cursor = connection.execute(ENDLESS)
        cursor.fetchone()
        before = time.monotonic()
        cursor.close()
        saw["closed_s"] = time.monotonic() - before
        cursor = connection.execute(ENDLESS)
        cursor.fetchone()
        os.kill(java_pid, signal.SIGKILL)
        before = time.monotonic()
        try:
            cursor.fetchall()
        except Error as error:
            saw["killed"] = [error.code, str(error)]
        saw["killed_s"] = time.monotonic() - before
        saw["after"] = told(connection, "SELECT COUNT(*) FROM n")
    saw["closed_at"] = time.time()
    json.dump(saw, sys.stdout, default=str)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
