"""The listener of the PostgreSQL wire: one thread drives all connections, statements run on others."""

from __future__ import annotations

import asyncio
import errno
import itertools
import secrets
import socket
import ssl
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition, Event, get_ident
from typing import cast

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.server.listener import Authenticator
from penstock.client.server.postgres import backend_messages as backend
from penstock.client.server.postgres.frontend_messages import (
    CancelRequest,
    EncryptionRequest,
    FrontendReader,
    Message,
    Terminate,
)
from penstock.client.server.postgres.handshake import Handshake, Step
from penstock.client.server.postgres.wire_session import WireSession
from penstock.client.server.server_sessions import ClientAddress, ServerSessions
from penstock.client.server.session_limits import shutting_down
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.threads import EngineThread

_QUEUED_BYTES = 4 << 20
"""Bytes of messages that wait for the one that runs: a client that sends faster is not read meanwhile."""
_MOST_NOW = 100
"""Messages of one client that are answered in between, in some milliseconds; then others have their turn."""
_END_S = 1.0  # how long close waits for connections


@dataclass(frozen=True)
class WireLimits:
    """What one client, and all of them, may take."""

    connections: int = 2_000
    message_bytes: int = 64 << 20
    output_bytes: int = 8 << 20
    """Bytes that wait for a client that does not read: then its statement waits."""
    start_s: float = 10.0
    """How long a client may take to authenticate."""
    keepalive_s: int = 30
    statements: int = 256
    """Statements that run at once, of all sessions; more wait."""


class PostgresListener:
    """Accepts PostgreSQL's clients on one address. Raises CLI-6203 when the address is not free."""

    name = "postgres"

    def __init__(
        self,
        sessions: ServerSessions,
        authenticator: Authenticator,
        host: str = "127.0.0.1",
        port: int = 5433,
        *,
        tls: ssl.SSLContext | None = None,
        requires_tls: bool = False,
        by_password: bool = False,
        limits: WireLimits | None = None,
    ) -> None:
        self.sessions = sessions
        self.authenticator = authenticator
        self.limits = limits or WireLimits()
        self.tls = tls
        self.requires_tls = requires_tls
        self.by_password = by_password
        self.connections: dict[int, WireConnection] = {}
        self.workers = ThreadPoolExecutor(self.limits.statements, "penstock-postgres-statement")
        self.loop = asyncio.new_event_loop()
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None
        self.thread = 0  # of the loop
        self._started = Event()
        self._failure: PenstockError | None = None
        self._thread = EngineThread(target=self._drive, name="penstock-postgres")

    @property
    def address(self) -> str:
        """Where it listens, with the port it got."""
        return f"{self._host}:{self._port}"

    @property
    def port(self) -> int:
        """The port it got."""
        return self._port

    def start(self) -> None:
        """Listen. CLI-6203 when the address is not free."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def stop_accepting(self) -> None:
        """Refuse new clients; those that are connected go on."""
        if self._server is not None:
            self.loop.call_soon_threadsafe(self._server.close)

    def close(self) -> None:
        """End the connections that are left, within a second."""
        if not self._thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self._end)
        self._thread.join(_END_S + 1)
        self.workers.shutdown(wait=False, cancel_futures=True)

    def cancel(self, request: CancelRequest) -> None:
        """Cancel the statement of a connection; a wrong key does nothing and says nothing."""
        connection = self.connections.get(request.process)
        if connection is not None and secrets.compare_digest(str(connection.key), str(request.key)):
            connection.cancel()

    # -- the thread

    def _drive(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.thread = get_ident()
        try:
            self._server = self.loop.run_until_complete(
                self.loop.create_server(lambda: WireConnection(self), self._host, self._port, backlog=1024)
            )
            self._port = self._server.sockets[0].getsockname()[1]
        except OSError as error:
            self._failure = _not_free(self.address, error)
        finally:
            self._started.set()
        if self._failure is None:
            self.loop.run_forever()
        self.loop.close()

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections.values()):
            connection.end(shutting_down())
        # transports close in the next turns of the loop
        self.loop.call_later(0.1, self.loop.stop)


class WireConnection(asyncio.Protocol):
    """One client's connection. The loop's thread reads and writes; ``send`` is called by workers and waits
    while the client does not read.
    """

    def __init__(self, listener: PostgresListener) -> None:
        self._listener = listener
        self._reader = FrontendReader(listener.limits.message_bytes)
        self._handshake = Handshake(
            listener.authenticator,
            lambda: secrets.token_urlsafe(18),
            has_tls=listener.tls is not None,
            requires_tls=listener.requires_tls,
            by_password=listener.by_password,
        )
        self._transport: asyncio.Transport | None = None
        self._session: WireSession | None = None
        self._messages: deque[Message] = deque()
        self._is_working = False
        self._is_gone = False
        self._is_paused = False
        self._writable = Condition()
        self._unwritten = 0
        self._is_full = False
        self._clock = SystemClock()
        self._deadline: asyncio.TimerHandle | None = None
        self.key = secrets.randbits(31)
        self.process = 0

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        first = self._transport is None
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(self._listener.limits.output_bytes)
        # again after the start of TLS
        if not first:
            return
        limits, connections = self._listener.limits, self._listener.connections
        _keep_alive(self._transport, limits.keepalive_s)
        if len(connections) >= limits.connections:
            self._refuse(_too_many(limits.connections))
            return
        self.process = next(number for number in itertools.count(1) if number not in connections)
        connections[self.process] = self
        self._deadline = self._listener.loop.call_later(limits.start_s, self._too_slow)

    def data_received(self, data: bytes) -> None:
        self._reader.append(data)
        self._read()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        with self._writable:
            self._is_full = False
            self._writable.notify_all()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        with self._writable:
            self._is_gone = True
            self._writable.notify_all()
        if self._deadline is not None:
            self._deadline.cancel()
        self._listener.connections.pop(self.process, None)
        if self._session is not None:
            # the statement first: a worker waits for its rows. A client that is lost has not asked for an end
            # of its INSERT: as in PostgreSQL, and as a job of Flink, it goes on
            self._session.cancel(leaves_jobs=True)
            self._listener.workers.submit(self._session.close)

    # -- messages

    def _read(self) -> None:
        """Take the messages that have come: those of the start at once, all others by a worker."""
        try:
            while not self._is_gone and (message := self._reader.next()) is not None:
                if isinstance(message, Terminate) and self._session is None:
                    self.shut_down()
                    return
                self._messages.append(message)
                if isinstance(message, EncryptionRequest):
                    break
        except PenstockError as error:
            self._refuse(error)
            return
        self._answer_now()
        self._work()
        # one message that runs, and messages behind it: the client waits with more
        if self._reader.buffered + sum(map(_size, list(self._messages))) > _QUEUED_BYTES:
            self._pause()

    def _answer_now(self) -> None:
        """Answer point queries here: a worker would cost two changes of threads, more than the answer."""
        session = self._session
        if session is None or self._is_working or self._is_gone or self._is_full or self._unwritten:
            return
        try:
            for _ in range(_MOST_NOW):
                if not self._messages or not session.handle_now(self._messages[0]):
                    break
                self._messages.popleft()
            if not self._messages:
                session.flush()
        except ConnectionError:
            self.shut_down()
        except PenstockError as error:
            self._refuse(error)
        except Exception as defect:  # noqa: BLE001 - the client is told, and the others go on
            self._refuse(_internal(defect))

    def _work(self) -> None:
        if self._messages and not self._is_working and not self._is_gone:
            self._is_working = True
            work = self._listener.workers.submit(self._run)
            work.add_done_callback(lambda done: self._on_loop(self._worked, done))

    def _run(self) -> None:
        """Handle messages until none are left, on a worker's thread."""
        try:
            while self._messages and not self._is_gone:
                self._handle(self._messages.popleft())
        except ConnectionError:
            self._on_loop(self.shut_down)
        except PenstockError as error:
            self._on_loop(self._refuse, error)

    def _worked(self, future: Future[None]) -> None:
        self._is_working = False
        # a defect: the client is told, and the others go on
        if not future.cancelled() and (defect := future.exception()) is not None:
            self._refuse(_internal(defect))
            return
        if self._is_paused and self._transport is not None and not self._is_gone:
            self._is_paused = False
            self._transport.resume_reading()
        self._read()

    def _handle(self, message: Message) -> None:
        if self._session is not None:
            if isinstance(message, Terminate):
                raise ConnectionResetError
            self._session.handle(message)
            return
        reply = self._handshake.receive(message)
        match reply.step:
            case Step.START_TLS:
                self._start_tls(reply.data)
            case Step.CANCEL:
                assert reply.cancels is not None
                self._listener.cancel(reply.cancels)
                raise ConnectionResetError
            case Step.OPEN:
                self._open(reply.data)
            case Step.CLOSE:
                raise ConnectionResetError
            case Step.CONTINUE:
                self.send(reply.data)

    def _start_tls(self, answer: bytes) -> None:
        # bytes that came in plain text behind the request are no part of what follows (CVE-2021-23222)
        if self._reader.buffered or self._messages:
            raise PenstockError(
                "CLI-6220", "data came in plain text behind the request for TLS", sqlstate="08P01"
            )
        self._handshake.is_encrypted = True
        asyncio.run_coroutine_threadsafe(self._upgrade(answer), self._listener.loop).result()

    async def _upgrade(self, answer: bytes) -> None:
        assert self._transport is not None
        assert self._listener.tls is not None
        self._transport.write(answer)
        try:
            upgraded = await self._listener.loop.start_tls(
                self._transport, self, self._listener.tls, server_side=True,
                ssl_handshake_timeout=self._listener.limits.start_s,
            )  # fmt: skip
        except (OSError, ssl.SSLError) as error:
            raise ConnectionResetError from error
        if upgraded is None:
            raise ConnectionResetError
        self.connection_made(upgraded)

    def _open(self, before: bytes) -> None:
        startup, principal = self._handshake.startup, self._handshake.principal
        assert startup is not None
        assert principal is not None
        peer = self._transport.get_extra_info("peername") if self._transport is not None else None
        address = ClientAddress(self._listener.name, ":".join(map(str, peer[:2])) if peer else "?")
        session = self._listener.sessions.open(principal, address)
        self._reader.start_session()
        if self._deadline is not None:
            self._on_loop(self._deadline.cancel)
        try:
            wire = WireSession(session, self, startup.parameters)
            self.send(before)
            self._session = wire
            wire.open(self.process, self.key)
        except BaseException:
            # a client that has gone, or whose parameters are refused: nobody else closes its session
            session.close()
            raise
        # it went away meanwhile
        if self._is_gone:
            wire.close()

    def end(self, error: PenstockError) -> None:
        """Tell the client why its connection ends, and end it."""
        self._refuse(error)

    # -- what the session asks of its connection

    def send(self, data: bytes | memoryview) -> None:
        """Send bytes, waiting while the client does not read. The loop's thread, which alone could end such a
        wait, sends only what is small.
        """
        if get_ident() == self._listener.thread:
            self._write(data)
            return
        most = self._listener.limits.output_bytes
        with self._writable:
            # both: what the loop has not taken yet, and what the client has not
            self._writable.wait_for(lambda: self._is_gone or (not self._is_full and self._unwritten < most))
            if self._is_gone:
                raise ConnectionResetError
            self._unwritten += len(data)
        self._on_loop(self._write_counted, data)

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
        loop = self._listener.loop
        cell: list[asyncio.TimerHandle] = []

        def schedule() -> None:
            cell.append(loop.call_later(delay_s, call))

        loop.call_soon_threadsafe(schedule)

        def cancel() -> None:
            for handle in cell:
                handle.cancel()

        # behind schedule, in the order of the loop
        return lambda: self._on_loop(cancel)

    def cancel(self) -> None:
        """Cancel the statement that runs."""
        if self._session is not None:
            self._session.cancel()

    def shut_down(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    # -- inside

    def _write(self, data: bytes | memoryview) -> None:
        if self._transport is not None and not self._is_gone:
            self._transport.write(data)

    def _write_counted(self, data: bytes | memoryview) -> None:
        self._write(data)
        with self._writable:
            self._unwritten -= len(data)
            self._writable.notify_all()

    def _on_loop(self, call: Callable[..., object], *arguments: object) -> None:
        # a loop that is closed has no clients
        if not self._listener.loop.is_closed():
            self._listener.loop.call_soon_threadsafe(call, *arguments)

    def _pause(self) -> None:
        if self._transport is not None and not self._is_paused and self._is_working:
            self._is_paused = True
            self._transport.pause_reading()

    def _refuse(self, error: PenstockError) -> None:
        """Send an error that ends the connection."""
        self._write(backend.error_response(error, fatal=True))
        self.shut_down()

    def _too_slow(self) -> None:
        if self._session is None:
            self._refuse(
                PenstockError(
                    "CLI-6266",
                    f"the client was not authenticated within {self._listener.limits.start_s:g} s",
                    hint="connect again",
                    kind=Kind.EXTERNAL,
                    sqlstate="08006",
                )
            )


def _size(message: Message) -> int:
    return sum(len(part) for part in vars(message).values() if isinstance(part, str | bytes))


def _keep_alive(transport: asyncio.Transport, idle_s: int) -> None:
    """Have the system find out that a client's machine is gone: no packet would come from it."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (("TCP_KEEPIDLE", idle_s), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        # Linux has all three
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _not_free(address: str, error: OSError) -> PenstockError:
    what = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be listened on: {error.strerror}"
    hint = "choose another port, or port 0 for one that is free"
    return PenstockError(
        "CLI-6203", f"address {address} {what}", hint=hint, kind=Kind.EXTERNAL, sqlstate="58000"
    )


def _too_many(most: int) -> PenstockError:
    hint = "close connections that are not used, or raise the server's limit"
    return PenstockError(
        "CLI-6266",
        f"the server has {most:,} connections already",
        hint=hint,
        kind=Kind.EXTERNAL,
        sqlstate="53300",
    )


def _internal(error: BaseException) -> PenstockError:
    return PenstockError(
        "INT-9041",
        f"a defect of penstock: {type(error).__name__}",
        hint="please report it with the statement",
        kind=Kind.INTERNAL,
        sqlstate="XX000",
    )
