"""What a client may send before it is authenticated: a count of bytes and a time for each connection."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class StrangerLimits:
    """``bytes``: of one connection until its first call is authenticated; a driver sends a few thousand, and
    the text of its first statement. ``seconds``: until then. ``connections``: of strangers at once.
    """

    bytes: int = 256 << 10
    seconds: float = 30.0
    connections: int = 128


class Strangers:
    """The connections that are not authenticated yet, by an id of the caller's. Pure: it is told what arrives
    and what time it is. Any thread may call ``trust``.
    """

    def __init__(self, limits: StrangerLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        # by id: the bytes it may still send, and when its time is up
        self._left: dict[int, int] = {}
        self._until_s: dict[int, float] = {}
        self.refused = 0

    def admit(self, connection: int, now_s: float) -> int | None:
        """Begin to count a connection. Return the one to close for it, where strangers are too many at once:
        the oldest, since an honest client is authenticated within milliseconds.
        """
        with self._lock:
            oldest = next(iter(self._left)) if len(self._left) >= self._limits.connections else None
            self.refused += oldest is not None
            self._left[connection] = self._limits.bytes
            self._until_s[connection] = now_s + self._limits.seconds
            return oldest

    def allowance(self, connection: int) -> int | None:
        """Return how many bytes a connection may still send; None for one that is trusted."""
        return self._left.get(connection)

    def count(self, connection: int, sent_bytes: int) -> bool:
        """Count bytes of a connection; return whether it may go on."""
        with self._lock:
            left = self._left.get(connection)
            if left is None:
                return True
            self._left[connection] = left - sent_bytes
            if left > sent_bytes:
                return True
            self.refused += 1
            return False

    def trust(self, connection: int) -> None:
        """A call of the connection was authenticated: it may send what it likes."""
        self.forget(connection)

    def forget(self, connection: int) -> None:
        """The connection has ended."""
        with self._lock:
            self._left.pop(connection, None)
            self._until_s.pop(connection, None)

    def overdue(self, now_s: float) -> list[int]:
        """Return the connections whose time is up."""
        with self._lock:
            found = [connection for connection, until_s in self._until_s.items() if now_s >= until_s]
            self.refused += len(found)
        return found
