"""Where workers come from: what a pool asks of whoever starts processes for it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from penstock.catalog.errors import PenstockError
from penstock.engine.network.tls_stream import SecureStream

Address = tuple[str, int]


class Container(Protocol):
    """What one worker runs in. ``number`` and ``token`` are what the worker connects with."""

    number: int
    token: str

    @property
    def pid(self) -> int | None:
        """The process's number, when it is known here."""

    @property
    def fault(self) -> PenstockError | None:
        """Why it cannot run workers at all, when that is known."""

    def start(self, address: Address, scratch: Path) -> None:
        """Start it; its worker connects to ``address``. ``OSError`` when it cannot be started."""

    def ended(self) -> str | None:
        """Return in words how it ended, ``None`` while it runs."""

    def disconnected(self) -> str:
        """Return in words what became of the worker whose connection has ended."""

    def kill(self) -> None:
        """End it, whatever it does."""

    def leave(self) -> None:
        """Let go of it: its worker has been told, by the end of its connection, that it is not wanted any
        more.
        """


class WorkerHost(Protocol):
    """Makes containers. ``start_ms``: how long one may take to connect. ``idle_ms``: how long one without
    a job is kept, ``None`` for ever.
    """

    start_ms: float
    idle_ms: float | None

    def listen(self) -> tuple[socket.socket, Address]:
        """Return a listening socket and the address workers find it by."""

    def accepted(self, connected: socket.socket) -> socket.socket | SecureStream:
        """Return an accepted connection, made secure where connections are. ``OSError`` for a peer that
        cannot do that.
        """

    def container(self, number: int) -> Container:
        """Return a container that is not started yet."""

    def lasting(self) -> Sequence[Container]:
        """Return those that go on without their worker, and will have another connect."""

    def late(self, worker: int) -> PenstockError | None:
        """Return the error of a worker that did not connect in time, ``None`` for that of any lost worker."""

    def close(self) -> None:
        """Let go of all containers, which end by themselves or are ended."""
