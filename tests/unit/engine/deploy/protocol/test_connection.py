"""A control connection is closed while its two threads wait in its socket: they leave it first."""

from __future__ import annotations

import socket
import threading
from typing import Any

from penstock.engine.deploy.protocol.connection import ControlConnection
from penstock.engine.deploy.protocol.messages import Hello
from tests.harness.patience import await_that

PATIENCE_S = 60.0


class WatchedSocket:
    """A socket that knows which calls are inside it when it is closed."""

    def __init__(self, plain: socket.socket) -> None:
        self._plain = plain
        self.inside: list[str] = []
        self.closed_under: list[str] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def recv_into(self, room: Any) -> int:
        return self._within("recv_into", lambda: self._plain.recv_into(room))

    def sendall(self, data: Any) -> None:
        self._within("sendall", lambda: self._plain.sendall(data))

    def _within(self, name: str, call: Any) -> Any:
        self.inside.append(name)
        try:
            return call()
        finally:
            self.inside.remove(name)

    def close(self) -> None:
        self.closed_under = list(self.inside)
        self._plain.close()


def closed_while_in_use() -> list[str]:
    """Return the calls under which the socket was closed."""
    ours, peer = socket.socketpair()
    watched = WatchedSocket(ours)
    connection = ControlConnection(watched, "test-writer")  # type: ignore[arg-type]
    answers: list[object] = []
    reader = threading.Thread(target=lambda: answers.append(connection.receive()))
    reader.start()
    # more than a socket buffers: the peer reads nothing
    connection.send(Hello(1, 1, "x" * (8 << 20)))
    await_that(lambda: sorted(watched.inside) == ["recv_into", "sendall"], "both threads in the socket")
    connection.close()
    connection.close()
    reader.join(PATIENCE_S)
    connection._writer.join(PATIENCE_S)
    peer.close()
    assert not reader.is_alive() and not connection._writer.is_alive() and answers == [None]
    assert connection.receive() is None
    assert watched.closed_under is not None
    return watched.closed_under


def test_the_socket_is_closed_when_nobody_is_in_it() -> None:
    assert closed_while_in_use() == []


def test_a_socket_closed_under_a_call_is_seen() -> None:
    ours, peer = socket.socketpair()
    watched = WatchedSocket(ours)
    connection = ControlConnection(watched, "test-writer")  # type: ignore[arg-type]
    reader = threading.Thread(target=connection.receive)
    reader.start()
    await_that(lambda: watched.inside == ["recv_into"], "a thread in the socket")
    watched.close()
    assert watched.closed_under == ["recv_into"]
    peer.close()
    reader.join(PATIENCE_S)
    connection.close()
