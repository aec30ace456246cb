"""A process that is forked from a program with a connection: it neither waits for threads that it does not
have, nor ends what is its parent's.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import penstock
from penstock.engine.api.threads import _end
from penstock.engine.deploy.spark.code_archive import _remove
from tests.harness.patience import PATIENCE_S, await_that

QUERY = "SELECT SUM(x) FROM generate_series(1, 1000) AS t(x)"


def in_child(run: Callable[[], bool]) -> bool:
    """Return what a forked process returns; one that hangs is ended by an alarm."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(PATIENCE_S))
        try:
            os._exit(0 if run() else 1)
        except BaseException as error:  # noqa: BLE001  the tests of the parent must not run on in the child
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture(params=["streaming", "batch"])
def connection(request: pytest.FixtureRequest) -> Iterator[penstock.Connection]:
    with penstock.connect(settings={"execution.runtime-mode": request.param}) as connection:
        assert connection.execute(QUERY).fetchall() == [(500500,)]
        yield connection


def refused(use: Callable[[], object]) -> bool:
    try:
        use()
    except penstock.InterfaceError as error:
        return "CLI-6012" in str(error) and "forked" in str(error)
    return False


def test_the_connection_and_its_cursors_are_refused_in_the_child(connection: penstock.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute(QUERY)
    for use in (
        lambda: connection.execute(QUERY),
        connection.cursor,
        lambda: cursor.execute(QUERY),
        cursor.fetchone,
        cursor.fetchall,
    ):
        assert in_child(lambda use=use: refused(use))
    assert cursor.fetchall() == [(500500,)]


def test_the_child_connects_anew(connection: penstock.Connection) -> None:
    def connects() -> bool:
        with penstock.connect() as own:
            return own.execute(QUERY).fetchall() == [(500500,)]

    assert in_child(connects)


def test_the_end_of_the_child_stops_no_job_of_the_parent(connection: penstock.Connection) -> None:
    connection.execute("SET 'execution.runtime-mode' = 'automatic'")
    connection.execute(
        "CREATE TEMPORARY TABLE g (k INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')"
    )
    connection.execute("CREATE TEMPORARY TABLE b (k INT) WITH ('connector' = 'blackhole')")
    job = connection.execute("INSERT INTO b SELECT k FROM g").job
    assert job is not None
    cursor = connection.execute("SELECT k FROM g")

    def ends() -> bool:
        cursor.close()
        connection.close()
        _end()
        return True

    assert in_child(ends)
    before = job.metrics().rows_in
    await_that(lambda: job.metrics().rows_in > before + 500)
    assert cursor.fetchone() is not None


def test_the_end_of_the_child_removes_no_file_of_the_parent(tmp_path: Path) -> None:
    parent = os.getpid()

    def ends() -> bool:
        _remove(tmp_path, parent)
        return tmp_path.exists()

    assert in_child(ends)
    _remove(tmp_path, parent)
    assert not tmp_path.exists()
