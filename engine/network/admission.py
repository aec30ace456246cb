"""Admission control of a listener: it limits how many connections are unauthenticated and for how long, and
counts those it closes.
"""

from __future__ import annotations

import errno
import selectors
import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.clock import Clock

CROWDED = "crowded"
"""Closed, oldest first, because too many connections were unauthenticated, or no file descriptor was left."""
LATE = "late"
"""Closed because it had not sent its hello in time."""
UNKNOWN = "unknown"
"""Closed because of the content of its hello."""
# errors of the one connection that was to be accepted; see accept(2)
_GONE = {
    getattr(errno, name)
    for name in (
        "ECONNABORTED",
        "EPROTO",
        "ENETDOWN",
        "ENOPROTOOPT",
        "EHOSTDOWN",
        "ENONET",
        "EHOSTUNREACH",
        "ENETUNREACH",
        "EPERM",
    )
    if hasattr(errno, name)
}


@dataclass(frozen=True)
class AdmissionLimits:
    """``strangers``: how many connections may be unauthenticated at a time; never more than a quarter of the
    files the process may open.

    ``hello_ms``: how long the whole hello may take. ``rest_ms``: how long nothing is accepted after the
    system failed to (no descriptor, no memory). Without that pause the listener would be ready all the time.
    """

    strangers: int = 256
    hello_ms: float = 5_000.0
    rest_ms: float = 100.0


@dataclass(frozen=True)
class Refusals:
    """How many strangers listeners have ``refused``, and how many connections they ``failed`` to accept."""

    refused: int = 0
    failed: int = 0

    def __add__(self, other: Refusals) -> Refusals:
        """Return both together."""
        return Refusals(self.refused + other.refused, self.failed + other.failed)


ROW_LISTENERS: list[Admission[Any]] = []
"""The process's listeners for rows of Spark, which stay until it ends. Jobs that never listen can read the
list without importing the connector.
"""


def refusals_of_row_listeners() -> Refusals | None:
    """Return the strangers they have refused; None when nothing has listened."""
    admissions = list(ROW_LISTENERS)
    return sum((each.refusals for each in admissions), Refusals()) if admissions else None


def refusals_of(refused: Counter[str], faults: Counter[str]) -> Refusals:
    """Return the sums of what an ``Admission`` has counted."""
    return Refusals(refused.total(), faults.total())


def _open_files_most() -> int:
    """Return how many files this process may have open."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return 4096
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


C = TypeVar("C")


class Admission(Generic[C]):
    """Accepts connections of a listener, and tracks those that are not authenticated yet; for any thread.

    ``hang_up`` shuts a connection down; its owner then sees it end. With a ``selector`` the listener is
    registered there, with this object as its data, except during a pause. ``refused`` counts strangers by
    reason, ``faults`` the errors of accepting.
    """

    def __init__(
        self,
        listener: socket.socket,
        clock: Clock,
        hang_up: Callable[[C], None],
        *,
        limits: AdmissionLimits | None = None,
        selector: selectors.BaseSelector | None = None,
        refused: Counter[str] | None = None,
        faults: Counter[str] | None = None,
    ) -> None:
        listener.setblocking(False)
        self.refused: Counter[str] = Counter() if refused is None else refused
        self.faults: Counter[str] = Counter() if faults is None else faults
        self._listener = listener
        self._clock = clock
        self._hang_up = hang_up
        self._limits = limits or AdmissionLimits()
        # strangers must not use up the descriptors that storage and authenticated peers need
        self._most = max(1, min(self._limits.strangers, _open_files_most() // 4))
        self._selector = selector
        # by the time they connected; a dict keeps the oldest first
        self._strangers: dict[C, float] = {}
        self._rests_until_ms: float | None = None
        self._closed = False
        # reentrant: hang_up may call refuse() for the same connection
        self._lock = threading.RLock()
        # ``data`` is this object, so that a loop over events recognises its listener
        if selector is not None:
            selector.register(listener, selectors.EVENT_READ, self)

    @property
    def watching(self) -> bool:
        """Whether ``check_time`` has something to wait for."""
        return bool(self._strangers) or self._rests_until_ms is not None

    @property
    def resting(self) -> bool:
        """Whether accepting is paused."""
        return self._rests_until_ms is not None

    @property
    def refusals(self) -> Refusals:
        """How many connections were refused or could not be accepted."""
        return refusals_of(self.refused, self.faults)

    def accept(self) -> socket.socket | None:
        """Return the next connection as a blocking socket, ``None`` when there is none now. Raises nothing:
        no error may end a listener.
        """
        if self._rests_until_ms is not None:
            return None
        try:
            connection, _ = self._listener.accept()
            connection.setblocking(True)
        # nobody connects just now
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as fault:
            self._failed(fault)
            return None
        return connection

    def add(self, one: C) -> None:
        """Add an unauthenticated connection; beyond the limit the oldest is closed."""
        with self._lock:
            # the oldest goes: a flood of strangers then cannot lock out a worker that sends its hello at once
            self._drop_oldest(len(self._strangers) - self._most + 1)
            self._strangers[one] = self._clock.monotonic_ms()

    def admit(self, one: C) -> bool:
        """The peer is authenticated. Returns False when its connection was closed before."""
        with self._lock:
            # False: check_time or a crowd has closed it in the meantime
            return self._strangers.pop(one, None) is not None

    def refuse(self, one: C, why: str = UNKNOWN) -> None:
        """Count a stranger with a wrong or missing hello, once. Its owner closes the connection."""
        with self._lock:
            if self._strangers.pop(one, None) is not None:
                self.refused[why] += 1

    def remove(self, one: C) -> None:
        """Forget a connection that has ended."""
        with self._lock:
            self._strangers.pop(one, None)

    def check_time(self) -> None:
        """Close connections whose hello is overdue, and resume accepting after a pause. Call it a few times a
        second while ``watching``.
        """
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            # collected first: refuse() changes the dict
            late = [
                one for one, since_ms in self._strangers.items() if now_ms - since_ms >= self._limits.hello_ms
            ]
            for one in late:
                self.refuse(one, LATE)
                # refuse() has counted it; the owner's own refuse() then counts nothing
                self._hang_up(one)
            if self._rests_until_ms is not None and now_ms >= self._rests_until_ms and not self._closed:
                self._rests_until_ms = None
                if self._selector is not None:
                    self._selector.register(self._listener, selectors.EVENT_READ, self)

    def close(self) -> None:
        """Stop listening; unauthenticated connections stay with their owner."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._stop_accepting()
                self._listener.close()

    def _failed(self, fault: OSError) -> None:
        with self._lock:
            if self._closed:
                return
            self.faults[errno.errorcode.get(fault.errno or 0, "unknown")] += 1
            if fault.errno in _GONE:  # the one that connected: the next may be all right
                return
            self._drop_oldest(1)  # which gives a descriptor back
            self._stop_accepting()
            self._rests_until_ms = self._clock.monotonic_ms() + self._limits.rest_ms

    def _stop_accepting(self) -> None:
        # during a pause it is not registered
        if self._selector is not None and self._rests_until_ms is None:
            self._selector.unregister(self._listener)

    def _drop_oldest(self, count: int) -> None:
        for one in list(self._strangers)[: max(0, count)]:
            self.refuse(one, CROWDED)
            self._hang_up(one)
