"""The coordinator's handle of a worker process: its state, its connection and its last heartbeat."""

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
    """The state of a worker process: not connected yet, without a job, running a job's tasks, or gone."""

    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    LOST = "lost"


class WorkerProcess:
    """One worker in its container. ``send`` may be called from any thread at any time; messages are queued
    until the worker connects.

    ``on_message`` and ``on_lost`` are callbacks of the job that uses the worker. The worker's reader thread
    calls them, so they must not block. ``error``: the error its loss raises in that job, when it is more than
    a loss.
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
        # messages for a worker that has not connected yet
        self._unsent: list[tuple[Any, NameFunction]] = []
        self._changed = threading.Condition()

    @property
    def pid(self) -> int | None:
        """The process id on its machine, once it is known."""
        return self.container.pid if self.facts is None else self.facts.pid

    @property
    def silence_ms(self) -> float:
        """The time since its last message."""
        return self._clock.monotonic_ms() - self._heard_ms

    @property
    def idle_ms(self) -> float:
        """How long it has had no job; 0 while it has one, or is not connected."""
        return self._clock.monotonic_ms() - self._free_ms if self.state is WorkerState.IDLE else 0.0

    def start(self, address: Address, scratch: Path) -> None:
        """Start its container."""
        try:
            self.container.start(address, scratch)
        except OSError as cause:
            self.lose(f"cannot be started: {cause}")

    def connected(self, connection: ControlConnection, facts: WorkerFacts | None = None) -> None:
        """Attach the worker's connection and read it until it ends."""
        if not self.attach(connection, facts):
            return
        try:
            while (message := connection.receive()) is not None:
                self.take(message)
        except Exception as error:  # noqa: BLE001 - a worker that does not keep to the protocol is lost, whatever it said
            # its connection may be out of step: nothing after this message can be trusted
            self.lose(f"its messages cannot be read: {error}")
        self._disconnected()

    def attach(self, connection: ControlConnection, facts: WorkerFacts | None = None) -> bool:
        """Attach the worker's connection and send the queued messages. Returns False, and closes the
        connection, when the worker is lost or already has one.
        """
        with self._changed:
            if self.state is not WorkerState.STARTING:  # lost, or connected meanwhile
                connection.close()
                return False
            self._connection, self.facts = connection, facts
            self._heard_ms = self._free_ms = self._clock.monotonic_ms()
            # a job may have leased it before it connected
            self.state = WorkerState.IDLE if self.on_message is None else WorkerState.RUNNING
            for message, name_function in self._unsent:
                connection.send(message, name_function)
            self._unsent.clear()
            self._changed.notify_all()
        return True

    def send(self, message: Any, name_function: NameFunction = no_functions) -> None:
        """Send a message; one to a lost worker is dropped."""
        with self._changed:
            if self.state is WorkerState.LOST:
                return
            # sent in order when it connects (attach)
            if self._connection is None:
                self._unsent.append((message, name_function))
                return
            # queued outside the lock: encoding a large message takes time
            connection = self._connection
        connection.send(message, name_function)

    def belongs_to(
        self,
        on_message: Callable[[WorkerProcess, FromTasks], None] | None,
        on_lost: Callable[[WorkerProcess], None] | None,
    ) -> None:
        """Set the callbacks of the job that uses the worker from now on; None when it has no job."""
        with self._changed:
            self.on_message, self.on_lost = on_message, on_lost
            # a job has had it: see WorkerPool._dismiss_idle
            self.used = True
            self._free_ms = self._clock.monotonic_ms()
            # one that has not connected becomes idle or running in attach()
            if self.state in (WorkerState.IDLE, WorkerState.RUNNING):
                self.state = WorkerState.IDLE if on_message is None else WorkerState.RUNNING

    def lose(self, why: str, error: PenstockError | None = None) -> None:
        """Declare the worker lost: kill its container, call ``on_lost``. Only the first reason counts."""
        if self._end(why, error):
            # before on_lost: its replacement must not run beside it
            self.container.kill()
            self._close()

    def dismiss(self) -> None:
        """End a worker that has no job: closing its connection ends its process."""
        if self._end("dismissed", None):
            self._close()
            self.container.leave()

    def check(self, timeout_ms: float, start_ms: float) -> str | None:
        """Declare the worker lost when its container has ended or its heartbeat is overdue. Return the reason
        if it has not even connected in time.
        """
        status = self.container.ended()
        if status is not None:
            self.lose(status, self.container.fault)
        # not connected yet: the pool decides which error that is
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
        """Record that it is lost; return False when it was already."""
        with self._changed:
            if self.state is WorkerState.LOST:
                return False
            self.state, self.why_lost, self.error = WorkerState.LOST, why, error
            self._unsent.clear()
            self._changed.notify_all()
            return True

    def _close(self) -> None:
        # taken out before it is closed, so that it is closed once
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self.on_lost is not None:
            self.on_lost(self)

    def take(self, message: Any) -> None:
        """Process a message of the worker."""
        # any message counts as a heartbeat
        self._heard_ms = self._clock.monotonic_ms()
        if isinstance(message, Alive):
            self.stale, self.refusals = message.stale, message.refusals
        elif isinstance(message, FromTasks) and self.on_message is not None:
            self.on_message(self, message)
