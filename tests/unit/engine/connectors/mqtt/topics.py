"""Tables over topics of a real broker and their readers, for the tests beside."""

from __future__ import annotations

import json

import pyarrow as pa

from penstock.catalog.connectors.registry import check_options
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.mqtt.source import MqttReader, MqttSource
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.mqtt_broker import MqttProcess
from tests.harness.patience import await_that

SCHEMA = Schema((Field("n", BIGINT),))


def table(broker: MqttProcess, topic: str, **options: str) -> CatalogTable:
    written = {"connector": "mqtt", "url": broker.url, "topic": topic, "format": "json", **options}
    check_options(written, {})
    return CatalogTable("t", SCHEMA, SCHEMA, written)


def source(
    broker: MqttProcess,
    topic: str,
    metrics: OperatorMetrics | None = None,
    resumes: bool = True,
    **options: str,
) -> MqttSource:
    made, counted = table(broker, topic, **options), metrics or OperatorMetrics()
    request = ScanRequest(made, (0,), None, 1024, ManualClock(), Services(), counted, resumes=resumes)
    return MqttSource(request)


def opened(
    broker: MqttProcess,
    topic: str,
    position: Position | None = None,
    metrics: OperatorMetrics | None = None,
    resumes: bool = True,
    **options: str,
) -> MqttReader:
    made = source(broker, topic, metrics, resumes, **options)
    return made.open(made.splits()[0], position)


def add(broker: MqttProcess, topic: str, *numbers: int) -> None:
    broker.publish(topic, *(json.dumps({"n": number}).encode() for number in numbers))


def taken(reader: MqttReader, count: int, most: int = 1024) -> list[int]:
    rows: list[int] = []

    def enough() -> bool:
        batch = reader.poll(min(most, count - len(rows)))
        if isinstance(batch, pa.RecordBatch):
            rows.extend(batch.column(0).to_pylist())
        return len(rows) >= count

    await_that(enough)
    return rows
