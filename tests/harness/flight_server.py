"""A Flight SQL listener of this process for tests, with users and an engine for each session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.client.server.flight.flight_listener import FlightListener
from penstock.client.server.flight.limits import FlightLimits
from penstock.client.server.listener import ScramVerifier
from penstock.client.server.principal import Principal, PrincipalRole
from penstock.client.server.server_sessions import ServerSessions
from penstock.client.session import Session
from penstock.engine.api.clock import Clock

SETTINGS = {"bounded.backend": "duckdb"}


class TestAuthenticator:
    """Knows the users and tokens of a test; without any it lets everybody in."""

    __test__ = False

    def __init__(
        self, users: Mapping[str, str] | None = None, tokens: Mapping[str, str] | None = None
    ) -> None:
        self.required = users is not None or tokens is not None
        self._users = users or {}
        self._tokens = tokens or {}

    def by_token(self, token: str) -> Principal:
        if token not in self._tokens:
            raise self._refused()
        return Principal(self._tokens[token], PrincipalRole.RUN)

    def by_password(self, user: str, password: str) -> Principal:
        if self._users.get(user) != password:
            raise self._refused()
        return Principal(user, PrincipalRole.RUN)

    def scram_verifier(self, user: str) -> ScramVerifier:
        raise AssertionError("Flight has no SCRAM")

    def refuse(self, user: str) -> PenstockError:
        raise AssertionError("Flight has no SCRAM")

    def by_scram(self, user: str) -> Principal:
        raise AssertionError("Flight has no SCRAM")

    def _refused(self) -> PenstockError:
        return PenstockError("CLI-6210", "not authenticated", hint="pass a user or token", sqlstate="28P01")


def engine_session(settings: Mapping[str, str]) -> Session:
    """Return a session with an engine of its own."""
    return Session({**SETTINGS, **settings})


@contextmanager
def flight_listener(
    authenticator: TestAuthenticator | None = None,
    *,
    limits: FlightLimits | None = None,
    tls: tuple[Path, Path] | None = None,
    clock: Clock | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[FlightListener]:
    """Yield a listener that is started, and close it."""
    sessions = ServerSessions(engine_session, lambda: 0)
    listener = FlightListener(
        sessions, authenticator or TestAuthenticator(), host, port, tls=tls, limits=limits, clock=clock
    )
    listener.start()
    try:
        yield listener
    finally:
        listener.close()


def jobs_of(listener: FlightListener) -> list[Any]:
    """Return the jobs of all sessions."""
    return [job for session in listener.clients.all() for job in session.engine.jobs()]
