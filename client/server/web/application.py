"""The ASGI application: the routes of the API, the page and the probes, and how a request becomes a call."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.monitoring.prometheus import CONTENT_TYPE, exposition
from penstock.client.server.web.api_call import ApiCall, ApiRoute, bad_request
from penstock.client.server.web.error_response import (
    TOO_MANY,
    UNAUTHENTICATED,
    error_response,
    internal_error,
    json_error,
)
from penstock.client.server.web.job_api import JOB_ROUTES
from penstock.client.server.web.openapi import PREFIX, openapi_document
from penstock.client.server.web.query_api import QUERY_ROUTES
from penstock.client.server.web.request_guard import RequestGuard, allowed_hosts, too_large
from penstock.client.server.web.server_api import SERVER_ROUTES
from penstock.client.server.web.stream_event import StreamEvent
from penstock.client.server.web.web_sessions import COOKIE, WebSession, WebSessions
from penstock.engine.job.metric_registry import metrics_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.client.server.web.limits import WebLimits

API_ROUTES: tuple[ApiRoute, ...] = (*SERVER_ROUTES, *JOB_ROUTES, *QUERY_ROUTES)
STATIC = Path(__file__).with_name("static")
WATCH_S = 1.0
"""How often a stream of facts has its next event: rates cover one to two seconds."""
Result_co = TypeVar("Result_co", covariant=True)
_LOOPBACK = ("127.0.0.1", "::1")
_LOG = logging.getLogger("penstock.server.web")


class WebApplication:
    """Answers requests. ``is_ready``: whether the server takes new work; false while it drains."""

    def __init__(
        self,
        sessions: WebSessions,
        limits: WebLimits,
        host: str,
        *,
        is_secure: bool,
        is_ready: Callable[[], bool],
    ) -> None:
        self._sessions = sessions
        self._limits = limits
        self._is_secure = is_secure
        self._is_ready = is_ready
        self._streams = 0
        # streams wait in threads: an own limiter, so that they take none from short requests
        self._stream_threads = anyio.CapacityLimiter(limits.streams)
        self._document = openapi_document(API_ROUTES, penstock.__version__)
        hosts = allowed_hosts(host, authenticated=sessions.needs_sign_in)
        self.asgi = Starlette(
            routes=self._routes(),
            middleware=[Middleware(RequestGuard, hosts=hosts, limits=limits)],
            exception_handlers={PenstockError: _refused},  # type: ignore[dict-item]
        )

    def _routes(self) -> list[Route | Mount]:
        api = [
            Route(PREFIX + route.path, partial(self._answer, route), methods=[route.method])
            for route in API_ROUTES
        ]
        return [
            *api,
            Route(f"{PREFIX}/openapi.json", self._openapi),
            Route(f"{PREFIX}/login", self._sign_in, methods=["POST"]),
            Route(f"{PREFIX}/logout", self._sign_out, methods=["POST"]),
            Route("/health", self._health),
            Route("/ready", self._ready),
            Route("/metrics", self._metrics),
            Route("/", self._page),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    async def _answer(self, route: ApiRoute, request: Request) -> Response:
        """Answer a request of the API."""
        body = await self._body(request) if route.method == "POST" else {}
        found = await run_sync(self._session, request)
        call = ApiCall(found.session, request.path_params, body, self._limits)
        if not route.streams:
            return JSONResponse(await run_sync(_reported, partial(route.handler, call)))
        if self._streams >= self._limits.streams:
            message = f"{self._limits.streams} streams are open, and no more are allowed"
            raise PenstockError(TOO_MANY, message, hint="close a page, or ask again later", sqlstate="53300")
        begin = partial(_begun, route.handler(call))
        events = await run_sync(_reported, begin, limiter=self._stream_threads)
        return StreamingResponse(self._stream(events, found), media_type="text/event-stream")

    async def _stream(
        self, events: tuple[StreamEvent | None, Iterator[StreamEvent]], found: WebSession
    ) -> AsyncIterator[str]:
        """Yield the text of events; when the reader leaves, end what makes them."""
        first, rest = events
        self._streams += 1
        found.streams += 1
        try:
            event = first
            while event is not None:
                yield event.text
                if event.pause:
                    await asyncio.sleep(WATCH_S)
                event = await run_sync(_reported, partial(next, rest, None), limiter=self._stream_threads)
        # the answer has begun, so an error is an event and no status
        except PenstockError as error:
            yield StreamEvent("failure", {"error": json_error(error)}).text
        finally:
            self._streams -= 1
            found.streams -= 1
            # shielded: the reader has left, and its query must end all the same
            with anyio.CancelScope(shield=True):
                await run_sync(rest.close, limiter=self._stream_threads)  # type: ignore[attr-defined]

    def _session(self, request: Request) -> WebSession:
        address = f"{request.client.host}:{request.client.port}" if request.client is not None else ""
        return self._sessions.find(request.cookies.get(COOKIE), request.headers.get("authorization"), address)

    async def _body(self, request: Request) -> Mapping[str, Any]:
        """Return the JSON object of a request. CLI-6250, CLI-6252."""
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.request_s):
                async for part in request.stream():
                    size += len(part)
                    # a body without a length is counted as it comes
                    if size > self._limits.request_bytes:
                        raise too_large(self._limits.request_bytes)
                    parts.append(part)
            body = json.loads(b"".join(parts) or b"{}")
        except TimeoutError:
            raise bad_request("the body did not come in time") from None
        # a body nested a thousand deep is no request either
        except (ValueError, RecursionError):
            raise bad_request("the body is not JSON") from None
        if not isinstance(body, dict):
            raise bad_request("the body is not a JSON object")
        return body

    async def _sign_in(self, request: Request) -> Response:
        body = await self._body(request)
        token, user, password = (body.get(name) for name in ("token", "user", "password"))
        if not all(value is None or isinstance(value, str) for value in (token, user, password)):
            raise bad_request("token, user and password are texts")
        address = request.client.host if request.client is not None else ""
        if password is not None and not self._is_secure and address not in _LOOPBACK:
            raise _refuse_plain_password()
        cookie = await run_sync(self._sessions.sign_in, token, user, password, address)
        answer = JSONResponse({"signed_in": True})
        # no script reads it, and no other site sends it
        answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=self._is_secure, path="/")
        return answer

    async def _sign_out(self, request: Request) -> Response:
        await run_sync(self._sessions.sign_out, request.cookies.get(COOKIE))
        answer = JSONResponse({"signed_in": False})
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=self._is_secure, path="/")
        return answer

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(self._document)

    async def _health(self, request: Request) -> Response:
        # the event loop answers: that is what a probe of life asks
        return PlainTextResponse("ok\n")

    async def _ready(self, request: Request) -> Response:
        return PlainTextResponse("ready\n") if self._is_ready() else PlainTextResponse("draining\n", 503)

    async def _metrics(self, request: Request) -> Response:
        found = await run_sync(self._session, request)
        jobs = found.session.connection.session.jobs()

        def page() -> str:
            return exposition([metric for job in jobs for metric in metrics_of(job.job_id, job.metrics())])

        return PlainTextResponse(await run_sync(page), headers={"Content-Type": CONTENT_TYPE})

    async def _page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})


def _refuse_plain_password() -> PenstockError:
    return PenstockError(
        UNAUTHENTICATED,
        "passwords are taken over TLS only",
        hint="connect by https, or sign in with a token",
        sqlstate="28P01",
    )


def _reported(call: Callable[[], Result_co]) -> Result_co:
    """Return what a call returns. A fault of penstock is logged, and the client hears that there was one."""
    try:
        return call()
    except PenstockError:
        raise
    except Exception as fault:
        _LOG.exception("a request failed")
        raise internal_error() from fault


def _begun(events: Iterator[StreamEvent]) -> tuple[StreamEvent | None, Iterator[StreamEvent]]:
    """Return the first event and the rest: an error before it is a status of HTTP."""
    return next(events, None), events


async def _refused(request: Request, error: PenstockError) -> Response:
    return error_response(error)
