"""Messages that come to an empty partition are noticed, and nothing is left of the notice."""

from __future__ import annotations

import os
import threading

import pytest

from penstock.engine.connectors.kafka.fetched_messages import Wanted
from penstock.engine.connectors.kafka.librdkafka import load
from penstock.engine.connectors.kafka.native_consumer import NativeConsumer
from tests.harness.kafka_broker import shared_topics
from tests.harness.patience import PATIENCE_S, await_that

pytestmark = pytest.mark.xdist_group("kafka")


def test_messages_of_an_empty_partition_are_noticed() -> None:
    library, topics, arrived = load(), shared_topics(), threading.Event()
    assert library is not None
    topic = topics.create()
    properties = {"bootstrap.servers": topics.bootstrap, "group.id": "g", "enable.partition.eof": "true"}
    consumer = NativeConsumer(library, properties, Wanted(), arrived.set)
    partition = consumer.open(topic, 0, 0)

    def is_at_end() -> bool:
        fetched = partition.take(10)
        return fetched is not None and fetched.error is not None and fetched.error.is_end

    await_that(is_at_end, "the end of the partition")
    arrived.clear()
    topics.produce(topic, [(None, b"1")])
    assert arrived.wait(PATIENCE_S)
    await_that(lambda: partition.take(10) is not None, "the message")
    events = consumer.events
    assert events is not None
    pipe = os.fstat(events._writing).st_ino
    consumer.close()
    await_that(lambda: pipe not in _open_pipes(), "the end of the pipe")


def _open_pipes() -> set[int]:
    found = set[int]()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.stat(f"/proc/self/fd/{name}").st_ino)
        except OSError:
            continue  # closed meanwhile
    return found
