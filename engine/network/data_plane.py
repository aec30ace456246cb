"""The data plane of one task manager: a listener, one connection per peer, and the one thread that drives
them.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import selectors
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import Clock
from penstock.engine.api.threads import EngineThread
from penstock.engine.exchange.channel import Wakeup
from penstock.engine.network.admission import Admission, AdmissionLimits
from penstock.engine.network.credited_channel import CreditedChannel
from penstock.engine.network.errors import INTERNAL, UNREACHABLE, network_error
from penstock.engine.network.handshake import Identity
from penstock.engine.network.link import Link, LinkCounters, LinkLimits
from penstock.engine.network.link_socket import LinkSocket, Secure
from penstock.engine.network.links import LinkLost, Links
from penstock.engine.network.listener_options import Listening
from penstock.engine.network.remote_channel import RemoteChannel

# also the longest wait without events: timeouts are checked this often
_TIMER_MS = 100.0
# any free port, reachable from this machine only
LOOPBACK = Listening()

Address = tuple[str, int]


class DataPlane:
    """Carries the channels between this task manager and others for one deployment. Each attempt has a new
    plane, so it never receives data of an older one.

    ``link_lost(peer, cause)`` is called from the plane's thread, once per peer, and must not block. The plane
    listens from its creation; peers connect to ``address``. Of two peers the one whose name sorts first
    dials. NET-5012 for an address off loopback without TLS, NET-5016 for no free port.
    """

    def __init__(
        self,
        identity: Identity,
        clock: Clock,
        link_lost: LinkLost,
        *,
        listening: Listening = LOOPBACK,
        limits: LinkLimits | None = None,
        checksum: bool = True,
        refused: Counter[str] | None = None,
        faults: Counter[str] | None = None,
    ) -> None:
        """``refused``, ``faults``: counters of strangers and accept errors, which successive planes may
        share.
        """
        self._identity = identity
        self._clock = clock
        self._listening = listening
        self._tls = tls = listening.tls
        self._limits = limits or LinkLimits()
        self._checksum = checksum
        self._secure_accepted: Secure | None = None
        if tls is not None:
            self._secure_accepted = lambda plain: tls.server.wrap_socket(
                plain, server_side=True, do_handshake_on_connect=False
            )
        # work of other threads; only the plane's thread touches links and sockets
        self._calls: deque[Callable[[], None]] = deque()
        # whether a byte is in the waker's socket: one wakeup is enough for any number of calls
        self._awake = False
        self._next_timer_ms = 0.0
        self._links: Links[LinkSocket] = Links(identity.name, self._limits, link_lost, refused)
        self._closing_ms: float | None = None
        self._listener = listening.listener(backlog=512)
        self.address: Address = self._listener.getsockname()[:2]
        self._waker, self._woken = socket.socketpair()
        # neither the plane nor a caller may block on the waker
        for end in (self._waker, self._woken):
            end.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self.admission: Admission[LinkSocket] = Admission(
            self._listener,
            clock,
            self._drop,
            limits=AdmissionLimits(self._limits.greeting, math.inf),  # links count their own time
            selector=self._selector,
            refused=self._links.refused,
            faults=faults,
        )
        # a byte in this socket wakes the plane's thread
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = EngineThread(target=self._run, name=f"data-plane-{identity.name}")
        self._thread.start()

    def connect(self, peer: str, address: Address) -> None:
        """Connect to a peer, or expect its connection; without one within the hello's time the peer is
        reported as lost.
        """
        self._listening.check(address[0], "connect to")
        self._call(lambda: self._connect(peer, address))

    def sender(self, key: str, peer: str, wake_producer: Wakeup) -> RemoteChannel:
        """Return the producer's end of a channel to a peer. It has no credit until the peer creates the
        ``receiver`` of the same key.
        """
        channel = RemoteChannel(key, peer, wake_producer, self._signal, self._limits.max_payload)
        # links belong to the plane's thread, so the channel is added there
        self._call(lambda: self._links.add_sender(channel))
        return channel

    def receiver(self, key: str, capacity: int, wake_consumer: Wakeup) -> CreditedChannel:
        """Return the consumer's end of a channel; ``key`` is unique in the deployment."""
        channel = CreditedChannel(capacity, wake_consumer, self._grant_credit)
        self._call(lambda: self._links.add_receiver(key, channel))
        return channel

    def counters(self) -> LinkCounters:
        """Return the counters of all connections together."""
        return self._links.counters()

    @property
    def refused(self) -> Counter[str]:
        """How many connections of strangers were refused, by code or reason."""
        return self._links.refused

    def close(self) -> None:
        """Send a goodbye to the peers and end; waits up to ``close_ms`` for them to have read everything. No
        loss is reported from here on.
        """
        self._call(self._begin_closing)
        self._thread.join()

    # From other threads.

    def _call(self, work: Callable[[], None]) -> None:
        self._calls.append(work)
        self._wake()

    def _signal(self, channel: RemoteChannel) -> None:
        # already queued to send: no need to wake the thread for each element
        if not channel.scheduled:
            self._call(lambda: self._links.schedule(channel))

    def _grant_credit(self, channel: CreditedChannel) -> None:
        self._call(lambda: self._links.send_credit(channel))

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            with contextlib.suppress(OSError):  # full: it will wake; closed: nobody is left to be woken
                self._waker.send(b"\0")

    # From here on: the plane's thread.

    def _run(self) -> None:
        try:
            while not self._closed():
                self._turn()
        # a fault of the loop itself: no peer can be reached any more, and every task must fail
        except Exception as error:
            self._links.report_all(
                network_error(UNREACHABLE, "the data plane has failed", detail=repr(error)[:300])
            )
            raise
        finally:
            self._end()

    def _turn(self) -> None:
        """Wait for events, calls or timers, and process them."""
        # do not wait while calls are queued
        events = self._selector.select(0 if self._calls else _TIMER_MS / 1000)
        now_ms = self._clock.monotonic_ms()
        for key, mask in events:
            if isinstance(key.data, LinkSocket):
                self._links.dirty.add(key.data)
                # every socket with an event is also written: reading may have produced credit
                if mask & selectors.EVENT_READ:
                    self._guarded(key.data, self._read, now_ms)
            elif key.data is self.admission:
                self._accept(now_ms)
            else:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
        self._awake = False  # before the calls: one made meanwhile wakes again
        # only those queued by now: calls may queue further ones without end
        for _ in range(len(self._calls)):
            self._calls.popleft()()
        # write all that reading, calls and timers have produced
        dirty, self._links.dirty = self._links.dirty, set()
        for one in dirty:
            self._guarded(one, self._write, now_ms)
        if now_ms >= self._next_timer_ms:
            self._next_timer_ms = now_ms + _TIMER_MS
            for one in list(self._links.connections):
                self._guarded(one, self._check_time, now_ms)
            self.admission.check_time()
            self._links.check_awaited(now_ms)

    def _guarded(self, one: LinkSocket, work: Callable[[LinkSocket, float], None], now_ms: float) -> None:
        """Run ``work`` so that any error ends this connection and no other."""
        # closed earlier in this turn
        if one.fileno() < 0:
            return
        try:
            work(one, now_ms)
        except PenstockError as error:
            self._lose(one, error)
        except OSError as error:
            who = one.link.peer or "a peer"
            self._lose(
                one, network_error(UNREACHABLE, f"the connection with {who} broke: {error.strerror or error}")
            )
        except Exception as error:  # noqa: BLE001 - a fault in here must not take the other connections along, nor go unheard
            who = one.link.peer or "a peer"
            self._lose(
                one,
                network_error(
                    INTERNAL,
                    f"the connection with {who} was closed: a fault of penstock",
                    detail=repr(error)[:300],
                ),
            )

    def _read(self, one: LinkSocket, now_ms: float) -> None:
        going_on = one.read(now_ms)
        # the hello was right: the admission's limits no longer apply
        if one.link.is_open:
            self.admission.admit(one)
        # raises unless the peer has said goodbye
        if not going_on:
            one.link.stream_ended()
            self._drop(one)

    def _write(self, one: LinkSocket, now_ms: float) -> None:
        one.write(now_ms)
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if one.writing else 0)
        # a system call only when it changes
        if self._selector.get_key(one).events != mask:
            self._selector.modify(one, mask, one)
        # the goodbye is sent: the peer sees the end of the stream
        if self._closing_ms is not None and not one.writing:
            one.shut_down()

    def _accept(self, now_ms: float) -> None:
        while (sock := self.admission.accept()) is not None:
            self.admission.add(self._start(sock, now_ms, None, self._secure_accepted))

    def _start(
        self, sock: socket.socket, now_ms: float, peer: str | None, secure: Secure | None
    ) -> LinkSocket:
        sock.setblocking(False)
        with contextlib.suppress(OSError):  # gone again already: reading it tells
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self._identity, self._links, self._limits, now_ms, expected=peer, checksum=self._checksum)
        one = LinkSocket(sock, link, connecting=peer is not None, secure=secure, took=self._links.received)
        self._selector.register(one, selectors.EVENT_READ | (selectors.EVENT_WRITE if peer else 0), one)
        self._links.began(one, peer)
        return one

    def _connect(self, peer: str, address: Address) -> None:
        now_ms = self._clock.monotonic_ms()
        if not self._links.dials(peer, now_ms):
            return
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        sock.setblocking(False)
        # non-blocking: EINPROGRESS is the normal answer, and LinkSocket finishes connecting
        fault = sock.connect_ex(address)
        if fault not in (0, errno.EINPROGRESS):
            sock.close()
            self._links.report(
                peer, network_error(UNREACHABLE, f"{peer} cannot be reached: {os.strerror(fault)}")
            )
            return
        secure: Secure | None = None
        if self._tls is not None:
            client = self._tls.client
            # checked against nothing: certificates prove membership, not names (tls_contexts)
            host = address[0]

            def secure_client(plain: socket.socket) -> ssl.SSLSocket:
                return client.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)

            secure = secure_client
        self._start(sock, now_ms, peer, secure)

    def _check_time(self, one: LinkSocket, now_ms: float) -> None:
        one.link.check_time(now_ms)
        self._links.dirty.add(one)

    def _lose(self, one: LinkSocket, error: PenstockError) -> None:
        peer = one.link.peer
        # send a stranger the reason, as far as the socket takes it at once
        if self._links.refuses(one, error):
            with contextlib.suppress(OSError):
                one.write(self._clock.monotonic_ms())
                one.shut_down()
        self._drop(one)
        if peer is not None:
            self._links.report(peer, error)

    def _drop(self, one: LinkSocket) -> None:
        self._selector.unregister(one)
        one.close()
        self.admission.remove(one)
        self._links.dropped(one)

    def _begin_closing(self) -> None:
        if self._closing_ms is None:
            self._closing_ms = self._clock.monotonic_ms() + self._limits.close_ms
            # no new connections; those without a hello are dropped
            self.admission.close()
            for one in self._links.leave():
                self._drop(one)

    def _closed(self) -> bool:
        if self._closing_ms is None:
            return False
        # all peers have closed too, or the time for that is over
        return not self._links.connections or self._clock.monotonic_ms() >= self._closing_ms

    def _end(self) -> None:
        self.admission.close()
        for one in list(self._links.connections):
            self._drop(one)
        self._selector.close()
        self._waker.close()
        self._woken.close()
