"""SCRAM-SHA-256 verifiers: what a server stores of a password (RFC 5802, RFC 7677)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import stringprep
import unicodedata
from dataclasses import dataclass

from penstock.catalog.errors import PenstockError

ITERATIONS = 16_384
"""Of PBKDF2 for new passwords. PostgreSQL uses 4,096; one log-in costs about 10 ms at this number."""
SALT_BYTES = 16
_MECHANISM = "SCRAM-SHA-256"


@dataclass(frozen=True)
class ScramSecret:
    """What is stored of a password. It proves a password right or wrong and does not contain it."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def accepts(self, password: str) -> bool:
        """Return whether a password is the one of this secret."""
        keys = _keys(password, self.salt, self.iterations)
        # compare_digest: the time of the answer does not tell how much was right
        return hmac.compare_digest(keys[0], self.stored_key)

    def to_text(self) -> str:
        """Return the secret as PostgreSQL writes it: ``SCRAM-SHA-256$iterations:salt$stored:server``."""
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{_MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def derive_secret(password: str, salt: bytes, iterations: int = ITERATIONS) -> ScramSecret:
    """Return the secret of a new password. ``salt`` is random, SALT_BYTES long."""
    stored, server = _keys(password, salt, iterations)
    return ScramSecret(salt, iterations, stored, server)


def parse_secret(text: str) -> ScramSecret:
    """Return the secret that ``ScramSecret.to_text`` wrote. Raise CLI-6212 for another text."""
    try:
        mechanism, derivation, keys = text.split("$")
        iterations, _, salt = derivation.partition(":")
        stored, _, server = keys.partition(":")
        if mechanism != _MECHANISM:
            raise ValueError
        decoded = [base64.b64decode(part, validate=True) for part in (salt, stored, server)]
        return ScramSecret(decoded[0], int(iterations), decoded[1], decoded[2])
    except ValueError:
        raise PenstockError(
            "CLI-6212",
            "the file of users has a password secret that is not of SCRAM-SHA-256",
            hint="penstock user add NAME writes it anew",
        ) from None


def mock_secret(user: str, server_salt: bytes) -> ScramSecret:
    """Return the secret shown for a user that does not exist. It is the same at each attempt and accepts no
    password, so an attacker cannot tell it from a real one. ``server_salt`` is secret.
    """
    salt = hmac.digest(server_salt, b"salt:" + user.encode(), "sha256")[:SALT_BYTES]
    stored = hmac.digest(server_salt, b"stored:" + user.encode(), "sha256")
    server = hmac.digest(server_salt, b"server:" + user.encode(), "sha256")
    return ScramSecret(salt, ITERATIONS, stored, server)


def prepare_password(password: str) -> str:
    """Return a password in the form that is hashed (SASLprep, RFC 4013). A password with characters that
    SASLprep prohibits stays as it is, as in PostgreSQL.
    """
    # letters and digits of ASCII: nothing changes
    if password.isascii() and password.isprintable():
        return password
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter
        for letter in password
        if not stringprep.in_table_b1(letter)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    return password if not prepared or any(map(_is_prohibited, prepared)) else prepared


_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def _is_prohibited(letter: str) -> bool:
    return any(is_in(letter) for is_in in _PROHIBITED)


def _keys(password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """Return the stored key and the server key of RFC 5802, section 3."""
    salted = hashlib.pbkdf2_hmac("sha256", prepare_password(password).encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")
