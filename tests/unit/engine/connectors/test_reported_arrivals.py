"""Readers that read ahead in a thread report rows that come after a poll without rows."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.connectors.registry import check_options
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest, reports_arrivals
from penstock.engine.connectors.registry import source_connector
from tests.harness.patience import await_that

SCHEMA = Schema((Field("n", BIGINT),))
Served = Iterator[tuple[dict[str, str], Callable[[], Any]]]


@contextmanager
def of_a_socket(_folder: Path) -> Served:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        clients: list[socket.socket] = []

        def send() -> None:
            clients.append(listening.accept()[0])
            clients[0].send(b'{"n": 1}\n')

        yield {"connector": "socket", "hostname": "127.0.0.1", "port": str(listening.getsockname()[1])}, send


@contextmanager
def of_redis(folder: Path) -> Served:
    from tests.harness.redis_server import redis_server

    with redis_server(folder) as server:
        options = {"connector": "redis-stream", "url": server.url, "stream": "s", "format": "json"}
        yield options, lambda: server.client.xadd("s", {"value": b'{"n": 1}'})


@contextmanager
def of_nats(folder: Path) -> Served:
    from tests.harness.nats_server import nats_server

    with nats_server(folder) as server:
        server.create("s", "s.in")
        options = {"connector": "nats", "url": server.url, "stream": "s", "format": "json"}
        yield options, lambda: server.publish("s.in", b'{"n": 1}')


@contextmanager
def of_mqtt(folder: Path) -> Served:
    from tests.harness.mqtt_broker import mqtt_broker

    with mqtt_broker(folder) as broker:
        options = {"connector": "mqtt", "url": broker.url, "topic": "t", "format": "json"}
        yield options, lambda: broker.publish("t", b'{"n": 1}')


@contextmanager
def of_kafka(_folder: Path) -> Served:
    from tests.harness.kafka_broker import shared_topics

    topics = shared_topics()
    topic = topics.create()
    options = {"connector": "kafka", "topic": topic, "format": "json"}
    options |= {"properties.bootstrap.servers": topics.bootstrap}
    yield options, lambda: topics.produce(topic, [(None, b'{"n": 1}')])


@pytest.mark.parametrize("served", [of_a_socket, of_redis, of_nats, of_mqtt, of_kafka])
def test_a_row_after_an_empty_poll_is_reported(served: Any, tmp_path: Path) -> None:
    with served(tmp_path) as (options, send):
        check_options(options, {})
        table = CatalogTable("t", SCHEMA, SCHEMA, options)
        request = ScanRequest(table, (0,), None, 1024, ManualClock(), Services())
        source = source_connector(request)
        reader = source.open(source.splits()[0], None)
        assert reader.poll(10) is None and reports_arrivals(reader)
        polled: list[Any] = []

        def has_come() -> bool:
            # without a report nobody polls, unless the last poll met something else than rows
            if request.arrivals.take() or not reports_arrivals(reader):
                polled.append(reader.poll(10))
            return any(rows is not None for rows in polled)

        send()
        await_that(has_come)
        assert polled[-1].num_rows == 1
        reader.close()
