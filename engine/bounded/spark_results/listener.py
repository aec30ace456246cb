"""The listener Spark's tasks push their rows to and pull rows from: one for the process, in a thread of
its own; tokens tell queries.
"""

from __future__ import annotations

import contextlib
import hmac
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.bounded.spark_results.push_task import CREDIT, HEADER, HELLO
from penstock.engine.network.admission import Admission

_LOOK_S = 0.1
_LONGEST_FRAME = 1 << 34
_SENT_AT_ONCE = 16  # pieces, before the other connections have their turn


class Receiver(Protocol):
    """A query that takes pushed rows. Called in the listener's thread."""

    def greeted(self, wire: TaskWire) -> None:
        """A task has said hello with the query's token."""

    def received(self, wire: TaskWire, kind: bytes, payload: bytearray | int) -> None:
        """A frame has come: rows, or the end with the number of rows."""

    def closed(self, wire: TaskWire) -> None:
        """A task's connection is gone."""

    def failed(self, error: Exception) -> None:
        """The receiver itself raised something: its query ends, those of others go on."""


class TaskWire:
    """One task's connection. ``partition``, ``attempt`` and ``task`` are there once it was greeted."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.receiver: Receiver | None = None
        self.partition = self.attempt = self.task = -1
        self.owed = 0
        self.outgoing: Iterator[bytes] | None = None
        """What a receiver has for a task it has greeted, in pieces."""
        self._unsent = memoryview(b"")
        self._head = bytearray(HELLO.size)
        self._payload: bytearray | None = None
        self._kind = b""
        self._filled = 0

    def say(self, word: bytes) -> None:
        """Send a few bytes from any thread; a task that is gone shows when it is read."""
        with contextlib.suppress(OSError):
            self.connection.send(word)

    def credit(self, count: int) -> None:
        """Ask for that many frames more."""
        self.owed += count
        self.say(CREDIT * count)

    def send_more(self) -> bool:
        """Send some of what is outgoing, as far as the connection takes it; return whether all of it is
        sent.
        """
        assert self.outgoing is not None
        for _ in range(_SENT_AT_ONCE):
            if not self._unsent:
                self._unsent = memoryview(next(self.outgoing, b""))
            if not self._unsent:
                return True
            try:
                self._unsent = self._unsent[self.connection.send(self._unsent) :]
            except BlockingIOError:
                break
        return False

    def hang_up(self) -> None:
        """End the connection, from any thread: the listener's then finds it ended."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def fill(self) -> bool:
        """Read once what there is; return whether the part that is read now is whole. EOFError when the
        task is gone.
        """
        target = self._head if self._payload is None else self._payload
        try:
            got = self.connection.recv_into(memoryview(target)[self._filled :])
        except BlockingIOError:
            return False
        if got == 0:
            raise EOFError
        self._filled += got
        return self._filled == len(target)

    def hello(self) -> bytes:
        """Take the hello; return its token."""
        token, self.partition, self.attempt, self.task = HELLO.unpack(self._head)
        self._head, self._filled = bytearray(HEADER.size), 0
        return token

    def frame(self) -> tuple[bytes, bytearray | int] | None:
        """Take what was filled: a frame, or ``None`` after the head of one that is still to be read."""
        self._filled = 0
        if self._payload is not None:
            payload, self._payload = self._payload, None
            return self._kind, payload
        self._kind, size = HEADER.unpack(self._head)
        if self._kind != b"R":
            return self._kind, size
        if not 0 < size < _LONGEST_FRAME:
            raise EOFError
        self._payload = bytearray(size)
        return None


class RowListener:
    """Accepts connections of tasks and reads them; those that know no token are hung up on."""

    def __init__(self, bind: str = "127.0.0.1", port: int = 0, clock: Clock | None = None) -> None:
        """OSError when the address cannot be had."""
        listener = socket.create_server((bind, port), backlog=256)
        self.port: int = listener.getsockname()[1]
        self._receivers: dict[bytes, Receiver] = {}
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self.admission: Admission[TaskWire] = Admission(
            listener, clock or SystemClock(), self._close, selector=self._selector
        )
        threading.Thread(target=self._run, name="penstock-spark-rows", daemon=True).start()

    def enter(self, token: bytes, receiver: Receiver) -> None:
        """Give connections that say this token to a receiver."""
        with self._lock:
            self._receivers[token] = receiver

    def leave(self, token: bytes) -> None:
        """Hang up on whoever says this token from now on."""
        with self._lock:
            self._receivers.pop(token, None)

    def _run(self) -> None:
        while True:
            for key, events in self._selector.select(_LOOK_S if self.admission.watching else None):
                if key.data is self.admission:
                    self._accept()
                elif key.data.connection.fileno() < 0:
                    continue  # hung up on a moment ago
                elif events & selectors.EVENT_WRITE:
                    self._write(key.data)  # what there is to read is still there the next time
                else:
                    self._read(key.data)
            self.admission.check_time()

    def _accept(self) -> None:
        connection = self.admission.accept()
        if connection is None:
            return
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # gone again already: reading it tells
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3)):
                if hasattr(socket, name):
                    connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        wire = TaskWire(connection)
        self._selector.register(connection, selectors.EVENT_READ, wire)
        self.admission.add(wire)

    def _read(self, wire: TaskWire) -> None:
        try:
            if wire.fill():
                self._take(wire)
        except (OSError, EOFError):
            self._close(wire)

    def _write(self, wire: TaskWire) -> None:
        try:
            if wire.send_more():
                self._selector.modify(wire.connection, selectors.EVENT_READ, wire)
        except OSError:
            self._close(wire)

    def _take(self, wire: TaskWire) -> None:
        if wire.receiver is not None:
            frame = wire.frame()
            if frame is not None:
                self._tell(wire, lambda receiver: receiver.received(wire, *frame))
            return
        said = wire.hello()
        with self._lock:
            known = [
                receiver for token, receiver in self._receivers.items() if hmac.compare_digest(token, said)
            ]
        if not known:
            raise EOFError
        self.admission.admit(wire)
        wire.receiver = known[0]
        self._tell(wire, lambda receiver: receiver.greeted(wire))
        if wire.outgoing is not None:
            self._selector.modify(wire.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, wire)

    def _close(self, wire: TaskWire) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(wire.connection)
        wire.connection.close()
        self.admission.refuse(wire)
        self._tell(wire, lambda receiver: receiver.closed(wire))

    @staticmethod
    def _tell(wire: TaskWire, what: Callable[[Receiver], None]) -> None:
        if wire.receiver is None:
            return
        try:
            what(wire.receiver)
        except Exception as error:  # noqa: BLE001  one query's failure must not end the listener of all
            wire.receiver.failed(error)
            wire.hang_up()
