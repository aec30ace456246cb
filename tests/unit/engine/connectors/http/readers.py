"""Readers of tables over HTTP, for the tests beside."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from websockets.sync.server import ServerConnection, serve

from penstock.catalog.connectors.registry import check_options
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.http.source import HttpReader, HttpSource
from tests.harness.http_server import Answered
from tests.harness.patience import await_that

SCHEMA = Schema((Field("n", BIGINT),))


def opened(url: str, position: Position | None = None, **options: str) -> HttpReader:
    written = {"connector": "http", "url": url, "format": "json", **options}
    check_options(written, {})
    table = CatalogTable("t", SCHEMA, SCHEMA, written)
    source = HttpSource(ScanRequest(table, (0,), None, 1024, ManualClock(), Services()))
    return source.open(source.splits()[0], position)


def taken(reader: HttpReader, count: int, most: int = 1024) -> list[int]:
    rows: list[int] = []

    def enough() -> bool:
        batch = reader.poll(min(most, count - len(rows)))
        if batch is not None:
            made = batch if isinstance(batch, pa.RecordBatch) else batch.rows
            rows.extend(made.column(0).to_pylist())
        return len(rows) >= count

    await_that(enough)
    return rows


def numbers(*values: int) -> Answered:
    body = json.dumps([{"n": value} for value in values]).encode()
    return Answered(body, headers={"Content-Type": "application/json"})


@contextmanager
def websocket(*messages: str | bytes) -> Iterator[str]:
    """Run a server that sends messages to who connects, and then closes the connection."""

    def send(connection: ServerConnection) -> None:
        for message in messages:
            connection.send(message)

    with serve(send, "127.0.0.1", 0) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{running.socket.getsockname()[1]}/feed"
        running.shutdown()
        thread.join()
