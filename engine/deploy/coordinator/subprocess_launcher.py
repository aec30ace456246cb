"""Workers as processes of this machine, children of this one."""

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

from penstock.catalog.errors import PenstockError
from penstock.engine.deploy.coordinator.launcher import Address, Container
from penstock.engine.deploy.spark.code_archive import ROOT
from penstock.engine.network.tls_stream import SecureStream

EXIT_WAIT_S = 1.0


class OwnProcess:
    """One child process. The thread that starts it must live as long as it shall: the kernel takes that
    thread's end for the parent's.
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
            "parent": os.getpid(),
        }
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "penstock.engine.deploy.worker.main"],
            stdin=subprocess.PIPE,
            env=environment,
            close_fds=True,
        )
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            pipe.write(json.dumps(orders).encode() + b"\n")

    def ended(self) -> str | None:
        status = None if self._process is None else self._process.poll()
        return None if status is None else f"exit {status}"

    def disconnected(self) -> str:
        """Say how the process ended; the connection's end is seen a moment before."""
        try:
            return f"exit {self._process.wait(EXIT_WAIT_S)}" if self._process is not None else "never started"
        except subprocess.TimeoutExpired:
            self.kill()
            return "its connection ended"

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):  # gone already
                self._process.kill()
            self._process.wait()

    def leave(self) -> None:
        self.kill()


class OwnProcesses:
    """Starts workers on this machine, where they connect over loopback; they are kept from job to job."""

    start_ms = 30_000.0
    idle_ms: float | None = None

    def listen(self) -> tuple[socket.socket, Address]:
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
