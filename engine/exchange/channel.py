"""Channels: bounded, ordered queues of elements between one producing and one consuming subtask, and the
interface of each side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.engine.api.stream_elements import Barrier, Batch, Element, EndOfInput

Wakeup = Callable[[], None]
# with wide rows a few batches fill a channel long before its number of elements does
CHANNEL_BYTES = 16 << 20


def no_wakeup() -> None:
    """Wake nobody: both ends are stepped by one driver."""


class ProducerChannel(Protocol):
    """The side of a record writer: the channel itself when the consumer runs in this process, else the near
    end of a connection.
    """

    @property
    def credit(self) -> int:
        """How many more elements may be put before the producer must wait (negative when overrun)."""

    @property
    def full(self) -> bool:
        """Whether the producer must wait; it is woken when it need not any more."""

    def put(self, element: Element) -> None:
        """Append an element. Always succeeds."""

    def put_all(self, elements: Sequence[Element]) -> None:
        """Append elements and wake the other side once for all of them."""

    def overtake(self, barrier: Barrier) -> list[Element]:
        """Put a barrier ahead of all that is buffered on the producer's side, or move it there; return the
        elements it overtook, in order.

        What has left the producer's side belongs to the consumer. So a channel whose queue the consumer holds
        returns nothing.
        """

    def has_buffered(self, barrier: Barrier) -> bool:
        """Whether a barrier is still buffered on the producer's side. The producer is woken when it has
        left.
        """


class ConsumerChannel(Protocol):
    """The side of an input gate; only the consuming thread calls it."""

    announced: Barrier | None
    """The newest barrier put, known before it is reached: it is queued, or was taken."""

    @property
    def capacity(self) -> int:
        """How many elements it is meant to hold."""

    @property
    def size_bytes(self) -> int:
        """About how many bytes of rows are queued."""

    def __len__(self) -> int:
        """How many elements are queued."""

    def peek(self) -> Element | None:
        """Return the next element without taking it, or ``None``."""

    def take(self) -> Element:
        """Take the next element; IndexError when there is none."""

    def queued_before(self, checkpoint_id: int) -> list[Element] | None:
        """Return the elements queued before a checkpoint's barrier, or before the end of input; ``None`` when
        neither has arrived.
        """

    def put_back(self, elements: Sequence[Element]) -> None:
        """Put elements before all that is queued, in their order."""


class Channel:
    """A queue with credits: the producer checks for credit before it starts more work, and is woken when
    credit returns.

    It is full when it holds ``capacity`` elements or ``most_bytes`` of rows. ``put`` always succeeds, so one
    piece of work may overrun both; no further work starts without credit.

    Thread-safe without a lock for one producer and one consumer. The producer only appends and the consumer
    only touches the front; both are atomic in a deque. Of the two byte counts each side writes its own.

    A barrier never changes its place in the queue. It overtakes when the consumer acts on it before it is
    reached, so it is announced once it is queued, never sooner.
    """

    __slots__ = (
        "_capacity",
        "_most_bytes",
        "_put_bytes",
        "_queue",
        "_taken_bytes",
        "_wake_consumer",
        "_wake_producer",
        "announced",
    )

    def __init__(
        self,
        capacity: int,
        wake_consumer: Wakeup = no_wakeup,
        wake_producer: Wakeup = no_wakeup,
        most_bytes: int = CHANNEL_BYTES,
    ) -> None:
        self._capacity = capacity
        self._most_bytes = most_bytes
        # one counter a side: each is written by one thread only, so neither needs a lock
        self._put_bytes = self._taken_bytes = 0
        self._queue: deque[Element] = deque()
        self._wake_consumer = wake_consumer
        self._wake_producer = wake_producer
        self.announced: Barrier | None = None

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def credit(self) -> int:
        """How many more elements the consumer is willing to hold (negative when overrun, none while it has
        bytes enough).
        """
        left = self._capacity - len(self._queue)
        return left if self.size_bytes < self._most_bytes else min(left, 0)

    @property
    def full(self) -> bool:
        """Whether the producer must wait."""
        return len(self._queue) >= self._capacity or self.size_bytes >= self._most_bytes

    @property
    def size_bytes(self) -> int:
        """How many bytes of rows it holds."""
        return self._put_bytes - self._taken_bytes

    @property
    def capacity(self) -> int:
        """How many elements it is meant to hold."""
        return self._capacity

    def put(self, element: Element) -> None:
        """Append an element and wake the consumer."""
        self._append(element)
        self._wake_consumer()

    def put_all(self, elements: Sequence[Element]) -> None:
        """Append elements and wake the consumer once."""
        for element in elements:
            self._append(element)
        self._wake_consumer()

    def _append(self, element: Element) -> None:
        if isinstance(element, Batch):
            self._put_bytes += element.size_bytes
        # bytes are added before the element: a consumer that takes it at once must not make the size negative
        self._queue.append(element)
        # announced only now, behind the append: an announced barrier is always found in the queue
        if isinstance(element, Barrier):
            self.announced = element

    def overtake(self, barrier: Barrier) -> list[Element]:
        """Append a barrier. The whole queue is the consumer's, which finds it announced."""
        self.put(barrier)
        return []

    def has_buffered(self, barrier: Barrier) -> bool:
        """Nothing is buffered on the producer's side."""
        return False

    def peek(self) -> Element | None:
        """Return the next element without taking it, or ``None``."""
        return self._queue[0] if self._queue else None

    def take(self) -> Element:
        """Take the next element; wake the producer when that returns its first credit. IndexError when empty.

        The length is read after taking: a producer that fills the channel in between and sleeps is woken by
        this or by a later take.
        """
        element = self._queue.popleft()
        size = element.size_bytes if isinstance(element, Batch) else 0
        self._taken_bytes += size
        queued = self.size_bytes
        # the producer is woken at the edge only, not by each element
        freed = queued < self._most_bytes <= queued + size
        if len(self._queue) == self._capacity - 1 or (freed and len(self._queue) < self._capacity):
            self._wake_producer()
        return element

    def queued_before(self, checkpoint_id: int) -> list[Element] | None:
        """Return the elements queued before a checkpoint's barrier, or before the end of input; ``None`` when
        neither has arrived.
        """
        before: list[Element] = []
        for element in self._queued():
            if isinstance(element, EndOfInput) or (
                isinstance(element, Barrier) and element.checkpoint_id == checkpoint_id
            ):
                return before
            before.append(element)
        return None

    def put_back(self, elements: Sequence[Element]) -> None:
        """Put elements before all that is queued, in their order; the producer is blocked until they are
        taken.
        """
        self._taken_bytes -= sum(element.size_bytes for element in elements if isinstance(element, Batch))
        self._queue.extendleft(reversed(elements))

    def _queued(self) -> tuple[Element, ...]:
        """Return the queue as it is at one moment."""
        while True:
            try:
                return tuple(self._queue)
            except RuntimeError:  # the producer has appended meanwhile: look again
                continue
