"""The listener to which Spark's tasks connect to push and pull rows. There is one per process and address, in
its own thread; tokens identify queries. Frames that wait for a reader are queued in memory or on disk.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.bounded.spark_results.push_task import CREDIT, HEADER, HELLO
from penstock.engine.network.admission import Admission

SEGMENT_BYTES = 64 << 20


@dataclass
class BufferedBytes:
    """The buffered bytes of all queues of a query, and their limits."""

    # a frame is about 4 MB (push_task.FRAME_BYTES)
    memory_limit: int = 32 << 20
    disk_limit: int = 4 << 30
    memory: int = 0
    disk: int = 0

    def has_memory(self, first: bool) -> bool:
        """Whether a frame may stay in memory; half of the memory is reserved for the queue that is read now,
        the ``first``.
        """
        return self.memory < (self.memory_limit if first else self.memory_limit // 2)

    def has_capacity(self, first: bool) -> bool:
        """Whether another frame may be requested."""
        return self.has_memory(first) or self.disk < self.disk_limit


class _Segment:
    """One file of frames, deleted when it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b", buffering=0)
        self.written = 0
        self.unread = 0

    def write(self, frame: bytearray) -> int:
        """Append a frame and return its offset. A frame that did not fit (OSError) is not counted."""
        begin, view = self.written, memoryview(frame)
        while view:
            # pwrite may write less than asked; ``written`` moves only when the whole frame is there
            view = view[os.pwrite(self._file.fileno(), view, begin + len(frame) - len(view)) :]
        self.written += len(frame)
        self.unread += 1
        return begin

    def read(self, begin: int, size: int) -> bytearray:
        """Return a frame; a frame is read only once."""
        frame = bytearray(size)
        self._file.seek(begin)
        done = 0
        while done < size:
            done += self._file.readinto(memoryview(frame)[done:]) or 0
        self.unread -= 1
        return frame

    def close(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


class FrameQueue:
    """A FIFO queue of frames; not thread-safe."""

    def __init__(self, buffered: BufferedBytes, path: Callable[[], Path]) -> None:
        """``path`` returns the name of a new file in an existing directory."""
        self._buffered = buffered
        self._path = path
        # a frame in memory, or (segment, offset, size) of one on disk
        self._frames: deque[bytearray | tuple[_Segment, int, int]] = deque()
        self._segment: _Segment | None = None

    def __len__(self) -> int:
        return len(self._frames)

    def push(self, frame: bytearray, first: bool) -> None:
        """Append a frame, in memory or on disk. If the disk is full it stays in memory."""
        if not self._buffered.has_memory(first):
            try:
                self._frames.append(self._written(frame))
            except OSError:
                # the disk is full: what comes now waits with its task
                self._buffered.disk_limit = self._buffered.disk
            else:
                self._buffered.disk += len(frame)
                return
        self._buffered.memory += len(frame)
        self._frames.append(frame)

    def pop(self) -> bytearray:
        """Return the oldest frame and release its space."""
        entry = self._frames.popleft()
        if isinstance(entry, bytearray):
            self._buffered.memory -= len(entry)
            return entry
        segment, begin, size = entry
        frame = segment.read(begin, size)
        self._buffered.disk -= size
        # every frame of the file was read: its space is free again
        if segment.unread == 0:
            self._drop(segment)
        return frame

    def clear(self) -> None:
        """Drop all frames and their files."""
        # each file once, whatever the number of its frames
        segments = {id(entry[0]): entry[0] for entry in self._frames if not isinstance(entry, bytearray)}
        for entry in self._frames:
            if isinstance(entry, bytearray):
                self._buffered.memory -= len(entry)
            else:
                self._buffered.disk -= entry[2]
        self._frames.clear()
        for segment in segments.values():
            self._drop(segment)

    def _written(self, frame: bytearray) -> tuple[_Segment, int, int]:
        segment = self._segment
        # several files, so that the space of frames that were read is freed early
        if segment is None or segment.written >= SEGMENT_BYTES:
            segment = self._segment = _Segment(self._path())
        return segment, segment.write(frame), len(frame)

    def _drop(self, segment: _Segment) -> None:
        if segment is self._segment:
            self._segment = None
        segment.close()


# how often connections that have not said hello are checked
_LOOK_S = 0.1
# a header with more is no header of ours: do not allocate for it
_LONGEST_FRAME = 1 << 34
_SENT_AT_ONCE = 16  # pieces, before the other connections have their turn


class Receiver(Protocol):
    """A query that receives pushed rows. It is called in the listener's thread."""

    def greeted(self, wire: TaskWire) -> None:
        """A task has sent a hello with the query's token."""

    def received(self, wire: TaskWire, kind: bytes, payload: bytearray | int) -> None:
        """A frame has arrived: rows, or the end with the number of rows."""

    def closed(self, wire: TaskWire) -> None:
        """A task's connection was closed."""

    def failed(self, error: Exception) -> None:
        """The receiver itself raised an error: its query fails, others continue."""


class TaskWire:
    """One task's connection. ``partition``, ``attempt`` and ``task`` are set by its hello."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.receiver: Receiver | None = None
        self.partition = self.attempt = self.task = -1
        # credits granted and not yet used
        self.owed = 0
        self.outgoing: Iterator[bytes] | None = None
        """The pieces that a receiver sends to a task after its hello."""
        self._unsent = memoryview(b"")
        # the first part is the hello; after it every part begins with a header
        self._head = bytearray(HELLO.size)
        self._payload: bytearray | None = None
        self._kind = b""
        self._filled = 0

    def say(self, word: bytes) -> None:
        """Send a few bytes from any thread. If the task is gone, the next read reports it."""
        with contextlib.suppress(OSError):
            self.connection.send(word)

    def credit(self, count: int) -> None:
        """Request that many more frames."""
        self.owed += count
        self.say(CREDIT * count)

    def send_more(self) -> bool:
        """Send some of ``outgoing``, as much as the connection accepts; return whether all of it is sent."""
        assert self.outgoing is not None
        for _ in range(_SENT_AT_ONCE):
            if not self._unsent:
                # the next piece; b"" when all pieces are sent
                self._unsent = memoryview(next(self.outgoing, b""))
            if not self._unsent:
                return True
            try:
                self._unsent = self._unsent[self.connection.send(self._unsent) :]
            except BlockingIOError:
                break
        return False

    def hang_up(self) -> None:
        """End the connection, from any thread; the listener's thread then reads its end."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def fill(self) -> bool:
        """Read once; return whether the current part is complete. EOFError when the task is gone."""
        target = self._head if self._payload is None else self._payload
        try:
            got = self.connection.recv_into(memoryview(target)[self._filled :])
        except BlockingIOError:
            return False
        # closed by the task
        if got == 0:
            raise EOFError
        self._filled += got
        return self._filled == len(target)

    def hello(self) -> bytes:
        """Parse the hello; return its token."""
        token, self.partition, self.attempt, self.task = HELLO.unpack(self._head)
        self._head, self._filled = bytearray(HEADER.size), 0
        return token

    def frame(self) -> tuple[bytes, bytearray | int] | None:
        """Parse the completed part: return a frame, or ``None`` after a header whose payload must still be
        read.
        """
        self._filled = 0
        # the payload is complete: a frame of rows
        if self._payload is not None:
            payload, self._payload = self._payload, None
            return self._kind, payload
        self._kind, size = HEADER.unpack(self._head)
        # the end of rows has no payload; its size field is the number of rows
        if self._kind != b"R":
            return self._kind, size
        # closes the connection as if the task were gone
        if not 0 < size < _LONGEST_FRAME:
            raise EOFError
        self._payload = bytearray(size)
        return None


class RowListener:
    """Accepts connections of tasks and reads them. A connection with an unknown token is closed."""

    def __init__(self, bind: str = "127.0.0.1", port: int = 0, clock: Clock | None = None) -> None:
        """OSError when the address is not available."""
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
        """Register a receiver for the connections with this token."""
        with self._lock:
            self._receivers[token] = receiver

    def leave(self, token: bytes) -> None:
        """Refuse connections with this token from now on."""
        with self._lock:
            self._receivers.pop(token, None)

    def _run(self) -> None:
        while True:
            # without a timeout while every connection is admitted: an idle listener costs nothing
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
            # a machine that has lost its network is noticed after some 14 s (5 + 3 x 3)
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
        # after the hello: frames
        if wire.receiver is not None:
            frame = wire.frame()
            if frame is not None:
                self._notify(wire, lambda receiver: receiver.received(wire, *frame))
            return
        sent_token = wire.hello()
        with self._lock:
            # tokens are compared in constant time; there are as many as queries that run
            known = [
                receiver
                for token, receiver in self._receivers.items()
                if hmac.compare_digest(token, sent_token)
            ]
        # a task of a query that has ended, or a stranger
        if not known:
            raise EOFError
        self.admission.admit(wire)
        wire.receiver = known[0]
        self._notify(wire, lambda receiver: receiver.greeted(wire))
        # this task pulls: it is served whenever its connection accepts bytes
        if wire.outgoing is not None:
            self._selector.modify(wire.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, wire)

    def _close(self, wire: TaskWire) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(wire.connection)
        wire.connection.close()
        self.admission.refuse(wire)
        self._notify(wire, lambda receiver: receiver.closed(wire))

    @staticmethod
    def _notify(wire: TaskWire, what: Callable[[Receiver], None]) -> None:
        if wire.receiver is None:
            return
        try:
            what(wire.receiver)
        except Exception as error:  # noqa: BLE001  one query's failure must not end the listener of all
            wire.receiver.failed(error)
            wire.hang_up()
