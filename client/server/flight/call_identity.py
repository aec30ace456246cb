"""Who calls, and for which session: read of the headers before anything of the call itself."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from pyarrow import flight

from penstock.catalog.errors import PenstockError
from penstock.client.remote.protocol import SESSION_HEADER, VERSION_HEADER
from penstock.client.server.flight.flight_errors import flight_error
from penstock.client.server.listener import Authenticator
from penstock.client.server.principal import LOCAL, Principal

NAME = "identity"
COOKIE = "arrow_flight_session_id"
_TOKENS_MOST = 100_000
"""Bearer tokens of handshakes; the oldest go. A client whose token went authenticates again."""


@dataclass(frozen=True)
class CallIdentity:
    """The principal of a call, and what names its session: the header of our own client, the token of a
    handshake, or a cookie. None of them: its connection does.
    """

    principal: Principal
    session_id: str | None = None
    token: str | None = None
    cookie: str | None = None
    is_own_client: bool = False


class IdentityMiddleware(flight.ServerMiddleware):
    """Carries the identity of one call to its handler, and a new token or cookie back."""

    def __init__(self, identity: CallIdentity, answer: Mapping[str, str]) -> None:
        self.identity = identity
        self._answer = dict(answer)

    def sending_headers(self) -> dict[str, str]:
        """Return the headers of the answer."""
        return self._answer


class IdentityMiddlewareFactory(flight.ServerMiddlewareFactory):
    """Authenticates each call by its headers. A client that is refused gets the sentence of CLI-6210."""

    def __init__(self, authenticator: Authenticator, *, tls: bool) -> None:
        super().__init__()
        self._authenticator = authenticator
        self._tls = tls
        self._tokens: OrderedDict[str, Principal] = OrderedDict()
        self._lock = threading.Lock()

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[Any]]) -> IdentityMiddleware:
        """Return the middleware of one call."""
        try:
            return self._identify(info, headers)
        except Exception as error:
            raise flight_error(error) from error

    def _identify(self, info: flight.CallInfo, headers: Mapping[str, Sequence[Any]]) -> IdentityMiddleware:
        principal, token, answer = self._authenticate(_text(headers, "authorization"))
        cookie = _cookie(headers)
        # a handshake opens no session; every other call without a cookie may get one
        if cookie is None and token is None and info.method is not flight.FlightMethod.HANDSHAKE:
            cookie = secrets.token_urlsafe(18)
            answer["set-cookie"] = f"{COOKIE}={cookie}; Path=/; HttpOnly"
        identity = CallIdentity(
            principal,
            _text(headers, SESSION_HEADER),
            token,
            cookie,
            _text(headers, VERSION_HEADER) is not None,
        )
        return IdentityMiddleware(identity, answer)

    def _authenticate(self, authorization: str | None) -> tuple[Principal, str | None, dict[str, str]]:
        """Return who calls, the token of its handshake, and the headers that tell the client a new one."""
        word, _, value = (authorization or "").partition(" ")
        value = value.strip()
        if word.lower() == "bearer" and (known := self._tokens.get(value)) is not None:
            return known, value, {}
        if word.lower() == "basic":
            user, _, password = _basic(value).partition(":")
            principal = (
                self._authenticator.by_password(user, password) if self._authenticator.required else LOCAL
            )
            token = self._issue(principal)
            return principal, token, {"authorization": f"Bearer {token}"}
        if not self._authenticator.required:
            return LOCAL, None, {}
        # an empty token is refused like a wrong one, with the same sentence
        return self._authenticator.by_token(value if word.lower() == "bearer" else ""), None, {}

    def _issue(self, principal: Principal) -> str:
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens[token] = principal
            while len(self._tokens) > _TOKENS_MOST:
                self._tokens.popitem(last=False)
        return token


class NoHandshake(flight.ServerAuthHandler):
    """The old handshake of Flight, which decides nothing: headers say who calls."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Accept."""

    def is_valid(self, token: bytes) -> bytes:
        """Accept."""
        return b""


def _text(headers: Mapping[str, Sequence[Any]], name: str) -> str | None:
    # names of headers come in lower case, except from some proxies
    for key, values in headers.items():
        if key.lower() == name and values:
            value = values[0]
            return value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return None


def _cookie(headers: Mapping[str, Sequence[Any]]) -> str | None:
    try:
        found = SimpleCookie(_text(headers, "cookie") or "").get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _basic(value: str) -> str:
    try:
        # drivers in Go leave the padding out
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        hint = "send user:password in base64, as drivers do"
        raise PenstockError("CLI-6210", "not authenticated", hint=hint, sqlstate="28P01") from error
