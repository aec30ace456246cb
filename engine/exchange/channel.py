"""Channels: bounded, ordered queues of elements between one producing and one consuming subtask, and the
faces each side sees of one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.engine.api.stream_elements import Barrier, Batch, Element, EndOfInput

Wakeup = Callable[[], None]
CHANNEL_BYTES = 16 << 20


def no_wakeup() -> None:
    """Wake nobody: both ends are stepped by one driver."""


class ProducerChannel(Protocol):
    """What a record writer sees: the channel itself when the consumer lives in this process, the near end
    of a connection when it does not.
    """

    @property
    def credit(self) -> int:
        """How many more elements may be put before the producer must wait (negative when overrun)."""

    @property
    def full(self) -> bool:
        """Whether the producer must wait; it is woken when it need not any more."""

    def put(self, element: Element) -> None:
        """Take an element behind all others; always succeeds."""

    def overtake(self, barrier: Barrier) -> list[Element]:
        """Put a barrier ahead of all that waits on the producer's side, one that waits there itself is moved;
        return what it has overtaken, in order.

        What has left the producer's side is the consumer's to look after, so a channel whose queue the
        consumer holds returns nothing.
        """

    def has_buffered(self, barrier: Barrier) -> bool:
        """Whether a barrier that was put still waits on the producer's side; the producer is woken when it
        has left.
        """


class ConsumerChannel(Protocol):
    """What an input gate sees; only the consuming thread calls it."""

    announced: Barrier | None
    """The newest barrier put, seen before it is reached: it is in the queue, or has been taken."""

    @property
    def capacity(self) -> int:
        """How many elements it is meant to hold."""

    @property
    def size_bytes(self) -> int:
        """How many bytes of rows wait, about."""

    def __len__(self) -> int:
        """How many elements wait."""

    def peek(self) -> Element | None:
        """Return the next element without taking it, or ``None``."""

    def take(self) -> Element:
        """Take the next element; IndexError when there is none."""

    def queued_before(self, checkpoint_id: int) -> list[Element] | None:
        """Return what waits before a checkpoint's barrier, or before the end of input; ``None`` when
        neither has come.
        """

    def put_back(self, elements: Sequence[Element]) -> None:
        """Put elements before all that waits, in their order."""


class Channel:
    """A queue with credits: the producer looks for credit before it takes more work, and is woken when credit
    comes back.

    It is full when it holds ``capacity`` elements or ``most_bytes`` of rows. ``put`` always succeeds, so one
    piece of work may overrun both by what it emits; no further work starts until there is credit. Thread-safe
    for one producer and one consumer: the producer only appends, the consumer only touches the front, both
    are atomic in a deque, and of the two counts of bytes each side writes its own. A barrier stays in line
    whatever happens, so what it follows is always told by its place; to overtake is for the consumer to act
    on it before it is reached. Hence it is announced when it is in the queue, never sooner.
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
        if isinstance(element, Batch):
            self._put_bytes += element.size_bytes
        self._queue.append(element)
        if isinstance(element, Barrier):
            self.announced = element
        self._wake_consumer()

    def overtake(self, barrier: Barrier) -> list[Element]:
        """Append a barrier: the whole queue is the consumer's, who finds it announced."""
        self.put(barrier)
        return []

    def has_buffered(self, barrier: Barrier) -> bool:
        """Nothing waits on the producer's side."""
        return False

    def peek(self) -> Element | None:
        """Return the next element without taking it, or ``None``."""
        return self._queue[0] if self._queue else None

    def take(self) -> Element:
        """Take the next element; wakes the producer when that gives it its first credit. IndexError when
        empty.

        The length is looked at after taking: a producer that fills the channel meanwhile and goes to sleep is
        woken by this or by a later take.
        """
        element = self._queue.popleft()
        taken = element.size_bytes if isinstance(element, Batch) else 0
        self._taken_bytes += taken
        held = self.size_bytes
        freed = held < self._most_bytes <= held + taken
        if len(self._queue) == self._capacity - 1 or (freed and len(self._queue) < self._capacity):
            self._wake_producer()
        return element

    def queued_before(self, checkpoint_id: int) -> list[Element] | None:
        """Return what waits before a checkpoint's barrier, or before the end of input; ``None`` when
        neither has come.
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
        """Put elements before all that waits, in their order; the producer waits until they are taken."""
        self._taken_bytes -= sum(element.size_bytes for element in elements if isinstance(element, Batch))
        self._queue.extendleft(reversed(elements))

    def _queued(self) -> tuple[Element, ...]:
        """Return the queue as it is at one moment."""
        while True:
            try:
                return tuple(self._queue)
            except RuntimeError:  # the producer has appended meanwhile, which is seen when looking again
                continue
