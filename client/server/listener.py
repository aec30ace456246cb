"""What a server asks of each of its listeners: Flight SQL, the PostgreSQL wire, the web page, the control
socket.
"""

from __future__ import annotations

from typing import Protocol

from penstock.catalog.errors import PenstockError
from penstock.client.server.principal import Principal


class Listener(Protocol):
    """Accepts clients on one address. ``name`` is the word of logs and of ``ClientAddress``."""

    name: str

    @property
    def address(self) -> str:
        """Where it listens, with the port it got: ``127.0.0.1:5433`` or a path."""

    def start(self) -> None:
        """Listen. Raises PenstockError (CLI-6203) when the address is not free."""

    def stop_accepting(self) -> None:
        """Refuse new clients; those that are connected go on."""

    def close(self) -> None:
        """End the connections that are left, within a second."""


class Authenticator(Protocol):
    """Says who a client is. Every method raises CLI-6210 (SQLSTATE 28P01) for a client it does not know, with
    the same sentence and in the same time, whatever was wrong.
    """

    required: bool
    """False on a loopback server without users: every client is ``LOCAL``."""

    def by_token(self, token: str) -> Principal:
        """Return the principal of a bearer token."""

    def by_password(self, user: str, password: str) -> Principal:
        """Return the principal of a user and password (TLS only)."""

    def scram_verifier(self, user: str) -> ScramVerifier:
        """Return what SCRAM-SHA-256 checks a user's proof against; for an unknown user one that no password
        fits.
        """

    def by_scram(self, user: str) -> Principal:
        """Return the principal of a user whose SCRAM proof was right."""

    def refuse(self, user: str) -> PenstockError:
        """Return the error for a user whose SCRAM proof was wrong: CLI-6210."""


class ScramVerifier(Protocol):
    """RFC 5802: what a server stores of a password."""

    @property
    def salt(self) -> bytes: ...

    @property
    def iterations(self) -> int: ...

    @property
    def stored_key(self) -> bytes: ...

    @property
    def server_key(self) -> bytes: ...
