"""The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without I/O."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.server.listener import ScramVerifier

MECHANISM = "SCRAM-SHA-256"
_NO_BINDING = ("n", "y")
"""What a client writes that binds no channel. ``p=`` does, by a mechanism that is not offered."""


class ScramExchange:
    """One exchange: ``first`` answers the client's first message, ``final`` checks its proof. The password
    itself never comes here. Raises CLI-6222 for messages that are none of SCRAM, CLI-6210 for a wrong proof.
    """

    def __init__(self, verifier: ScramVerifier, nonce: str, refused: Callable[[], PenstockError]) -> None:
        self._verifier = verifier
        self._server_nonce = nonce
        self._refused = refused
        self._header = ""
        self._nonce = ""
        self._first_bare = ""
        self._server_first = ""

    def first(self, payload: bytes) -> bytes:
        """Return salt, iterations and the nonce of both sides."""
        text = _text(payload)
        binding, separator, rest = text.partition(",")
        name, comma, bare = rest.partition(",")
        if binding not in _NO_BINDING or not separator or not comma:
            raise _malformed("its first message binds a channel, or has no header")
        values = _values(bare)
        # n=: the user of the start-up counts, as PostgreSQL's clients know
        if "n" not in values or not values.get("r"):
            raise _malformed("its first message has no nonce")
        self._header, self._first_bare = f"{binding},{name},", bare
        self._nonce = values["r"] + self._server_nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def final(self, payload: bytes) -> bytes:
        """Check the client's proof, and return the server's own."""
        text = _text(payload)
        without_proof, _, proof_text = text.rpartition(",p=")
        values = _values(without_proof)
        if _decoded(values.get("c", "")) != self._header.encode() or values.get("r") != self._nonce:
            raise _malformed("its last message is of another exchange")
        proof = _decoded(proof_text)
        said = f"{self._first_bare},{self._server_first},{without_proof}".encode()
        signature = _hmac(self._verifier.stored_key, said)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        is_right = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        if len(proof) != len(signature) or not is_right:
            raise self._refused()
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, said))


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise _malformed("a message is no UTF-8") from None


def _values(text: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("a value is no base64") from None


def _malformed(why: str) -> PenstockError:
    return PenstockError(
        "CLI-6222",
        f"the client's {MECHANISM} cannot be read: {why}",
        hint="connect with a driver that speaks SCRAM-SHA-256, such as libpq 10 or later",
        kind=Kind.EXTERNAL,
        sqlstate="28P01",
    )
