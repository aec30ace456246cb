"""Messages through the C library are those of the stock client, column by column; memory is given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.connectors.kafka.fallback_consumer import FallbackConsumer
from penstock.engine.connectors.kafka.fetched_messages import FetchedMessages, KafkaConsumer, Wanted
from penstock.engine.connectors.kafka.librdkafka import load
from penstock.engine.connectors.kafka.native_consumer import NativeConsumer
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.harness.patience import await_that

pytestmark = pytest.mark.xdist_group("kafka")
ALL = Wanted(True, True, True, True)
LONG = b"x" * (5 << 20)


def native(properties: dict[str, str], wanted: Wanted = ALL) -> NativeConsumer:
    library = load()
    assert library is not None
    return NativeConsumer(library, properties, wanted)


def fallback(properties: dict[str, str], wanted: Wanted = ALL) -> FallbackConsumer:
    return FallbackConsumer(properties, wanted)


MAKERS: list[Callable[..., KafkaConsumer]] = [native, fallback]


def properties(topics: KafkaTopics) -> dict[str, str]:
    return {
        "bootstrap.servers": topics.bootstrap,
        "group.id": "reads",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "auto.offset.reset": "error",
        "log_level": "0",
    }


def read_to_end(
    consumer: KafkaConsumer, topic: str, offset: int = 0, most: int = 100
) -> list[FetchedMessages]:
    """Return the batches of partition 0 up to its end."""
    partition, batches = consumer.open(topic, 0, offset), []

    def ended() -> bool:
        fetched = partition.take(most)
        if fetched is not None:
            batches.append(fetched)
        return fetched is not None and fetched.error is not None

    await_that(ended, "the end of the partition")
    assert partition.end_offset() == batches[-1].error.offset  # type: ignore[union-attr]
    partition.close()
    return batches


def as_rows(batches: list[FetchedMessages]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for one in batches:
        columns = (one.values, one.keys, one.offsets, one.timestamps, one.timestamp_types, one.headers)
        rows += zip(*(c.to_pylist() if isinstance(c, pa.Array) else c.tolist() for c in columns), strict=True)  # type: ignore[union-attr]
    return rows


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


@pytest.fixture(scope="module")
def topic(topics: KafkaTopics) -> str:
    made = topics.create(max_message_bytes="10000000")
    topics.__dict__.pop("producer", None)
    from confluent_kafka import Producer

    topics.__dict__["producer"] = Producer(
        {"bootstrap.servers": topics.bootstrap, "log_level": 0, "message.max.bytes": 8 << 20}
    )
    records: list[Any] = [(str(n).encode(), f"value {n}".encode()) for n in range(250)]
    records += [(None, b""), (b"", None), (b"gone", None), (b"long", LONG), (None, "öß".encode())]
    records += [{"value": b"h", "headers": [("a", b"1"), ("b", None), ("a", b"2")], "timestamp": 12345}]
    topics.produce(made, records)
    return made


@pytest.mark.parametrize("make", MAKERS)
def test_messages_are_those_of_the_stock_client(
    topics: KafkaTopics, topic: str, make: Callable[..., KafkaConsumer]
) -> None:
    consumer = make(properties(topics))
    rows = as_rows(read_to_end(consumer, topic))
    consumer.close()
    expected = [
        (m.value(), m.key(), m.offset(), m.timestamp()[1], m.timestamp()[0]) for m in topics.read(topic)
    ]
    assert [row[:5] for row in rows] == expected
    assert rows[-1][5] == [("a", b"2"), ("b", None)]
    assert [row[0] for row in rows[250:254]] == [b"", None, None, LONG]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("most", [1, 7, 1000])
def test_however_few_are_taken_none_is_lost(
    topics: KafkaTopics, topic: str, make: Callable[..., KafkaConsumer], most: int
) -> None:
    consumer = make(properties(topics), Wanted())
    batches = read_to_end(consumer, topic, 200, most)
    consumer.close()
    offsets = [offset for batch in batches for offset in batch.offsets.tolist()]
    assert offsets == [*range(200, 256)]
    assert all(len(batch) <= most for batch in batches)
    assert all(batch.keys is None and batch.headers is None for batch in batches)


@pytest.mark.parametrize("make", MAKERS)
def test_a_partition_begins_anew_at_another_offset(
    topics: KafkaTopics, topic: str, make: Callable[..., KafkaConsumer]
) -> None:
    consumer = make(properties(topics), Wanted())
    partition = consumer.open(topic, 0, 0)
    await_that(lambda: partition.take(10), "the first messages")
    partition.restart(240)
    first: list[FetchedMessages] = []
    await_that(lambda: (got := partition.take(5)) is not None and (first.append(got) or True), "messages")
    assert first[0].offsets.tolist()[0] == 240
    consumer.close()


@pytest.mark.parametrize("make", MAKERS)
def test_an_offset_that_is_not_there_is_an_error(
    topics: KafkaTopics, topic: str, make: Callable[..., KafkaConsumer]
) -> None:
    consumer = make(properties(topics), Wanted())
    partition = consumer.open(topic, 0, 10_000)
    got: list[FetchedMessages] = []
    await_that(lambda: (one := partition.take(5)) is not None and (got.append(one) or True), "an answer")
    assert got[0].error is not None
    assert got[0].error.name in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")
    consumer.close()


def test_no_broker_is_told_once() -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}
    consumer = native(nobody, Wanted())
    consumer.open("t", 0, 0)
    told: list[str] = []
    await_that(
        lambda: (reason := consumer.outage()) is not None and (told.append(reason) or True), "the news"
    )
    assert "brokers are down" in told[0]
    consumer.close()
