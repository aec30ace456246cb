"""Channels of results to the client: one bounded queue per result. A slot thread fills it and the client's
thread empties it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from penstock.engine.api.sink import DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.channel import no_wakeup


class ResultChannel:
    """A bounded queue of batches from one or more collect subtasks to one client. Every method may be called
    from any thread.
    """

    def __init__(self, capacity_batches: int = 64) -> None:
        self._capacity = capacity_batches
        # each with the callback that returns credit to a remote producer
        self._batches: deque[tuple[Batch, Callable[[], None]]] = deque()
        self._changed = threading.Condition()
        self._finished = False
        self._closed = False
        self._error: BaseException | None = None
        self._ended_subtasks: set[int] = set()

    def offer(self, batch: Batch, on_read: Callable[[], None] = no_wakeup) -> bool:
        """Append a batch; False when the client has closed and no one will read it. A full channel still
        accepts the batches of the current step.

        ``on_read`` is called when the client has read the batch, or never will.
        """
        with self._changed:
            # False: the caller need not make further rows
            if self._closed:
                return False
            if batch.num_rows:
                self._batches.append((batch, on_read))
                self._changed.notify_all()
            return True

    def finish(self, error: BaseException | None = None) -> None:
        """End the result. ``error`` is raised to the client after the queued batches."""
        with self._changed:
            if not self._finished:
                self._finished, self._error = True, error
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """End the result now: the queued batches are dropped, and ``error`` is raised to the client."""
        with self._changed:
            self._finished, self._error = True, error
            dropped = [on_read for _, on_read in self._batches]
            self._batches.clear()
            self._changed.notify_all()
        for on_read in dropped:
            on_read()

    @property
    def nbytes(self) -> int:
        """The bytes of the queued batches."""
        with self._changed:
            return sum(batch.rows.nbytes for batch, _ in self._batches)

    def subtask_ended(self, subtask: int, parallelism: int) -> None:
        """Record that one collect subtask has ended; the result is finished when all have."""
        with self._changed:
            # a set: a subtask that is restarted may end twice
            self._ended_subtasks.add(subtask)
            finished = len(self._ended_subtasks) >= parallelism
        if finished:
            self.finish()

    @property
    def full(self) -> bool:
        """Whether the sink should wait; a closed channel is never full."""
        with self._changed:
            return len(self._batches) >= self._capacity and not self._closed

    def next(self, timeout_s: float | None = None) -> Batch | None:
        """Return the next batch, waiting up to ``timeout_s`` (None: for ever); ``None`` on timeout or at
        the end. Raises the job's error.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._finished or self._closed, timeout_s)
            if self._batches:
                batch, on_read = self._batches.popleft()
                self._changed.notify_all()
                # called under our lock: it must not block
                on_read()
                return batch
            # after the last batch, so that the client sees every row before the error
            if self._error is not None and not self._closed:
                raise self._error
            return None

    @property
    def ended(self) -> bool:
        """Whether ``next`` will return no further batch."""
        with self._changed:
            return self._closed or (self._finished and not self._batches)

    @property
    def closed(self) -> bool:
        """Whether the client has closed the result."""
        with self._changed:
            return self._closed

    def close(self) -> None:
        """Close the client's side: drop the queue and let the sink run without backpressure."""
        with self._changed:
            self._closed = True
            dropped = [on_read for _, on_read in self._batches]
            self._batches.clear()
            self._changed.notify_all()
        # outside the lock, since there may be many
        for on_read in dropped:
            on_read()


class ResultChannels:
    """The service that returns a collect sink's channel by its operator id."""

    def __init__(self) -> None:
        self._channels: dict[str, ResultChannel] = {}
        self._lock = threading.Lock()

    def channel(self, operator_id: str, capacity_batches: int = 64) -> ResultChannel:
        """Return the channel of an operator, made on first use by either side."""
        with self._lock:
            if operator_id not in self._channels:
                self._channels[operator_id] = ResultChannel(capacity_batches)
            return self._channels[operator_id]

    def release(self, operator_id: str) -> None:
        """Remove a channel that is no longer read."""
        with self._lock:
            self._channels.pop(operator_id, None)


class CollectSink(DirectSink):
    """Sends each batch to the client, with backpressure while the client is slow."""

    def __init__(self, request: SinkRequest) -> None:
        self._channel = request.services.get(ResultChannels).channel(request.operator_id)
        self._subtask, self._parallelism = request.subtask, request.parallelism

    def write(self, batch: Batch) -> None:
        self._channel.offer(batch)

    def ready(self) -> bool:
        return not self._channel.full

    def end(self) -> None:
        self._channel.subtask_ended(self._subtask, self._parallelism)
