"""What is refused before a handler sees it: other hosts and origins, large bodies; and what each answer says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client.server.web.limits import WebLimits
from penstock.client.server.web.request_guard import CONTENT_POLICY, allowed_hosts
from penstock.client.session import Session
from tests.harness.web_listener import WebServer, web_server

SQL = {"sql": "SELECT 1"}


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    with web_server(Session(), limits=WebLimits(request_bytes=1000)) as made:
        yield made


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_points_here_is_refused(server: WebServer, host: str) -> None:
    answer = server.get("/api/v1/jobs", Host=host)
    assert (answer.status, answer.code) == (403, "CLI-6251")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8080", "LOCALHOST"])
def test_names_of_this_machine_are_not(server: WebServer, host: str) -> None:
    assert server.get("/api/v1/jobs", Host=host).status == 200


def test_a_server_with_authentication_takes_any_name() -> None:
    assert allowed_hosts("0.0.0.0", authenticated=True) == ()
    assert "10.0.0.7" in allowed_hosts("10.0.0.7", authenticated=False)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    ],
    ids=lambda headers: " ".join(next(iter(headers.items()))),
)
@pytest.mark.parametrize("path", ["query", "jobs/any/cancel", "login", "logout"])
def test_a_page_of_another_site_changes_nothing(
    server: WebServer, headers: dict[str, str], path: str
) -> None:
    answer = server.request("POST", f"/api/v1/{path}", SQL, headers)
    assert (answer.status, answer.code) == (403, "CLI-6251")


def test_the_own_page_may_send(server: WebServer) -> None:
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert server.post("/api/v1/query", SQL, **headers).status == 200


def test_a_large_body_is_refused(server: WebServer) -> None:
    answer = server.post("/api/v1/query", {"sql": "SELECT 1 --" + "x" * 1000})
    assert (answer.status, answer.code) == (413, "CLI-6252")


def test_a_large_body_without_a_length_is_refused_too(server: WebServer) -> None:
    connection = server.connect()
    parts = (b"x" * 400 for _ in range(10))
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/api/v1/query", parts, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_slow_client_is_not_waited_for() -> None:
    """Neither for its headers nor for its body."""
    with web_server(Session(), limits=WebLimits(request_s=1.0)) as server:
        _send_slowly(server)


def _send_slowly(server: WebServer) -> None:
    silent = server.connect()
    silent.connect()
    assert silent.sock is not None
    assert silent.sock.recv(1) == b"", "the server has closed it"
    silent.close()
    slow = server.connect()
    slow.putrequest("POST", "/api/v1/query")
    slow.putheader("Content-Type", "application/json")
    slow.putheader("Content-Length", "20")
    slow.endheaders(b"{")
    answer = slow.getresponse()
    assert (answer.status, b"in time" in answer.read()) == (400, True)
    slow.close()


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/v1/jobs", "/api/v1/none", "/health"])
def test_each_answer_says_what_a_browser_may_do(server: WebServer, path: str) -> None:
    headers = server.get(path).headers
    assert headers["Content-Security-Policy"] == CONTENT_POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert not {"server", "access-control-allow-origin"} & {name.lower() for name in headers}


@pytest.mark.parametrize("path", ["../listener.py", "%2e%2e/listener.py", "..%2flistener.py", "/etc/passwd"])
def test_only_the_files_of_the_page_are_served(server: WebServer, path: str) -> None:
    assert server.get(f"/static/{path}").status == 404
