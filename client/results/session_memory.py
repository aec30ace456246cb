"""The memory that the results of one session take: rows that wait for their reader, rows that are folded, and
the state of the queries that compute them.
"""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakSet

from penstock.catalog.errors import PenstockError, over_session_memory
from penstock.engine.changelog.consolidate import Fold


class MeteredStream(Protocol):
    """A stream whose memory is known, and that can be ended with an error."""

    def memory_bytes(self) -> int:
        """Return the bytes of its waiting rows, and of the state of its query."""

    def fail(self, error: PenstockError) -> None:
        """Stop its query and drop its rows: the reader's next call raises ``error``."""


class SessionMemory:
    """Counts what the results of a session take, and ends the result that takes most when that is beyond
    ``limit_bytes`` (0: no limit). Any thread may call it.
    """

    def __init__(self, limit_bytes: int = 0) -> None:
        self.limit_bytes = limit_bytes
        # weak: what nobody reads any more takes nothing
        self._streams: WeakSet[MeteredStream] = WeakSet()
        self._folds: WeakSet[Fold] = WeakSet()
        self._lock = threading.Lock()
        # at the last look, since asking a job for its state is dear
        self._streams_bytes = 0

    def add_stream(self, stream: MeteredStream) -> None:
        """Count a stream until it is dropped."""
        with self._lock:
            self._streams.add(stream)

    def add_fold(self, fold: Fold) -> None:
        """Count rows that are folded."""
        with self._lock:
            self._folds.add(fold)

    def check(self) -> None:
        """Refuse what is folded beyond the limit: CLI-6205."""
        if not self.limit_bytes:
            return
        if self._streams_bytes + self._folds_bytes() > self.limit_bytes:
            raise over_session_memory(self.limit_bytes)

    def look(self) -> None:
        """Ask every stream for its memory, and end the largest if all are beyond the limit together."""
        if not self.limit_bytes:
            return
        with self._lock:
            streams = list(self._streams)
        sizes = [stream.memory_bytes() for stream in streams]
        self._streams_bytes = sum(sizes)
        if sizes and self._streams_bytes + self._folds_bytes() > self.limit_bytes:
            largest = streams[sizes.index(max(sizes))]
            with self._lock:
                self._streams.discard(largest)
            largest.fail(over_session_memory(self.limit_bytes))

    def _folds_bytes(self) -> int:
        with self._lock:
            return sum(fold.nbytes for fold in self._folds)
