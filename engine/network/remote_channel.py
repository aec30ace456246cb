"""The producer's end of a channel whose consumer is in another process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.engine.api.stream_elements import Barrier, Batch, Element, EndOfInput
from penstock.engine.exchange.channel import Wakeup
from penstock.engine.network.credited_channel import END_BYTES
from penstock.engine.network.element_codec import ElementEncoder, pieces_that_fit


class Overtaking:
    """A barrier that is sent before all buffered elements, and without credit, once the consumer exists."""

    __slots__ = ("barrier",)

    def __init__(self, barrier: Barrier) -> None:
        self.barrier = barrier


class RemoteChannel:
    """The producer's interface of a channel: ``put``, ``full``, ``credit``, ``overtake``, ``has_buffered``.

    It buffers elements until the consumer has granted credit, in elements and in bytes; ``next_to_send``
    removes them. It is full when more elements were put than were granted, or when it buffers ``most_bytes``
    of rows. ``put`` always succeeds. Thread-safe for one producer and one sending thread, without locks: each
    number has one writer, each element one taker.
    """

    def __init__(
        self,
        key: str,
        peer: str,
        wake_producer: Wakeup,
        signal: Callable[[RemoteChannel], None],
        max_payload: int,
        most_bytes: int = END_BYTES,
    ) -> None:
        self.key = key
        self.peer = peer
        self.encoder = ElementEncoder()
        self.number = -1  # on its connection; set when that is there
        self.scheduled = False
        self.ended = False
        self._wake_producer = wake_producer
        self._signal = signal
        self._max_payload = max_payload
        self._most_bytes = most_bytes
        self._unsent: deque[Element | Overtaking] = deque()
        self._last_barrier = -1
        self._put = 0
        # written by the sending thread: granted and sent; by the producer: put
        self._granted = self._granted_bytes = 0
        self._sent = self._sent_bytes = 0
        self._put_bytes = self._gone_bytes = 0

    def __len__(self) -> int:
        return len(self._unsent)

    @property
    def credit(self) -> int:
        """How many more elements may be put. It is negative when overrun, and 0 before the first grant or
        while enough bytes are buffered.
        """
        # counts only grow, so a stale read errs on the side of waiting
        left = self._granted - self._put
        return left if self.size_bytes < self._most_bytes else min(left, 0)

    @property
    def full(self) -> bool:
        """Whether the producer must wait."""
        return self._granted <= self._put or self.size_bytes >= self._most_bytes

    @property
    def size_bytes(self) -> int:
        """How many bytes of rows are buffered here, approximately."""
        return self._put_bytes - self._gone_bytes

    def put(self, element: Element) -> None:
        """Queue an element; a batch too large for one frame is split. NET-5002 when a single row is too
        large.
        """
        self._append(element)
        self._signal(self)

    def put_all(self, elements: Sequence[Element]) -> None:
        """Queue elements and wake the sending thread once."""
        for element in elements:
            self._append(element)
        self._signal(self)

    def _append(self, element: Element) -> None:
        # one frame has a limit of size
        if isinstance(element, Batch):
            # each piece takes credit of its own
            for piece in pieces_that_fit(element, self._max_payload):
                self._put += 1
                self._put_bytes += piece.size_bytes
                self._unsent.append(piece)
        else:
            if isinstance(element, Barrier):
                self._last_barrier = element.checkpoint_id
            self._put += 1
            self._unsent.append(element)

    def overtake(self, barrier: Barrier) -> list[Element]:
        """Put a barrier before everything that has not been sent, or move it there; it needs no credit.

        Returns the elements it has overtaken, in order; they are still sent, after the barrier. A barrier
        that was sent, or overtakes already, overtakes nothing more.
        """
        # take everything back from the end; the sending thread may take from the front meanwhile
        passed: deque[Element | Overtaking] = deque()
        while True:
            try:
                passed.appendleft(self._unsent.pop())
            except IndexError:
                break
        # those went before: barriers keep their order
        first = sum(isinstance(element, Overtaking) for element in passed)
        index = next(
            (index for index, element in enumerate(passed) if _barrier_id(element) == barrier.checkpoint_id),
            None,
        )
        overtaken: list[Element] = []
        # it is buffered behind elements: move it before them
        if index is not None and index >= first:
            del passed[index]
        # it was not put yet: it overtakes everything buffered
        elif index is None and self._last_barrier < barrier.checkpoint_id:
            index = len(passed)
            self._put += 1
            self._last_barrier = barrier.checkpoint_id
        if index is not None and index >= first:
            overtaken = [
                element for element in list(passed)[first:index] if not isinstance(element, Overtaking)
            ]
            passed.insert(first, Overtaking(barrier))
        self._unsent.extend(passed)
        # the elements are back, and the barrier needs no credit
        self._signal(self)
        return overtaken

    def has_buffered(self, barrier: Barrier) -> bool:
        """Whether a barrier that was put has not been sent yet; the producer is woken when it is."""
        while True:
            try:
                waiting = tuple(self._unsent)
            except RuntimeError:  # one was sent meanwhile, which is seen when looking again
                continue
            return any(_barrier_id(element) == barrier.checkpoint_id for element in waiting)

    @property
    def sendable(self) -> bool:
        """Whether ``next_to_send`` would return an element; for the sending thread.

        Before the first grant the consumer's task does not exist, so not even a barrier that needs no credit
        can be sent.
        """
        unsent = self._unsent
        try:
            has_credit = self._sent < self._granted and self._sent_bytes < self._granted_bytes
            return bool(unsent) and (has_credit or (self._granted > 0 and isinstance(unsent[0], Overtaking)))
        except (
            IndexError
        ):  # the producer has just taken them to put a barrier before them; it signals when they are back
            return False

    def next_to_send(self) -> Element | Overtaking | None:
        """Remove and return the next element that credit allows; only an overtaking barrier needs none. For
        the sending thread.
        """
        if not self.sendable:
            return None
        try:
            element = self._unsent.popleft()
        except IndexError:
            return None
        self._sent += 1
        if isinstance(element, Batch):
            waited = self.size_bytes
            self._gone_bytes += element.size_bytes
            # the producer waits only beyond the limit: wake it once, when the limit is passed
            if waited >= self._most_bytes > self.size_bytes:
                self._wake_producer()
        # the producer may wait for its barrier to be sent (has_buffered)
        if isinstance(element, Barrier | Overtaking):
            self._wake_producer()
        self.ended = self.ended or isinstance(element, EndOfInput)
        return element

    def sent(self, sent_bytes: int) -> None:
        """Count the bytes in which rows were sent. For the sending thread."""
        self._sent_bytes += sent_bytes

    def grant(self, credit: int, credit_bytes: int) -> None:
        """Add credit from the consumer, and wake the producer when it had none. For the sending thread."""
        self._granted += credit
        self._granted_bytes += credit_bytes
        # looked at after granting: a producer that puts meanwhile sees the new credit
        if self._granted - credit <= self._put:
            self._wake_producer()


def _barrier_id(element: Element | Overtaking) -> int | None:
    plain = element.barrier if isinstance(element, Overtaking) else element
    return plain.checkpoint_id if isinstance(plain, Barrier) else None
