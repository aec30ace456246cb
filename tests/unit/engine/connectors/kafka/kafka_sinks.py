"""Targets and sinks over topics of the test broker, without a job."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, MetadataColumn
from penstock.catalog.types import INT, STRING, DataType
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.connectors.kafka.producer_records import Records
from tests.harness.kafka_broker import KafkaTopics

WRITER = EpochWriter("job", "s1", 0)


def declared(
    topic: str,
    bootstrap: str = "127.0.0.1:1",
    columns: dict[str, DataType] | None = None,
    metadata: dict[str, str] | None = None,
    primary_key: tuple[str, ...] = (),
    **options: str,
) -> CatalogTable:
    """Return a table of ``k INT, v STRING``; underscores of options stand for dots, two of them for ``-``."""
    schema = Schema(tuple(Field(name, kind) for name, kind in (columns or {"k": INT, "v": STRING}).items()))
    written = {
        "connector": "upsert-kafka" if primary_key else "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "format": "json",
    } | {key.replace("__", "-").replace("_", "."): text for key, text in options.items()}
    columns_of = tuple(MetadataColumn(name, key) for name, key in (metadata or {}).items())
    return CatalogTable("t", schema, schema, written, metadata=columns_of, primary_key=primary_key)


def request(table: CatalogTable, subtask: int = 0, parallelism: int = 1, **more: Any) -> SinkRequest:
    """Return one subtask of a sink."""
    key = (0,) if table.primary_key else None
    asked: dict[str, Any] = {"owner": "job", **more}
    return SinkRequest(table, table.schema, key, "s1", "j", subtask, parallelism, Services(), **asked)


def rows(*keys: int) -> pa.RecordBatch:
    """Return rows k, v<k>."""
    return pa.record_batch(
        {"k": pa.array(keys, pa.int32()), "v": pa.array([f"v{key}" for key in keys], pa.string())}
    )


def binary(*values: bytes | None) -> pa.Array:
    """Return a BINARY array."""
    return pa.array(values, pa.binary())


def records(*values: bytes | None, keys: tuple[bytes | None, ...] | None = None) -> Records:
    """Return records."""
    return Records(binary(*values), None if keys is None else binary(*keys))


def there(topics: KafkaTopics, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Return key and value of what a stock reader of committed records sees."""
    return [(message.key(), message.value()) for message in topics.read(topic)]
