"""One connection between two task managers as a state machine: bytes in, bytes out, with no socket and no
clock of its own.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from penstock.catalog.errors import PenstockError
from penstock.engine.api.stream_elements import Barrier, Batch, Element, EndOfInput
from penstock.engine.network import frame_kinds as kinds
from penstock.engine.network.credited_channel import CreditedChannel
from penstock.engine.network.element_codec import ElementDecoder
from penstock.engine.network.errors import CREDIT, LEFT, PAYLOAD, SILENT, UNEXPECTED, network_error
from penstock.engine.network.frames import MAX_PAYLOAD_BYTES, FrameReader, FrameWriter, NetworkFrame
from penstock.engine.network.handshake import HELLO_BYTES_MAX, Identity, check_identity, read_identity
from penstock.engine.network.remote_channel import Overtaking, RemoteChannel


@dataclass
class LinkCounters:
    """Counters of one connection, or of all together. The thread that drives the connections writes them; any
    thread reads them.
    """

    bytes_in: int = 0
    bytes_out: int = 0
    elements_in: int = 0
    elements_out: int = 0
    rows_in: int = 0
    rows_out: int = 0
    credits_in: int = 0
    credits_out: int = 0


@dataclass(frozen=True)
class LinkLimits:
    """``hello_ms``: until both sides have authenticated, connecting included. ``ping_ms``: how often a silent
    side sends a heartbeat.

    ``silence_ms``: after how long without a byte the peer counts as lost. ``close_ms``: how long closing
    waits for the peer to read everything. ``greeting``: how many connections may lack a hello; beyond that
    the oldest is closed. ``max_payload``: bytes of one frame.
    """

    hello_ms: float = 5_000.0
    ping_ms: float = 1_000.0
    silence_ms: float = 10_000.0
    close_ms: float = 1_000.0
    greeting: int = 256
    max_payload: int = MAX_PAYLOAD_BYTES


# limits what a peer can make this side store
KEY_BYTES_MAX = 512
CHANNELS_MAX = 65_536
# barriers that overtake need no credit; more than these a peer in its right mind never has under way
OVERRUN_MAX = 64
_CREDIT = struct.Struct("<IQ")  # elements, bytes of rows
# bytes encoded ahead of the socket: more would only delay heartbeats and credit behind them
_PULL_BYTES = 256 * 2**10


class LinkHost(Protocol):
    """The interface of the task manager that a connection belongs to."""

    def admit(self, peer: str) -> bool:
        """Whether there is no other connection with this peer."""

    def claim(self, key: str) -> CreditedChannel | None:
        """Return the consumer's channel of a key. ``None`` when its task is not deployed yet: then
        ``Link.attach`` is called later.
        """


@dataclass(eq=False)
class Incoming:
    """A channel the peer opened: its consumer (``None`` until the task is deployed), and how much the peer
    may send.
    """

    key: str
    number: int
    channel: CreditedChannel | None = None
    decoder: ElementDecoder = field(default_factory=ElementDecoder)
    granted: int = 0
    granted_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    ended: bool = False


class Link:
    """The protocol of a connection. Every method that processes input raises the error that ends the
    connection.

    The side that dials names the peer it expects. A producer has no credit until its channel has a consumer,
    so no elements are buffered here.
    """

    def __init__(
        self,
        mine: Identity,
        host: LinkHost,
        limits: LinkLimits,
        now_ms: float,
        *,
        expected: str | None = None,
        checksum: bool = True,
    ) -> None:
        self.peer: str | None = expected
        self.is_open = False
        self.counters = LinkCounters()
        self._mine = mine
        self._expected = expected
        self._host = host
        self._limits = limits
        # until the peer is authenticated, nothing longer than a hello
        self._reader = FrameReader(HELLO_BYTES_MAX, checksum=checksum)
        self._writer = FrameWriter()
        self._out: deque[memoryview] = deque()
        self._began_ms = self._heard_ms = self._spoke_ms = now_ms
        # by the peer's number of the channel
        self._incoming: dict[int, Incoming] = {}
        # by key: opened by the peer, whose consumer is not deployed here yet
        self._waiting: dict[str, Incoming] = {}
        self._outgoing: list[RemoteChannel] = []
        self._ready: deque[RemoteChannel] = deque()
        # leave() was called; goodbye is sent; the peer's goodbye has come
        self._leaving = False
        self._said_goodbye = False
        self._left = False
        # the side that dials speaks first
        if expected is not None:
            self._append(kinds.HELLO, parts=[mine.to_bytes()])

    def writable(self) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._reader.writable()

    def received(self, count: int, now_ms: float) -> None:
        """Process ``count`` bytes written to ``writable()`` and the frames they complete."""
        self._heard_ms = now_ms
        self.counters.bytes_in += count
        for frame in self._reader.received(count):
            self._on_frame(frame, now_ms)

    def stream_ended(self) -> None:
        """The peer sends no more. Raises unless it has said goodbye and every channel of the connection had
        ended.
        """
        if not self.is_open:
            raise network_error(LEFT, "the connection ended before the peer identified itself")
        if not self._left:
            self._reader.end()
            raise network_error(LEFT, f"the connection with {self.peer} broke")
        self._check_nothing_open()

    def check_time(self, now_ms: float) -> None:
        """Send a heartbeat when it is due; raises NET-5009 when the peer has been silent for too long."""
        # authenticating: the whole handshake has one deadline
        if not self.is_open:
            if now_ms - self._began_ms >= self._limits.hello_ms:
                who = self._expected or "the peer"
                raise network_error(
                    SILENT, f"{who} did not say within {self._limits.hello_ms / 1000:g} s who it is"
                )
        # open: any byte counts as a heartbeat
        elif now_ms - self._heard_ms >= self._limits.silence_ms:
            raise network_error(
                SILENT, f"nothing has come from {self.peer} for {self._limits.silence_ms / 1000:g} s"
            )
        # nothing follows a goodbye, not even a heartbeat
        elif now_ms - self._spoke_ms >= self._limits.ping_ms and not self._leaving:
            self._spoke_ms = now_ms
            if not self._out:
                self._append(kinds.PING)

    def pull(self, now_ms: float) -> deque[memoryview]:
        """Return the buffers to send, filled from the channels in turn. The caller removes them from the
        front as they are sent.
        """
        waiting = sum(view.nbytes for view in self._out)
        while self._ready and waiting < _PULL_BYTES:
            # round robin: one element per channel and turn
            channel = self._ready.popleft()
            channel.scheduled = False
            element = channel.next_to_send()
            if element is None:
                continue
            waiting += self._send(channel, element, now_ms)
            self.schedule(channel)
        # last, after all elements that credit allows
        if self._leaving and not self._ready and not self._said_goodbye:
            self._said_goodbye = True
            self._append(kinds.GOODBYE)
        if self._out:
            self._spoke_ms = now_ms
        return self._out

    def add(self, channel: RemoteChannel) -> None:
        """Send the elements of this channel over the connection, once it is open."""
        # the number identifies the channel in frames; the key is sent once, in OPEN
        channel.number = len(self._outgoing)
        self._outgoing.append(channel)
        if self.is_open:
            self._announce(channel)

    def schedule(self, channel: RemoteChannel) -> None:
        """Let a channel take part in the next pulls if it has an element it may send."""
        if self.is_open and not channel.scheduled and channel.sendable:
            channel.scheduled = True
            self._ready.append(channel)

    def attach(self, key: str, channel: CreditedChannel) -> bool:
        """Attach the consumer to a channel the peer has opened; return whether the peer has opened one of
        this key.
        """
        incoming = self._waiting.pop(key, None)
        if incoming is None:
            return False
        self._begin(incoming, channel)
        return True

    def grant_credit(self, incoming: Incoming) -> None:
        """Send the producer the credit for what its consumer has read since the last grant."""
        assert incoming.channel is not None
        # what was read, plus the channel's capacity, minus all that was granted before
        credit = max(0, incoming.channel.consumed_count + incoming.channel.capacity - incoming.granted)
        credit_bytes = max(
            0, incoming.channel.taken_bytes + incoming.channel.most_bytes - incoming.granted_bytes
        )
        # after the end of input the producer needs no credit
        if (credit or credit_bytes) and not incoming.ended:
            incoming.granted += credit
            incoming.granted_bytes += credit_bytes
            self.counters.credits_out += credit
            self._append(kinds.CREDIT, incoming.number, [_CREDIT.pack(credit, credit_bytes)])

    def leave(self) -> None:
        """Send a goodbye after the elements that may be sent now; nothing follows it."""
        self._leaving = True

    def refuse(self, error: PenstockError) -> None:
        """Send a peer the reason why its hello was refused."""
        # nothing that was queued concerns a peer that is refused
        self._out.clear()
        self._append(
            kinds.REFUSED, parts=[json.dumps({"code": error.code, "message": error.message}).encode("ascii")]
        )

    def _append(
        self, kind: int, channel: int = 0, parts: list[bytes | memoryview] | None = None, flags: int = 0
    ) -> int:
        buffers = self._writer.encode(kind, channel, parts or [], flags)
        self._out.extend(buffers)
        size = sum(view.nbytes for view in buffers)
        self.counters.bytes_out += size
        return size

    def _announce(self, channel: RemoteChannel) -> None:
        self._append(kinds.OPEN, channel.number, [channel.key.encode("utf-8")])
        self.schedule(channel)

    def _send(self, channel: RemoteChannel, element: Element | Overtaking, now_ms: float) -> int:
        overtakes = isinstance(element, Overtaking)
        plain = element.barrier if isinstance(element, Overtaking) else element
        self.counters.elements_out += 1
        if isinstance(plain, Batch):
            self.counters.rows_out += plain.num_rows
        frames = channel.encoder.encode(plain, now_ms)
        channel.sent(
            sum(memoryview(part).nbytes for kind, parts in frames if kind == kinds.BATCH for part in parts)
        )
        return sum(
            self._append(kind, channel.number, parts, kinds.OVERTAKES if overtakes else 0)
            for kind, parts in frames
        )

    def _on_frame(self, frame: NetworkFrame, now_ms: float) -> None:
        if not self.is_open:
            self._on_greeting(frame)
            return
        match frame.kind:
            case kinds.PING:
                pass
            case kinds.GOODBYE:
                self._left = True
            case kinds.OPEN:
                self._on_open(frame)
            case kinds.CREDIT:
                self._on_credit(frame)
            case kind if kinds.SCHEMA <= kind <= kinds.LATENCY_MARKER:
                self._on_element(frame, now_ms)
            case kind:
                raise network_error(UNEXPECTED, f"{self.peer} sent a message of an unknown kind: {kind}")

    def _on_greeting(self, frame: NetworkFrame) -> None:
        # the peer did not accept our hello: raise its reason
        if frame.kind == kinds.REFUSED:
            raise _refusal(frame, self._expected)
        # the accepting side awaits HELLO, the dialling side WELCOME
        if frame.kind != (kinds.HELLO if self._expected is None else kinds.WELCOME):
            raise network_error(UNEXPECTED, f"a connection began with a message of kind {frame.kind}")
        peer = read_identity(frame.payload)
        check_identity(peer, self._mine)
        # accepting side: one connection per peer; dialling side: the peer must be the one that was dialled
        if self._expected is None:
            if not self._host.admit(peer.name):
                raise network_error(
                    UNEXPECTED, f"a connection was refused: there is one with {peer.name} already"
                )
            self._append(kinds.WELCOME, parts=[self._mine.to_bytes()])
        elif peer.name != self._expected:
            raise network_error(UNEXPECTED, f"{peer.name} answered where {self._expected} was expected")
        self.peer = peer.name
        self.is_open = True
        # authenticated: frames of rows may come
        self._reader.max_payload = self._limits.max_payload
        for channel in self._outgoing:
            self._announce(channel)

    def _on_open(self, frame: NetworkFrame) -> None:
        if (
            frame.channel in self._incoming
            or len(self._incoming) >= CHANNELS_MAX
            or len(frame.payload) > KEY_BYTES_MAX
        ):
            raise network_error(
                UNEXPECTED, f"{self.peer} opened a channel that cannot be opened: {frame.channel}"
            )
        try:
            key = bytes(frame.payload).decode("utf-8")
        except UnicodeDecodeError:
            raise network_error(PAYLOAD, f"{self.peer} opened a channel whose key cannot be read") from None
        if key in self._waiting:
            raise network_error(UNEXPECTED, f"{self.peer} opened channel {key} twice")
        incoming = self._incoming[frame.channel] = Incoming(key, frame.channel)
        channel = self._host.claim(key)
        # the consumer's task is not deployed yet; attach() grants the first credit
        if channel is None:
            self._waiting[key] = incoming
        else:
            self._begin(incoming, channel)

    def _begin(self, incoming: Incoming, channel: CreditedChannel) -> None:
        incoming.channel = channel
        channel.source = (self, incoming)
        self.grant_credit(incoming)

    def _on_credit(self, frame: NetworkFrame) -> None:
        if frame.channel >= len(self._outgoing) or len(frame.payload) != _CREDIT.size:
            raise network_error(
                UNEXPECTED, f"{self.peer} granted credit to an unknown channel: {frame.channel}"
            )
        channel = self._outgoing[frame.channel]
        credit, credit_bytes = _CREDIT.unpack(frame.payload)
        self.counters.credits_in += credit
        channel.grant(credit, credit_bytes)
        self.schedule(channel)

    def _on_element(self, frame: NetworkFrame, now_ms: float) -> None:
        incoming = self._incoming.get(frame.channel)
        # without a consumer no credit was granted, so nothing may arrive
        if incoming is None or incoming.channel is None or incoming.ended:
            raise network_error(
                UNEXPECTED, f"{self.peer} sent on a channel that is not open: {frame.channel}"
            )
        element = incoming.decoder.decode(frame, now_ms)
        # a schema, which counts as no element
        if element is None:
            return
        overtakes = bool(frame.flags & kinds.OVERTAKES)
        if overtakes and not isinstance(element, Barrier):
            raise network_error(UNEXPECTED, f"{self.peer} let something overtake that is no barrier")
        incoming.received += 1
        # one batch may exceed the bytes, but not begin beyond them
        beyond_bytes = not overtakes and incoming.received_bytes >= incoming.granted_bytes
        if beyond_bytes or incoming.received > incoming.granted + (OVERRUN_MAX if overtakes else 0):
            raise network_error(
                CREDIT, f"{self.peer} sent more on channel {incoming.key} than it had credit for"
            )
        self.counters.elements_in += 1
        if isinstance(element, Batch):
            self.counters.rows_in += element.num_rows
        incoming.ended = isinstance(element, EndOfInput)
        sent_bytes = len(frame.payload) if isinstance(element, Batch) else 0
        incoming.received_bytes += sent_bytes
        incoming.channel.receive(element, sent_bytes)

    def _check_nothing_open(self) -> None:
        if not all(incoming.ended for incoming in self._incoming.values()) or not all(
            channel.ended for channel in self._outgoing
        ):
            raise network_error(LEFT, f"{self.peer} left before the channels between us had ended")


def _refusal(frame: NetworkFrame, who: str | None) -> PenstockError:
    try:
        reason = json.loads(bytes(frame.payload))
        code, message = str(reason["code"])[:20], str(reason["message"])[:300]
    except (ValueError, TypeError, KeyError, RecursionError):
        code, message = UNEXPECTED, "it did not say why"
    return network_error(code, f"{who or 'the peer'} refused the connection: {message}")
