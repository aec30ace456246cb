"""A statement that waits for the first state of a view is cancelled by its client, and ends at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import penstock
from penstock.client.connection import Connection
from tests.harness.flight_server import flight_listener
from tests.harness.patience import await_that

SCRIPT = """
CREATE TABLE ticks (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');
SET 'execution.checkpointing.interval' = '1 h';
CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM ticks;
"""
# far less than the minute that a statement waits; on a quiet machine it takes 0.25 s at most
AT_MOST_S = 20.0


def cancelled_while_it_waits(execute: Callable[[], object], cancel: Callable[[], object]) -> list[Exception]:
    """Execute in a thread, cancel once it waits, and return its errors."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            execute()
        except Exception as error:  # noqa: BLE001 - the test asks for it
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive(), errors
    cancel()
    begin_s = time.monotonic()
    thread.join(AT_MOST_S)
    assert not thread.is_alive(), "it still waits"
    print(f"ended after {time.monotonic() - begin_s:.2f} s")
    return errors


def check_cursor(connection: Connection) -> None:
    connection.executescript(SCRIPT)
    cursor = connection.cursor()
    (error,) = cancelled_while_it_waits(lambda: cursor.execute("SELECT c FROM v"), cursor.cancel)
    assert isinstance(error, penstock.Error) and (error.code, error.sqlstate) == ("CLI-6237", "57014")
    # the connection continues
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_a_cursor_of_this_process() -> None:
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        check_cursor(connection)


def test_a_cursor_of_a_server() -> None:
    with flight_listener() as listener, penstock.connect(f"penstock://{listener.address}") as connection:
        check_cursor(connection)


def test_a_driver_of_flight() -> None:
    dbapi = pytest.importorskip("adbc_driver_flightsql.dbapi")
    with (
        flight_listener() as listener,
        dbapi.connect(f"grpc://{listener.address}", autocommit=True) as connection,
    ):
        cursor = connection.cursor()
        for statement in SCRIPT.strip().rstrip(";").split(";"):
            cursor.execute(statement)

        def read() -> None:
            cursor.execute("SELECT c FROM v")
            cursor.fetchall()

        state = listener.clients.all()[0].engine.state
        assert cancelled_while_it_waits(read, cursor.adbc_cancel)
        # the server's own thread has left the wait as well
        await_that(lambda: state._executing == 0, "the end of the statement")
