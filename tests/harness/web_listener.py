"""A web listener over one engine, and requests to it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.client.server.listener import ScramVerifier
from penstock.client.server.principal import Principal, PrincipalRole
from penstock.client.server.server_sessions import ServerSessions
from penstock.client.server.web.limits import WebLimits
from penstock.client.server.web.listener import WebListener
from penstock.client.session import Session
from penstock.engine.api.clock import Clock
from tests.harness.patience import PATIENCE_S

TOKENS = {"reader-token": ("ann", PrincipalRole.READ), "runner-token": ("bob", PrincipalRole.RUN)}
PASSWORDS = {("ann", "open sesame"): PrincipalRole.READ}


class TestAuthenticator:
    """Knows two tokens and a password."""

    __test__ = False

    def __init__(self, *, required: bool = True) -> None:
        self.required = required

    def by_token(self, token: str) -> Principal:
        if token not in TOKENS:
            raise self._refusal()
        return Principal(*TOKENS[token])

    def by_password(self, user: str, password: str) -> Principal:
        role = PASSWORDS.get((user, password))
        if role is None:
            raise self._refusal()
        return Principal(user, role)

    def scram_verifier(self, user: str) -> ScramVerifier:
        raise self._refusal()

    def by_scram(self, user: str) -> Principal:
        raise self._refusal()

    def _refusal(self) -> PenstockError:
        return PenstockError("CLI-6210", "the user, password or token is wrong", sqlstate="28P01")


@dataclass(frozen=True)
class Answer:
    """An answer; the names of its headers are compared without case."""

    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return str(self.json["error"]["code"])


@dataclass(frozen=True)
class WebServer:
    """A listener that runs, and the engine behind it."""

    session: Session
    listener: WebListener

    @property
    def url(self) -> str:
        return f"http://{self.listener.address}"

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.listener.address, timeout=PATIENCE_S)

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request with a JSON body, and read its answer."""
        connection = self.connect()
        sent = {"Content-Type": "application/json"} if method == "POST" else {}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {**sent, **(headers or {})})
        answer = connection.getresponse()
        made = Answer(answer.status, answer.headers, answer.read())
        connection.close()
        return made

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.request("POST", path, body, headers)

    @contextmanager
    def events(self, method: str, path: str, body: Any = None) -> Iterator[Iterator[tuple[str, Any]]]:
        """Read a stream of events; its connection is closed at the end of the block."""
        connection = self.connect()
        headers = {"Content-Type": "application/json"} if method == "POST" else {}
        connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        assert answer.headers["Content-Type"].startswith("text/event-stream"), answer.read()

        def read() -> Iterator[tuple[str, Any]]:
            name = ""
            for line in answer:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    name = text[7:]
                elif text.startswith("data: "):
                    yield name, json.loads(text[6:])

        try:
            yield read()
        finally:
            # the answer holds the socket too
            answer.close()
            connection.close()


@contextmanager
def web_server(
    session: Session,
    *,
    authenticated: bool = False,
    limits: WebLimits | None = None,
    clock: Clock | None = None,
    tls: tuple[Path, Path] | None = None,
) -> Iterator[WebServer]:
    """Serve one engine, which all clients share; it is closed at the end."""
    sessions = ServerSessions(lambda settings: session, lambda: 1_700_000_000_000)
    authenticator = TestAuthenticator(required=authenticated)
    listener = WebListener(sessions, authenticator, "127.0.0.1", 0, limits=limits, clock=clock, tls=tls)
    listener.start()
    try:
        yield WebServer(session, listener)
    finally:
        listener.close()
        session.close()
