"""What every request passes before a handler sees it: the host, the origin, the size, and the headers of the
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.catalog.errors import PenstockError
from penstock.client.server.web.error_response import FOREIGN_ORIGIN, TOO_LARGE, error_response
from penstock.client.server.web.limits import WebLimits

_READS = frozenset({"GET", "HEAD"})
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page loads its own files and nothing else, and nobody may put it into a frame."""
_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class RequestGuard:
    """ASGI middleware. ``hosts``: the names a request may be addressed to; empty allows all.

    A page of another site cannot read an answer (browsers see to that) but could send a request with the
    user's cookie, or reach a server without authentication by a name that it lets point to 127.0.0.1.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], limits: WebLimits) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _HEADERS.items():
                    headers[name] = value
                # facts change, and a shared cache must not have them
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        refused = (
            self._refuse_host(headers)
            or self._refuse_origin(scope["method"], headers)
            or self._refuse_size(headers)
        )
        if refused is not None:
            await error_response(refused)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _refuse_host(self, headers: Headers) -> PenstockError | None:
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if not self._hosts or host in self._hosts:
            return None
        message = f"this server is not called {host}" if host else "the request names no host"
        return PenstockError(
            FOREIGN_ORIGIN, message, hint=f"address it as {min(self._hosts, key=len)}", sqlstate="42501"
        )

    def _refuse_origin(self, method: str, headers: Headers) -> PenstockError | None:
        """Refuse a changing request that a page of another site has sent."""
        if method in _READS:
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
        # a form of another site can send text, but no JSON without asking first
        not_json = headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json"
        if not foreign and site in (None, "same-origin", "none") and not not_json:
            return None
        message = "a page of another site sent this request" if not not_json else "the body is not JSON"
        hint = "send it from the page of this server, or with Content-Type: application/json"
        return PenstockError(FOREIGN_ORIGIN, message, hint=hint, sqlstate="42501")

    def _refuse_size(self, headers: Headers) -> PenstockError | None:
        length = headers.get("content-length", "0")
        most = self._limits.request_bytes
        return too_large(most) if not length.isdecimal() or int(length) > most else None


def too_large(most: int) -> PenstockError:
    """Return the error for a body that is too large."""
    return PenstockError(
        TOO_LARGE, f"a request has at most {most:,} bytes", hint="send less in one request", sqlstate="54000"
    )


def allowed_hosts(host: str, *, authenticated: bool) -> tuple[str, ...]:
    """Return the names that requests may use: of a server without authentication those of this machine."""
    return () if authenticated else tuple(dict.fromkeys((*_LOOPBACK, host)))
