"""Channels: bounded, ordered queues of elements between one producing and one consuming subtask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from engine.elements import Element

Wakeup = Callable[[], None]


def no_wakeup() -> None:
    """Wake nobody: both ends are stepped by one driver."""


class Channel:
    """A queue with credits: the producer looks for credit before it takes more work, and is woken when credit comes back.

    ``put`` always succeeds, so one piece of work may overrun the capacity by what it emits; no further work starts until there is credit.
    Thread-safe for one producer and one consumer: append, popleft and length of a deque are atomic.
    """

    __slots__ = ("_capacity", "_queue", "_wake_consumer", "_wake_producer")

    def __init__(self, capacity: int, wake_consumer: Wakeup = no_wakeup, wake_producer: Wakeup = no_wakeup) -> None:
        self._capacity = capacity
        self._queue: deque[Element] = deque()
        self._wake_consumer = wake_consumer
        self._wake_producer = wake_producer

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def credit(self) -> int:
        """How many more elements the consumer is willing to hold (negative when overrun)."""
        return self._capacity - len(self._queue)

    @property
    def full(self) -> bool:
        """Whether the producer must wait."""
        return len(self._queue) >= self._capacity

    def put(self, element: Element) -> None:
        """Append an element and wake the consumer."""
        self._queue.append(element)
        self._wake_consumer()

    def peek(self) -> Element | None:
        """Return the next element without taking it, or ``None``."""
        return self._queue[0] if self._queue else None

    def take(self) -> Element:
        """Take the next element; wakes the producer when that gives it its first credit. IndexError when empty.

        The length is looked at after taking: a producer that fills the channel meanwhile and goes to sleep is woken by this or by a later take.
        """
        element = self._queue.popleft()
        if len(self._queue) == self._capacity - 1:
            self._wake_producer()
        return element
