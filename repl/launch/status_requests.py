"""Requests for the status of what runs: SIGUSR1 from anywhere, and Ctrl-T on the terminal of the process."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from penstock.client.remote.remote_job import RemoteJob
    from penstock.engine.job.job import Job
    from penstock.repl.output.printer import Printer

_CTRL_T = b"\x14"
NOTHING_RUNS = "no query gives rows and no job runs"
PREPARING = "a statement is being prepared: its tables are opened and its plan is made"
# BSD and macOS send SIGINFO at Ctrl-T by themselves
_SIGNALS = [getattr(signal, name) for name in ("SIGUSR1", "SIGINFO") if hasattr(signal, name)]


class StatusRequests:
    """Calls ``answer`` for each request, in a thread of its own. The main thread handles its signals."""

    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        # a handler may interrupt a put of the same thread: no other queue allows that
        self._requests: queue.SimpleQueue[int] = queue.SimpleQueue()

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Answer requests inside the block."""
        answering = threading.Thread(target=self._answer_each, name="penstock-status", daemon=True)
        answering.start()
        try:
            with _handled(self._ask, *_SIGNALS):
                yield
        finally:
            self._requests.put(0)
            answering.join()

    @contextmanager
    def key(self, terminal: TextIO) -> Iterator[str]:
        """Have Ctrl-T ask, inside the block, where ``terminal`` is one that this process reads. Yields the
        sentence that says how to ask.
        """
        by_signal = f"kill -USR1 {os.getpid()}"
        if not _reads(terminal):
            yield f"{by_signal} reports again"
            return
        import termios

        # Linux has no key for a status: the key of SIGQUIT is lent to it
        number = terminal.fileno()
        before = termios.tcgetattr(number)
        lent = termios.tcgetattr(number)
        lent[6][termios.VQUIT] = _CTRL_T
        with _handled(self._ask, signal.SIGQUIT):
            termios.tcsetattr(number, termios.TCSANOW, lent)
            try:
                yield f"Ctrl-T, or {by_signal}, reports again"
            finally:
                # a process in the background that changes the terminal would be stopped
                if _reads(terminal):
                    termios.tcsetattr(number, termios.TCSANOW, before)

    def _ask(self, signum: int, frame: FrameType | None) -> None:
        # nothing is printed here: the interrupted thread may be in the middle of a line
        self._requests.put(signum)

    def _answer_each(self) -> None:
        while signum := self._requests.get():
            # the terminal has echoed ^T: what comes now is written over it
            if signum != signal.SIGUSR1 and sys.stderr.isatty():
                sys.stderr.write("\r")
            self._answer()


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> Iterator[None]:
    # the former handlers are restored: a program may call the command line as a function
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _reads(terminal: TextIO) -> bool:
    """Return whether a stream is a terminal that has this process in the foreground."""
    try:
        return terminal.isatty() and os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    # no terminal of this process, or a stream that is closed
    except (OSError, ValueError):
        return False


def report_status(printer: Printer, jobs: Sequence[Job | RemoteJob], note: Callable[[str], None]) -> None:
    """Have the query whose rows are printed report its status, and report all other running jobs."""
    # the first request is the first use
    from penstock.client.statements.job_status import job_status

    query = printer.status
    if query is not None:
        query.ask()
    others = [job for job in jobs if not job.state.terminal and (query is None or job is not query.job)]
    for job in others:
        note("\n  ".join(job_status(job)))  # type: ignore[arg-type]  # a server's job has the same figures
    if query is None and not others:
        note(PREPARING if printer.awaits_result else NOTHING_RUNS)
