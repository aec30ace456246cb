"""The connections of one task manager, without their sockets: which peer is connected, which is lost, and
which channel awaits its peer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Generic, Protocol, TypeVar

from penstock.catalog.errors import PenstockError
from penstock.engine.network.credited_channel import CreditedChannel
from penstock.engine.network.errors import STALE, TOKEN, UNEXPECTED, UNREACHABLE, network_error
from penstock.engine.network.link import Link, LinkCounters, LinkLimits
from penstock.engine.network.remote_channel import RemoteChannel

LinkLost = Callable[[str, PenstockError], None]


class LinkConnection(Protocol):
    """The transport of a link."""

    @property
    def link(self) -> Link:
        """The protocol it carries."""


C = TypeVar("C", bound=LinkConnection)


class Links(Generic[C]):
    """Tracks the connections with the peers of one deployment. ``dirty`` are those whose link may have bytes
    to send; the transport removes them. ``link_lost(peer, cause)`` is called once per peer.
    """

    def __init__(
        self, name: str, limits: LinkLimits, link_lost: LinkLost, refused: Counter[str] | None = None
    ) -> None:
        self.refused: Counter[str] = Counter() if refused is None else refused
        self.connections: list[C] = []
        self.dirty: set[C] = set()
        self.leaving = False
        self._name = name
        self._limits = limits
        self._link_lost = link_lost
        # by name: dialled, or authenticated
        self._peers: dict[str, C] = {}
        # peers that were connected and are not any more, or never came: a deployment never reconnects
        self._lost: set[str] = set()
        self._reported: set[str] = set()
        # peers that dial us, with the deadline in ms
        self._awaited: dict[str, float] = {}
        # channels by peer, until it is connected
        self._senders: dict[str, list[RemoteChannel]] = {}
        # consumers by key, until the producer opens the channel
        self._receivers: dict[str, CreditedChannel] = {}
        self._gone = LinkCounters()

    def admit(self, peer: str) -> bool:
        """Whether there is no other connection with this peer, and has been none."""
        return peer not in self._peers and peer not in self._lost

    def claim(self, key: str) -> CreditedChannel | None:
        """Return the consumer's channel of a key, once; ``None`` when its task is not deployed yet."""
        return self._receivers.pop(key, None)

    def dials(self, peer: str, now_ms: float) -> bool:
        """Whether this side connects to the peer. The side whose name sorts first does; the other awaits the
        connection.
        """
        if peer in self._peers or peer in self._lost or self.leaving:
            return False
        # the peer dials; it is reported if it has not connected by the deadline
        if self._name > peer:
            self._awaited.setdefault(peer, now_ms + self._limits.hello_ms)
            return False
        return True

    def began(self, one: C, peer: str | None) -> None:
        """Add a connection: dialled to ``peer``, or accepted (``None``)."""
        self.connections.append(one)
        self.dirty.add(one)
        if peer is not None:
            self._peers[peer] = one
            self._add_unauthenticated(one, peer)

    def received(self, one: C, count: int, now_ms: float) -> None:
        """Report bytes written to a link's buffer. A peer that has just authenticated gets its channels."""
        was_open = one.link.is_open
        one.link.received(count, now_ms)
        # just authenticated: now its name is known
        if one.link.is_open and not was_open:
            assert one.link.peer is not None
            self._peers[one.link.peer] = one
            self._awaited.pop(one.link.peer, None)
            self._add_unauthenticated(one, one.link.peer)

    def add_sender(self, channel: RemoteChannel) -> None:
        """Send the elements of a channel once its peer is connected."""
        one = self._peers.get(channel.peer)
        if one is None:
            self._senders.setdefault(channel.peer, []).append(channel)
        else:
            one.link.add(channel)
            self.dirty.add(one)

    def add_receiver(self, key: str, channel: CreditedChannel) -> None:
        """Attach the consumer of a key to its producer."""
        # the producer may have opened the channel before the task was deployed here
        for one in self._peers.values():
            if one.link.attach(key, channel):
                self.dirty.add(one)
                return
        self._receivers[key] = channel

    def schedule(self, channel: RemoteChannel) -> None:
        """Let a channel that has elements to send take part."""
        one = self._peers.get(channel.peer)
        if one is not None:
            one.link.schedule(channel)
            self.dirty.add(one)

    def send_credit(self, channel: CreditedChannel) -> None:
        """Send a channel's producer the credit for what was read."""
        link, incoming = channel.source
        one = self._peers.get(link.peer)
        # the connection may have been replaced or lost since
        if one is not None and one.link is link:
            link.grant_credit(incoming)
            self.dirty.add(one)

    def check_awaited(self, now_ms: float) -> None:
        """Report the peers that should have connected by now."""
        for peer, deadline_ms in list(self._awaited.items()):
            if now_ms >= deadline_ms:
                self.report(
                    peer,
                    network_error(
                        UNREACHABLE, f"{peer} did not connect within {self._limits.hello_ms / 1000:g} s"
                    ),
                )

    def refuses(self, one: C, error: PenstockError) -> bool:
        """Whether a stranger is sent the reason before its connection ends; the link then has it to send.
        Strangers are counted.
        """
        if one.link.peer is not None:
            return False
        self.refused[error.code] += 1
        # no valid hello came: there is nobody who would understand a refusal
        if error.code not in (TOKEN, STALE, UNEXPECTED):
            return False
        one.link.refuse(error)
        return True

    def dropped(self, one: C) -> None:
        """Remove a connection that has ended."""
        self.connections.remove(one)
        self.dirty.discard(one)
        peer = one.link.peer
        if peer is not None and self._peers.get(peer) is one:
            del self._peers[peer]
            self._lost.add(peer)
        # counters must not fall when a connection ends
        self._gone = _sum([self._gone, one.link.counters])

    def report(self, peer: str, error: PenstockError) -> None:
        """Report once that a peer is lost, unless this side is leaving."""
        self._awaited.pop(peer, None)
        self._lost.add(peer)
        if not self.leaving and peer not in self._reported:
            self._reported.add(peer)
            self._link_lost(peer, error)

    def report_all(self, error: PenstockError) -> None:
        """Report that every peer is lost."""
        for peer in sorted({*self._peers, *self._awaited, *self._senders}):
            self.report(peer, error)

    def leave(self) -> list[C]:
        """Send a goodbye on open connections; return the others, which are to be dropped. No loss is reported
        from here on.
        """
        self.leaving = True
        for one in self.connections:
            if one.link.is_open:
                one.link.leave()
                self.dirty.add(one)
        return [one for one in self.connections if not one.link.is_open]

    def counters(self) -> LinkCounters:
        """Return the counters of all connections together."""
        return _sum([self._gone, *(one.link.counters for one in list(self.connections))])

    def _add_unauthenticated(self, one: C, peer: str) -> None:
        for channel in self._senders.pop(peer, []):
            one.link.add(channel)


def _sum(counted: list[LinkCounters]) -> LinkCounters:
    return LinkCounters(*(sum(getattr(one, field.name) for one in counted) for field in fields(LinkCounters)))
