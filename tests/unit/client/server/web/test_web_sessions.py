"""Who may do what over the web listener: cookies, tokens and roles, with an injected clock."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from http.cookies import Morsel, SimpleCookie

import pytest

from penstock.client.server.web.limits import WebLimits
from penstock.client.session import Session
from penstock.engine.api.clock import ManualClock
from tests.harness.web_listener import WebServer, web_server

READER, RUNNER = "Bearer reader-token", "Bearer runner-token"


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    with web_server(Session(), authenticated=True) as made:
        yield made


def cookie_of(headers: Message) -> Morsel[str]:
    return SimpleCookie(headers["Set-Cookie"])["penstock_session"]


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/status", "/metrics", "/api/v1/jobs/stream"])
def test_facts_need_a_principal(server: WebServer, path: str) -> None:
    answer = server.get(path)
    assert (answer.status, answer.code) == (401, "CLI-6210")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert server.get(path, Authorization="Bearer wrong").status == 401
    assert server.get(path, Cookie="penstock_session=wrong").status == 401
    if "stream" not in path:
        assert server.get(path, Authorization=READER).status == 200


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/static/app.js", "/api/v1/openapi.json"])
def test_the_page_and_the_probes_need_none(server: WebServer, path: str) -> None:
    assert server.get(path).status == 200


def test_a_browser_signs_in() -> None:
    with web_server(Session(), authenticated=True) as server:
        signed_in = server.post("/api/v1/login", {"user": "ann", "password": "open sesame"})
        assert signed_in.status == 200
        cookie = cookie_of(signed_in.headers)
        assert (cookie["httponly"], cookie["samesite"].lower(), cookie["path"]) == (True, "strict", "/")
        header = f"penstock_session={cookie.value}"
        status = server.get("/api/v1/status", Cookie=header).json
        assert (status["principal"], status["role"], status["may_run"]) == ("ann", "read", False)
        # each sign-in has a cookie of its own; after the sign-out it is worth nothing
        again = cookie_of(server.post("/api/v1/login", {"token": "reader-token"}).headers)
        assert again.value != cookie.value
        assert server.post("/api/v1/logout", {}, Cookie=f"penstock_session={again.value}").status == 200
        assert server.get("/api/v1/status", Cookie=f"penstock_session={again.value}").status == 401


@pytest.mark.parametrize(
    "body", [{"user": "ann", "password": "x"}, {"token": "x"}, {}, {"user": "nobody", "password": "x"}]
)
def test_a_wrong_sign_in_has_one_answer(server: WebServer, body: dict[str, str]) -> None:
    answer = server.post("/api/v1/login", body)
    assert (answer.status, answer.json["error"]["message"]) == (401, "the user, password or token is wrong")
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    ("sql", "status"),
    [
        ("SELECT 1", 200),
        ("SHOW JOBS", 200),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'blackhole')", 403),
        ("SELECT 1; DROP TABLE t", 403),
    ],
)
def test_a_reader_changes_nothing(server: WebServer, sql: str, status: int) -> None:
    answer = server.post("/api/v1/query", {"sql": sql}, Authorization=READER)
    assert answer.status == status
    assert status == 200 or answer.code == "CLI-6211"


@pytest.mark.parametrize("action", ["stop", "cancel", "savepoint", "rescale"])
def test_a_reader_acts_on_no_job(server: WebServer, action: str) -> None:
    path, body = f"/api/v1/jobs/any/{action}", {"parallelism": 2}
    assert server.post(path, body, Authorization=READER).code == "CLI-6211"
    assert server.post(path, body, Authorization=RUNNER).code == "CLI-6030"


def test_an_idle_session_ends_and_a_full_server_refuses() -> None:
    clock = ManualClock()
    limits = WebLimits(sessions=2, idle_ms=1000.0)
    with web_server(Session(), authenticated=True, limits=limits, clock=clock) as server:
        body = {"token": "reader-token"}
        cookies = [cookie_of(server.post("/api/v1/login", body).headers).value for _ in range(2)]
        header = f"penstock_session={cookies[0]}"
        refused = server.post("/api/v1/login", body)
        assert (refused.status, refused.code) == (429, "CLI-6253")
        clock.advance(900)
        assert server.get("/api/v1/status", Cookie=header).status == 200
        clock.advance(900)
        # the first was used since, the other is closed
        assert server.get("/api/v1/status", Cookie=header).status == 200
        assert server.get("/api/v1/status", Cookie=f"penstock_session={cookies[1]}").status == 401


def test_a_password_from_another_machine_needs_tls() -> None:
    """The address is that of a socket, so another loopback address stands for another machine."""
    with web_server(Session(), authenticated=True) as server:
        connection = server.connect()
        connection.source_address = ("127.0.0.2", 0)
        body = '{"user": "ann", "password": "open sesame"}'
        connection.request("POST", "/api/v1/login", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, b"TLS only" in answer.read()) == (401, True)
        connection.close()
