"""The control connection between the coordinator and a worker. It keeps the order of messages, and each
direction has a thread of its own.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Collection
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.deploy.protocol.codec import (
    Attachment,
    FindFunction,
    NameFunction,
    decode,
    encode,
    no_functions,
)
from penstock.engine.network.frame_kinds import FIRST_CONTROL
from penstock.engine.network.frames import FrameReader, FrameWriter, NetworkFrame
from penstock.engine.network.tls_stream import SecureStream

MESSAGE = FIRST_CONTROL
# rows of results and bounded queries are attached to messages
MAX_MESSAGE_BYTES = 1 << 31
# a stranger cannot make this process allocate more than this
MAX_HELLO_BYTES = 4096
# Arrow reads attached rows in place, from aligned buffers
_ALIGNMENT = 64
# a payload: number of parts, length of each, then the parts at multiples of _ALIGNMENT
_COUNT = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")


def pack(message: Any, name_function: NameFunction = no_functions) -> list[Attachment]:
    """Return a message as the parts of a frame. A head holds the number and the lengths of the parts; the
    text and its attachments follow, each aligned for Arrow.
    """
    attached: list[Attachment] = []
    text = encode(message, name_function, attached)
    parts = [text, *attached]
    head = _COUNT.pack(len(parts)) + b"".join(_LENGTH.pack(len(part)) for part in parts)
    packed: list[Attachment] = [head + bytes(-len(head) % _ALIGNMENT)]
    for part in parts:
        packed += [part, bytes(-len(part) % _ALIGNMENT)]
    return packed


def unpack(
    payload: memoryview, find_function: FindFunction = no_functions, only: Collection[type[Any]] | None = None
) -> Any:
    """Decode a frame's payload into its message; with ``only``, no other classes are built. INT-9032 when it
    is not a message.
    """
    try:
        (count,) = _COUNT.unpack_from(payload)
        lengths = [
            _LENGTH.unpack_from(payload, _COUNT.size + _LENGTH.size * number)[0] for number in range(count)
        ]
    except struct.error as cause:
        raise _unreadable(str(cause)) from cause
    position = _COUNT.size + _LENGTH.size * count
    parts = []
    for length in lengths:
        # skip the padding before the part
        position += -position % _ALIGNMENT
        # the lengths come from the peer: check before slicing
        if position + length > len(payload):
            raise _unreadable("it is shorter than it says")
        parts.append(payload[position : position + length])
        position += length
    if not parts:
        raise _unreadable("it is empty")
    return decode(parts[0], find_function, parts[1:], only)


def _unreadable(why: str) -> PenstockError:
    return PenstockError(
        "INT-9032", f"a control message cannot be read: {why}", kind=Kind.INTERNAL, sqlstate="XX000"
    )


class ControlConnection:
    """One end of a control connection over a connected socket.

    ``send`` never blocks: a thread writes the queued messages. One thread of the owner calls ``receive``.
    ``stranger``: the peer is not authenticated yet; until ``trust`` is called, no message may be longer than
    a hello.
    """

    def __init__(self, connected: socket.socket | SecureStream, name: str, *, stranger: bool = False) -> None:
        # a blocking socket: reading and writing each have a thread
        connected.settimeout(None)
        self._socket = connected
        self._frames = FrameWriter()
        self._reader = FrameReader(MAX_HELLO_BYTES if stranger else MAX_MESSAGE_BYTES)
        self._queue: queue.SimpleQueue[list[Attachment] | None] = queue.SimpleQueue()
        self._received: list[NetworkFrame] = []
        # The socket is closed by the last thread that uses it: the number of a socket that is closed under a
        # call may be another connection's at once.
        self._lock = threading.Lock()
        self._users = 0
        self._closed = False
        self.find_function: FindFunction = no_functions
        self._writer = threading.Thread(target=self._write, name=name, daemon=True)
        self._writer.start()

    def send(self, message: Any, name_function: NameFunction = no_functions) -> None:
        """Queue a message. It is dropped when the peer is gone. Raises INT-9031 for a value that cannot be
        encoded.
        """
        self._queue.put(pack(message, name_function))

    def trust(self) -> None:
        """Accept messages of any size from now on: the peer is authenticated."""
        self._reader.max_payload = MAX_MESSAGE_BYTES

    def receive(
        self, timeout_s: float | None = None, only: Collection[type[Any]] | None = None
    ) -> Any | None:
        """Wait for the next message and return it, ``None`` at the end of the connection. With ``only``, no
        other classes are built.

        NET-50xx or INT-9032 for bytes that are not a message, TimeoutError when nothing arrived within
        ``timeout_s``.
        """
        while not self._received:
            count = self._fill(timeout_s)
            if not count:
                return None
            self._received = self._reader.received(count)
        frame = self._received.pop(0)
        if frame.kind != MESSAGE:
            raise _unreadable(f"kind {frame.kind}")
        return unpack(frame.payload, self.find_function, only)

    def _fill(self, timeout_s: float | None) -> int:
        """Read once; return the bytes, 0 at the end of the connection."""
        if not self._enter():
            return 0
        try:
            self._socket.settimeout(timeout_s)
            return self._socket.recv_into(self._reader.writable())
        except TimeoutError:
            raise
        except OSError:  # closed here, or torn down by the peer's death
            return 0
        finally:
            self._leave()

    def _enter(self) -> bool:
        """Begin a call of the socket; return whether there is one."""
        with self._lock:
            if self._closed:
                return False
            self._users += 1
            return True

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._closed and not self._users:
                self._socket.close()

    def finish(self, timeout_s: float) -> None:
        """Send the queued messages, wait at most ``timeout_s`` for that, and close."""
        # None ends the writer, behind everything that is queued
        self._queue.put(None)
        self._writer.join(timeout_s)
        self.close()

    def close(self) -> None:
        """End the connection at once: both threads leave the socket, and the last of them closes it."""
        self._queue.put(None)
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with contextlib.suppress(OSError):  # the peer may have closed first
                self._socket.shutdown(socket.SHUT_RDWR)
            if not self._users:
                self._socket.close()

    def _write(self) -> None:
        while (parts := self._queue.get()) is not None:
            if not self._enter():
                return
            try:
                for view in self._frames.encode(MESSAGE, parts=[part for part in parts if len(part)]):
                    self._socket.sendall(view)
            except OSError:  # whoever reads this connection learns of its end
                return
            finally:
                self._leave()
