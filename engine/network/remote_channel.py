"""The producer's end of a channel whose consumer is in another process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from engine.channels import Wakeup
from engine.elements import Barrier, Batch, Element, EndOfInput
from engine.network.element_codec import ElementEncoder, pieces_that_fit


class Overtaking:
    """A barrier that is to be put before everything the consumer has not taken yet."""

    __slots__ = ("barrier",)

    def __init__(self, barrier: Barrier) -> None:
        self.barrier = barrier


class RemoteChannel:
    """Has the producer's face of a channel: ``put``, ``full``, ``credit``, ``overtake``.

    Elements wait here until the consumer has given credit and the connection takes them with ``next_to_send``. ``put`` always succeeds.
    Thread-safe for one producer and one thread that sends, without locks: each number has one writer, each element one taker.
    """

    def __init__(self, key: str, peer: str, wake_producer: Wakeup, signal: Callable[[RemoteChannel], None], max_payload: int) -> None:
        self.key = key
        self.peer = peer
        self.encoder = ElementEncoder()
        self.number = -1  # on its connection; set when that is there
        self.scheduled = False
        self.ended = False
        self._wake_producer = wake_producer
        self._signal = signal
        self._max_payload = max_payload
        self._unsent: deque[Element | Overtaking] = deque()
        self._put = 0
        self._granted = 0
        self._sent = 0

    def __len__(self) -> int:
        return len(self._unsent)

    @property
    def credit(self) -> int:
        """How many more elements the consumer is willing to hold (negative when overrun, 0 until it has said anything)."""
        return self._granted - self._put

    @property
    def full(self) -> bool:
        """Whether the producer must wait."""
        return self._granted <= self._put

    def put(self, element: Element) -> None:
        """Queue an element to be sent; a batch too large for one frame goes as several. NET-5002 when a single row is too large."""
        if isinstance(element, Batch):
            for piece in pieces_that_fit(element, self._max_payload):
                self._put += 1
                self._unsent.append(piece)
        else:
            self._put += 1
            self._unsent.append(element)
        self._signal(self)

    def overtake(self, barrier: Barrier) -> list[Element]:
        """Put a barrier before everything that has not been sent and, there, before all the consumer has not taken.

        Returns what had not been sent, in order; it is still sent, behind the barrier.
        """
        passed: deque[Element | Overtaking] = deque()
        while True:
            try:
                passed.appendleft(self._unsent.pop())
            except IndexError:
                break
        self._put += 1
        # Not before a barrier that overtakes too: barriers keep their order among themselves.
        ahead = max((place for place, element in enumerate(passed) if isinstance(element, Overtaking)), default=-1) + 1
        passed.insert(ahead, Overtaking(barrier))
        self._unsent.extend(passed)
        self._signal(self)
        return [element for element in list(passed)[ahead + 1 :] if not isinstance(element, Overtaking)]

    @property
    def sendable(self) -> bool:
        """Whether ``next_to_send`` has something; for the sending thread."""
        unsent = self._unsent
        try:
            return bool(unsent) and (self._sent < self._granted or isinstance(unsent[0], Overtaking))
        except IndexError:  # the producer has just taken them to put a barrier before them; it signals when they are back
            return False

    def next_to_send(self) -> Element | Overtaking | None:
        """Take the next element that credit allows; only a barrier that overtakes needs none. For the sending thread."""
        if not self.sendable:
            return None
        try:
            element = self._unsent.popleft()
        except IndexError:
            return None
        self._sent += 1
        self.ended = self.ended or isinstance(element, EndOfInput)
        return element

    def grant(self, credit: int) -> None:
        """Take credit from the consumer and wake the producer when it had none. For the sending thread."""
        self._granted += credit
        if self._granted - credit <= self._put:  # looked at after granting: a producer that puts meanwhile sees the new credit
            self._wake_producer()
