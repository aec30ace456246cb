"""``penstock serve``: what it refuses, and what it tells its starter. The process is killed in
tests/fault_injection.
"""

from __future__ import annotations

import io
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.server_sessions import ClientAddress
from penstock.repl.commands import serve
from penstock.repl.launch.serve_arguments import serve_arguments, serve_parser
from tests.harness.patience import await_that


def arguments_of(*words: str):
    return serve_arguments(serve_parser(), words)


def test_a_server_without_users_is_for_this_machine_only() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        assert serve.authenticator_for(arguments_of("--state", "s", "--host", host)).required is False
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.com"):
        with pytest.raises(PenstockError) as raised:
            serve.authenticator_for(arguments_of("--state", "s", "--host", host))
        assert raised.value.code == "CLI-6209"


def test_ports_that_are_not_set_are_not_served() -> None:
    arguments = arguments_of("--state", "s", "--postgres-port", "0", "--max-sessions", "7")
    options = serve.options_of(arguments, {"parallelism.default": "2"})
    assert dict(options.ports) == {"postgres": 0}
    assert (options.limits.sessions, options.state_dir, options.settings) == (
        7,
        Path("s"),
        {"parallelism.default": "2"},
    )


def test_a_log_that_cannot_be_written_ends_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--state", str(tmp_path), "--log-file", str(tmp_path / "missing" / "log"))
    assert serve.serve(arguments_of(*words), serve_parser()) == 1
    assert "CLI-6209" in capsys.readouterr().err


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        out = io.StringIO()
        monkeypatch.setattr("sys.stdout", out)
        serve.announce({"flight": "127.0.0.1:8815"})
        assert listener.recv(100) == b"READY=1"
    assert out.getvalue() == "penstock serves: flight 127.0.0.1:8815\n"


class Signalled:
    """A server and its log: ``stopping`` is set by the first signal."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.rotated = 0
        self.lock = threading.Lock()

    @property
    def is_stopping(self) -> bool:
        return self.stopping.is_set()

    def stop(self) -> None:
        with self.lock:
            self.stopping.set()

    def rotate(self) -> None:
        with self.lock:
            self.rotated += 1


def test_the_first_signal_ends_in_order_and_the_second_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    exits: list[int] = []
    server = Signalled()
    monkeypatch.setattr(serve.os, "_exit", exits.append)
    with serve.handling_signals(server, server):
        # each interrupts this thread while it has the lock: a handler that waited for it would wait for ever
        with server.lock:
            signal.raise_signal(signal.SIGHUP)
        await_that(lambda: server.rotated)
        assert not server.is_stopping
        with server.lock:
            signal.raise_signal(signal.SIGTERM)
        await_that(lambda: server.is_stopping)
        assert exits == []
        signal.raise_signal(signal.SIGINT)
        await_that(lambda: exits)
    assert exits == [130]


def test_a_signal_is_acted_on_while_the_main_thread_waits() -> None:
    """A handler in Python would run when the wait is over: the signal does not interrupt it, for another thread
    gets it. So it is with one that comes just before the wait.
    """
    server = Signalled()
    handled: list[int] = []
    looks: list[bool] = []

    def interrupt() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    def interrupt_and_look(waited_for: threading.Event) -> None:
        interrupt()
        looks.append(not handled)
        waited_for.set()

    with serve.handling_signals(server, server):
        threading.Timer(0.05, interrupt).start()
        assert server.stopping.wait(30)
    # a negative control: a handler in Python waits until the main thread does
    before = signal.signal(signal.SIGTERM, lambda number, frame: handled.append(number))
    try:
        # on a busy machine this thread may come to its wait only after the signal: then it is asked again
        while not any(looks) and len(looks) < 20:
            handled.clear()
            ended = threading.Event()
            threading.Timer(0.05, interrupt_and_look, [ended]).start()
            ended.wait()
            await_that(lambda: handled)
        assert any(looks)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_users_and_what_they_reach(tmp_path: Path) -> None:
    users, audit = tmp_path / "users.json", tmp_path / "audit.log"
    done = subprocess.run(
        [sys.executable, "-m", "penstock.repl.cli", "user", "token", "ci", "--users", str(users)],
        capture_output=True,
        text=True,
        check=True,
    )
    words = (
        "--state",
        "s",
        "--users",
        str(users),
        "--allowed-path",
        str(tmp_path),
        "--audit-log",
        str(audit),
    )
    arguments = arguments_of(*words)
    authenticator = serve.authenticator_for(arguments)
    assert authenticator.required
    principal = authenticator.by_token(done.stdout.split()[-1])
    log = serve.audit_of(arguments, None)
    assert log is not None
    access = serve.access_of(arguments, log)(principal, ClientAddress("flight", "127.0.0.1:1"), "s1")
    access.check_path("path", str(tmp_path / "a.csv"))
    with pytest.raises(PenstockError) as raised:
        access.check_path("path", "/etc/passwd")
    assert raised.value.code == "CLI-6216"
    (line,) = audit.read_text().splitlines()
    assert "/etc/passwd" in line and audit.stat().st_mode & 0o777 == 0o600
    assert serve.audit_of(arguments_of("--state", "s"), None) is None
