"""The sessions of a server's clients."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.client.connection import Connection
from penstock.client.execution.access_control import AccessControl
from penstock.client.server.principal import Principal
from penstock.client.server.security.audit_log import AuditEvent, AuditLog
from penstock.client.server.session_limits import (
    SessionLimits,
    StatementGate,
    not_accepting,
    too_many_sessions,
)
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
    address and a session id may do; without it every session may do all. ``audit``: takes a line for each
    session that is opened or closed. ``refusal``: why no session is opened now, "" when they are.
    """

    def __init__(
        self,
        open_engine_session: Callable[[Mapping[str, str]], Session],
        wall_ms: Callable[[], int],
        access_for: Callable[[Principal, ClientAddress, str], AccessControl] | None = None,
        limits: SessionLimits | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        self._access_for = access_for
        self._audit = audit
        self._open_engine_session = open_engine_session
        self._wall_ms = wall_ms
        self.limits = limits or SessionLimits()
        self.gate = StatementGate(self.limits)
        self.refusal = ""
        self._numbers = itertools.count(1)
        self._sessions: dict[str, ServerSession] = {}
        # sessions that are being opened count as well
        self._count = 0
        self._lock = threading.Lock()

    def open(
        self, principal: Principal, client: ClientAddress, settings: Mapping[str, str] | None = None
    ) -> ServerSession:
        """Open a session for a client that was authenticated. CLI-6201 while the server waits or ends,
        CLI-6202 beyond the limit, SQL-14xx for a wrong setting.
        """
        if self.refusal:
            raise not_accepting(self.refusal)
        with self._lock:
            if self.limits.sessions and self._count >= self.limits.sessions:
                raise too_many_sessions(self.limits.sessions)
            self._count += 1
        try:
            engine = self._open_engine_session(settings or {})
        except BaseException:
            with self._lock:
                self._count -= 1
            raise
        engine.state.admit, engine.state.max_results = self.gate.admit, self.limits.results
        engine.state.memory.limit_bytes = self.limits.session_memory_bytes
        session_id = f"s{next(self._numbers)}"
        # whichever session asks, system.sessions has those of the server
        engine.state.system_tables.provide("sessions", self.rows)
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
        self._record(AuditEvent.LOGGED_IN, session)
        return session

    def find(self, session_id: str) -> ServerSession | None:
        """Return the open session of that id."""
        return self._sessions.get(session_id)

    def all(self) -> list[ServerSession]:
        """Return the open sessions, oldest first."""
        with self._lock:
            return list(self._sessions.values())

    def close_idle(self, now_ms: float) -> list[ServerSession]:
        """Close the sessions that have been idle for longer than the limit, and return them. ``now_ms`` is of
        the clock of the sessions.
        """
        if not self.limits.idle_s:
            return []
        limit_ms = self.limits.idle_s * 1e3
        idle = [
            session
            for session in self.all()
            if (since_ms := session.connection.session.state.idle_since_ms) is not None
            and now_ms - since_ms > limit_ms
        ]
        for session in idle:
            session.close()
        return idle

    def look_at_memory(self) -> None:
        """End the largest result of each session that takes more memory than it may."""
        if self.limits.session_memory_bytes:
            for session in self.all():
                session.connection.session.state.memory.look()

    def rows(self) -> pa.Table:
        """Return the rows of ``system.sessions``."""
        from penstock.client.monitoring.system_rows import system_rows  # with the first query of the table

        return system_rows(
            "sessions",
            [
                {
                    "session": one.session_id,
                    "principal": one.principal.name,
                    "role": str(one.principal.role),
                    "listener": one.client.listener,
                    "address": one.client.address,
                    "opened_at": one.opened_ms,
                }
                for one in self.all()
            ],
        )

    def _closed(self, session: ServerSession) -> None:
        with self._lock:
            is_open = self._sessions.pop(session.session_id, None) is not None
            self._count -= is_open
        if is_open:
            self._record(AuditEvent.LOGGED_OUT, session)
        session.connection.close()

    def _record(self, event: AuditEvent, session: ServerSession) -> None:
        if self._audit is not None:
            client = f"{session.client.listener} {session.client.address}"
            self._audit.record(event, session.principal, client, session=session.session_id)
