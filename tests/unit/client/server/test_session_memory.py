"""The memory of one session: a greedy result ends with a coded error, and others continue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.client.connection import Connection
from penstock.client.server.session_limits import SessionLimits
from tests.unit.client.server.running_server import RunningServer

LIMIT = 16_000_000
NUMBERS = """CREATE TABLE IF NOT EXISTS %s (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0', 'number-of-rows' = '%d',
  'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '%d')"""
ENDLESS = """CREATE TABLE IF NOT EXISTS endless (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0', 'fields.a.kind' = 'sequence',
  'fields.a.start' = '1', 'fields.a.end' = '900000000')"""
SLOW = "CREATE TABLE slow (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')"
WIDE = "REPEAT(CAST(a AS STRING), 60)"
GREEDY = {
    # state of a query; its rows are read
    "state": ("streaming", f"SUBSCRIBE TO SELECT {WIDE} AS w, COUNT(*) AS n FROM endless GROUP BY {WIDE}"),
    # rows that wait for a reader
    "queue": ("streaming", f"SELECT {WIDE} || {WIDE} || {WIDE} || {WIDE} AS w FROM endless"),
    # rows that are held until the end; so many that the server looks at its memory meanwhile
    "fold": ("streaming", f"SELECT {WIDE} AS w, COUNT(*) AS n FROM many GROUP BY {WIDE}"),
    # a query of DuckDB
    "bounded": ("batch", f"SELECT ARRAY_AGG({WIDE}) AS w FROM numbers"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(
        tmp_path_factory.mktemp("memory") / "state",
        ports={"flight": 0},
        limits=SessionLimits(session_memory_bytes=LIMIT),
    )
    with running:
        with client_of(running) as client:
            for statement in (
                NUMBERS % ("numbers", 500_000, 500_000),
                NUMBERS % ("many", 10_000_000, 10_000_000),
                ENDLESS,
                SLOW,
            ):
                client.execute(statement)
        yield running


def client_of(server: RunningServer) -> Connection:
    return penstock.connect(f"penstock://{server.server.addresses['flight']}")


@pytest.mark.parametrize("kind", GREEDY)
def test_a_greedy_result_ends_and_a_modest_one_continues(server: RunningServer, kind: str) -> None:
    mode, statement = GREEDY[kind]
    with client_of(server) as modest, client_of(server) as greedy:
        rows = modest.execute("SELECT a FROM slow")
        assert rows.fetchmany(10)
        greedy.execute(f"SET 'execution.runtime-mode' = '{mode}'")
        cursor = greedy.execute(statement)
        with pytest.raises(penstock.Error) as raised:
            while cursor.fetchmany(10_000):
                # a slow reader: rows wait for it, and the limit is met there
                if kind == "queue":
                    time.sleep(0.1)
            raise AssertionError("the result was to end with an error")
        assert (raised.value.code, raised.value.sqlstate) == ("CLI-6205", "53200"), raised.value
        assert "--session-memory" in str(raised.value.hint)
        # its session goes on, and so do the others
        assert greedy.execute("SELECT 1").fetchall() == [(1,)]
        assert len(rows.fetchmany(100)) == 100


def test_without_the_limit_it_is_read_to_the_end(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "state", ports={"flight": 0}) as running, client_of(running) as client:
        client.execute(NUMBERS % ("many", 120_000, 120_000))
        client.execute("SET 'execution.runtime-mode' = 'streaming'")
        assert len(client.execute(GREEDY["fold"][1]).fetchall()) == 120_000
