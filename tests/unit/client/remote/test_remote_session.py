"""What a connection to a server does beyond one in process; tests of both are in the files of connection, cursor and
asyncio.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pandas
import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.client.execution.access_control import FullAccess
from penstock.client.server.flight.limits import FlightLimits
from penstock.engine.job.job_state import JobState
from penstock.planner.statements import nodes
from tests.harness.connections import server_url
from tests.harness.flight_server import TestAuthenticator, flight_listener, jobs_of
from tests.harness.patience import PATIENCE_S, await_that

ENDLESS = "CREATE TABLE endless (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with penstock.connect(server_url()) as made:
        yield made


def test_values_of_every_type_reach_the_server_as_they_are(connection: Connection) -> None:
    values = [
        None, True, 7, 2**70, 1.5, float("inf"), Decimal("1.50"), "it's", b"\0a", datetime.date(2020, 1, 2),
        datetime.time(1, 2, 3), datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.timedelta(days=-1), [1, None, 2],
    ]  # fmt: skip
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as here:
        for value in values:
            expected = here.execute("SELECT ? AS v", (value,)).fetchall()
            assert connection.execute("SELECT ? AS v", (value,)).fetchall() == expected, value
    others = (uuid.UUID(int=7), np.int64(3), bytearray(b"x"), pandas.Timestamp("2020-01-02"), pandas.NaT)
    assert connection.execute("SELECT ?, ?, ?, ?, ?", others).fetchone() == (
        str(uuid.UUID(int=7)), 3, b"x", datetime.datetime(2020, 1, 2), None,
    )  # fmt: skip
    with pytest.raises(penstock.ProgrammingError, match="SQL-1014"):
        connection.execute("SELECT ?", (object(),))


def test_errors_have_class_code_caret_and_hint(connection: Connection) -> None:
    with pytest.raises(penstock.ProgrammingError) as caught:
        connection.executescript("SELECT 1 AS x;\nSELECT nope FROM (VALUES (1)) AS t (nap)")
    error = caught.value
    assert (error.code, error.sqlstate, error.line, error.column) == ("SQL-1042", "42703", 2, 8)
    assert "2 | SELECT nope" in str(error) and "^^^^" in str(error)
    with pytest.raises(penstock.DataError, match="RUN-2001") as failed:
        connection.execute("SELECT 1 / (a - 1) FROM (VALUES (1)) AS t (a)").fetchall()
    assert "^" in str(failed.value)


def test_a_cancelled_insert_ends_at_the_server(connection: Connection) -> None:
    connection.executescript(
        f"{ENDLESS}; CREATE TABLE sink (a BIGINT) WITH ('connector' = 'blackhole'); SET 'table.dml-sync' = 'true'"
    )
    cursor = connection.cursor()
    failed: list[penstock.Error] = []

    def insert() -> None:
        try:
            cursor.execute("INSERT INTO sink SELECT a FROM endless")
        except penstock.Error as error:
            failed.append(error)

    thread = threading.Thread(target=insert)
    thread.start()
    await_that(lambda: [job for job in connection.jobs() if job.state is JobState.RUNNING], "the job")
    (job,) = connection.jobs()
    cursor.cancel()
    thread.join()
    assert isinstance(failed[0], penstock.OperationalError) and failed[0].code == "RUN-2903"
    assert job.wait(PATIENCE_S) and job.state is JobState.CANCELED


def test_jobs_are_seen_and_stopped(connection: Connection) -> None:
    connection.executescript(f"{ENDLESS}; CREATE TABLE sink (a BIGINT) WITH ('connector' = 'blackhole')")
    cursor = connection.execute("INSERT INTO sink SELECT a FROM endless")
    job = cursor.job
    assert job is not None and job == connection.jobs()[-1] and "started" in (cursor.note or "")
    await_that(lambda: job.metrics().rows_out > 0, "rows")
    assert (job.error, job.last_failure, job.parallelism, job.finished_before) == (None, None, 1, False)
    assert not job.wait(0)
    job.stop()
    assert job.wait(PATIENCE_S) and job.stopped
    assert {metric.job for metric in connection.metrics(job.job_id)} == {job.job_id}
    with pytest.raises(penstock.Error, match="CLI-6030"):
        connection.metrics("no-such-job")


def test_what_is_of_this_process_is_refused(connection: Connection) -> None:
    for call in (
        lambda: connection.create_function(print),  # type: ignore[arg-type]  # any object
        lambda: connection.create_connector(print),  # type: ignore[arg-type]  # any object
        lambda: connection.register("t", iter([{"a": 1}])),
        lambda: connection.register("t", lambda: [{"a": 1}]),
        lambda: penstock.connect(server_url(), catalog="somewhere"),
    ):
        with pytest.raises(penstock.NotSupportedError, match="CLI-6244") as caught:
            call()
        assert caught.value.hint


def test_secrets_of_tables_do_not_come_to_the_client(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE people (a INT) WITH ('connector' = 'postgres', 'url' = 'postgresql://u:hunter2@h/d', "
        "'table-name' = 'people', 'password' = 'hunter2')"
    )
    table = connection.session.catalog.find("people")
    assert table is not None and "hunter2" not in repr(table)
    assert "hunter2" not in repr(connection.table("people").to_plan())


def code_of(connection: Connection) -> str:
    with pytest.raises(penstock.OperationalError) as caught:
        connection.execute("SELECT 1")
    return caught.value.code


def test_a_server_that_is_lost_is_named_and_nothing_is_run_twice() -> None:
    with flight_listener() as listener:
        connection = penstock.connect(f"penstock://{listener.address}")
        connection.execute(ENDLESS)
        cursor = connection.execute("SELECT a FROM endless")
        assert cursor.fetchone()
        listener.close()
        with pytest.raises(penstock.OperationalError, match="CLI-6237"):
            list(cursor)
        for _ in range(2):
            with pytest.raises(penstock.OperationalError, match=listener.address) as caught:
                connection.execute("SELECT 1")
            assert (caught.value.code, caught.value.sqlstate) == ("CLI-6242", "08006")
        port = int(listener.address.rpartition(":")[2])
        with flight_listener(port=port) as again:
            # the session has gone with the first server: a new one would lack its tables
            await_that(lambda: code_of(connection) == "CLI-6231", "the connection to the new server")
            assert not jobs_of(again)
        connection.close()
    with pytest.raises(
        penstock.OperationalError, match=r"cannot connect to the server at 127\.0\.0\.1:1"
    ) as refused:
        penstock.connect("penstock://127.0.0.1:1")
    assert refused.value.code == "CLI-6241"


def test_a_result_that_nobody_reads_is_dropped_and_one_that_is_read_is_not() -> None:
    with flight_listener(limits=FlightLimits(unread_s=0.0)) as listener:
        with penstock.connect(f"penstock://{listener.address}") as connection:
            connection.execute(ENDLESS)
            cursor = connection.execute("SELECT a FROM endless")
            (session,) = listener.clients.all()
            listener.clients.sweep()
            assert cursor.fetchone()
            cursor.close()
            await_that(lambda: not session.statements.is_busy, "the end of the query")
        assert not listener.clients.all()


def test_users_tokens_and_namespaces() -> None:
    users = TestAuthenticator({"ada": "p@ss/word"}, {"secret-token": "robot"})
    with flight_listener(users) as listener:
        for login in ("", "ada:wrong@", "bob:p@"):
            with pytest.raises(penstock.OperationalError, match="CLI-6210") as caught:
                penstock.connect(f"penstock://{login}{listener.address}")
            assert "wrong" not in str(caught.value)
        with penstock.connect(
            f"penstock://ada:p%40ss%2Fword@{listener.address}?parallelism.default=3"
        ) as made:
            assert made.execute("SET 'parallelism.default'").fetchone() == ("parallelism.default", "3")
            assert "p@ss" not in repr(made.session.url)
            made.execute("CREATE DATABASE shop")
        url = f"penstock://{listener.address}/default_catalog.system?token=secret-token"
        with penstock.connect(url) as made:
            assert made.session.catalog.current.database == "system"
            assert made.table("jobs").columns[0]
        with pytest.raises(penstock.Error, match="SQL-1351"):
            penstock.connect(f"penstock://{listener.address}/nowhere?token=secret-token")


def test_the_table_api_reads_and_inserts(connection: Connection) -> None:
    connection.register("t", pa.table({"a": [1, 2, 3], "b": ["x", "y", "x"]}))
    connection.execute("CREATE TABLE sink (b STRING, s BIGINT) WITH ('connector' = 'blackhole')")
    table = connection.table("t").group_by("b").select(b=penstock.col("b"), s=penstock.col("a").sum())
    assert sorted(table.execute().fetchall()) == [("x", 4), ("y", 2)]
    assert connection.table("t").select("b", "a").insert_into("sink").rowcount == 3
    assert "Aggregate" in table.explain()


class Reader(FullAccess):
    """The access of a role that may only read."""

    def check_statement(self, node: nodes.Statement, text: str) -> None:
        if isinstance(node, nodes.StopJob | nodes.CancelJob):
            raise PenstockError("CLI-6211", f"{text} is not permitted", sqlstate="42501")


def test_a_job_is_stopped_only_by_whom_the_statement_is_permitted() -> None:
    with flight_listener() as listener, penstock.connect(f"penstock://{listener.address}") as connection:
        connection.executescript(f"{ENDLESS}; CREATE TABLE sink (a BIGINT) WITH ('connector' = 'blackhole')")
        job = connection.execute("INSERT INTO sink SELECT a FROM endless").job
        assert job is not None
        (session,) = listener.clients.all()
        session.engine.state.access = Reader()
        for act in (job.stop, job.cancel):
            with pytest.raises(PenstockError, match="CLI-6211"):
                act()
        assert not job.state.terminal
        session.engine.state.access = FullAccess()
        job.cancel()
        assert job.wait(PATIENCE_S)
