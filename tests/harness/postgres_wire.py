"""A server of the PostgreSQL wire in this process, and what tests connect to it."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.client.server.postgres.listener import PostgresListener
from penstock.client.server.principal import LOCAL, Principal
from penstock.client.server.server_sessions import ServerSessions
from penstock.client.session import Session


class Trust:
    """Every client is LOCAL, as on a loopback server without users."""

    required = False


@dataclass(frozen=True)
class Verifier:
    """What a server stores of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def verifier(password: str, salt: bytes = b"salt of the test", iterations: int = 4096) -> Verifier:
    """Return the verifier of a password (RFC 5802)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    return Verifier(salt, iterations, hashlib.sha256(client_key).digest(), server_key)


class Users:
    """Users with passwords; ``asked`` are the names whose verifiers were looked for."""

    required = True

    def __init__(self, passwords: dict[str, str]) -> None:
        self._passwords = passwords
        self.asked: list[str] = []

    def by_password(self, user: str, password: str) -> Principal:
        if self._passwords.get(user) != password:
            raise PenstockError("CLI-6210", "the user or its password is wrong", sqlstate="28P01")
        return Principal(user, LOCAL.role)

    def scram_verifier(self, user: str) -> Verifier:
        self.asked.append(user)
        return verifier(self._passwords.get(user, "no password fits \0"))

    def by_scram(self, user: str) -> Principal:
        return Principal(user, LOCAL.role)

    def refuse(self, user: str) -> PenstockError:
        return PenstockError("CLI-6210", "the user or its password is wrong", sqlstate="28P01")


@contextmanager
def postgres_server(
    authenticator: Any = None, *, session: Callable[[Any], Session] | None = None, **options: Any
) -> Iterator[PostgresListener]:
    """Serve on a free port; each client has an engine of its own, or what ``session`` returns."""
    own = session or (lambda settings: Session({"bounded.backend": "duckdb", **settings}))
    sessions = ServerSessions(own, lambda: 0)
    listener = PostgresListener(sessions, authenticator or Trust(), port=0, **options)
    listener.start()
    try:
        yield listener
    finally:
        listener.close()
        for session in sessions.all():
            session.close()


def server_tls(authority: Any) -> ssl.SSLContext:
    """Return the server's side of TLS, with a certificate of an authority of ``trustme``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context
