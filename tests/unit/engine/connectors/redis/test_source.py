"""Reading streams of a real server: start, end, metadata, restore, trimmed entries."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

import penstock
from penstock.catalog.connectors.registry import check_options
from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.redis.client import RedisServer
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.redis_server import RedisProcess, redis_server
from tests.unit.engine.connectors.redis.streams import (
    add,
    opened,
    rest,
    taken,
)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def server(process: RedisProcess) -> RedisProcess:
    process.client.flushall()
    return process


def test_a_query_over_a_stream_with_metadata(server: RedisProcess) -> None:
    add(server, 1, 2, first_id=1_700_000_000_000)
    with penstock.connect() as connection:
        connection.execute(f"""CREATE TABLE t (n INT, id STRING METADATA, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
            fields MAP<STRING, STRING> METADATA, stream STRING METADATA) WITH ('connector'='redis-stream',
            'url'='{server.url}','stream'='s','format'='json','scan.bounded.mode'='latest')""")
        rows = connection.execute(
            "SELECT n, id, CAST(at AS TIMESTAMP(3)) = TIMESTAMP '2023-11-14 22:13:20.001', fields['other'], stream FROM t"
        ).fetchall(timeout=PATIENCE_S)
    assert rows == [(1, "1700000000001-1", True, "x", "s"), (2, "1700000000002-1", False, "x", "s")]


def test_where_it_begins_and_ends(server: RedisProcess) -> None:
    bounded = {"scan.bounded.mode": "latest"}
    assert rest(opened(server, **bounded)) == [], "a stream that is not there is empty"
    add(server, 1, 2, 3, first_id=1_000)
    assert rest(opened(server, **bounded)) == [1, 2, 3]
    assert rest(opened(server, **bounded, **{"scan.startup.mode": "id", "scan.startup.id": "1001-1"})) == [
        2,
        3,
    ]
    latest = opened(server, **{"scan.startup.mode": "latest"})
    add(server, 4, first_id=1_000)
    assert taken(latest, 1) == [4]
    latest.close()


def test_a_restored_reader_goes_on_behind_its_entry(server: RedisProcess) -> None:
    add(server, *range(10))
    reader = opened(server)
    assert taken(reader, 4, 3) == [0, 1, 2, 3]
    position = json.loads(json.dumps(reader.position()))
    reader.close()
    again = opened(server, position)
    add(server, 10)
    assert taken(again, 7) == [4, 5, 6, 7, 8, 9, 10]
    again.close()


def test_trimmed_entries_are_told(server: RedisProcess) -> None:
    add(server, *range(10), first_id=1_000)
    reader = opened(server)
    assert taken(reader, 4, 3) == [0, 1, 2, 3]
    position = json.loads(json.dumps(reader.position()))
    reader.close()
    server.client.xtrim("s", maxlen=6, approximate=False)
    resumed = opened(server, position)
    assert taken(resumed, 6) == [4, 5, 6, 7, 8, 9], "only what was read is gone"
    resumed.close()
    server.client.xtrim("s", maxlen=3, approximate=False)
    with pytest.raises(PenstockError, match=r"DAT-5803.*3 entries behind 1003-1 are gone"):
        taken(opened(server, position), 1)
    skipping = opened(server, position, **{"scan.on-trimmed": "skip"})
    assert taken(skipping, 3) == [7, 8, 9]
    skipping.close()
    server.client.xtrim("s", maxlen=0, approximate=False)
    with pytest.raises(PenstockError, match=r"DAT-5803.*6 entries"):
        rest(opened(server, position | {"end": "1009-1"}))
    assert rest(opened(server, **{"scan.bounded.mode": "latest"})) == [], "who begins has missed nothing"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"url": "http://x"}, "SQL-1505"),
        ({"scan.startup.mode": "id"}, "SQL-1507"),
        ({"scan.startup.mode": "id", "scan.startup.id": "x"}, "SQL-1505"),
        ({"scan.startup.id": "1-1"}, "SQL-1507"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, str], code: str) -> None:
    written = {"connector": "redis-stream", "url": "redis://x", "stream": "s", "format": "json", **options}
    with pytest.raises(PenstockError, match=code):
        check_options(written, {})


def test_the_connection_is_closed_by_the_thread_that_reads(
    server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing: list[str] = []
    close = RedisServer.close

    def watched(connection: RedisServer) -> None:
        closing.append(threading.current_thread().name)
        close(connection)

    reader = opened(server)
    monkeypatch.setattr(RedisServer, "close", watched)
    reader.close()
    await_that(lambda: bool(closing), "the end of the reading thread")
    assert set(closing) == {"pump stream s"}
