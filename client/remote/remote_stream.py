"""The rows of a result of a server, as they come."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
from pyarrow import flight

from penstock.catalog.errors import PenstockError
from penstock.client.remote.flight_channel import FlightChannel, Locate
from penstock.engine.api.stream_elements import Batch
from penstock.engine.api.threads import EngineThread

_BUFFER_BYTES = 32 << 20
"""Rows that are read ahead. Beyond them the server waits, as HTTP/2 has its own credit."""


class RemoteStream:
    """Reads a stream in a thread of its own, as a read of Flight cannot be given a time limit. So the server
    sees at once when this process ends.
    """

    def __init__(self, channel: FlightChannel, ticket: flight.Ticket, locate: Locate) -> None:
        self._channel = channel
        self._locate = locate
        self._changed = threading.Condition()
        self._batches: deque[Batch] = deque()
        self._bytes = 0
        self._finished = False
        self._closed = False
        self._error: BaseException | None = None
        self._reader = channel.read(ticket, locate)
        EngineThread(self._read, "penstock-remote-result").start()

    def next(self, timeout_s: float | None) -> Batch | None:
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._finished or self._closed, timeout_s)
            if self._batches:
                batch = self._batches.popleft()
                self._bytes -= batch.rows.nbytes
                self._changed.notify_all()
                return batch
            # behind the rows that came before it
            if self._error is not None and not self._closed:
                raise self._error
            return None

    @property
    def ended(self) -> bool:
        with self._changed:
            return self._closed or (self._finished and not self._batches)

    def close(self) -> None:
        with self._changed:
            ended, self._closed = self._finished or self._closed, True
            self._batches.clear()
            self._changed.notify_all()
        # the thread is inside a read, which only this ends
        if not ended:
            self._reader.cancel()

    def _read(self) -> None:
        error: PenstockError | None = None
        try:
            with self._channel.failures(self._locate):
                while self._offer(self._reader.read_chunk()):
                    pass
        except StopIteration:
            pass
        except PenstockError as failure:
            error = failure
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def _offer(self, chunk: flight.FlightStreamChunk) -> bool:
        """Append a batch, waiting for room; False once the result is closed."""
        data = chunk.app_metadata
        weights = None if data is None or not data.size else np.frombuffer(data, np.int64)
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _BUFFER_BYTES or self._closed)
            if self._closed:
                return False
            self._batches.append(Batch(chunk.data, weights))
            self._bytes += chunk.data.nbytes
            self._changed.notify_all()
            return True
