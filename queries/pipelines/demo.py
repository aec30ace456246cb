"""Starts the servers of a pipeline from packages, fills them with a year of flights, and runs the pipeline:
``python -m queries.pipelines.demo kafka``, ``cdc`` or ``debezium``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from penstock.repl.launch.script_runner import substitute
from tests.harness.kafka_broker import KafkaTopics, new_broker
from tests.harness.postgres_server import PostgresServer, logical_server

Row = tuple[Any, ...]
Row = tuple[Any, ...]
HERE = Path(__file__).parent
FLIGHTS, PLANES = "queries/data/flights", "queries/data/planes.csv.gz"
PATIENCE_S = 300.0
BUSIEST = """CREATE TABLE busiest_routes (
  origin text, place bigint, dest text, flights bigint, PRIMARY KEY (origin, place))"""
MAKERS = "SELECT manufacturer, flights, seats FROM maker_flights"
OLD_MAKER = "MCDONNELL DOUGLAS"
EDIT = "UPDATE planes SET manufacturer = 'BOEING' WHERE manufacturer LIKE 'MCDONNELL%'"


def run(script: str, **variables: str) -> None:
    """Run a script as a user does, and show what it prints."""
    pairs = [word for name, value in variables.items() for word in ("--var", f"{name}={value}")]
    words = ["run", str(HERE / script), "--set", "bounded.backend=duckdb", *pairs]
    print(f"\n$ penstock {' '.join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "penstock.repl.cli", *words], check=True)


def topics(*names: str) -> str:
    """Start a broker with topics; return its address."""
    broker = KafkaTopics(new_broker().bootstrap)
    for name in names:
        broker.create(name, 4)
    print(f"a Kafka broker is at {broker.bootstrap}, with the topics {', '.join(names)}")
    return broker.bootstrap


def kafka() -> None:
    """Kafka, windows, Delta."""
    address, table = topics("flights"), tempfile.mkdtemp(prefix="penstock-delays-")
    run("flights_topic.sql", kafka=address, flights=FLIGHTS)
    run("kafka_to_delta.sql", kafka=address, delta=f"{table}/delays", until="latest-offset")


def debezium() -> None:
    """Debezium's changes, a Top-N, PostgreSQL."""
    address, server = topics("routes"), logical_server()
    ask(server, BUSIEST)
    run("routes_topic.sql", kafka=address, flights=FLIGHTS)
    run("debezium_top.sql", kafka=address, postgres=server.url, until="latest-offset")


def cdc() -> None:
    """PostgreSQL's changes joined with Kafka, into a topic of upserts and a materialized view."""
    address, server = topics("flights", "makers"), logical_server()
    run("flights_topic.sql", kafka=address, flights=FLIGHTS)
    fill_planes(server)
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        follow(connection, address, server)
        show = f"{MAKERS} ORDER BY flights DESC LIMIT 8"
        print("\nflights by the maker of the plane, while the job runs:")
        for row in await_rows(connection, show, lambda rows: "MCDONNELL DOUGLAS" in makers_of(rows)):
            print("  ", *row)
        print(f"\n{EDIT}")
        ask(server, EDIT)
        began = time.monotonic()
        rows = await_rows(
            connection, show, lambda rows: bool(rows) and "MCDONNELL DOUGLAS" not in makers_of(rows)
        )
        print(f"corrected after {time.monotonic() - began:.1f} s:")
        for row in rows:
            print("  ", *row)


def makers_of(rows: list[Row]) -> set[object]:
    """Return the first column."""
    return {row[0] for row in rows}


def ask(server: PostgresServer, statement: str) -> list[Row]:
    """Run a statement on the server; return the rows of a query."""
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def fill_planes(server: PostgresServer) -> None:
    """Create the table of planes that people edit."""
    ask(server, "CREATE TABLE planes (tailnum text PRIMARY KEY, manufacturer text, seats int)")
    # a change then has the row it replaces, which the join and the sum take back
    ask(server, "ALTER TABLE planes REPLICA IDENTITY FULL")
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        connection.execute(f"""CREATE TABLE file (tailnum STRING, `year` INT, type STRING,
            manufacturer STRING, model STRING, engines INT, seats INT, speed INT, engine STRING)
            WITH ('connector' = 'filesystem', 'path' = '{PLANES}', 'format' = 'csv',
            'csv.null-literal' = 'NA')""")
        connection.execute(f"""CREATE TABLE planes (tailnum STRING, manufacturer STRING, seats INT,
            PRIMARY KEY (tailnum) NOT ENFORCED)
            WITH ('connector' = 'postgres', 'url' = '{server.url}', 'table-name' = 'planes')""")
        connection.execute("INSERT INTO planes SELECT tailnum, manufacturer, seats FROM file")


def follow(connection: penstock.Connection, kafka_address: str, server: PostgresServer) -> None:
    """Start the job, and a materialized view of the same rows."""
    script = (HERE / "cdc_join_kafka.sql").read_text(encoding="utf-8")
    values = {"kafka": kafka_address, "postgres_host": server.host, "postgres_port": str(server.port)}
    values |= {"postgres_user": server.user, "database": "postgres"}
    connection.executescript(substitute(script, values))
    # the view reads the topic of upserts: a slot has one reader
    connection.execute(f"""CREATE TABLE makers_now (manufacturer STRING, flights BIGINT, seats BIGINT,
        PRIMARY KEY (manufacturer) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'makers',
        'properties.bootstrap.servers' = '{kafka_address}',
        'key.format' = 'json', 'value.format' = 'json')""")
    connection.execute(
        "CREATE MATERIALIZED VIEW maker_flights AS SELECT manufacturer, flights, seats FROM makers_now"
    )


def await_rows(connection: penstock.Connection, query: str, holds: Callable[[list[Row]], bool]) -> list[Row]:
    """Return a query's rows once they are as they shall be."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        rows = connection.execute(query).fetchall()
        if holds(rows):
            return rows
        failed = next((job.error for job in connection.jobs() if job.error is not None), None)
        if failed is not None:
            raise failed
        time.sleep(0.2)
    raise TimeoutError(f"after {PATIENCE_S:.0f} s the rows are {rows[:20]}")


if __name__ == "__main__":
    {"kafka": kafka, "debezium": debezium, "cdc": cdc}[sys.argv[1]]()
