"""Queries over a PostgreSQL table that changes, with exactly-once sinks into the same server: whole, with
checkpoints, and stopped and resumed. The server itself says what is right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

import penstock
from tests.harness.patience import await_that
from tests.harness.postgres_server import PostgresServer, logical_server

pytestmark = pytest.mark.xdist_group("postgres-cdc")
QUERY = "SELECT g, COUNT(*), SUM(n), MAX(name) FROM src GROUP BY g"
ORACLE = 'SELECT g, count(*), sum(n)::bigint, max(name COLLATE "C") FROM {} GROUP BY g ORDER BY g'


def with_options(options: dict[str, str]) -> str:
    return "WITH (" + ", ".join(f"'{key}' = '{value}'" for key, value in options.items()) + ")"


def opened(server: PostgresServer, name: str, state: Path | None, **more: str) -> Any:
    settings = {"execution.runtime-mode": "streaming"}
    if state is not None:
        settings |= {
            "execution.checkpointing.dir": str(state),
            "execution.checkpointing.interval": "50 ms",
            "pipeline.name": name,
        }
    made = penstock.connect(settings=settings)
    source = server.options("postgres", name, f"slot_{name}", heartbeat__interval="50 ms", **more)
    made.execute(
        "CREATE TABLE src (id BIGINT, g INT, n BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) "
        + with_options(source)
    )
    sink = {"connector": "postgres", "url": server.url, "table-name": f"{name}_out"}
    made.execute(
        "CREATE TABLE counted (g INT, c BIGINT, s BIGINT, m STRING, PRIMARY KEY (g) NOT ENFORCED) "
        + with_options(sink)
    )
    return made


SHOWN = {"changesReceived", "commitLagMs", "slotLagBytes", "recordsRead", "recordsReadPerSecond"}


def metrics_of(made: Any) -> set[str]:
    """Return the names of the source's metrics that are no nonsense."""
    return {one.name for one in made.metrics() if one.operator == "source src" and 0 <= one.value < 2**40}


def make_tables(there: Any, name: str) -> None:
    there.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, g int, n bigint, name text)")
    there.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    there.execute(f"INSERT INTO {name} SELECT i, i % 7, i, 'n' || i FROM generate_series(1, 2000) i")
    there.execute(f"CREATE TABLE {name}_out (g int PRIMARY KEY, c bigint, s bigint, m text)")


def change(there: Any, name: str, turn: int) -> None:
    there.execute(f"UPDATE {name} SET g = (g + 1) % 9, n = n + {turn} WHERE id % 11 = {turn}")
    there.execute(f"DELETE FROM {name} WHERE id % 97 = {turn}")
    there.execute(f"INSERT INTO {name} SELECT {turn}000000 + i, 3, i, 'x' FROM generate_series(1, 50) i")


def test_a_query_without_checkpoints_follows_the_table_and_leaves_no_slot() -> None:
    server = logical_server()
    with psycopg.connect(server.url, autocommit=True) as there:
        make_tables(there, "acts_whole")
        with opened(server, "acts_whole", None) as made:
            cursor = made.cursor()
            cursor.execute(QUERY)
            rows: dict[Any, Any] = {}
            changes = cursor.changes()

            def read_until(wanted: list[Any]) -> None:
                for op, row in changes:
                    if op in ("+I", "+U"):
                        rows[row[0]] = tuple(row)
                    elif rows.get(row[0]) == tuple(row):
                        del rows[row[0]]
                    if sorted(rows.values()) == wanted:
                        return

            read_until(there.execute(ORACLE.format("acts_whole")).fetchall())
            change(there, "acts_whole", 1)
            read_until(there.execute(ORACLE.format("acts_whole")).fetchall())
            temporary = "SELECT count(*) FROM pg_replication_slots WHERE temporary AND active"
            assert there.execute(temporary).fetchone() == (1,)
        slots = "SELECT count(*) FROM pg_replication_slots WHERE temporary OR slot_name = 'slot_acts_whole'"
        await_that(lambda: there.execute(slots).fetchone() == (0,), "the slot is gone")


def test_a_job_is_stopped_and_resumed_while_the_table_changes(tmp_path: Path) -> None:
    server, name = logical_server(), "acts_stopped"
    with psycopg.connect(server.url, autocommit=True) as there:
        make_tables(there, name)

        def right() -> bool:
            wanted = there.execute(ORACLE.format(name)).fetchall()
            return bool(there.execute(f"SELECT * FROM {name}_out ORDER BY g").fetchall() == wanted)

        for turn in range(3):
            with opened(server, name, tmp_path / "state") as made:
                job = made.execute(f"INSERT INTO counted {QUERY}").job
                change(there, name, turn + 1)
                await_that(lambda job=job: job.error is not None or right(), "the counts are right")
                assert job.error is None, job.error
                # behind the snapshot
                there.execute(f"INSERT INTO {name} VALUES ({turn} - 10, 1, 1, 'y')")
                await_that(lambda made=made: metrics_of(made) >= SHOWN, "the metrics of the source")
                job.cancel()
            change(there, name, turn + 4)
        with opened(server, name, tmp_path / "state") as made:
            made.execute(f"INSERT INTO counted {QUERY}")
            await_that(right, "the counts are right")
        there.execute(f"SELECT pg_drop_replication_slot('slot_{name}') WHERE false")
