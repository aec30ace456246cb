"""A worker process as the coordinator sees it: started, connected, heard of, lost."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.clock import Clock
from engine.deploy.control_connection import ControlConnection
from engine.deploy.control_messages import Alive, FromTasks
from engine.deploy.job_codec import NameFunction, no_functions

EXIT_WAIT_S = 0.5
_ROOT = Path(__file__).resolve().parents[2]


class WorkerState(StrEnum):
    """The life of a worker process: started but not connected, waiting for work, running a job's tasks, gone."""

    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    LOST = "lost"


class WorkerProcess:
    """One worker. ``send`` may be called from any thread and at any time: what is sent before the worker has connected is sent then.

    ``on_message`` and ``on_lost`` are whoever uses the worker now; they are called from the worker's reader thread, and must not wait.
    """

    def __init__(self, number: int, clock: Clock) -> None:
        self.number = number
        self.token = secrets.token_hex(32)
        self.state = WorkerState.STARTING
        self.why_lost = ""
        self.stale = 0
        self.on_message: Callable[[WorkerProcess, FromTasks], None] | None = None
        self.on_lost: Callable[[WorkerProcess], None] | None = None
        self._clock = clock
        self._heard_ms = clock.monotonic_ms()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: ControlConnection | None = None
        self._unsent: list[tuple[Any, NameFunction]] = []
        self._changed = threading.Condition()

    @property
    def pid(self) -> int | None:
        """The process's number, once there is one."""
        return None if self._process is None else self._process.pid

    @property
    def silence_ms(self) -> float:
        """How long nothing has been heard of it."""
        return self._clock.monotonic_ms() - self._heard_ms

    def start(self, address: tuple[str, int], scratch: Path) -> None:
        """Start the process. The thread that does must live as long as the worker shall: the kernel takes its end for the parent's."""
        orders = {"worker": self.number, "token": self.token, "address": address, "scratch": str(scratch), "parent": os.getpid()}
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "engine.deploy.worker"], stdin=subprocess.PIPE, env=environment, close_fds=True
            )
            assert self._process.stdin is not None
            with self._process.stdin as pipe:
                pipe.write(json.dumps(orders).encode() + b"\n")
        except OSError as cause:
            self.lose(f"cannot be started: {cause}")

    def connected(self, connection: ControlConnection) -> None:
        """Take the connection the worker has made, and read it until it ends; returns then."""
        if not self.attach(connection):
            return
        why = None
        try:
            while (message := connection.receive()) is not None:
                self.take(message)
        except Exception as error:  # noqa: BLE001 - a worker that does not keep to the protocol is lost, whatever it said
            why = f"its messages cannot be read: {error}"
        self.lose(why or self._exit_status())

    def attach(self, connection: ControlConnection) -> bool:
        """Take the connection the worker has made, and send what waits for it; False, and it is closed, when the worker is lost."""
        with self._changed:
            if self.state is WorkerState.LOST:
                connection.close()
                return False
            self._connection = connection
            self._heard_ms = self._clock.monotonic_ms()
            self.state = WorkerState.IDLE if self.on_message is None else WorkerState.RUNNING
            for message, name_function in self._unsent:
                connection.send(message, name_function)
            self._unsent.clear()
            self._changed.notify_all()
        return True

    def send(self, message: Any, name_function: NameFunction = no_functions) -> None:
        """Send a message; one to a lost worker goes nowhere."""
        with self._changed:
            if self.state is WorkerState.LOST:
                return
            if self._connection is None:
                self._unsent.append((message, name_function))
                return
            connection = self._connection
        connection.send(message, name_function)

    def belongs_to(self, on_message: Callable[[WorkerProcess, FromTasks], None] | None, on_lost: Callable[[WorkerProcess], None] | None) -> None:
        """Say who uses the worker from now on; nobody when None."""
        with self._changed:
            self.on_message, self.on_lost = on_message, on_lost
            if self.state in (WorkerState.IDLE, WorkerState.RUNNING):
                self.state = WorkerState.IDLE if on_message is None else WorkerState.RUNNING

    def lose(self, why: str) -> None:
        """Give the worker up: kill what is left of it, and only when it is gone tell who uses it. Only the first reason counts."""
        with self._changed:
            if self.state is WorkerState.LOST:
                return
            self.state, self.why_lost = WorkerState.LOST, why
            connection, self._connection = self._connection, None
            self._unsent.clear()
            self._changed.notify_all()
        self._kill()
        if connection is not None:
            connection.close()
        if self.on_lost is not None:
            self.on_lost(self)

    def check(self, timeout_ms: float, start_ms: float) -> None:
        """Lose the worker when its process has ended, or nothing has been heard of it for too long."""
        status = None if self._process is None else self._process.poll()
        if status is not None:
            self.lose(f"exit {status}")
        elif self.state is WorkerState.STARTING:
            if self.silence_ms > start_ms:
                self.lose(f"did not connect within {start_ms / 1e3:g} s")
        elif self.silence_ms > timeout_ms:
            self.lose(f"no heartbeat for {timeout_ms / 1e3:g} s")

    def take(self, message: Any) -> None:
        """Act on what the worker has said."""
        self._heard_ms = self._clock.monotonic_ms()
        if isinstance(message, Alive):
            self.stale = message.stale
        elif isinstance(message, FromTasks) and self.on_message is not None:
            self.on_message(self, message)

    def _exit_status(self) -> str:
        """Say how the process ended; the connection's end is seen a moment before."""
        try:
            return f"exit {self._process.wait(EXIT_WAIT_S)}" if self._process is not None else "never started"
        except subprocess.TimeoutExpired:
            return "its connection ended"

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):  # gone already
                self._process.kill()
            self._process.wait()
