"""The listener of web clients: a server of uvicorn in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.server.web.application import WebApplication
from penstock.client.server.web.limits import WebLimits
from penstock.client.server.web.web_sessions import WebSessions
from penstock.engine.api.clock import Clock, SystemClock

if TYPE_CHECKING:
    from penstock.client.server.listener import Authenticator
    from penstock.client.server.server_sessions import ServerSessions

_CLOSE_S = 1.0
"""How long ``close`` waits for requests before it ends their connections."""


class WebListener:
    """Serves the page, the API and the metrics on one address. ``tls``: the files of a certificate chain
    and of its key. Port 0 takes any free port.
    """

    name = "web"

    def __init__(
        self,
        sessions: ServerSessions,
        authenticator: Authenticator,
        host: str,
        port: int,
        *,
        tls: tuple[Path, Path] | None = None,
        limits: WebLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        limits = limits or WebLimits()
        self._host, self._port = host, port
        self._accepts = True
        self._web_sessions = WebSessions(sessions, authenticator, limits, clock or SystemClock())
        application = WebApplication(
            self._web_sessions,
            limits,
            host,
            is_secure=tls is not None,
            # not while the server starts, waits for its lease or ends
            is_ready=lambda: self._accepts and not sessions.refusal,
        )
        config = uvicorn.Config(
            application.asgi,
            http=_patient_protocol(limits.request_s),
            loop="asyncio",
            ws="none",
            lifespan="off",
            # the server's log has a line for each request that failed; uvicorn's would be a second one
            log_config=None,
            # a warning for each request that is no HTTP would let a stranger fill the disk
            log_level="error",
            access_log=False,
            server_header=False,
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=int(_CLOSE_S),
            ssl_certfile=None if tls is None else tls[0],
            ssl_keyfile=None if tls is None else tls[1],
        )
        self._server = _Server(config)
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Where it listens, with the port it got."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    def start(self) -> None:
        """Listen. Raises CLI-6203 when the address is not free."""
        try:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            self._socket = socket.create_server((self._host, self._port), family=family, backlog=256)
        except OSError as error:
            message = f"{self.address} cannot be had for the web listener: {error.strerror}"
            raise PenstockError(
                "CLI-6203",
                message,
                hint="choose another port; 0 takes a free one",
                kind=Kind.EXTERNAL,
                sqlstate="58000",
            ) from error
        self._port = self._socket.getsockname()[1]
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="penstock-web", daemon=True
        )
        self._thread.start()
        # a client that connects earlier waits in the backlog, so this is for the first error only
        self._server.has_started.wait()

    def stop_accepting(self) -> None:
        """Report that no new work is taken, and refuse new connections; those that are open go on."""
        self._accepts = False
        self._server.stop_listening()

    def close(self) -> None:
        """End the connections that are left, within a second, and the sessions of their clients."""
        self._accepts = False
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(2 * _CLOSE_S)
            self._server.force_exit = True
            self._thread.join()
        self._web_sessions.close()
        if self._socket is not None:
            self._socket.close()


class _Server(uvicorn.Server):
    """A server in a thread: signals belong to the process, and its start is an event."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.has_started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Leave the signals to the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        self._loop = asyncio.get_running_loop()
        try:
            await super().startup(sockets)
        finally:
            self.has_started.set()

    def stop_listening(self) -> None:
        """Close the listening sockets."""

        def close() -> None:
            for server in self.servers:
                server.close()

        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(close)


def _patient_protocol(request_s: float) -> type[H11Protocol]:
    """Return uvicorn's protocol with a limit of the time until a client has sent its first request: a client
    that sends a byte a second would hold its connection for ever.
    """

    class PatientProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._deadline = self.loop.call_later(request_s, self._hang_up_silent)

        def _hang_up_silent(self) -> None:
            # the first request makes a cycle; later ones are limited by uvicorn's keep-alive
            if self.cycle is None:
                self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._deadline.cancel()
            super().connection_lost(exc)

    return PatientProtocol
