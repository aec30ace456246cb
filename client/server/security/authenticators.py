"""Authenticators: by a file of users, and none for a server that only this machine reaches."""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.client.server.listener import Authenticator, ScramVerifier
from penstock.client.server.principal import LOCAL, Principal
from penstock.client.server.security.audit_log import AuditEvent, AuditLog
from penstock.client.server.security.scram import ScramSecret, mock_secret
from penstock.client.server.security.user_file import Users, digest_token, read_users


class OpenAuthenticator:
    """Every client is LOCAL. Only for a server that listens on the loopback interface."""

    required = False

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._server_salt = random_bytes(32)

    def by_token(self, token: str) -> Principal:
        """Return LOCAL, whatever the token is."""
        return LOCAL

    def by_password(self, user: str, password: str) -> Principal:
        """Return LOCAL, whatever the password is."""
        return LOCAL

    def scram_verifier(self, user: str) -> ScramSecret:
        """Return a secret that accepts no password: a listener does not ask for one here."""
        return mock_secret(user, self._server_salt)

    def by_scram(self, user: str) -> Principal:
        """Return LOCAL."""
        return LOCAL

    def refuse(self, user: str) -> PenstockError:
        """Return CLI-6210; no client is asked for a proof here."""
        return _unknown()


class FileAuthenticator:
    """Looks users and tokens up in a file. A changed file counts at the next log-in, so a user who is
    removed cannot log in again; sessions that are open stay open.

    Raises CLI-6210 for a client it does not know, with the same sentence whatever was wrong. An unknown
    user costs one key derivation, like a known one.
    """

    required = True

    def __init__(self, path: Path, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._path = path
        self._server_salt = random_bytes(32)
        self._lock = threading.Lock()
        self._read_at: tuple[int, int, int] | None = None
        # read now: a server does not start with a file that it cannot use
        self._users = self._current()

    def by_token(self, token: str) -> Principal:
        """Return the principal of a bearer token."""
        digest = digest_token(token)
        for name, known in self._current().tokens.items():
            if hmac.compare_digest(known.digest, digest):
                return Principal(name, known.role)
        raise _unknown()

    def by_password(self, user: str, password: str) -> Principal:
        """Return the principal of a user and a password that came over TLS."""
        known = self._current().users.get(user)
        secret = known.secret if known is not None else mock_secret(user, self._server_salt)
        # before the test of known: both ways take as long
        accepted = secret.accepts(password)
        if known is None or not accepted:
            raise _unknown()
        return Principal(user, known.role)

    def scram_verifier(self, user: str) -> ScramSecret:
        """Return what a user's proof is checked against; for an unknown user a secret that none fits."""
        known = self._current().users.get(user)
        return known.secret if known is not None else mock_secret(user, self._server_salt)

    def by_scram(self, user: str) -> Principal:
        """Return the principal of a user whose proof was right."""
        known = self._current().users.get(user)
        if known is None:
            raise _unknown()
        return Principal(user, known.role)

    def refuse(self, user: str) -> PenstockError:
        """Return CLI-6210."""
        return _unknown()

    def _current(self) -> Users:
        """Return the users of the file as it is now."""
        with self._lock:
            try:
                stat = self._path.stat()
                version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            except OSError:
                version = None
            # a missing file is read as well: the error of the read says so
            if version is None or version != self._read_at:
                self._users, self._read_at = read_users(self._path), version
            return self._users


class AuditedAuthenticator:
    """Asks another authenticator, and writes a line for each client that it refuses."""

    def __init__(self, inner: Authenticator, audit: AuditLog) -> None:
        self.required = inner.required
        self._inner = inner
        self._audit = audit

    def by_token(self, token: str) -> Principal:
        """Return the principal of a bearer token, which is not written into the line."""
        return self._ask("", lambda: self._inner.by_token(token))

    def by_password(self, user: str, password: str) -> Principal:
        """Return the principal of a user and a password."""
        return self._ask(user, lambda: self._inner.by_password(user, password))

    def scram_verifier(self, user: str) -> ScramVerifier:
        """Return what a user's proof is checked against; ``refuse`` is called when it is wrong."""
        return self._inner.scram_verifier(user)

    def by_scram(self, user: str) -> Principal:
        """Return the principal of a user whose proof was right."""
        return self._ask(user, lambda: self._inner.by_scram(user))

    def refuse(self, user: str) -> PenstockError:
        """Return the error for a user whose proof was wrong, and write its line."""
        error = self._inner.refuse(user)
        self._audit.record(AuditEvent.LOGIN_REFUSED, user=user, code=error.code)
        return error

    def _ask(self, user: str, ask: Callable[[], Principal]) -> Principal:
        try:
            return ask()
        except PenstockError as error:
            self._audit.record(AuditEvent.LOGIN_REFUSED, user=user, code=error.code)
            raise


def _unknown() -> PenstockError:
    return PenstockError(
        "CLI-6210",
        "the user, password or token is not known to this server",
        hint="penstock user list shows the users; penstock user add NAME sets a password",
        sqlstate="28P01",
    )
