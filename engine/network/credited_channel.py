"""The consumer's end of a channel whose producer is in another process: an ordinary channel that gives credit back as it is emptied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.channels import Channel, Wakeup
from engine.elements import Element


class CreditedChannel(Channel):
    """A channel filled from a connection.

    Credit goes back to the producer in portions of half the capacity, so that most elements cost no message the other way. Everything the
    producer may send has room here, so filling one channel never waits and never holds up the others of its connection.
    """

    __slots__ = ("_not_received", "_portion", "_taken", "_taken_told", "give_credit", "source")

    def __init__(self, capacity: int, wake_consumer: Wakeup, give_credit: Callable[[CreditedChannel], None]) -> None:
        super().__init__(capacity, wake_consumer)
        self.give_credit = give_credit
        self.source: Any = None  # the connection and the number it has there; set when the producer is known
        self._portion = max(1, capacity // 2)
        self._not_received = 0
        self._taken = 0
        self._taken_told = 0

    @property
    def taken(self) -> int:
        """How many elements the consumer has taken since the job was deployed."""
        return self._taken

    def take(self) -> Element:
        element = super().take()
        if self._not_received:  # it was put back here and took none of the producer's credit
            self._not_received -= 1
            return element
        self._taken += 1
        if self._taken - self._taken_told >= self._portion:
            self._taken_told = self._taken
            self.give_credit(self)
        return element

    def put_back(self, elements: Sequence[Element]) -> None:
        super().put_back(elements)
        self._not_received += len(elements)
