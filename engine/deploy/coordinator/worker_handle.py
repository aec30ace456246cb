"""A worker process as the coordinator sees it: started, connected, heard of, lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import Clock
from penstock.engine.deploy.coordinator.launcher import Address, Container
from penstock.engine.deploy.protocol.codec import NameFunction, no_functions
from penstock.engine.deploy.protocol.connection import ControlConnection
from penstock.engine.deploy.protocol.messages import Alive, FromTasks
from penstock.engine.deploy.worker.registration import WorkerFacts
from penstock.engine.network.admission import Refusals


class WorkerState(StrEnum):
    """The life of a worker process: started but not connected, waiting for work, running a job's tasks,
    gone.
    """

    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    LOST = "lost"


class WorkerProcess:
    """One worker in its container. ``send`` may be called from any thread and at any time: what is sent
    before the worker has connected is sent then.

    ``on_message`` and ``on_lost`` are whoever uses the worker now; they are called from the worker's reader
    thread, and must not wait. ``error``: what its loss means for who uses it, when that is more than a loss.
    """

    def __init__(self, number: int, clock: Clock, container: Container) -> None:
        self.number = number
        self.container = container
        self.state = WorkerState.STARTING
        self.why_lost = ""
        self.error: PenstockError | None = None
        self.stale = 0
        self.refusals = Refusals()
        self.facts: WorkerFacts | None = None
        self.used = False
        self.on_message: Callable[[WorkerProcess, FromTasks], None] | None = None
        self.on_lost: Callable[[WorkerProcess], None] | None = None
        self._clock = clock
        self._heard_ms = self._free_ms = clock.monotonic_ms()
        self._connection: ControlConnection | None = None
        self._unsent: list[tuple[Any, NameFunction]] = []
        self._changed = threading.Condition()

    @property
    def pid(self) -> int | None:
        """The process's number on its machine, once it is known."""
        return self.container.pid if self.facts is None else self.facts.pid

    @property
    def silence_ms(self) -> float:
        """How long nothing has been heard of it."""
        return self._clock.monotonic_ms() - self._heard_ms

    @property
    def idle_ms(self) -> float:
        """How long it has had no job; 0 while it has one, or is not there."""
        return self._clock.monotonic_ms() - self._free_ms if self.state is WorkerState.IDLE else 0.0

    def start(self, address: Address, scratch: Path) -> None:
        """Start its container."""
        try:
            self.container.start(address, scratch)
        except OSError as cause:
            self.lose(f"cannot be started: {cause}")

    def connected(self, connection: ControlConnection, facts: WorkerFacts | None = None) -> None:
        """Take the connection the worker has made, and read it until it ends; returns then."""
        if not self.attach(connection, facts):
            return
        try:
            while (message := connection.receive()) is not None:
                self.take(message)
        except Exception as error:  # noqa: BLE001 - a worker that does not keep to the protocol is lost, whatever it said
            self.lose(f"its messages cannot be read: {error}")
        self._disconnected()

    def attach(self, connection: ControlConnection, facts: WorkerFacts | None = None) -> bool:
        """Take the connection the worker has made, and send what waits for it; False, and it is closed,
        when it is lost or has one.
        """
        with self._changed:
            if self.state is not WorkerState.STARTING:  # given up, or connected meanwhile
                connection.close()
                return False
            self._connection, self.facts = connection, facts
            self._heard_ms = self._free_ms = self._clock.monotonic_ms()
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

    def belongs_to(
        self,
        on_message: Callable[[WorkerProcess, FromTasks], None] | None,
        on_lost: Callable[[WorkerProcess], None] | None,
    ) -> None:
        """Say who uses the worker from now on; nobody when None."""
        with self._changed:
            self.on_message, self.on_lost = on_message, on_lost
            self.used = True
            self._free_ms = self._clock.monotonic_ms()
            if self.state in (WorkerState.IDLE, WorkerState.RUNNING):
                self.state = WorkerState.IDLE if on_message is None else WorkerState.RUNNING

    def lose(self, why: str, error: PenstockError | None = None) -> None:
        """Give the worker up: kill what is left of it, and only when it is gone tell who uses it. Only the
        first reason counts.
        """
        if self._end(why, error):
            self.container.kill()
            self._close()

    def dismiss(self) -> None:
        """End a worker that has no job: its connection ends, and so does it."""
        if self._end("dismissed", None):
            self._close()
            self.container.leave()

    def check(self, timeout_ms: float, start_ms: float) -> str | None:
        """Lose the worker when its container has ended, or nothing has been heard of it for too long;
        return why if it did not even connect.
        """
        status = self.container.ended()
        if status is not None:
            self.lose(status, self.container.fault)
        elif self.state is WorkerState.STARTING:
            return f"did not connect within {start_ms / 1e3:g} s" if self.silence_ms > start_ms else None
        elif self.silence_ms > timeout_ms:
            self.lose(f"no heartbeat for {timeout_ms / 1e3:g} s")
        return None

    def _disconnected(self) -> None:
        if self.state is not WorkerState.LOST:
            why = self.container.disconnected()
            if self._end(why, self.container.fault):
                self._close()

    def _end(self, why: str, error: PenstockError | None) -> bool:
        """Note that it is lost; return False when it was already."""
        with self._changed:
            if self.state is WorkerState.LOST:
                return False
            self.state, self.why_lost, self.error = WorkerState.LOST, why, error
            self._unsent.clear()
            self._changed.notify_all()
            return True

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self.on_lost is not None:
            self.on_lost(self)

    def take(self, message: Any) -> None:
        """Act on what the worker has said."""
        self._heard_ms = self._clock.monotonic_ms()
        if isinstance(message, Alive):
            self.stale, self.refusals = message.stale, message.refusals
        elif isinstance(message, FromTasks) and self.on_message is not None:
            self.on_message(self, message)
