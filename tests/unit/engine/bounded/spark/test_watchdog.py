"""No call into Spark waits for ever: a machine that is dead, that hangs, that does nothing; and nothing is
left behind.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.client.dbapi_errors import Error
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.local_application import OwnSpark
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.bounded.spark.watchdog import SparkWatch
from tests.harness.patience import PATIENCE_S


class Machine:
    """A Spark that answers what it is told to."""

    def __init__(self, *, is_gone: bool = False, hangs: bool = False, is_busy: bool = True) -> None:
        self.is_gone, self.hangs, self.is_busy, self.ended = is_gone, hangs, is_busy, threading.Event()

    def gone(self) -> PenstockError | None:
        return PenstockError("BND-5008", "gone") if self.is_gone else None

    def busy(self) -> bool:
        if self.hangs:
            self.ended.wait(30)
        return self.is_busy

    def abandon(self) -> None:
        self.ended.set()


def test_a_value_and_an_error_come_through() -> None:
    watch = SparkWatch(Machine())
    assert watch.call("add", lambda: 1 + 1) == 2
    with pytest.raises(ZeroDivisionError):
        watch.call("divide", lambda: 1 / 0)


def test_a_dead_machine_is_told_at_once() -> None:
    with pytest.raises(PenstockError) as caught:
        SparkWatch(Machine(is_gone=True)).call("wait", threading.Event().wait)
    assert caught.value.code == "BND-5008"


def test_a_machine_that_does_not_answer_is_ended() -> None:
    machine = Machine(hangs=True)
    with pytest.raises(PenstockError) as caught:
        SparkWatch(machine, silent_s=0.4).call("wait", lambda: threading.Event().wait(60))
    assert caught.value.code == "BND-5005" and "has not answered" in caught.value.message
    assert machine.ended.is_set()


def test_a_machine_that_runs_nothing_is_not_waited_for() -> None:
    watch = SparkWatch(Machine(is_busy=False), idle_s=0.6)
    with pytest.raises(PenstockError) as caught:
        watch.call("wait", lambda: threading.Event().wait(60))
    assert caught.value.code == "BND-5005" and "has run nothing" in caught.value.message
    busy = SparkWatch(Machine(), idle_s=3.0)
    busy.call("work", lambda: threading.Event().wait(4.0))  # asked every two seconds, it is busy


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    path = tmp_path_factory.mktemp("watch") / "n.csv"
    path.write_text("n,t\n" + "".join(f"{n},text of {n}\n" for n in range(100_000)))
    with penstock.connect(settings={"bounded.backend": "spark"}) as made:
        made.execute(
            f"CREATE TABLE n (n BIGINT, t STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"
        )
        yield made


def processes(parent: int) -> dict[int, str]:
    """The descendants of a process and their states: Z is a zombie."""
    found: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(entry.name)] = (int(words[1]), words[0])
    below: dict[int, str] = {}
    fresh = {parent}
    while fresh:
        fresh = {pid for pid, (above, _) in found.items() if above in fresh and pid not in below}
        below |= {pid: found[pid][1] for pid in fresh}
    return below


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie. It may end while its state is read."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(wanted: object, told: object, within_s: float = PATIENCE_S) -> None:
    for _ in range(int(within_s / 0.1)):
        if told() == wanted:  # type: ignore[operator]
            return
        time.sleep(0.1)
    assert told() == wanted  # type: ignore[operator]


# 10,000 million rows: no machine, however slow its reader, has sent them all before the test acts
ENDLESS = "SELECT a.n, b.t FROM n AS a JOIN n AS b ON a.n % 1 = b.n % 1"


@pytest.mark.spark
def test_a_reader_that_leaves_cancels_the_job_and_leaves_no_zombies(conn: Connection) -> None:
    cursor = conn.execute(ENDLESS)
    assert cursor.fetchone() is not None
    place = SESSIONS.application
    assert isinstance(place, OwnSpark)
    before = time.monotonic()
    cursor.close()
    assert time.monotonic() - before < PATIENCE_S  # a second, on a machine that is not busy
    tracker = place.session().sparkContext.statusTracker()
    until((), lambda: tuple(tracker.getActiveStageIds()))
    # a worker that ended is a zombie until Spark's daemon comes round to it: none may stay
    until(False, lambda: "Z" in processes(place.jvm.process.pid).values())
    assert conn.execute("SELECT COUNT(*) FROM n").fetchall() == [(100_000,)]


@pytest.mark.spark
def test_a_large_result_is_in_its_order(conn: Connection) -> None:
    rows = conn.execute("SELECT n, t FROM n ORDER BY n DESC").fetchall()
    assert [row[0] for row in rows] == list(range(99_999, -1, -1))


@pytest.mark.spark
def test_a_machine_that_is_killed_is_told_and_replaced(conn: Connection) -> None:
    cursor = conn.execute(ENDLESS)
    assert cursor.fetchone() is not None
    place = SESSIONS.application
    assert isinstance(place, OwnSpark)
    workers = processes(place.jvm.process.pid)
    assert workers  # Python's, that push
    os.kill(place.jvm.process.pid, signal.SIGKILL)
    before = time.monotonic()
    with pytest.raises(Error) as caught:
        cursor.fetchall()
    assert "BND-5008" in str(caught.value) and time.monotonic() - before < PATIENCE_S
    until([], lambda: [pid for pid in workers if runs(pid)])
    assert conn.execute("SELECT COUNT(*) FROM n").fetchall() == [(100_000,)]
    assert SESSIONS.application is not place
