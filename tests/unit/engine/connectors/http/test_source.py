"""The http source: answers, events and websockets of real servers as tables; what is asked again, what is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from tests.harness.http_server import Answered, Asked, Server, http_server
from tests.harness.patience import PATIENCE_S, await_that
from tests.unit.engine.connectors.http.readers import numbers, opened, taken, websocket


@pytest.fixture
def server() -> Iterator[Server]:
    with http_server() as running:
        yield running


def query(sql: str, *tables: str) -> list[tuple[Any, ...]]:
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        for table in tables:
            connection.execute(table)
        return connection.execute(sql).fetchall(timeout=PATIENCE_S)


def test_one_answer_is_a_table(server: Server) -> None:
    server.answer = lambda asked: numbers(*range(10))
    table = f"CREATE TABLE t (n INT) WITH ('connector'='http','url'='{server.url}','format'='json')"
    assert query("SELECT count(*), sum(n) FROM t WHERE n > 3", table) == [(6, 39)]


def test_a_bad_record_follows_on_error(server: Server) -> None:
    server.answer = lambda asked: Answered(b'[{"n": 1}, {"n": "x"}, {"n": 3}]')
    table = f"CREATE TABLE t (n INT) WITH ('connector'='http','url'='{server.url}','format'='json'%s)"
    with pytest.raises(penstock.Error, match=r"(?s)DAT-4201.*record 1"):
        query("SELECT n FROM t", table % "")
    assert query("SELECT n FROM t ORDER BY n", table % ",'on-error'='skip'") == [(1,), (3,)]


def test_a_restored_reader_passes_over_what_was_emitted(server: Server) -> None:
    server.answer = lambda asked: numbers(*range(10))
    reader = opened(server.url)
    assert taken(reader, 4, 3) == [0, 1, 2, 3]
    position = json.loads(json.dumps(reader.position()))
    again = opened(server.url, position)
    assert taken(again, 6) == [4, 5, 6, 7, 8, 9]
    await_that(lambda: again.ended)
    server.answer = lambda asked: numbers(20, 21)
    assert taken(opened(server.url, position), 2) == [20, 21], "another answer is read whole"


def event(number: int) -> bytes:
    return b'event: add\nid: %d\ndata: {"n": %d}\n\n' % (number, number)


def test_events_go_on_behind_the_last_id(server: Server) -> None:
    def events(asked: Asked) -> Answered:
        first = int(asked.headers.get("last-event-id", "0")) + 1
        if first > 9:
            return Answered(status=204)
        # a connection breaks off within an event
        body = b"retry: 1\n\n" + event(first) + event(first + 1) + event(first + 2)[:9]
        return Answered(body, headers={"Content-Type": "text/event-stream"}, broken=True)

    server.answer = events
    reader = opened(server.url, mode="events")
    assert taken(reader, 5, 2) == [1, 2, 3, 4, 5]
    position = json.loads(json.dumps(reader.position()))
    reader.close()
    again = opened(server.url, position, mode="events")
    assert taken(again, 4) == [6, 7, 8, 9]
    await_that(lambda: again.poll(1) is None and again.ended)


def test_metadata_of_events(server: Server) -> None:
    both = Answered(event(1) + event(2), headers={"Content-Type": "text/event-stream"})
    server.answer = lambda asked: both if "last-event-id" not in asked.headers else Answered(status=204)
    table = f"""CREATE TABLE t (n INT, kind STRING METADATA FROM 'event', id STRING METADATA) WITH (
        'connector'='http','url'='{server.url}','mode'='events','format'='json')"""
    assert query("SELECT n, kind, id FROM t", table) == [(1, "add", "1"), (2, "add", "2")]


def test_messages_of_a_websocket() -> None:
    with websocket('{"n": 1}', b'{"n": 2}') as url:
        reader = opened(url, mode="websocket")
        assert taken(reader, 4) == [1, 2, 1, 2], "it connects again"
        position = reader.position()
        reader.close()
        with pytest.raises(PenstockError, match=r"(?s)DAT-5705.*cannot be read again"):
            opened(url, position, mode="websocket")
        resumed = opened(url, position, mode="websocket", **{"http.on-restore": "continue"})
        assert taken(resumed, 2) == [1, 2]
        resumed.close()
