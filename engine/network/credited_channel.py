"""The consumer's end of a channel whose producer is in another process: a channel that returns credit as it
is emptied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine.api.stream_elements import Element
from penstock.engine.exchange.channel import CHANNEL_BYTES, Channel, Wakeup

END_BYTES = CHANNEL_BYTES // 2
"""The capacity of each end of a channel between processes; both together equal a channel within one process.
"""


class CreditedChannel(Channel):
    """A channel filled from a connection.

    Credit counts elements and the encoded bytes of their rows. It returns to the producer in portions of half
    of either limit, so that most elements need no message back. The channel has capacity for everything the
    producer may send. So filling one channel never blocks, and never delays the others of its connection. As
    in a channel within a process, one batch may exceed the bytes.
    """

    __slots__ = (
        "_bytes",
        "_bytes_granted",
        "_not_received",
        "_portion",
        "_taken",
        "_taken_granted",
        "grant_credit",
        "source",
        "taken_bytes",
    )

    def __init__(
        self,
        capacity: int,
        wake_consumer: Wakeup,
        grant_credit: Callable[[CreditedChannel], None],
        most_bytes: int = END_BYTES,
    ) -> None:
        super().__init__(capacity, wake_consumer, most_bytes=most_bytes)
        self.grant_credit = grant_credit
        self.source: Any = None  # the connection and the number it has there; set when the producer is known
        # half: the producer can send on while the other half is being read
        self._portion = max(1, capacity // 2)
        self._not_received = 0
        self._taken = 0
        # as of the last grant: the difference to the current number is what to grant next
        self._taken_granted = 0
        self._bytes: deque[int] = deque()  # as sent, of what was received and is not taken
        self._bytes_granted = 0
        self.taken_bytes = 0

    @property
    def most_bytes(self) -> int:
        """Its capacity in bytes of rows."""
        return self._most_bytes

    def receive(self, element: Element, sent_bytes: int) -> None:
        """Append an element whose rows were encoded in ``sent_bytes`` (0 for an element without rows)."""
        self._bytes.append(sent_bytes)
        self.put(element)

    @property
    def consumed_count(self) -> int:
        """How many elements the consumer has read since the job was deployed."""
        return self._taken

    def take(self) -> Element:
        element = super().take()
        if self._not_received:  # it was put back here and took none of the producer's credit
            self._not_received -= 1
            return element
        self._taken += 1
        self.taken_bytes += self._bytes.popleft()
        if (
            # half of the elements, or half of the bytes
            self._taken - self._taken_granted >= self._portion
            or self.taken_bytes - self._bytes_granted >= self._most_bytes // 2
        ):
            self._taken_granted, self._bytes_granted = self._taken, self.taken_bytes
            self.grant_credit(self)
        return element

    def put_back(self, elements: Sequence[Element]) -> None:
        super().put_back(elements)
        # elements of a restored checkpoint: the producer has not sent them, so they return no credit
        self._not_received += len(elements)
