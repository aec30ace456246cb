"""A server that goes away while it is at work: what may pass is tried again, nothing is lost or doubled;
what cannot fails, told by its state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.connectors.database import postgres_target, staged_transactions
from penstock.engine.connectors.database.postgres import PostgresConnection
from tests.streaming.databases.places import Place
from tests.streaming.databases.test_scans import opened
from tests.streaming.databases.two_phase import batch, sink

ROWS = 100_000
NONE = {"restart-strategy.type": "none"}


@pytest.fixture
def server(tmp_path: Path) -> Place:
    return Place("postgres", tmp_path)


def cut(place: Place) -> None:
    """End every connection of penstock's to a database, as an administrator would."""
    place.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'penstock' AND datname = current_database()"
    )


def once(act: Callable[[], None]) -> Callable[[], bool]:
    """Return what does something the first time it is called, and tells whether it did."""
    left = [act]

    def again() -> bool:
        if not left:
            return False
        left.pop()()
        return True

    return again


def numbers(place: Place) -> None:
    place.run(
        f"CREATE TABLE facts AS SELECT k::int4 AS k, repeat('x', 100) AS v FROM generate_series(1, {ROWS}) AS k"
    )


@contextlib.contextmanager
def cut_while_scanning(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Cut the connection behind the first batch of the first scan."""
    whole, cuts, act = PostgresConnection.rows, [], once(lambda: cut(place))

    def rows(self: PostgresConnection, select: Any) -> Iterator[pa.RecordBatch]:
        for rows in whole(self, select):
            yield rows
            if act():
                cuts.append(1)

    with monkeypatch.context() as patched:
        patched.setattr(PostgresConnection, "rows", rows)
        yield cuts


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_a_scan_is_begun_again(
    server: Place, tmp_path: Path, parallelism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is restarted by its strategy: every row comes once."""
    numbers(server)
    settings = {
        "execution.runtime-mode": "streaming",
        "execution.checkpointing.dir": str(tmp_path / "state"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.delay": "10 ms",
        "parallelism.default": parallelism,
        "table.dml-sync": "true",
    }
    with cut_while_scanning(server, monkeypatch) as cuts, opened(**settings) as made:
        made.execute(f"CREATE TABLE facts (k INT, v STRING) {server.options('facts')}")
        made.execute(
            f"CREATE TABLE copied (k INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'copied'}', 'format' = 'parquet')"
        )
        made.execute("INSERT INTO copied SELECT k FROM facts")
        rows = made.execute("SELECT COUNT(*), COUNT(DISTINCT k), SUM(k) FROM copied").fetchall()
        assert cuts and [tuple(row) for row in rows][-1] == (ROWS, ROWS, ROWS * (ROWS + 1) // 2)


def test_without_restarts_a_lost_scan_says_what_the_server_said(
    server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers(server)
    with (
        cut_while_scanning(server, monkeypatch),
        opened(**{"execution.runtime-mode": "streaming"}, **NONE) as made,
    ):
        made.execute(f"CREATE TABLE facts (k INT, v STRING) {server.options('facts')}")
        with pytest.raises(penstock.Error, match="DAT-4705") as caught:
            made.execute("SELECT COUNT(*) FROM facts").fetchall()
        assert "SQLSTATE 57P01" in str(caught.value) or "SQLSTATE 08006" in str(caught.value)


@pytest.mark.parametrize("point", ["S2", "S5"])
@pytest.mark.parametrize("key", [False, True])
def test_rows_whose_connection_is_cut_while_they_are_written_are_there_once(
    server: Place, point: str, key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of staging (S2) and of committing (S5): the transaction is gone, and is done again on
    another connection.
    """
    server.run(f"CREATE TABLE out (k INTEGER {'PRIMARY KEY' if key else ''}, v VARCHAR(20))")
    act = once(lambda: cut(server))
    hit = []
    monkeypatch.setattr(
        staged_transactions, "failpoint", lambda name: hit.append(name) if name == point and act() else None
    )
    writer = sink(server, key=key)
    writer.recover([])
    for epoch in range(3):
        writer.write(batch(2 * epoch, 2 * epoch + 1))
        items = writer.prepare(epoch)
        writer.commit(items)
    assert hit == [point] and sorted(server.ask("SELECT k FROM out")) == [(k,) for k in range(6)]
    assert server.staged() == 0
    writer.close()


def test_a_commit_whose_answer_is_lost_is_found_to_be_done(
    server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    writer = sink(server)
    writer.recover([])
    writer.write(batch(1, 2))
    items = writer.prepare(1)
    whole, act = PostgresConnection.transaction, once(lambda: None)

    @contextlib.contextmanager
    def transaction(self: PostgresConnection) -> Iterator[None]:
        with whole(self):
            yield
        if act():
            raise self.failure(
                "the answer is lost",
                self._driver.OperationalError("server closed the connection unexpectedly"),
            )

    monkeypatch.setattr(PostgresConnection, "transaction", transaction)
    writer.commit(items)
    assert sorted(server.ask("SELECT k FROM out")) == [(1,), (2,)]
    writer.close()


def test_a_job_writes_each_row_once_while_its_connections_are_cut(
    server: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut in commits, with no tries of the sink's own: the job is restarted and goes on from its
    checkpoint.
    """
    server.run("CREATE TABLE out (k BIGINT, v VARCHAR(20))")
    commits = []

    def cut_some(name: str) -> None:
        commits.append(name)
        if len(commits) in (1, 4):
            cut(server)

    monkeypatch.setattr(postgres_target, "failpoint", cut_some)
    settings = {
        "execution.runtime-mode": "streaming",
        "execution.checkpointing.dir": str(tmp_path / "state"),
        "execution.checkpointing.interval": "50 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.delay": "10 ms",
        "parallelism.default": "2",
        "table.dml-sync": "true",
    }
    with opened(**settings) as made:
        made.execute(
            "CREATE TABLE numbers (k BIGINT) WITH ('connector' = 'datagen', 'fields.k.kind' = 'sequence', 'number-of-rows' = '3000', "
            "'rows-per-second' = '6000', 'splits' = '2')"
        )
        made.execute(f"CREATE TABLE out (k BIGINT, v STRING) {server.options('out', sink__max_retries='0')}")
        made.execute("INSERT INTO out SELECT k, 'v' FROM numbers")
    assert len(commits) >= 4
    assert server.ask("SELECT COUNT(*), COUNT(DISTINCT k), SUM(k) FROM out") == [
        (3000, 3000, 3000 * 2999 // 2)
    ]


def test_a_lookup_is_sent_again(server: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    server.run(
        "CREATE TABLE dim (k INTEGER, name VARCHAR(20))",
        "INSERT INTO dim SELECT k, 'n' || k FROM generate_series(0, 9) AS k",
    )
    whole, act = PostgresConnection.look_up, once(lambda: cut(server))
    cuts = []

    def found(self: PostgresConnection, select: Any, keys: pa.RecordBatch) -> pa.RecordBatch:
        if act():
            cuts.append(1)
        return whole(self, select, keys)

    monkeypatch.setattr(PostgresConnection, "look_up", found)
    with opened(**{"execution.runtime-mode": "streaming"}, **NONE) as made:
        made.execute(
            "CREATE TABLE l (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'fields.k.kind' = 'sequence', 'number-of-rows' = '10')"
        )
        made.execute(f"CREATE TABLE dim (k INT, name STRING) {server.options('dim')}")
        rows = made.execute(
            "SELECT l.k, d.name FROM l JOIN dim FOR SYSTEM_TIME AS OF l.p AS d ON l.k = d.k"
        ).fetchall()
    assert cuts and sorted(tuple(row) for row in rows) == [(k, f"n{k}") for k in range(10)]
