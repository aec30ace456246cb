"""``python -m tests.unit.engine.bounded.spark.catalog_trials``: each kind of catalog of Spark used for real, by our own
words, a Spark of its own each.

Hive with a metastore in a temporary directory, and Derby through JDBC, need nothing but pyspark. ``--postgres
URL`` with the driver in ``--jar`` (Debian: libpostgresql-jdbc-java), and ``--iceberg`` or ``--delta`` with
their jars in ``--jar``, are tried when asked for.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock
from penstock.engine.bounded.spark.sessions import SESSIONS

ROOT = Path(__file__).resolve().parents[5]
_JDBC = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
_ROWS = "(1, 'pen', 1.50, 10), (2, 'ink', 2.25, 10), (3, 'pen', 3.00, 20), (4, 'cap', 4.75, 20)"


@dataclass(frozen=True)
class Trial:
    """One kind of catalog. ``made``: what makes its tables; ``pushed``, ``aggregated``: words of the plan
    of a filter, of an aggregate.
    """

    name: str
    catalog: str
    database: str
    settings: dict[str, str]
    made: tuple[str, ...]
    pushed: tuple[str, ...]
    aggregated: tuple[str, ...] = ()


def _jdbc(name: str, url: str, driver: str, database: str, jar: str | None) -> Trial:
    key = f"spark.sql.catalog.{name}"
    settings = {
        key: _JDBC,
        f"{key}.url": url,
        f"{key}.driver": driver,
        f"{key}.pushDownAggregate": "true",
    } | ({"spark.jars": jar} if jar else {})
    made = (
        f"CREATE TABLE {name}.{database}.orders (id INT, item VARCHAR(10), price DECIMAL(10, 2), day INT)",
        f"CREATE TABLE {name}.{database}.summary (item VARCHAR(10), n BIGINT)",
        f"INSERT INTO {name}.{database}.orders VALUES {_ROWS}",
    )
    return Trial(
        name,
        name,
        database,
        settings,
        made,
        (
            "PushedFilters: [price IS NOT NULL, day IS NOT NULL, price > 2.00, day = 20]",
            "ReadSchema: struct<item:string>",
        ),
        ("PushedAggregates: [COUNT(*), MAX(",),
    )


def _of_files(
    name: str, catalog: str, settings: dict[str, str], using: str, pushed: tuple[str, ...]
) -> Trial:
    where = f"{catalog}.sales"
    made = (
        f"CREATE DATABASE {where}",
        f"CREATE TABLE {where}.orders (id INT, item STRING, price DECIMAL(10, 2), day INT) {using}",
        f"CREATE TABLE {where}.summary (item STRING, n BIGINT) {using.partition('PARTITIONED')[0]}",
        f"INSERT INTO {where}.orders VALUES {_ROWS}",
    )
    return Trial(name, catalog, "sales", settings, made, pushed)


def trials(folder: Path, arguments: argparse.Namespace) -> dict[str, Trial]:
    """Return the trials that were asked for, by name; what they keep is in ``folder``."""
    jar = arguments.jar
    hive = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
    }
    partitioned = "STORED AS PARQUET PARTITIONED BY (day)"
    made = [
        _of_files(
            "hive",
            "spark_catalog",
            hive,
            "STORED AS PARQUET",
            (
                "GreaterThan(price,2.00), EqualTo(day,20)]",
                "ReadSchema: struct<item:string,price:decimal(10,2),day:int>",
            ),
        )
    ]
    made.append(
        _of_files(
            "hive by day",
            "spark_catalog",
            hive,
            partitioned.replace("(day)", "(DAY)"),
            ("PartitionFilters: [isnotnull(day), (day = 20)]", "GreaterThan(price,2.00)]"),
        )
    )
    made.append(
        _jdbc(
            "derby",
            f"jdbc:derby:{folder}/derby;create=true",
            "org.apache.derby.jdbc.EmbeddedDriver",
            "APP",
            None,
        )
    )
    if arguments.postgres:
        made.append(_jdbc("postgres", arguments.postgres, "org.postgresql.Driver", "public", jar))
    if arguments.iceberg:
        key = "spark.sql.catalog.ice"
        ice = {
            "spark.jars": jar,
            key: "org.apache.iceberg.spark.SparkCatalog",
            f"{key}.type": "hadoop",
            f"{key}.warehouse": f"{folder}/ice",
        }
        made.append(_of_files("iceberg", "ice", ice, "USING iceberg", ("filters=price", "price > 2.00")))
    if arguments.delta:
        delta = {"spark.jars": jar, "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}
        delta["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        made.append(_of_files("delta", "spark_catalog", delta, "USING delta", ("PushedFilters",)))
    return {trial.name: trial for trial in made}


def tried(trial: Trial) -> int:
    """Try one kind of catalog in this process; print a line per step, and return how many went wrong."""
    wrong = 0
    with penstock.connect(settings={"bounded.backend": "spark"}) as connection:

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return connection.execute(sql).fetchall()

        def done(sql: str) -> bool:
            connection.execute(sql)
            return True

        def plan(sql: str) -> str:
            return "\n".join(line for (line,) in rows(f"EXPLAIN PHYSICAL {sql}"))

        def made() -> bool:
            spark = SESSIONS.new("UTC", trial.settings)
            for text in trial.made:
                spark.sql(text)
            return True

        def says(shown: str, words: tuple[str, ...]) -> bool:
            missing = [word for word in words if word not in shown]
            if missing:
                print(f"{shown}\nin which is not {missing}")
            return not missing

        options = "".join(f", '{key}' = '{value}'" for key, value in trial.settings.items())
        join = "SELECT s.id, o.item FROM s JOIN orders AS o ON s.id = o.id WHERE o.price > 2"
        steps: list[tuple[str, Callable[[], object]]] = [
            ("make", made),
            (
                "CREATE CATALOG",
                lambda: done(
                    f"CREATE CATALOG lake WITH ('type' = 'spark', 'catalog' = '{trial.catalog}'{options})"
                ),
            ),
            ("USE", lambda: done(f"USE lake.{trial.database}")),
            ("SHOW DATABASES", lambda: (trial.database.lower(), "yes") in rows("SHOW DATABASES")),
            (
                "SHOW TABLES",
                lambda: {"orders", "summary"} <= {str(row[0]).lower() for row in rows("SHOW TABLES")},
            ),
            (
                "DESCRIBE",
                lambda: (
                    [str(row[0]).lower() for row in rows("DESCRIBE orders")] == ["id", "item", "price", "day"]
                ),
            ),
            (
                "SELECT",
                lambda: (
                    sorted(rows("SELECT item, SUM(price) FROM orders WHERE price > 2 GROUP BY item"))[0][0]
                    == "cap"
                ),
            ),
            (
                "EXPLAIN filter",
                lambda: says(plan("SELECT item FROM orders WHERE price > 2 AND day = 20"), trial.pushed),
            ),
            (
                "EXPLAIN aggregate",
                lambda: says(
                    plan("SELECT item, COUNT(*), MAX(id) FROM orders GROUP BY item"), trial.aggregated
                ),
            ),
            ("CREATE stream", lambda: done(_STREAM)),
            (
                "join a stream",
                lambda: (
                    sorted(rows(join.replace(" s ", f" {_HERE}.s "))) == [(2, "ink"), (3, "pen"), (4, "cap")]
                ),
            ),
            (
                "INSERT INTO",
                lambda: done("INSERT INTO summary SELECT item, COUNT(*) FROM orders GROUP BY item"),
            ),
            (
                "what it wrote",
                lambda: sorted(rows("SELECT * FROM summary")) == [("cap", 1), ("ink", 1), ("pen", 2)],
            ),
        ]
        for what, step in steps:
            began = time.perf_counter()
            try:
                said = "ok" if step() else "WRONG"
            except Exception as error:  # noqa: BLE001  what a trial tells
                said = f"WRONG: {' '.join(str(error).split())[:600]}"
            wrong += said != "ok"
            print(f"{trial.name:12} {what:18} {time.perf_counter() - began:6.2f} s  {said}", flush=True)
    return wrong


_HERE = "default_catalog.default_database"
_STREAM = f"CREATE TABLE {_HERE}.s (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '8', 'fields.id.kind' = 'sequence')"


def main() -> int:
    """Try each kind in a process of its own, as settings of its start are Spark's own."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.unit.engine.bounded.spark.catalog_trials", description=__doc__
    )
    parser.add_argument("--jar", help="jars for what pyspark does not bring, with commas between")
    parser.add_argument("--postgres", help="jdbc:postgresql://host/database?user=..&password=..")
    parser.add_argument("--iceberg", action="store_true")
    parser.add_argument("--delta", action="store_true")
    parser.add_argument("--only", help="the one to try, in this process")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-catalogs-") as folder:
        known = trials(Path(folder), arguments)
        if arguments.only:
            return tried(known[arguments.only])
        command = [sys.executable, "-m", "tests.unit.engine.bounded.spark.catalog_trials", *sys.argv[1:]]
        return sum(
            subprocess.run([*command, "--only", name], cwd=ROOT, check=False, timeout=240).returncode != 0
            for name in known
        )


if __name__ == "__main__":
    sys.exit(min(1, main()))
