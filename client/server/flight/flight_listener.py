"""The Flight SQL listener of a server."""

from __future__ import annotations

import logging
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
    ) -> None:
        self._socket = socket
        self._authenticator = authenticator
        self._host, self._port = host, port
        self._tls = tls
        self._limits = limits or FlightLimits()
        self._stopping = threading.Event()
        self.clients = ClientSessions(sessions, clock or SystemClock(), self._limits, self._stopping.is_set)
        self._server: FlightServer | None = None

    @property
    def address(self) -> str:
        """Host and port, with the port it got; or the path of its socket."""
        if self._socket is not None:
            return str(self._socket)
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port if self._server is None else self._server.port}"

    def start(self) -> None:
        """Listen. CLI-6203 when the address is not free."""
        scheme = "grpc+unix" if self._socket is not None else "grpc" if self._tls is None else "grpc+tls"
        identity = IdentityMiddlewareFactory(self._authenticator, tls=self._tls is not None)
        options: dict[str, Any] = {"auth_handler": NoHandshake(), "middleware": {NAME: identity}}
        if self._tls is not None:
            certificate, key = (path.read_bytes() for path in self._tls)
            options["tls_certificates"] = [(certificate, key)]
        try:
            self._server = FlightServer(f"{scheme}://{self.address}", self.clients, self._limits, **options)
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
        self.clients.close_all()

    def _shut_down(self, shutdown: Callable[[], None], ended: threading.Event) -> None:
        shutdown()
        ended.set()

    def _sweep(self) -> None:
        while not self._stopping.wait(_SWEEP_S):
            self.clients.sweep()
