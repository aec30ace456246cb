"""The sessions of a server's clients."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.client.connection import Connection
from penstock.client.execution.access_control import AccessControl
from penstock.client.server.principal import Principal
from penstock.client.session import Session


@dataclass(frozen=True)
class ClientAddress:
    """Where a client comes from: ``listener`` is flight, postgres, web or control; ``address`` its host and
    port, or the name of the socket.
    """

    listener: str
    address: str


@dataclass
class ServerSession:
    """One client's session: statements run by ``connection``, which any thread may use with a cursor of its
    own.
    """

    session_id: str
    principal: Principal
    client: ClientAddress
    connection: Connection
    opened_ms: int
    on_close: Callable[[ServerSession], None] = field(repr=False)

    def close(self) -> None:
        """Stop the session's queries and forget it; jobs of INSERT and materialized views go on."""
        self.on_close(self)


class ServerSessions:
    """Opens, lists and closes sessions. ``open_engine_session`` returns a session with settings of its own
    over the catalog and jobs that all share. ``access_for`` returns what the session of a principal, a client
    address and a session id may do; without it every session may do all.
    """

    def __init__(
        self,
        open_engine_session: Callable[[Mapping[str, str]], Session],
        wall_ms: Callable[[], int],
        access_for: Callable[[Principal, ClientAddress, str], AccessControl] | None = None,
    ) -> None:
        self._access_for = access_for
        self._open_engine_session = open_engine_session
        self._wall_ms = wall_ms
        self._numbers = itertools.count(1)
        self._sessions: dict[str, ServerSession] = {}
        self._lock = threading.Lock()

    def open(
        self, principal: Principal, client: ClientAddress, settings: Mapping[str, str] | None = None
    ) -> ServerSession:
        """Open a session for a client that was authenticated. Raises PenstockError."""
        engine = self._open_engine_session(settings or {})
        session_id = f"s{next(self._numbers)}"
        if self._access_for is not None:
            engine.restrict(self._access_for(principal, client, session_id))
        with self._lock:
            session = ServerSession(
                session_id,
                principal,
                client,
                Connection(engine),
                self._wall_ms(),
                self._closed,
            )
            self._sessions[session.session_id] = session
        return session

    def find(self, session_id: str) -> ServerSession | None:
        """Return the open session of that id."""
        return self._sessions.get(session_id)

    def all(self) -> list[ServerSession]:
        """Return the open sessions, oldest first."""
        return list(self._sessions.values())

    def _closed(self, session: ServerSession) -> None:
        with self._lock:
            self._sessions.pop(session.session_id, None)
        session.connection.close()
