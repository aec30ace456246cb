"""Containers and their hosts: the interface through which a pool starts workers, and the host that starts
them as child processes of this one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from penstock.catalog.errors import PenstockError
from penstock.engine.deploy.spark.code_archive import ROOT
from penstock.engine.network.tls_stream import SecureStream

Address = tuple[str, int]


class Container(Protocol):
    """A process or task that runs one worker. The worker authenticates with ``number`` and ``token``."""

    number: int
    token: str

    @property
    def pid(self) -> int | None:
        """The process id, when it is known here."""

    @property
    def fault(self) -> PenstockError | None:
        """Why it cannot run workers at all, when that is known."""

    def start(self, address: Address, scratch: Path) -> None:
        """Start it; its worker connects to ``address``. ``OSError`` when it cannot be started."""

    def ended(self) -> str | None:
        """Return in words how it ended, ``None`` while it runs."""

    def disconnected(self) -> str:
        """Return in words why the worker's connection has ended."""

    def kill(self) -> None:
        """End it at once, whatever it does."""

    def leave(self) -> None:
        """Release it: the end of its connection has made its worker leave."""


class WorkerHost(Protocol):
    """Creates containers. ``start_ms``: how long one may take to connect. ``idle_ms``: how long one without a
    job is kept, ``None`` for no limit.
    """

    start_ms: float
    idle_ms: float | None

    def listen(self) -> tuple[socket.socket, Address]:
        """Return a listening socket and the address that workers connect to."""

    def accepted(self, connected: socket.socket) -> socket.socket | SecureStream:
        """Return an accepted connection, with TLS if the host uses it. ``OSError`` for a peer that fails the
        handshake.
        """

    def container(self, number: int) -> Container:
        """Return a container that is not started yet."""

    def lasting(self) -> Sequence[Container]:
        """Return the containers that outlive their worker and will have another connect."""

    def late(self, worker: int) -> PenstockError | None:
        """Return the error of a worker that did not connect in time; ``None`` for that of any lost worker."""

    def close(self) -> None:
        """Release all containers; they end by themselves or are ended."""


# seconds for a process to end once its connection has
EXIT_WAIT_S = 1.0


class OwnProcess:
    """One child process. The thread that starts it must outlive it: the kernel treats that thread's end as
    the parent's.
    """

    fault: PenstockError | None = None

    def __init__(self, number: int) -> None:
        self.number = number
        self.token = secrets.token_hex(32)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, address: Address, scratch: Path) -> None:
        orders = {
            "worker": self.number,
            "token": self.token,
            "address": address,
            "scratch": str(scratch),
            # the worker leaves when this is no longer its parent
            "parent": os.getpid(),
        }
        # only our own package: the job's modules are added when it is prepared
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            # -P: the working directory is not on the path, so a user's client.py there shadows nothing
            [sys.executable, "-P", "-m", "penstock.engine.deploy.worker.main"],
            stdin=subprocess.PIPE,
            env=environment,
            close_fds=True,
        )
        assert self._process.stdin is not None
        # the token goes through a pipe: arguments are visible to other users
        with self._process.stdin as pipe:
            pipe.write(json.dumps(orders).encode() + b"\n")

    def ended(self) -> str | None:
        status = None if self._process is None else self._process.poll()
        return None if status is None else f"exit {status}"

    def disconnected(self) -> str:
        """Return in words how the process ended; the end of the connection is seen a moment before."""
        try:
            return f"exit {self._process.wait(EXIT_WAIT_S)}" if self._process is not None else "never started"
        except subprocess.TimeoutExpired:
            self.kill()
            return "its connection ended"

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):  # gone already
                self._process.kill()
            # reaps the process, so that no zombie remains
            self._process.wait()

    def leave(self) -> None:
        self.kill()


class OwnProcesses:
    """Starts workers on this machine, where they connect over loopback. They are reused from job to job."""

    start_ms = 30_000.0
    idle_ms: float | None = None

    def listen(self) -> tuple[socket.socket, Address]:
        # any free port, reachable from this machine only
        listener = socket.create_server(("127.0.0.1", 0))
        return listener, listener.getsockname()[:2]

    def accepted(self, connected: socket.socket) -> socket.socket | SecureStream:
        return connected

    def container(self, number: int) -> Container:
        return OwnProcess(number)

    def lasting(self) -> Sequence[Container]:
        return ()

    def late(self, worker: int) -> PenstockError | None:
        return None

    def close(self) -> None:
        """Nothing: the pool has killed each of them."""
