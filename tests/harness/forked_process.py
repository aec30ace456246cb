"""Command lines of penstock as processes that tests kill: forks of a process that has imported it, or new
ones.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.harness.fork_server import MESSAGE_BYTES
from tests.harness.server_process import end_with_this_process

ROOT = Path(__file__).resolve().parents[2]
FORKED = "penstock.repl.cli"
_SERVERS = 2
_LOOK_S = 0.05


class ForkedProcess:
    """A child of a fork server, with what tests use of ``subprocess.Popen``."""

    def __init__(self, pid: int, server: ForkServer) -> None:
        self.pid, self._server = pid, server
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.code_of(self.pid, 0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code. subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(FORKED, timeout or 0.0)
            self.returncode = self._server.code_of(self.pid, _LOOK_S)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as it stands."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks. It ends with this one."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("fork_server.py"), str(theirs.fileno())],
                cwd=ROOT,
                # the allocator's own threads would be missing in a child
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "JE_ARROW_MALLOC_CONF": "background_thread:false",
                },
                pass_fds=[theirs.fileno()],
            )
        end_with_this_process(self._process.pid)
        self._lock = threading.Lock()
        self._codes: dict[int, int] = {}

    def start(
        self, words: Sequence[str], directory: Path, environment: Mapping[str, str], output: IO[bytes]
    ) -> ForkedProcess:
        """Fork a child that is ``python -m penstock.repl.cli WORDS``."""
        order = {
            "module": FORKED,
            "words": list(words),
            "directory": str(directory.resolve()),
            "environment": dict(environment),
        }
        with self._lock:
            socket.send_fds(self._orders, [json.dumps(order).encode()], [output.fileno()])
            while (answer := self._answer()).get("began") is None:
                pass
        return ForkedProcess(answer["began"], self)

    def code_of(self, pid: int, timeout_s: float) -> int | None:
        """Return the exit code of a child, None where nothing has come for a time."""
        with self._lock:
            while pid not in self._codes:
                if not select.select([self._orders], [], [], timeout_s)[0]:
                    return None
                self._answer()
            return self._codes[pid]

    def _answer(self) -> dict[str, int]:
        text = self._orders.recv(MESSAGE_BYTES)
        assert text, f"the fork server has ended with {self._process.wait()}"
        answer: dict[str, int] = json.loads(text)
        if "ended" in answer:
            self._codes[answer["ended"]] = answer["code"]
        return answer


@functools.cache
def _server(number: int) -> ForkServer:
    return ForkServer()


def start_command_line(
    words: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    output: IO[bytes],
    *,
    run: int,
    module: str = FORKED,
) -> ForkedProcess | subprocess.Popen[bytes]:
    """Start ``python -m MODULE WORDS``; it ends with this process.

    ``run``: how often the test has started it. The next run is a child of another server, with another seed
    of Python's hashes: no state may depend on it. A mutant is a new process, for it changes what is imported.
    """
    process: ForkedProcess | subprocess.Popen[bytes]
    if module == FORKED and sys.platform == "linux":
        process = _server(run % _SERVERS).start(words, directory, environment, output)
    else:
        line = [sys.executable, "-m", module, *words]
        process = subprocess.Popen(line, cwd=directory, env=environment, stdout=output, stderr=output)
    end_with_this_process(process.pid)
    return process
