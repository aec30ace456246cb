"""Requests: which are sent again, what a refusal says, who gets no row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import penstock
from tests.harness.http_server import Answered, Asked, Server, http_server
from tests.unit.engine.connectors.http.hooks import sent


@pytest.fixture
def server() -> Iterator[Server]:
    with http_server() as running:
        yield running


def test_a_request_that_failed_is_sent_again_with_its_key(server: Server) -> None:
    statuses = iter([503, 429, 200])
    server.answer = lambda asked: Answered(b"busy", next(statuses), {"Retry-After": "0"})
    sent(server)
    assert len(server.asked) == 3
    assert len({(asked.headers["idempotency-key"], asked.body) for asked in server.asked}) == 1


def test_a_refusal_says_what_the_server_said(server: Server) -> None:
    server.answer = lambda asked: Answered(b'{"error": "no such user"}', 401)
    with pytest.raises(penstock.Error, match=r"(?s)DAT-5702.*status 401.*no such user") as raised:
        sent(server, ",'headers.Authorization'='Bearer s3cret'")
    assert "headers.Authorization" in str(raised.value) and "s3cret" not in str(raised.value)
    assert len(server.asked) == 1, "a refusal is not sent again"


def test_another_server_gets_no_row(server: Server) -> None:
    server.answer = lambda asked: Answered(status=307, headers={"Location": "http://localhost:1/x"})
    with pytest.raises(penstock.Error, match=r"(?s)DAT-5704.*http://localhost:1/x"):
        sent(server)

    def moved(asked: Asked) -> Answered:
        return Answered() if asked.path == "/new" else Answered(status=308, headers={"Location": "/new"})

    server.answer = moved
    server.asked.clear()
    sent(server)
    assert [asked.path for asked in server.asked] == ["/rows", "/new"]
    assert server.asked[0].body == server.asked[1].body


def test_a_server_that_is_not_there_is_named() -> None:
    with http_server() as gone:
        pass
    with pytest.raises(penstock.Error, match=r"(?s)DAT-5701.*does not answer"):
        sent(gone, ",'max-retries'='1'")
