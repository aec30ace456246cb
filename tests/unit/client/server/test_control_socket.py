"""The control socket: another command line sees and stops the jobs of a running process, and no one else."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.server.control_socket import RECORD, ControlSocket, control_url
from penstock.client.session import Session
from penstock.engine.api.clock import SystemClock
from penstock.repl.cli import main

HOST = socket.gethostname()
JOB = "insert-into-hole-1"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def session(state: Path) -> Iterator[Session]:
    settings = {"bounded.backend": "duckdb", "execution.checkpointing.interval": "100 ms"}
    session = Session(settings, state_dir=state)
    session.state.report = lambda sentence: None
    session.execute("CREATE TABLE ticks (k INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')")
    session.execute("CREATE TABLE hole (k INT) WITH ('connector' = 'blackhole')")
    session.execute("INSERT INTO hole SELECT k FROM ticks")
    yield session
    session.close()


@pytest.fixture
def control(session: Session, state: Path) -> Iterator[ControlSocket]:
    control = ControlSocket(session, state, SystemClock(), HOST)
    yield control
    control.close()


def url_of(state: Path, host: str = HOST, *, is_alive: bool = True) -> str:
    return control_url(state, host, lambda pid: is_alive)


def test_another_connection_sees_and_stops_the_jobs(
    session: Session, control: ControlSocket, state: Path
) -> None:
    with penstock.connect(url_of(state)) as other:
        assert [row[0] for row in other.execute("SHOW JOBS").fetchall()] == [JOB]
        other.execute("USE system")
        other.execute("SET 'parallelism.default' = '3'")
        other.execute(f"STOP JOB '{JOB}'")
    (job,) = session.jobs()
    assert job.wait(60)
    # settings and the current database are of the other's session
    assert session.settings.get("parallelism.default") == 1
    assert session.execute("SHOW TABLES").final_rows(10).num_rows == 2


def test_closing_the_other_connection_leaves_the_jobs(
    session: Session, control: ControlSocket, state: Path
) -> None:
    penstock.connect(url_of(state)).close()
    assert not session.jobs()[0].wait(0.2)


def test_the_command_line_reaches_it_by_the_state_directory(
    session: Session, control: ControlSocket, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rescale", JOB, "2", "--state", str(state)]) == 0
    assert main(["stop", JOB, "--state", str(state)]) == 0
    assert session.jobs()[0].wait(60)
    assert "is finished" in capsys.readouterr().err


def test_only_the_owner_reaches_the_socket(control: ControlSocket, state: Path) -> None:
    path = Path(json.loads((state / RECORD).read_text(encoding="utf-8"))["socket"])
    assert (state / RECORD).stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.is_socket()


def test_nothing_is_left_behind(session: Session, state: Path) -> None:
    control = ControlSocket(session, state, SystemClock(), HOST)
    path = Path(url_of(state).removeprefix("penstock+unix://"))
    control.close()
    assert not path.parent.exists()
    assert not (state / RECORD).exists()
    # the record of a process that took the state over stays
    control = ControlSocket(session, state, SystemClock(), HOST)
    record = json.loads((state / RECORD).read_text(encoding="utf-8"))
    (state / RECORD).write_text(json.dumps({**record, "pid": os.getpid() + 1}), encoding="utf-8")
    control.close()
    assert (state / RECORD).exists()


def test_what_a_killed_process_left_is_removed(session: Session, state: Path, tmp_path: Path) -> None:
    control = ControlSocket(session, state, SystemClock(), HOST)
    record = json.loads((state / RECORD).read_text(encoding="utf-8"))
    control.close()
    # no process has this number: numbers are at most 2 ** 22
    killed = {**record, "pid": 1 << 30}
    for left, said, remains in (
        (tmp_path / "penstock-killed", killed, False),
        (tmp_path / "penstock-elsewhere", {**killed, "host": "elsewhere"}, True),
        (tmp_path / "penstock-runs", {**killed, "pid": os.getpid()}, True),
        # a record is a file that may name anything
        (tmp_path / "documents", killed, True),
        (tmp_path / "penstock-mine", killed, True),
    ):
        left.mkdir()
        (left / ("mine.txt" if left.name == "penstock-mine" else "flight.sock")).touch()
        (state / RECORD).write_text(json.dumps({**said, "socket": str(left / "flight.sock")}))
        control = ControlSocket(session, state, SystemClock(), HOST)
        control.close()
        assert left.exists() == remains, left


def test_who_cannot_be_reached_is_said(control: ControlSocket, state: Path, tmp_path: Path) -> None:
    said = []
    for attempt in (
        lambda: url_of(tmp_path / "none"),
        lambda: url_of(state, "elsewhere"),
        lambda: url_of(state, is_alive=False),
    ):
        with pytest.raises(PenstockError) as raised:
            attempt()
        assert raised.value.code == "CLI-6200"
        said.append(raised.value.message)
    assert "no process runs" in said[0]
    assert f"run on {HOST}" in said[1]
    assert "has ended" in said[2]
    (state / RECORD).write_text("{", encoding="utf-8")
    assert main(["stop", JOB, "--state", str(state)]) == 3
