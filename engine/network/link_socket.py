"""A non-blocking socket that carries a link: plain TCP, or TLS when it has a context."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Callable

from penstock.engine.network.link import Link

# far below the system's limit of buffers per call (IOV_MAX, 1024 on Linux)
_BUFFERS_AT_ONCE = 64
# then other connections get their turn
_READS_AT_ONCE = 32
Took = Callable[["LinkSocket", int, float], None]
Secure = Callable[[socket.socket], ssl.SSLSocket]
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError, InterruptedError)


class LinkSocket:
    """Moves bytes between a socket and its link. ``secure`` wraps the socket in TLS once it is connected;
    ``took`` is called with each count of bytes read.

    ``OSError`` (of which ``ssl.SSLError`` is one) ends the connection.
    """

    def __init__(
        self, sock: socket.socket, link: Link, *, connecting: bool, secure: Secure | None, took: Took
    ) -> None:
        self.link = link
        self._took = took
        self.writing = connecting  # whether the selector should wait for the socket to be writable
        self.shut = False
        self.sock = sock
        self._connecting = connecting
        self._secure = secure
        self._handshaking = False

    def fileno(self) -> int:
        """Return the socket's file descriptor, for a selector."""
        return self.sock.fileno()

    def read(self, now_ms: float) -> bool:
        """Pass arrived bytes to the link; return False when the stream has ended."""
        if not self._ready():
            return True
        secure = isinstance(self.sock, ssl.SSLSocket)
        for _ in range(_READS_AT_ONCE):
            buffer = self.link.writable()
            try:
                count = self.sock.recv_into(buffer)
            except _NOT_NOW:
                return True
            except ssl.SSLZeroReturnError:
                return False
            # the peer has closed its side
            if count == 0:
                return False
            self._took(self, count, now_ms)
            # the socket is drained: another read would only report that
            if count < len(buffer) and not secure:
                return True
        while secure and self.sock.pending():  # type: ignore[attr-defined]  # no selector tells of what TLS has read already
            self._took(self, self.sock.recv_into(self.link.writable()), now_ms)
        return True

    def write(self, now_ms: float) -> None:
        """Send the link's buffers, as far as the socket accepts them."""
        if not self._ready():
            return
        while True:
            buffers = self.link.pull(now_ms)
            self.writing = bool(buffers)
            if not buffers:
                return
            try:
                count = self._send(buffers)
            except _NOT_NOW:
                return
            # the socket may accept part of a buffer
            _drop(buffers, count)

    def shut_down(self) -> None:
        """Stop sending; incoming bytes are still read."""
        if not self.shut:
            self.shut = True
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    def _ready(self) -> bool:
        """Continue connecting and the TLS handshake; return whether bytes can move."""
        if self._connecting:
            # the result of a non-blocking connect
            fault = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if fault:
                raise OSError(fault, "cannot connect")
            try:
                # not connected yet: wait for the next event
                self.sock.getpeername()
            except OSError:
                return False
            self._connecting = False
        if self._secure is not None:
            self.sock, self._secure, self._handshaking = self._secure(self.sock), None, True
        if self._handshaking:
            try:
                self.sock.do_handshake()  # type: ignore[attr-defined]
            except _NOT_NOW as later:
                # the handshake says which event it awaits
                self.writing = isinstance(later, ssl.SSLWantWriteError)
                return False
            self._handshaking = False
        return True

    def _send(self, buffers: deque[memoryview]) -> int:
        # TLS sockets have no sendmsg
        if isinstance(self.sock, ssl.SSLSocket):
            return self.sock.send(buffers[0])
        return self.sock.sendmsg([buffers[index] for index in range(min(len(buffers), _BUFFERS_AT_ONCE))])


def _drop(buffers: deque[memoryview], count: int) -> None:
    """Remove ``count`` bytes from the front."""
    while count:
        first = buffers[0]
        if first.nbytes > count:
            buffers[0] = first[count:]
            return
        count -= first.nbytes
        buffers.popleft()
