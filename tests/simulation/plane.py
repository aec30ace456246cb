"""The data plane of a simulated task manager: the real links and their table, over wires instead of
sockets.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.engine.exchange.channel import Wakeup
from penstock.engine.network.credited_channel import CreditedChannel
from penstock.engine.network.errors import UNREACHABLE, network_error
from penstock.engine.network.handshake import Identity
from penstock.engine.network.link import Link, LinkLimits
from penstock.engine.network.links import LinkLost, Links
from penstock.engine.network.remote_channel import RemoteChannel
from tests.simulation.world import Node

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster
    from tests.simulation.wires import Wire

TIMER_MS = 250.0
PIECES_AHEAD = 4


class LinkEnd:
    """One side of a connection between task managers."""

    def __init__(self, number: int, link: Link) -> None:
        self.number = number
        self.link = link
        self.out: Wire | None = None
        self.into: Wire | None = None


class SimulatedPlane:
    """Has the face of a data plane; the bytes of its links go in pieces of any size."""

    def __init__(self, cluster: Cluster, node: Node, identity: Identity, link_lost: LinkLost) -> None:
        self.node = node
        self.closing = False
        self._cluster = cluster
        self._identity = identity
        self._limits = LinkLimits(hello_ms=500.0, ping_ms=300.0, silence_ms=1_500.0, close_ms=100.0)
        self._links: Links[LinkEnd] = Links(identity.name, self._limits, link_lost)
        self._numbers = itertools.count()
        self._calls: deque[Callable[[], None]] = deque()
        self._turns = node.runnable("plane", identity.name, self._turn)
        self.address = ("simulated", cluster.listen(self))
        node.after(TIMER_MS, self._tick)

    def connect(self, peer: str, address: tuple[str, int]) -> None:
        self._call(lambda: self._connect(peer, address[1]))

    def sender(self, key: str, peer: str, wake_producer: Wakeup) -> RemoteChannel:
        channel = RemoteChannel(key, peer, wake_producer, self._signal, self._limits.max_payload)
        self._call(lambda: self._links.add_sender(channel))
        return channel

    def receiver(self, key: str, capacity: int, wake_consumer: Wakeup) -> CreditedChannel:
        channel = CreditedChannel(
            capacity, wake_consumer, lambda full: self._call(lambda: self._links.send_credit(full))
        )
        self._call(lambda: self._links.add_receiver(key, channel))
        return channel

    def close(self) -> None:
        self._call(self._begin_closing)

    def ends(self) -> list[LinkEnd]:
        """Return the connections there are."""
        return list(self._links.connections)

    def _call(self, work: Callable[[], None]) -> None:
        self._calls.append(work)
        self.node.world.wake(self._turns)

    def _signal(self, channel: RemoteChannel) -> None:
        if not channel.scheduled:
            self._call(lambda: self._links.schedule(channel))

    def _turn(self) -> str:
        while self._calls:
            self._calls.popleft()()
        dirty = self._links.dirty
        if not dirty:
            return ""
        ends = sorted(dirty, key=lambda end: end.number)
        end = ends[int(self.node.world.random.random() * len(ends))]
        dirty.discard(end)
        self._guarded(end, lambda: self._write(end))
        if dirty:
            self.node.world.wake(self._turns)
        return str(end.number)

    def _write(self, end: LinkEnd) -> None:
        assert end.out is not None
        if end.out.waiting >= PIECES_AHEAD:  # the far side reads slowly: what the link holds waits
            return
        buffers = end.link.pull(self.node.clock.monotonic_ms())
        if buffers:
            count = self.node.world.random.randrange(1, len(buffers) + 1)
            end.out.send(b"".join(buffers.popleft() for _ in range(count)))
        if buffers:
            self._links.dirty.add(end)
        elif self.closing:
            end.out.end()

    def _emptied(self, end: LinkEnd) -> None:
        if self.node.alive and end in self._links.connections:
            self._links.dirty.add(end)
            self.node.world.wake(self._turns)

    def _connect(self, peer: str, port: int) -> None:
        if not self._links.dials(peer, self.node.clock.monotonic_ms()):
            return
        other = self._cluster.plane(port)
        if other is None:
            self._links.report(peer, network_error(UNREACHABLE, f"{peer} cannot be reached"))
            return
        near, far = self._new_end(peer), other._new_end(None)
        near.out = far.into = self._cluster.wire(f"{self._identity.name}>{peer}", self.node, other.node)
        far.out = near.into = self._cluster.wire(f"{peer}>{self._identity.name}", other.node, self.node)
        self._ties(near)
        other._ties(far)
        self._links.began(near, peer)
        other._links.began(far, None)
        self.node.world.wake(self._turns)

    def _new_end(self, expected: str | None) -> LinkEnd:
        link = Link(
            self._identity, self._links, self._limits, self.node.clock.monotonic_ms(), expected=expected
        )
        return LinkEnd(next(self._numbers), link)

    def _ties(self, end: LinkEnd) -> None:
        assert end.into is not None and end.out is not None
        end.into.take = lambda data: self._guarded(end, lambda: self._received(end, data))
        end.into.ended = lambda: self._guarded(end, lambda: self._ended(end))
        end.out.emptied = lambda: self._emptied(end)

    def _received(self, end: LinkEnd, data: bytes) -> None:
        view = memoryview(data)
        while view:
            free = end.link.writable()
            count = min(len(free), len(view))
            free[:count] = view[:count]
            self._links.received(end, count, self.node.clock.monotonic_ms())
            view = view[count:]
        self._links.dirty.add(end)
        self.node.world.wake(self._turns)

    def _ended(self, end: LinkEnd) -> None:
        end.link.stream_ended()
        self._drop(end)

    def _guarded(self, end: LinkEnd, work: Callable[[], None]) -> None:
        if end not in self._links.connections:
            return
        try:
            work()
        except PenstockError as error:
            peer = end.link.peer
            self._cluster.coverage[f"link lost: {error.code}"] += 1
            if self._links.refuses(end, error) and end.out is not None:
                end.out.send(b"".join(end.link.pull(self.node.clock.monotonic_ms())))
            self._drop(end)
            if peer is not None:
                self._links.report(peer, error)

    def _drop(self, end: LinkEnd) -> None:
        assert end.into is not None and end.out is not None
        end.out.end()
        end.into.close()
        self._links.dropped(end)

    def _tick(self) -> None:
        now_ms = self.node.clock.monotonic_ms()
        for end in self.ends():
            self._guarded(end, lambda end=end: end.link.check_time(now_ms))
            self._emptied(end)
        self._links.check_awaited(now_ms)
        if not self.closing or self._links.connections:
            self.node.after(TIMER_MS, self._tick)

    def _begin_closing(self) -> None:
        if not self.closing:
            self.closing = True
            for end in self._links.leave():
                self._drop(end)
            self.node.world.wake(self._turns)
            self.node.after(self._limits.close_ms, self._end)

    def _end(self) -> None:
        for end in self.ends():
            self._drop(end)
