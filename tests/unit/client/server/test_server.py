"""A server in this process: what outlives its clients and itself, its limits, and its end."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import psycopg
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.execution.recorded_jobs import recorded_jobs
from penstock.client.server.session_limits import SessionLimits
from penstock.engine.job.job_state import JobState
from tests.harness.patience import await_that
from tests.unit.client.server.running_server import RunningServer

TICKS = "CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')"


def sink(name: str, path: Path) -> str:
    return (
        f"CREATE TABLE {name} (n BIGINT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"
    )


def statuses(state: Path) -> dict[str, str]:
    return {job.job_id: job.record.status for job in recorded_jobs(state)}


def test_jobs_and_views_run_on_with_their_settings_and_what_a_user_stopped_stays_stopped(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    with RunningServer(state) as first:
        one = first.connect({"parallelism.default": "2", "table.exec.state.ttl": "1 d"})
        for statement in (TICKS, sink("a", tmp_path / "a"), sink("b", tmp_path / "b")):
            one.execute(statement)
        one.execute("CREATE TEMPORARY VIEW even AS SELECT n FROM ticks WHERE MOD(n, 2) = 0")
        one.execute("INSERT INTO a SELECT n FROM even")
        stopped = one.execute("INSERT INTO b SELECT n FROM ticks").job
        one.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM ticks")
        assert stopped is not None
        one.execute(f"STOP JOB '{stopped.job_id}'")
        one.close()
        (before,) = first.connect().execute("SELECT c FROM v").fetchall()
    # the record tells a user's stop from the end of the server
    assert statuses(state) == {"insert-into-a-1": "SUSPENDED", "insert-into-b-1": "STOPPED"}
    with RunningServer(state) as second:
        assert [fields["job"] for fields in second.fields_of("job resumed")] == ["insert-into-a-1"]
        client = second.connect()
        (after,) = client.execute("SELECT c FROM v").fetchall()
        assert after[0] >= before[0]
        engine = second.server.engine
        assert engine.views.by_name["v"].settings == {
            "parallelism.default": "2",
            "table.exec.state.ttl": "1 d",
        }
        settings = dict(engine.jobs.submitted["insert-into-a-1"].settings)
        assert (settings["parallelism.default"], settings["table.exec.state.ttl"]) == ("2", "1 d")
        # a new INSERT is a new job: it finds no state of a former one
        job = client.execute("INSERT INTO b SELECT n FROM ticks").job
        assert job is not None and job.job_id == "insert-into-b-2"


def test_a_stopped_job_goes_on_as_a_new_one_from_its_directory_and_from_a_savepoint(tmp_path: Path) -> None:
    state, rows = tmp_path / "state", "'number-of-rows' = '600'"
    limited = TICKS.replace("'rows-per-second'", f"{rows}, 'fields.n.kind' = 'sequence', 'rows-per-second'")
    with RunningServer(state) as first:
        client = first.connect()
        for statement in (limited, sink("a", tmp_path / "a")):
            client.execute(statement)
        job = (
            client.execute("SET 'table.dml-sync' = 'false'")
            and client.execute("INSERT INTO a SELECT n FROM ticks").job
        )
        assert job is not None
        (path,) = (
            client.execute(f"STOP JOB '{job.job_id}' WITH SAVEPOINT '{tmp_path / 'saved'}'").fetchone() or ()
        )
    # the next version of the server: one job from the savepoint, and after a stop on from its directory
    with RunningServer(state) as second:
        client = second.connect({"table.dml-sync": "false"})
        for number, saved in ((2, path), (3, state / "insert-into-a-2")):
            client.execute(f"SET 'execution.state-recovery.path' = '{saved}'")
            job = client.execute("INSERT INTO a SELECT n FROM ticks").job
            assert job is not None and job.job_id == f"insert-into-a-{number}"
            if number == 2:
                client.execute(f"STOP JOB '{job.job_id}'")
        assert job.wait(60) and job.state is JobState.FINISHED
    lines = [line for file in (tmp_path / "a").glob("*.csv") for line in file.read_text().splitlines()[1:]]
    assert sorted(map(int, lines)) == list(range(600))


def test_a_table_with_secrets_does_not_withhold_its_job(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with RunningServer(state) as first:
        client = first.connect()
        client.execute(TICKS)
        # an option whose name is that of a secret; the table is only read by SHOW
        client.execute(
            "CREATE TABLE other (n BIGINT) WITH ('connector' = 'postgres', 'url' = "
            "'postgresql://u:hunter22@127.0.0.1:1/d', 'table-name' = 't')"
        )
        client.execute(sink("a", tmp_path / "a"))
        client.execute("INSERT INTO a SELECT n FROM ticks")
    with RunningServer(state) as second:
        assert second.fields_of("job resumed") and not second.fields_of("not restored")
        # nor is the secret in a record or in the log
        assert "hunter22" not in (state / "insert-into-a-1" / "JOB").read_text(errors="replace")
        assert "hunter22" not in str(second.events)


def test_the_job_of_create_table_as_runs_on(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with RunningServer(state) as first:
        client = first.connect()
        client.execute(TICKS)
        client.execute(f"{sink('a', tmp_path / 'a').replace(' (n BIGINT)', '')} AS SELECT n FROM ticks")
    with RunningServer(state) as second:
        assert [fields["job"] for fields in second.fields_of("job resumed")] == ["insert-into-a-1"]


def test_a_statement_that_cannot_be_restored_is_reported_and_stays_stored(tmp_path: Path) -> None:
    state, data = tmp_path / "state", tmp_path / "cities.csv"
    data.write_text("n\n1\n")
    with RunningServer(state) as first:
        client = first.connect()
        client.execute(f"CREATE VIEW broken AS SELECT n FROM '{data}'")
        client.execute(TICKS)
        client.execute("CREATE DATABASE d")
        client.execute("CREATE VIEW d.fine AS SELECT n FROM ticks")
    data.unlink()
    with RunningServer(state) as second:
        (report,) = second.fields_of("not restored")
        assert report["code"] == "CLI-6207" and "broken" in str(report["message"])
        client = second.connect()
        with pytest.raises(PenstockError):
            client.execute("SELECT * FROM broken")
        client.execute("DESCRIBE d.fine")
        client.execute("CREATE VIEW another AS SELECT 1 AS x")
    data.write_text("n\n7\n")
    with RunningServer(state) as third:
        assert not third.fields_of("not restored")
        assert third.connect().execute("SELECT n FROM broken").fetchall() == [(7,)]


def test_a_view_may_read_what_was_created_after_it(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as first:
        client = first.connect()
        for statement in (
            "CREATE VIEW v AS SELECT 1 AS x",
            "CREATE VIEW w AS SELECT x FROM v",
            "CREATE DATABASE d",
            "CREATE VIEW d.later AS SELECT 2 AS x",
            "ALTER VIEW v AS SELECT x FROM d.later",
        ):
            client.execute(statement)
    with RunningServer(tmp_path) as second:
        assert not second.fields_of("not restored")
        assert second.connect().execute("SELECT x FROM w").fetchall() == [(2,)]


def test_a_job_that_cannot_be_resumed_stops_no_other(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with RunningServer(state) as first:
        client = first.connect()
        for statement in (TICKS, sink("a", tmp_path / "a"), sink("b", tmp_path / "b")):
            client.execute(statement)
        client.execute("INSERT INTO a SELECT n FROM ticks")
        client.execute("INSERT INTO b SELECT n FROM ticks")
        client.execute("DROP TABLE a")
    with RunningServer(state) as second:
        (report,) = second.fields_of("not restored")
        assert "insert-into-a-1 is not resumed: SQL-1041" in str(report["message"])
        assert [fields["job"] for fields in second.fields_of("job resumed")] == ["insert-into-b-1"]
        # mended: the next start resumes it
        second.connect().execute(sink("a", tmp_path / "a"))
    with RunningServer(state) as third:
        assert len(third.fields_of("job resumed")) == 2


def test_clients_beyond_the_limit_and_while_the_server_ends_are_refused(tmp_path: Path) -> None:
    limits = SessionLimits(sessions=2, results=1, idle_s=3600)
    with RunningServer(tmp_path, limits=limits) as running:
        first, second = running.session(), running.session()
        with pytest.raises(PenstockError) as raised:
            running.session()
        assert (raised.value.code, raised.value.sqlstate) == ("CLI-6202", "53300")
        second.close()
        second.close()
        running.session()
        client = first.connection
        client.execute(TICKS)
        reading = client.execute("SELECT n FROM ticks")
        with pytest.raises(PenstockError) as raised:
            client.execute("SELECT n FROM ticks")
        assert (raised.value.code, raised.value.sqlstate) == ("CLI-6205", "53400")
        reading.close()
        client.execute("SELECT n FROM ticks").close()
        running.server.sessions.refusal = "it is shutting down"
        with pytest.raises(PenstockError) as raised:
            running.session()
        assert (raised.value.code, raised.value.sqlstate) == ("CLI-6201", "57P03")


def test_idle_sessions_are_closed_and_busy_ones_are_not(tmp_path: Path) -> None:
    with RunningServer(tmp_path, limits=SessionLimits(idle_s=5)) as running:
        idle, busy = running.session(), running.session()
        busy.connection.execute(TICKS)
        reading = busy.connection.execute("SELECT n FROM ticks")
        since_ms = idle.connection.session.state.idle_since_ms
        assert since_ms is not None and busy.connection.session.state.idle_since_ms is None
        assert running.server.sessions.close_idle(since_ms + 4_000) == []
        assert running.server.sessions.close_idle(since_ms + 6_000) == [idle]
        assert running.server.sessions.all() == [busy]
        assert reading.fetchmany(1)


def test_ended_inserts_are_forgotten_and_their_ids_are_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.client.execution.engine_state.ENDED_JOBS", 2)
    state = tmp_path / "state"
    with RunningServer(state) as first:
        client = first.connect()
        client.execute(sink("a", tmp_path / "a"))
        for number in range(5):
            assert client.execute(f"INSERT INTO a VALUES ({number})").rowcount == 1
        assert len(client.execute("SHOW JOBS").fetchall()) <= 3
    assert len(recorded_jobs(state)) <= 3
    monkeypatch.setattr("penstock.client.server.job_keeper.ENDED_JOBS", 1)
    with RunningServer(state) as second:
        assert len(recorded_jobs(state)) == 1
        client = second.connect()
        client.execute("INSERT INTO a VALUES (5)")
        assert "insert-into-a-6" in {row[0] for row in client.execute("SHOW JOBS").fetchall()}
        assert client.execute("SELECT COUNT(*), MIN(n), MAX(n) FROM a").fetchall() == [(6, 0, 5)]


def test_ended_queries_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.execution.engine_state.ENDED_JOBS", 2)
    with RunningServer(tmp_path) as running:
        client = running.connect({"execution.runtime-mode": "streaming"})
        client.execute(TICKS)
        for _ in range(5):
            cursor = client.execute("SELECT n FROM ticks")
            cursor.close()
            assert cursor.job is not None and cursor.job.wait(30)
        assert len(running.server.engine.jobs.all()) <= 4
        assert set(running.server.engine.jobs.submitted) == {job.job_id for job in client.jobs()}


def test_a_script_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "init.sql"
    script.write_text(f"{TICKS}; CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM ticks;")
    for run in range(2):
        with RunningServer(tmp_path / "state", init_script=script) as running:
            assert len(running.fields_of("init")) == (0 if run else 2)
            assert running.server.engine.views.by_name["v"].job.state is not JobState.FAILED


def test_the_second_server_waits_and_takes_over(tmp_path: Path) -> None:
    first = RunningServer(tmp_path)
    client = first.connect()
    client.execute(TICKS)
    second = RunningServer(tmp_path, waits=False)
    waits = second.await_event("waits for the lease")
    holder = json.loads((tmp_path / "_server" / "server.json").read_text())
    assert waits["holder"] == f"{holder['host']}:{holder['pid']}" and waits["since_ms"] == holder["since_ms"]
    assert (tmp_path / "_server" / "server.json").stat().st_mode & 0o777 == 0o600
    with pytest.raises(PenstockError) as raised:
        second.session()
    assert raised.value.sqlstate == "57P03" and str(waits["holder"]) in raised.value.message
    assert not second.server.ready.is_set()
    assert first.stop() == []
    assert second.wait_ready()
    assert second.await_event("lease acquired")["epoch"] == 2
    assert second.connect().execute("DESCRIBE ticks").fetchall()
    assert second.stop() == []


def test_a_server_that_waits_can_be_stopped(tmp_path: Path) -> None:
    with RunningServer(tmp_path):
        second = RunningServer(tmp_path, waits=False)
        second.await_event("waits for the lease")
        assert second.stop() == []
        assert not second.server.ready.is_set()


def test_a_server_that_lost_its_lease_writes_nothing_and_ends(tmp_path: Path) -> None:
    running = RunningServer(tmp_path)
    client = running.connect()
    lock = tmp_path / "_server" / "LOCK"
    # another process has taken the lock over, as after 30 s of silence
    taken = tmp_path / "_server" / "LOCK.1"
    taken.touch()
    taken.replace(lock)
    with pytest.raises(PenstockError) as raised:
        client.execute(TICKS)
    assert (raised.value.code, raised.value.sqlstate) == ("CLI-6204", "57P01")
    running.await_event("lease lost")
    assert running.exits == [1]
    running.stop()


def test_a_listener_whose_package_is_missing_is_no_surprise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.client.server import listeners

    entry = listeners.ListenerEntry("no_such_package.listener:Listener")
    monkeypatch.setattr(listeners, "LISTENERS", {"flight": entry})
    running = RunningServer(tmp_path, waits=False, ports={"flight": 0})
    (error,) = running.join()
    assert isinstance(error, PenstockError) and error.code == "CLI-6208"


def test_system_sessions_lists_the_clients(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as running:
        one, two = running.session(), running.session()
        listed = one.connection.execute("SELECT session, listener, address FROM system.sessions").fetchall()
        assert sorted(listed) == sorted([(each.session_id, "test", "here") for each in (one, two)])


def test_a_start_that_fails_leaves_its_jobs_to_the_next(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with RunningServer(state) as first:
        client = first.connect()
        for statement in (TICKS, sink("a", tmp_path / "a"), "INSERT INTO a SELECT n FROM ticks"):
            client.execute(statement)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        second = RunningServer(state, waits=False, ports={"flight": taken.getsockname()[1]})
        (error,) = second.join()
        assert isinstance(error, PenstockError) and error.code == "CLI-6203"
        assert second.fields_of("job resumed") and second.fields_of("job suspended")
    assert statuses(state) == {"insert-into-a-1": "SUSPENDED"}
    with RunningServer(state) as third:
        assert third.fields_of("job resumed")


def test_clients_are_told_that_their_server_ends_and_that_another_one_waits(tmp_path: Path) -> None:
    def connect(running: RunningServer) -> psycopg.Connection:
        host, _, port = running.server.addresses["postgres"].rpartition(":")
        return psycopg.connect(host=host, port=port, user="x", dbname="x", autocommit=True)

    first = RunningServer(tmp_path, ports={"postgres": 0})
    client = connect(first)
    second = RunningServer(tmp_path, waits=False, ports={"postgres": 0})
    second.await_event("waits for the lease")
    await_that(lambda: second.server.addresses, "the listener of the second")
    with pytest.raises(psycopg.OperationalError, match="it waits for the server"):
        connect(second)
    assert first.stop() == []
    with pytest.raises(psycopg.OperationalError, match="the server is shutting down") as raised:
        client.execute("SELECT 1")
    assert raised.value.sqlstate in {"57P01", None}
    assert second.wait_ready()
    assert connect(second).execute("SELECT 1").fetchall() == [(1,)]
    assert second.stop() == []
