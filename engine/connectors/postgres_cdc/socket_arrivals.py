"""Notice of bytes that come to a connection while nobody reads them."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from collections.abc import Callable

from penstock.engine.api.threads import EngineThread


class SocketArrivals:
    """A thread that waits for one socket, and calls ``arrived``: once each time it is armed.

    It waits for a descriptor of its own, which stays valid when the connection is closed.
    """

    def __init__(self, descriptor: int, arrived: Callable[[], None]) -> None:
        self._arrived = arrived
        self._descriptor = os.dup(descriptor)
        self._armed = threading.Event()
        self._closed = False
        # a byte in it ends a wait for the socket
        self._ending, self._ended = socket.socketpair()
        EngineThread(target=self._run, name="postgres-cdc arrivals").start()

    def arm(self) -> None:
        """Report the next bytes, or those that have come since the last were read."""
        self._armed.set()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._ending.send(b"\0")
        self._armed.set()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector, self._ending, self._ended:
            selector.register(self._descriptor, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            while self._armed.wait() and not self._closed:
                self._armed.clear()
                selector.select()
                self._arrived()
        os.close(self._descriptor)
