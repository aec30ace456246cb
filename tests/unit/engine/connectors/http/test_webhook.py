"""Rows sent to a server: how they are put together, which requests are sent again, and their keys."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

import penstock
from penstock.engine.connectors.http.webhook import request_body
from tests.harness.http_server import Server, http_server
from tests.unit.engine.connectors.http.hooks import RECORDS, sent


@pytest.fixture
def server() -> Iterator[Server]:
    with http_server() as running:
        yield running


def in_order(records: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(records, key=lambda record: str(record["k"]))


def test_rows_are_one_array_a_request(server: Server) -> None:
    sent(server, ",'headers.Authorization'='Bearer s3cret'")
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/rows")
    assert in_order(json.loads(asked.body)) == RECORDS
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["authorization"] == "Bearer s3cret"


def test_lines_and_single_records(server: Server) -> None:
    sent(server, ",'sink.body'='lines','sink.method'='put','sink.request.max-rows'='2'")
    lines = [line for asked in server.asked for line in asked.body.splitlines()]
    assert in_order([json.loads(line) for line in lines]) == RECORDS
    assert {asked.method for asked in server.asked} == {"PUT"} and len(server.asked) == 3
    server.asked.clear()
    sent(server, ",'sink.body'='single'")
    assert in_order([json.loads(asked.body) for asked in server.asked]) == RECORDS
    assert len({asked.headers["idempotency-key"] for asked in server.asked}) == 5


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("'url'='ws://a/b','format'='json'", "SQL-1505"),
        ("'url'='nowhere','format'='json'", "SQL-1505"),
        ("'url'='http://a/b'", "SQL-1504"),
        ("'url'='http://a/b','format'='json','mode'='events','poll-interval'='1 s'", "SQL-1507"),
        ("'url'='http://a/b','format'='json','sink.body'='single','sink.request.max-rows'='5'", "SQL-1507"),
    ],
)
def test_options_that_cannot_work_are_refused(options: str, code: str) -> None:
    with penstock.connect() as connection, pytest.raises(penstock.Error, match=code):
        connection.execute(f"CREATE TABLE t (a INT) WITH ('connector'='http',{options})")


def test_bodies() -> None:
    values = pa.array([b"{}", b"[1]", b'"x"'])
    assert request_body(values, "array") == b'[{},[1],"x"]'
    assert request_body(values.slice(1), "lines") == b'[1]\n"x"\n'
    assert request_body(values.slice(2), "single") == b'"x"'
