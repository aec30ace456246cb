"""A relay before the Flight server: it forwards bytes, and closes connections that send too much, or wait too
long, before a call of theirs is authenticated. gRPC itself reads a message whole before it asks who sends it.

The bytes are moved by the kernel (``splice``) and never read here, so that TLS passes as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.client.server.flight.stranger_limits import StrangerLimits, Strangers
from penstock.engine.api.threads import EngineThread

_MOVED_BYTES = 1 << 20
"""Moved at once: as much as a pipe of an ordinary user holds."""
_LOOK_S = 0.5
"""How often strangers whose time is up are looked for."""
_BACKLOG = 512


@dataclass
class _Direction:
    """Bytes from one socket to the other. ``pipe``: what was read and not written yet is in there."""

    source: socket.socket
    target: socket.socket
    connection: int
    is_upload: bool
    pipe: tuple[int, int] | None = None
    pending: int = 0
    ended: bool = False


@dataclass
class _Connection:
    client: socket.socket
    server: socket.socket
    address: str
    directions: list[_Direction] = field(default_factory=list)


class Relay:
    """Accepts clients on ``listening`` and connects each to the server at ``inner``. One thread serves all.

    ``now_s``: a monotonic clock.
    """

    def __init__(
        self,
        listening: socket.socket,
        inner: tuple[str, int],
        limits: StrangerLimits,
        now_s: Callable[[], float],
    ) -> None:
        self._listening, self._inner, self._now_s = listening, inner, now_s
        self.strangers = Strangers(limits)
        # by the port of the relay's own end, which the server sees as its peer's
        self._connections: dict[int, _Connection] = {}
        self._by_socket: dict[socket.socket, tuple[_Direction, _Direction]] = {}
        self._pipes: list[tuple[int, int]] = []
        self._selector = selectors.DefaultSelector()
        self._looked_s = now_s()
        self._wake_here, self._wake_there = socket.socketpair()
        self._closing = False
        self._is_full = False
        self._thread = EngineThread(self._run, "penstock-flight-relay")

    def start(self) -> None:
        """Serve until ``close``."""
        self._listening.listen(_BACKLOG)
        for each in (self._listening, self._wake_here):
            each.setblocking(False)
            self._selector.register(each, selectors.EVENT_READ)
        self._thread.start()

    def close(self) -> None:
        """End all connections."""
        self._closing = True
        self._wake_there.send(b"x")
        self._thread.join()

    def client_of(self, peer: str) -> str:
        """Return the address of the client that the server sees as ``peer``. Its call was authenticated:
        its connection is trusted from now on.
        """
        connection = _port(peer)
        found = self._connections.get(connection)
        if found is None:
            return peer
        self.strangers.trust(connection)
        return found.address

    def _run(self) -> None:
        while not self._closing:
            for key, events in self._selector.select(_LOOK_S):
                if key.fileobj is self._listening:
                    self._accept()
                elif (found := self._by_socket.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                    self._serve(found[0], found[1], events)
            now_s = self._now_s()
            if now_s - self._looked_s >= _LOOK_S:
                self._looked_s = now_s
                self._end_overdue(now_s)
        self._release()

    def _end_overdue(self, now_s: float) -> None:
        """End the connections of strangers whose time is up; accept again after a lack of descriptors."""
        if self._is_full:
            self._is_full = False
            self._selector.register(self._listening, selectors.EVENT_READ)
        for connection in self.strangers.overdue(now_s):
            self._end(connection)

    def _release(self) -> None:
        for connection in list(self._connections):
            self._end(connection)
        self._selector.close()
        for each in (self._listening, self._wake_here, self._wake_there):
            each.close()
        for pipe in self._pipes:
            _close_pipe(pipe)

    def _accept(self) -> None:
        try:
            client, address = self._listening.accept()
        except BlockingIOError:
            return
        # no descriptors are left: not asked again before the next look, for it would be at once
        except OSError:
            self._selector.unregister(self._listening)
            self._is_full = True
            return
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            server.connect(self._inner)
        except OSError:
            client.close()
            server.close()
            return
        connection = server.getsockname()[1]
        oldest = self.strangers.admit(connection, self._now_s())
        if oldest is not None:
            self._end(oldest)
        for each in (client, server):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made = _Connection(client, server, f"{address[0]}:{address[1]}")
        up, down = (
            _Direction(client, server, connection, True),
            _Direction(server, client, connection, False),
        )
        made.directions = [up, down]
        self._connections[connection] = made
        # of each socket: the direction that reads it, and the one that writes it
        self._by_socket[client], self._by_socket[server] = (up, down), (down, up)
        for each in (client, server):
            self._selector.register(each, selectors.EVENT_READ)

    def _serve(self, reads: _Direction, writes: _Direction, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE and writes.pending:
                self._drain(writes)
            if events & selectors.EVENT_READ and not reads.pending and not reads.ended:
                self._fill(reads)
        # reset by either side
        except OSError:
            self._end(reads.connection)
            return
        if reads.connection in self._connections:
            self._watch(reads, writes)

    def _fill(self, direction: _Direction) -> None:
        """Move what has come into a pipe, and on."""
        left = self.strangers.allowance(direction.connection) if direction.is_upload else None
        most = _MOVED_BYTES if left is None else max(1, min(_MOVED_BYTES, left))
        if direction.pipe is None:
            direction.pipe = self._pipes.pop() if self._pipes else _new_pipe()
        try:
            count = os.splice(
                direction.source.fileno(),
                direction.pipe[1],
                most,
                flags=os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK,
            )
        except BlockingIOError:
            self._return_pipe(direction)
            return
        if count == 0:
            direction.ended = True
            self._return_pipe(direction)
            with contextlib.suppress(OSError):
                direction.target.shutdown(socket.SHUT_WR)
            if all(each.ended for each in self._connections[direction.connection].directions):
                self._end(direction.connection)
            return
        if direction.is_upload and not self.strangers.count(direction.connection, count):
            self._end(direction.connection)
            return
        direction.pending = count
        self._drain(direction)

    def _drain(self, direction: _Direction) -> None:
        """Move what is in the pipe on, as much as the target takes."""
        assert direction.pipe is not None
        with contextlib.suppress(BlockingIOError):
            while direction.pending:
                direction.pending -= os.splice(
                    direction.pipe[0],
                    direction.target.fileno(),
                    direction.pending,
                    flags=os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK,
                )
        self._return_pipe(direction)

    def _return_pipe(self, direction: _Direction) -> None:
        # an idle connection has no pipe: a thousand of them would take thousands of descriptors
        if not direction.pending and direction.pipe is not None:
            self._pipes.append(direction.pipe)
            direction.pipe = None

    def _watch(self, *directions: _Direction) -> None:
        """Wait for what each socket of the two directions is needed for now."""
        for direction, other in (directions, directions[::-1]):
            wanted = 0 if direction.pending or direction.ended else selectors.EVENT_READ
            wanted |= selectors.EVENT_WRITE if other.pending else 0
            known = direction.source in self._selector.get_map()
            if wanted and known:
                if self._selector.get_key(direction.source).events != wanted:
                    self._selector.modify(direction.source, wanted)
            elif wanted:
                self._selector.register(direction.source, wanted)
            elif known:
                self._selector.unregister(direction.source)

    def _end(self, connection: int) -> None:
        self.strangers.forget(connection)
        found = self._connections.pop(connection, None)
        if found is None:
            return
        for direction in found.directions:
            # its bytes would go to the next connection
            if direction.pipe is not None:
                _close_pipe(direction.pipe)
                direction.pipe = None
        for each in (found.client, found.server):
            self._by_socket.pop(each, None)
            with contextlib.suppress(KeyError):
                self._selector.unregister(each)
            each.close()


def is_supported() -> bool:
    """Whether this system can move bytes between sockets: Linux can."""
    return hasattr(os, "splice")


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket. OSError when the address is not free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def _new_pipe() -> tuple[int, int]:
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    # as large as an unprivileged process may have; else it stays at 64 KiB
    with contextlib.suppress(OSError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _MOVED_BYTES)
    return reading, writing


def _close_pipe(pipe: tuple[int, int]) -> None:
    for each in pipe:
        os.close(each)


def _port(peer: str) -> int:
    word = peer.rpartition(":")[2]
    return int(word) if word.isdigit() else 0
