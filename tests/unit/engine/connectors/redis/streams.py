"""Tables over streams of a real server, their readers and targets, for the tests beside."""

from __future__ import annotations

import json

import pyarrow as pa

from penstock.catalog.connectors.registry import check_options
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.redis.source import RedisStreamReader, RedisStreamSource
from penstock.engine.connectors.redis.target import RedisStreamTarget
from tests.harness.patience import await_that
from tests.harness.redis_server import RedisProcess

SCHEMA = Schema((Field("n", BIGINT),))


def table(server: RedisProcess, **options: str) -> CatalogTable:
    written = {"connector": "redis-stream", "url": server.url, "stream": "s", "format": "json", **options}
    check_options(written, {})
    return CatalogTable("t", SCHEMA, SCHEMA, written)


def opened(server: RedisProcess, position: Position | None = None, **options: str) -> RedisStreamReader:
    request = ScanRequest(table(server, **options), (0,), None, 1024, ManualClock(), Services())
    source = RedisStreamSource(request)
    return source.open(source.splits()[0], position)


def add(server: RedisProcess, *numbers: int, first_id: int = 0) -> None:
    for number in numbers:
        entry = f"{first_id + number}-1" if first_id else "*"
        server.client.xadd("s", {"value": json.dumps({"n": number}), "other": "x"}, id=entry)


def taken(reader: RedisStreamReader, count: int, most: int = 1024) -> list[int]:
    rows: list[int] = []

    def enough() -> bool:
        batch = reader.poll(min(most, count - len(rows)))
        if isinstance(batch, pa.RecordBatch):
            rows.extend(batch.column(0).to_pylist())
        return len(rows) >= count

    await_that(enough)
    return rows


def rest(reader: RedisStreamReader) -> list[int]:
    rows: list[int] = []

    def ended() -> bool:
        batch = reader.poll(1024)
        if isinstance(batch, pa.RecordBatch):
            rows.extend(batch.column(0).to_pylist())
        return reader.ended

    await_that(ended)
    return rows


def target(server: RedisProcess, **options: str) -> RedisStreamTarget:
    return RedisStreamTarget(
        SinkRequest(table(server, **options), SCHEMA, None, "sink", "j", 0, 1, Services())
    )


def numbers(*values: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=SCHEMA.to_arrow())]


def stored(server: RedisProcess) -> list[int]:
    return [json.loads(fields["value"])["n"] for _, fields in server.client.xrange("s")]
