"""A blocking socket with TLS that one thread may read while another writes, which Python's own TLS sockets do
not allow.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import Any

# several TLS records, which have 16 KiB at most
_READ_BYTES = 1 << 18


class SecureStream:
    """The socket methods that a control connection uses, over TLS. ``server`` selects which end of
    ``context`` this is; the constructor does the handshake.

    ``OSError`` (of which ``ssl.SSLError`` is one) for a peer without the right certificate.
    """

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, *, server: bool) -> None:
        self._socket = plain
        # TLS works on these buffers; the socket itself can then be read and written by two threads
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._engine = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        # the TLS state is not thread-safe: locked for each step, never while the socket blocks
        self._state = threading.Lock()
        # locked from encryption to sending: records must leave in their order
        self._sending = threading.Lock()
        self._handshake()

    def settimeout(self, timeout_s: float | None) -> None:
        """Set how long reading may wait."""
        self._socket.settimeout(timeout_s)

    def recv_into(self, room: Any) -> int:
        """Wait for bytes and return how many came; 0 at the stream's end."""
        while True:
            with self._state:
                try:
                    # bytes of a record that has arrived already
                    return self._engine.read(len(room), room)  # type: ignore[return-value]  # with a buffer it returns a count
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLZeroReturnError:
                    return 0
            self._flush()  # what TLS itself has to say
            # without the locks: waiting for bytes must not stop the thread that writes
            if not self._fill():
                return 0

    def sendall(self, data: Any) -> None:
        """Send all bytes."""
        with self._sending:
            with self._state:
                self._engine.write(data)
                parts = self._outgoing.read()
            self._socket.sendall(parts)

    def shutdown(self, how: int) -> None:
        """Shut the connection down in one or both directions."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _handshake(self) -> None:
        while True:
            try:
                self._engine.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                if not self._fill():
                    raise ConnectionResetError("the peer ended the connection during the handshake") from None
                continue
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    self._flush()  # tell the peer why
                raise
            self._flush()
            return

    def _fill(self) -> bool:
        data = self._socket.recv(_READ_BYTES)
        with self._state:
            self._incoming.write(data)
        return bool(data)

    def _flush(self) -> None:
        with self._sending:
            with self._state:
                parts = self._outgoing.read()
            if parts:
                self._socket.sendall(parts)
