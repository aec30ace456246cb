"""The way of results to the client: one bounded queue per result, filled by a slot thread, emptied by the
client's thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from penstock.engine.api.sink import DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.channel import no_wakeup


class ResultChannel:
    """A bounded hand-over of batches from one or more collect subtasks to one client; every method may be
    called from any thread.
    """

    def __init__(self, capacity_batches: int = 64) -> None:
        self._capacity = capacity_batches
        self._batches: deque[tuple[Batch, Callable[[], None]]] = deque()
        self._changed = threading.Condition()
        self._finished = False
        self._closed = False
        self._error: BaseException | None = None
        self._ended_subtasks: set[int] = set()

    def offer(self, batch: Batch, taken: Callable[[], None] = no_wakeup) -> bool:
        """Take a batch; False when the client has closed and nobody will read it. A full channel still takes
        what a running step gives.

        ``taken`` is called when the client has taken the batch, or will never.
        """
        with self._changed:
            if self._closed:
                return False
            if batch.num_rows:
                self._batches.append((batch, taken))
                self._changed.notify_all()
            return True

    def finish(self, error: BaseException | None = None) -> None:
        """Say that no batch follows; ``error`` is raised to the client after the batches that are there."""
        with self._changed:
            if not self._finished:
                self._finished, self._error = True, error
            self._changed.notify_all()

    def subtask_ended(self, subtask: int, parallelism: int) -> None:
        """Note that one collect subtask has given all its rows; the result is finished when all have."""
        with self._changed:
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
                batch, taken = self._batches.popleft()
                self._changed.notify_all()
                taken()
                return batch
            if self._error is not None and not self._closed:
                raise self._error
            return None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come out of ``next``."""
        with self._changed:
            return self._closed or (self._finished and not self._batches)

    @property
    def closed(self) -> bool:
        """Whether the client has gone away."""
        with self._changed:
            return self._closed

    def close(self) -> None:
        """Go away: drop what is queued and let the sink run on without waiting."""
        with self._changed:
            self._closed = True
            dropped = [taken for _, taken in self._batches]
            self._batches.clear()
            self._changed.notify_all()
        for taken in dropped:
            taken()


class ResultChannels:
    """The service that finds a collect sink's channel by its operator id."""

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
        """Forget a channel that is no longer read."""
        with self._lock:
            self._channels.pop(operator_id, None)


class CollectSink(DirectSink):
    """Hands each batch over, and waits while the client is behind."""

    def __init__(self, request: SinkRequest) -> None:
        self._channel = request.services.get(ResultChannels).channel(request.operator_id)
        self._subtask, self._parallelism = request.subtask, request.parallelism

    def write(self, batch: Batch) -> None:
        self._channel.offer(batch)

    def ready(self) -> bool:
        return not self._channel.full

    def end(self) -> None:
        self._channel.subtask_ended(self._subtask, self._parallelism)
