"""What is received: answers that change, validators, limits, a websocket that is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.http.http_client import HttpClient
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.http_server import Answered, Server, http_server
from tests.harness.patience import await_that
from tests.unit.engine.connectors.http.readers import SCHEMA, numbers, opened, taken, websocket


@pytest.fixture
def server() -> Iterator[Server]:
    with http_server() as running:
        yield running


def test_an_answer_is_asked_for_again_and_told_once(server: Server) -> None:
    answers = iter([numbers(1, 2), numbers(1, 2), numbers(3), Answered(status=304)])
    server.answer = lambda asked: next(answers, Answered(status=304))
    reader = opened(server.url, **{"poll-interval": "10 ms"})
    assert taken(reader, 3) == [1, 2, 3]
    await_that(lambda: len(server.asked) > 5)
    assert reader.poll(10) is None and not reader.ended
    reader.close()


def test_validators_are_sent_back(server: Server) -> None:
    first = numbers(1)
    first.headers["ETag"] = '"v1"'
    server.answer = lambda asked: Answered(status=304) if "if-none-match" in asked.headers else first
    reader = opened(server.url, **{"poll-interval": "10 ms"})
    assert taken(reader, 1) == [1]
    await_that(lambda: len(server.asked) > 2)
    assert server.asked[-1].headers["if-none-match"] == '"v1"'
    reader.close()


def test_an_answer_too_long_or_broken_off_is_refused(server: Server) -> None:
    server.answer = lambda asked: numbers(*range(100))
    with pytest.raises(PenstockError, match="DAT-5703"):
        taken(opened(server.url, **{"max-answer-size": "100 b"}), 1)
    server.answer = lambda asked: Answered(b"[{}", broken=True)
    with pytest.raises(PenstockError, match=r"DAT-5701.*breaks off its answer"):
        taken(opened(server.url), 1)
    server.answer = lambda asked: Answered(b'{"data": []}')
    with pytest.raises(PenstockError, match=r"(?s)DAT-4201.*no whole JSON array"):
        taken(opened(server.url, records="array"), 1)


@pytest.mark.parametrize(
    ("mode", "kind", "says"),
    [
        ("poll", "text/html; charset=utf-8", "a page (text/html), no records"),
        ("events", "application/json", "application/json, no events"),
        ("events", "", "an answer without a Content-Type, no events"),
    ],
)
def test_an_answer_of_another_kind_is_named(server: Server, mode: str, kind: str, says: str) -> None:
    """A stream of events from such a server would wait for ever."""
    server.answer = lambda asked: Answered(b"[]", headers={"Content-Type": kind} if kind else {})
    with pytest.raises(PenstockError, match="DAT-5706") as raised:
        taken(opened(server.url, mode=mode), 1)
    assert says in raised.value.message and raised.value.hint


def test_a_websocket_that_is_not_there_is_named() -> None:
    with websocket() as url:
        pass
    with pytest.raises(PenstockError, match="DAT-5701"):
        taken(opened(url, mode="websocket", **{"max-retries": "0"}), 1)


def test_an_event_or_a_message_too_long_is_refused(server: Server) -> None:
    short = {"max-answer-size": "100 b"}
    for body in (b"data: " + b"x" * 200, b"data: xxxx\n" * 30 + b"\n"):
        events = Answered(body, headers={"Content-Type": "text/event-stream"})
        server.answer = lambda asked, events=events: events  # type: ignore[misc]
        with pytest.raises(PenstockError, match="DAT-5703"):
            taken(opened(server.url, mode="events", **short), 1)
    with websocket(b"x" * 200) as url, pytest.raises(PenstockError, match="DAT-5703"):
        taken(opened(url, mode="websocket", **short), 1)


def test_a_token_is_not_sent_in_plain_text() -> None:
    table = CatalogTable("t", SCHEMA, SCHEMA, {"connector": "http", "url": "https://a/x", "format": "json"})
    client = HttpClient(table, OperatorMetrics())
    with pytest.raises(PenstockError, match="DAT-5704"):
        raise AssertionError(client._redirected("https://a/x", "http://a/x"))
    assert client._redirected("https://a/x", "/y") == "https://a/y"
    assert client._redirected("http://a/x", "https://a/y") == "https://a/y"
