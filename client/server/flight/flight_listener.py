"""The Flight SQL listener of a server.

With users, a relay listens before it, which limits what clients send before they are authenticated.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.server.flight.call_identity import NAME, IdentityMiddlewareFactory, NoHandshake
from penstock.client.server.flight.client_sessions import LISTENER, ClientSessions
from penstock.client.server.flight.flight_server import FlightServer
from penstock.client.server.flight.limits import FlightLimits
from penstock.client.server.flight.relay import Relay, is_supported, listening_socket
from penstock.client.server.flight.stranger_limits import StrangerLimits
from penstock.client.server.listener import Authenticator
from penstock.client.server.server_sessions import ServerSessions
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.api.threads import EngineThread

_LOG = logging.getLogger("penstock.server.flight")
_SWEEP_S = 1.0  # how often idle sessions and results without a reader are looked for
_CLOSE_S = 0.9
"""How long ``close`` waits. A stream whose client has stopped reading is inside gRPC, which nothing
interrupts.
"""


class FlightListener:
    """Serves Flight SQL on one address. ``tls``: the paths of certificate and key in PEM."""

    name = LISTENER

    def __init__(
        self,
        sessions: ServerSessions,
        authenticator: Authenticator,
        host: str,
        port: int,
        *,
        tls: tuple[Path, Path] | None = None,
        limits: FlightLimits | None = None,
        clock: Clock | None = None,
        socket: Path | None = None,
        strangers: StrangerLimits | None = None,
    ) -> None:
        self._socket = socket
        self._authenticator = authenticator
        self._host, self._port = host, port
        self._tls = tls
        self._limits = limits or FlightLimits()
        self._stopping = threading.Event()
        self._clock = clock or SystemClock()
        self.clients = ClientSessions(sessions, self._clock, self._limits, self._stopping.is_set)
        self._strangers = strangers or StrangerLimits()
        self._server: FlightServer | None = None
        self._relay: Relay | None = None

    @property
    def address(self) -> str:
        """Host and port, with the port it got; or the path of its socket."""
        if self._socket is not None:
            return str(self._socket)
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    @property
    def refused_strangers(self) -> int:
        """How many connections were closed before they were authenticated."""
        return 0 if self._relay is None else self._relay.strangers.refused

    def start(self) -> None:
        """Listen. CLI-6203 when the address is not free."""
        scheme = "grpc+unix" if self._socket is not None else "grpc" if self._tls is None else "grpc+tls"
        identity = IdentityMiddlewareFactory(self._authenticator, tls=self._tls is not None)
        options: dict[str, Any] = {"auth_handler": NoHandshake(), "middleware": {NAME: identity}}
        if self._tls is not None:
            certificate, key = (path.read_bytes() for path in self._tls)
            options["tls_certificates"] = [(certificate, key)]
        # a server without users lets everybody in: there are no strangers
        relayed = self._authenticator.required and self._socket is None and is_supported()
        address = "127.0.0.1:0" if relayed else self.address
        try:
            listening = listening_socket(self._host, self._port) if relayed else None
            self._server = FlightServer(f"{scheme}://{address}", self.clients, self._limits, **options)
            if listening is not None:
                self._relay_from(listening)
            elif self._socket is None:
                self._port = self._server.port
        except (pa.ArrowException, OSError) as error:
            hint = "choose another port, or end what listens there"
            raise PenstockError(
                "CLI-6203",
                f"Flight SQL cannot listen on {self.address}",
                detail=str(error)[:200],
                hint=hint,
                kind=Kind.EXTERNAL,
                sqlstate="55006",
            ) from error
        EngineThread(self._sweep, "penstock-flight-sweep").start()

    def _relay_from(self, listening: socket.socket) -> None:
        assert self._server is not None
        self._port = listening.getsockname()[1]
        now_s = self._clock.monotonic_ms
        self._relay = Relay(
            listening, ("127.0.0.1", self._server.port), self._strangers, lambda: now_s() / 1e3
        )
        self._server.client_of = self._relay.client_of
        self._relay.start()

    def stop_accepting(self) -> None:
        """Refuse new sessions; those that are open go on."""
        self.clients.stop_accepting()

    def close(self) -> None:
        """End every stream and session within a second."""
        # first: a generator that waits for rows sees it, and gRPC waits for generators
        self._stopping.set()
        self.clients.end_statements()
        if self._server is not None:
            ended = threading.Event()
            EngineThread(self._shut_down, "penstock-flight-close", (self._server.shutdown, ended)).start()
            if not ended.wait(_CLOSE_S):
                _LOG.warning("the Flight listener closes, and a client that reads nothing is still connected")
        if self._relay is not None:
            self._relay.close()
        self.clients.close_all()

    def _shut_down(self, shutdown: Callable[[], None], ended: threading.Event) -> None:
        shutdown()
        ended.set()

    def _sweep(self) -> None:
        while not self._stopping.wait(_SWEEP_S):
            self.clients.sweep()
