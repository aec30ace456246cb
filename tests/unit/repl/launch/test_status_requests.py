"""SIGUSR1 and Ctrl-T ask for the status of what runs; rows on stdout stay as they are."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from penstock.repl.cli import main
from penstock.repl.launch.status_requests import NOTHING_RUNS, PREPARING, StatusRequests, report_status
from tests.harness.patience import PATIENCE_S, await_that

# the one row comes after the reporting thread has looked several times
SLOW = (
    "CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '4', "
    "'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '4'); SELECT a FROM t WHERE a > 3;"
)
QUIET = {"NO_COLOR": "1", "PENSTOCK_CONFIG": "/nonexistent", "PENSTOCK_HISTORY": "/nonexistent/history"}


def printed(monkeypatch: pytest.MonkeyPatch, interval: str, *words: str) -> tuple[str, str]:
    """Return what a command line with a slow query writes on stdout and stderr."""
    streams = {
        name: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for name in ("stdout", "stderr")
    }
    with monkeypatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        assert main([*words, "--set", f"result-status-interval={interval}", "-c", SLOW]) == 0
    out, err = (stream.buffer.getvalue().decode() for stream in streams.values())  # type: ignore[attr-defined]
    return out, err


@pytest.mark.parametrize("words", [(), ("--csv",), ("--format", "json")])
def test_stdout_is_the_same_with_reports(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    silent, told = printed(monkeypatch, "0", *words), printed(monkeypatch, "10 ms", *words)
    assert "4" in silent[0] and told[0] == silent[0]
    assert "no row yet after" in told[1] and f"kill -USR1 {os.getpid()} reports again" in told[1]
    assert "no row yet" not in silent[1]


def test_a_signal_is_answered_in_another_thread_and_its_handler_restored() -> None:
    answers: list[int] = []
    before = signal.getsignal(signal.SIGUSR1)
    with StatusRequests(lambda: answers.append(1)).answered():
        os.kill(os.getpid(), signal.SIGUSR1)
        await_that(lambda: bool(answers), "an answer")
    assert signal.getsignal(signal.SIGUSR1) is before


@pytest.mark.parametrize(("awaits", "answer"), [(False, NOTHING_RUNS), (True, PREPARING)])
def test_where_no_query_gives_rows_the_answer_says_so(awaits: bool, answer: str) -> None:
    noted: list[str] = []
    ended = SimpleNamespace(state=SimpleNamespace(terminal=True))
    printer = SimpleNamespace(status=None, awaits_result=awaits)
    report_status(printer, [ended], noted.append)  # type: ignore[arg-type, list-item]
    assert noted == [answer]


def test_a_query_that_is_printed_is_asked_and_its_job_not_reported_twice() -> None:
    noted: list[str] = []
    asked: list[bool] = []
    job = SimpleNamespace(state=SimpleNamespace(terminal=False))
    query = SimpleNamespace(job=job, ask=lambda: asked.append(True))
    report_status(SimpleNamespace(status=query), [job], noted.append)  # type: ignore[arg-type, list-item]
    assert asked and not noted


class Terminal:
    """A shell on a pseudo-terminal, and what it has written."""

    def __init__(self) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(QUIET, TERM="xterm")
            os.execv(sys.executable, [sys.executable, "-m", "penstock.repl.cli"])
        self.text = ""
        # select() refuses descriptors from 1024 on, which a run of all tests in one process comes to
        self._poller = select.poll()
        self._poller.register(self.fd, select.POLLIN)

    def wait_for(self, *words: str) -> str:
        """Read until one of some words comes; return it, and forget what was read."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [word for word in words if word in self.text]):
            assert time.monotonic() < deadline, f"{words!r} is not in {self.text!r}"
            if self._poller.poll(500):
                self.text += os.read(self.fd, 65_536).decode(errors="replace")
                # the editor asks where the cursor is, as it would any terminal
                if self.text.endswith("\x1b[6n"):
                    self.type("\x1b[1;1R")
        self.text = self.text.split(found[0], 1)[1]
        return found[0]

    def type(self, text: str) -> None:
        """Send keys."""
        os.write(self.fd, text.encode())


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    os.kill(terminal.pid, signal.SIGKILL)
    os.waitpid(terminal.pid, 0)
    os.close(terminal.fd)


def test_ctrl_t_and_a_signal_in_the_shell(terminal: Terminal) -> None:
    terminal.wait_for("penstock>")
    # at the prompt, too, which comes again below the answer
    os.kill(terminal.pid, signal.SIGUSR1)
    terminal.wait_for(NOTHING_RUNS)
    terminal.wait_for("penstock>")
    # an interval of 0: nothing is reported but what is asked for
    terminal.type(
        "SET 'result-status-interval' = '0'; CREATE TABLE t (a INT) WITH ('connector' = 'datagen');\r"
    )
    terminal.wait_for("table t created")
    terminal.wait_for("penstock>")
    terminal.type("SELECT a FROM t WHERE a > a + 1;\r")
    # the key is lent while statements run
    await_that(lambda: termios.tcgetattr(terminal.fd)[6][termios.VQUIT] == b"\x14")
    terminal.type("\x14")
    # the query may not have been started, or its job only
    early = ("\rjob query-", NOTHING_RUNS, PREPARING)
    while terminal.wait_for("no row yet after ", *early) in early:
        terminal.type("\x14")
    terminal.wait_for(f"Ctrl-T, or kill -USR1 {terminal.pid}, reports again")
    os.kill(terminal.pid, signal.SIGUSR1)
    terminal.wait_for("so: ")
    # Ctrl-C right behind an answer, while the query's threads contend for its rows
    terminal.type("\x03")
    terminal.wait_for("stopped")
