"""The sessions of web clients: a browser by its cookie, a program by its token, all others as ``LOCAL``."""

from __future__ import annotations

import hashlib
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.client.server.principal import LOCAL, Principal
from penstock.client.server.server_sessions import ClientAddress, ServerSession, ServerSessions
from penstock.client.server.web.error_response import TOO_MANY, UNAUTHENTICATED
from penstock.client.server.web.limits import WebLimits

if TYPE_CHECKING:
    from penstock.client.server.listener import Authenticator
    from penstock.engine.api.clock import Clock

COOKIE = "penstock_session"


@dataclass
class WebSession:
    """The session of one client; ``streams``: the streams of events it reads now."""

    session: ServerSession
    last_used_ms: float
    streams: int = 0


class WebSessions:
    """Finds and opens sessions. Keys are digests: what a client sends to identify itself is not stored."""

    def __init__(
        self, sessions: ServerSessions, authenticator: Authenticator, limits: WebLimits, clock: Clock
    ) -> None:
        self._sessions = sessions
        self._authenticator = authenticator
        self._limits = limits
        self._clock = clock
        self._by_key: dict[str, WebSession] = {}
        self._lock = threading.Lock()

    def find(self, cookie: str | None, authorization: str | None, address: str) -> WebSession:
        """Return the session of a request, opened with the first. CLI-6210 for a client that is not
        authenticated.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() == "bearer":
            # asked each time: a token that was revoked ends here
            principal = self._authenticator.by_token(token.strip())
            return self._open(_digest("token", token), principal, address)
        if cookie and (known := self._known(_digest("cookie", cookie))) is not None:
            return known
        if self._authenticator.required:
            raise PenstockError(
                UNAUTHENTICATED,
                "you are not signed in",
                hint="sign in, or send a bearer token",
                sqlstate="28P01",
            )
        # one session for all local clients: whoever reaches the port may do everything
        return self._open(_digest("local", ""), LOCAL, address)

    def sign_in(self, token: str | None, user: str | None, password: str | None, address: str) -> str:
        """Open a session for a browser and return its cookie. CLI-6210."""
        if token is not None:
            principal = self._authenticator.by_token(token)
        else:
            principal = self._authenticator.by_password(user or "", password or "")
        # 256 bits of chance: a cookie cannot be guessed, and none of before the sign-in is used
        cookie = secrets.token_urlsafe(32)
        self._open(_digest("cookie", cookie), principal, address)
        return cookie

    def sign_out(self, cookie: str | None) -> None:
        """Close the session of a browser."""
        if cookie:
            with self._lock:
                known = self._by_key.pop(_digest("cookie", cookie), None)
            if known is not None:
                known.session.close()

    @property
    def needs_sign_in(self) -> bool:
        """Whether clients must authenticate."""
        return self._authenticator.required

    def close(self) -> None:
        """Close all sessions."""
        with self._lock:
            sessions, self._by_key = list(self._by_key.values()), {}
        for one in sessions:
            one.session.close()

    def _known(self, key: str) -> WebSession | None:
        self._close_idle()
        with self._lock:
            known = self._by_key.get(key)
            if known is not None:
                known.last_used_ms = self._clock.monotonic_ms()
            return known

    def _open(self, key: str, principal: Principal, address: str) -> WebSession:
        if (known := self._known(key)) is not None:
            return known
        with self._lock:
            # another request of the same client may have been quicker
            if (raced := self._by_key.get(key)) is not None:
                return raced
            if len(self._by_key) >= self._limits.sessions:
                raise PenstockError(
                    TOO_MANY,
                    f"{self._limits.sessions} sessions are open, and no more are allowed",
                    hint="sign out elsewhere, or wait until idle sessions are closed",
                    sqlstate="53300",
                )
            session = self._sessions.open(principal, ClientAddress("web", address))
            made = self._by_key[key] = WebSession(session, self._clock.monotonic_ms())
            return made

    def _close_idle(self) -> None:
        """Close sessions without a request for long; who reads a stream is not idle."""
        before_ms = self._clock.monotonic_ms() - self._limits.idle_ms
        with self._lock:
            idle = [
                key for key, one in self._by_key.items() if not one.streams and one.last_used_ms < before_ms
            ]
            sessions = [self._by_key.pop(key) for key in idle]
        for one in sessions:
            one.session.close()


def _digest(kind: str, secret: str) -> str:
    return f"{kind}:{hashlib.sha256(secret.encode()).hexdigest()}"
