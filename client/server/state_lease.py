"""The lease of a server on its state: one server at a time uses a state directory or bucket.

The storage's lock is the lease: the kernel, or the silence of a holder, frees it. Whoever has it writes a
file that names it, for the next server that waits and for tools that look for the addresses.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.clock import Clock
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.object_store import ObjectStorage
from penstock.engine.storage.storage import STAGED_SUFFIX

HOLDER = "server.json"
LOCKED = "STA-3001"
# how long a server waits before it asks for the lease again
ASK_AGAIN_S = 0.5


@dataclass(frozen=True)
class LeaseHolder:
    """The server that has the lease. ``epoch`` counts the servers that had it."""

    host: str
    pid: int
    since_ms: int
    epoch: int = 0
    addresses: Mapping[str, str] | None = None

    @property
    def text(self) -> str:
        """The holder in a few words."""
        return f"{self.host}:{self.pid}"

    def encoded(self) -> bytes:
        """Return the bytes of its file."""
        fields = {
            "host": self.host,
            "pid": self.pid,
            "since_ms": self.since_ms,
            "epoch": self.epoch,
            "addresses": dict(self.addresses or {}),
        }
        return (json.dumps(fields, indent=1) + "\n").encode()

    @classmethod
    def decoded(cls, data: bytes) -> LeaseHolder | None:
        """Return the holder of a file; None for a file that is none."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            fields: Any = json.loads(data)
            return cls(
                str(fields["host"]),
                int(fields["pid"]),
                int(fields["since_ms"]),
                int(fields["epoch"]),
                {str(key): str(text) for key, text in fields["addresses"].items()},
            )
        return None


class StateLease:
    """The lease of this process on a state, and the small files of a server in it. Any thread may call it."""

    def __init__(self, storage: LocalStorage | ObjectStorage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._lock = Lock()
        self.holder = LeaseHolder(socket.gethostname(), os.getpid(), clock.wall_ms())

    def acquire(self, cancelled: Event, report: Callable[[LeaseHolder | None], None]) -> bool:
        """Wait for the lease; False when ``cancelled`` was set first. ``report`` is called once for each
        server that has it meanwhile.
        """
        reported: list[LeaseHolder | None] = []

        def report_once() -> None:
            if (other := self.current()) not in reported:
                reported.append(other)
                report(other)

        while not cancelled.is_set():
            # before the lock: in a bucket that watches the other server for as long as it renews
            if self._storage.in_use():
                report_once()
            try:
                self._storage.lock()
            except PenstockError as error:
                if error.code != LOCKED:
                    raise
                report_once()
                cancelled.wait(ASK_AGAIN_S)
                continue
            # it was stopped while the storage watched
            if cancelled.is_set():
                return False
            before = self.current()
            epoch = 1 if before is None else before.epoch + 1
            self.holder = replace(self.holder, since_ms=self._clock.wall_ms(), epoch=epoch)
            self.write(HOLDER, self.holder.encoded())
            return True
        return False

    def current(self) -> LeaseHolder | None:
        """Return the server that has, or had, the lease."""
        data = self.read(HOLDER)
        return None if data is None else LeaseHolder.decoded(data)

    def publish_addresses(self, addresses: Mapping[str, str]) -> None:
        """Write where this server listens."""
        self.holder = replace(self.holder, addresses=dict(addresses))
        self.write(HOLDER, self.holder.encoded())

    def renew(self) -> bool:
        """Renew the lease; False when another server has it."""
        return self._storage.renew()

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None when there is none."""
        try:
            return self._storage.read(name)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Replace a file, whole or not at all. CLI-6204 when another server has the lease."""
        staged = name + STAGED_SUFFIX
        with self._lock:
            # a process that died may have left it
            self._storage.delete(staged)
            self._storage.create(staged)
            self._storage.append(staged, data)
            self._storage.sync(staged)
            # a storage that fences refuses the publish itself
            if not self._storage.fences and not self._storage.renew(now=True):
                raise self.lost()
            try:
                self._storage.publish(staged, name)
            except FileNotFoundError as error:
                raise self.lost() from error

    def lost(self) -> PenstockError:
        """Return the error of a server that has lost its lease."""
        other = self.current()
        who = "another server" if other is None else f"the server {other.text}"
        return PenstockError(
            "CLI-6204",
            f"{who} has taken over {self._storage}",
            hint="connect to that server; this one ends",
            kind=Kind.EXTERNAL,
            sqlstate="57P01",
        )

    def close(self) -> None:
        """Release the lease."""
        self._storage.close()
