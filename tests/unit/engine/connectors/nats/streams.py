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
from penstock.engine.api.sink import Origin, SinkRequest
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.nats.source import NatsReader, NatsSource
from penstock.engine.connectors.nats.target import NatsTarget
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.nats_server import NatsProcess
from tests.harness.patience import await_that

SCHEMA = Schema((Field("n", BIGINT),))


def table(server: NatsProcess, stream: str, **options: str) -> CatalogTable:
    written = {"connector": "nats", "url": server.url, "stream": stream, "format": "json", **options}
    check_options(written, {})
    return CatalogTable("t", SCHEMA, SCHEMA, written)


def source(
    server: NatsProcess, stream: str, metrics: OperatorMetrics | None = None, **options: str
) -> NatsSource:
    made = table(server, stream, **options)
    counted = metrics or OperatorMetrics()
    return NatsSource(ScanRequest(made, (0,), None, 1024, ManualClock(), Services(), counted))


def opened(
    server: NatsProcess,
    stream: str,
    position: Position | None = None,
    metrics: OperatorMetrics | None = None,
    **options: str,
) -> NatsReader:
    made = source(server, stream, metrics, **options)
    return made.open(made.splits()[0], position)


def add(server: NatsProcess, subject: str, *numbers: int) -> None:
    server.publish(subject, *(json.dumps({"n": number}).encode() for number in numbers))


def taken(reader: NatsReader, count: int, most: int = 1024) -> list[int]:
    rows: list[int] = []

    def enough() -> bool:
        batch = reader.poll(min(most, count - len(rows)))
        if isinstance(batch, pa.RecordBatch):
            rows.extend(batch.column(0).to_pylist())
        return len(rows) >= count

    await_that(enough)
    return rows


def rest(reader: NatsReader) -> list[int]:
    rows: list[int] = []

    def ended() -> bool:
        batch = reader.poll(1024)
        if isinstance(batch, pa.RecordBatch):
            rows.extend(batch.column(0).to_pylist())
        return reader.ended

    await_that(ended)
    reader.close()
    return rows


def target(server: NatsProcess, stream: str, origin: int | None = None, **options: str) -> NatsTarget:
    made = table(server, stream, **{"subject": f"{stream}.new", **options})
    begins = None if origin is None else Origin("j", "sink", origin)
    return NatsTarget(SinkRequest(made, SCHEMA, None, "sink", "j", 0, 1, Services(), origin=begins))


def numbers(*values: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=SCHEMA.to_arrow())]


def stored(server: NatsProcess, stream: str) -> list[int]:
    found = server.stored(stream, f"{stream}.>")
    return [json.loads(payload)["n"] for _, _, payload in found]
