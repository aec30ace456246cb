"""Sessions of the Flight listener, found again at each call by token, cookie or connection."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.server.flight.call_identity import CallIdentity
from penstock.client.server.flight.limits import FlightLimits
from penstock.client.server.flight.statements import Statements
from penstock.client.server.principal import Principal
from penstock.client.server.server_sessions import ClientAddress, ServerSession, ServerSessions
from penstock.client.session import Session
from penstock.engine.api.clock import Clock

LISTENER = "flight"
_COOKIES_MOST = 4_096
"""Cookies that were sent and not come back yet; a client without cookies gets one at each call."""


@dataclass
class ClientSession:
    """A session with its statements. ``secret``: by which our own client names it. ``keys``: what finds it,
    each under its principal.
    """

    server: ServerSession
    statements: Statements
    secret: str
    keys: list[tuple[str, str]] = field(default_factory=list)
    used_ms: float = 0.0

    @property
    def engine(self) -> Session:
        """The session of the engine, which runs statements."""
        return self.server.connection.session  # type: ignore[return-value]  # a server's is of this process


class ClientSessions:
    """Finds the session of a call, or opens one. A key counts only for the principal who opened it."""

    def __init__(
        self, sessions: ServerSessions, clock: Clock, limits: FlightLimits, stopping: Callable[[], bool]
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._limits = limits
        self._stopping = stopping
        self._lock = threading.Lock()
        # two first calls of one client at once open one session
        self._opening = threading.Lock()
        self._by_key: dict[tuple[str, str], ClientSession] = {}
        self._cookies: OrderedDict[tuple[str, str], ClientSession] = OrderedDict()
        self._accepts = True

    def open(
        self, principal: Principal, address: str, settings: Mapping[str, str] | None = None
    ) -> ClientSession:
        """Open a session that its id finds. Raises PenstockError; CLI-6238 when the server closes."""
        if not self._accepts:
            hint = "connect again in a moment, or to the server that took over"
            raise PenstockError(
                "CLI-6238",
                "the server accepts no new sessions",
                hint=hint,
                kind=Kind.EXTERNAL,
                sqlstate="57P03",
            )
        server = self._sessions.open(principal, ClientAddress(LISTENER, address), settings)
        engine: Session = server.connection.session  # type: ignore[assignment]  # a server's is of this process
        statements = Statements(engine, self._clock, self._limits, self._stopping)
        # not the id that everybody sees in lists: who knows it runs statements in the session
        made = ClientSession(server, statements, secrets.token_urlsafe(18))
        made.used_ms = self._clock.monotonic_ms()
        self._add_key(made, (principal.name, f"id:{made.secret}"))
        return made

    def of_call(self, identity: CallIdentity, peer: str) -> ClientSession:
        """Return the session of a call; one is opened for a stock client that has none. CLI-6231 for our own
        client's session that is not there any more.
        """
        name = identity.principal.name
        if identity.session_id is not None:
            found = self._by_key.get((name, f"id:{identity.session_id}"))
            if found is None:
                raise _gone()
            return self._used(found)
        with self._opening:
            return self._used(self._of_stock_client(identity, peer))

    def _of_stock_client(self, identity: CallIdentity, peer: str) -> ClientSession:
        name = identity.principal.name
        # the connection last: a client behind a proxy shares it with others
        keys = [(name, f"{kind}:{value}") for kind, value in _names(identity, peer)]
        with self._lock:
            found = next((self._by_key[key] for key in keys if key in self._by_key), None)
            if found is None and identity.cookie is not None:
                found = self._cookies.pop((name, f"cookie:{identity.cookie}"), None)
                # a cookie that came back is kept as long as its session
                if found is not None:
                    self._by_key[(name, f"cookie:{identity.cookie}")] = found
                    found.keys.append((name, f"cookie:{identity.cookie}"))
        if found is None:
            found = self.open(identity.principal, peer)
            self._add_key(found, keys[0] if identity.token is not None else keys[-1])
        if identity.cookie is not None:
            self._offer_cookie(found, (name, f"cookie:{identity.cookie}"))
        return found

    def close(self, session: ClientSession) -> None:
        """Stop the queries of a session and forget it; jobs of INSERT and materialized views go on."""
        with self._lock:
            for key in session.keys:
                self._by_key.pop(key, None)
            for key in [key for key, each in self._cookies.items() if each is session]:
                del self._cookies[key]
        session.statements.close()
        session.server.close()

    def all(self) -> list[ClientSession]:
        """Return the open sessions, each once."""
        with self._lock:
            return list({id(each): each for each in self._by_key.values()}.values())

    def sweep(self) -> None:
        """Stop results that nobody came for, and close sessions that were idle for too long, or closed
        elsewhere.
        """
        now_ms = self._clock.monotonic_ms()
        # what the operator says, else a bound: a client that was killed says nothing
        idle_ms = (self._sessions.limits.idle_s or self._limits.idle_s) * 1e3
        for session in self.all():
            session.statements.drop_unread()
            idle = now_ms - session.used_ms > idle_ms and not session.statements.is_busy
            if idle or self._sessions.find(session.server.session_id) is None:
                self.close(session)

    def stop_accepting(self) -> None:
        """Open no more sessions."""
        self._accepts = False

    def end_statements(self) -> None:
        """Stop what runs in every session, and open no more sessions."""
        self.stop_accepting()
        for session in self.all():
            session.statements.close()

    def close_all(self) -> None:
        """Close every session."""
        self.stop_accepting()
        for session in self.all():
            self.close(session)

    def _used(self, session: ClientSession) -> ClientSession:
        session.used_ms = self._clock.monotonic_ms()
        return session

    def _add_key(self, session: ClientSession, key: tuple[str, str]) -> None:
        with self._lock:
            self._by_key[key] = session
            session.keys.append(key)

    def _offer_cookie(self, session: ClientSession, key: tuple[str, str]) -> None:
        with self._lock:
            if key not in self._by_key:
                self._cookies[key] = session
            while len(self._cookies) > _COOKIES_MOST:
                self._cookies.popitem(last=False)


def _names(identity: CallIdentity, peer: str) -> list[tuple[str, str]]:
    """Return what may name the session of a stock client, the surest first."""
    token = [] if identity.token is None else [("token", identity.token)]
    cookie = [] if identity.cookie is None else [("cookie", identity.cookie)]
    return [*token, *cookie, ("peer", peer)]


def _gone() -> PenstockError:
    return PenstockError(
        "CLI-6231",
        "the session is not there any more: the server was started again, or it was idle for too long",
        hint="connect again; jobs of INSERT and materialized views continue",
        kind=Kind.EXTERNAL,
        sqlstate="08003",
    )
