"""A partition whose broker dies, whose offsets expire, whose topic is deleted or created again."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import LagReader, Position, ScanRequest, lag_of
from penstock.engine.connectors.kafka import topic_partitions
from penstock.engine.connectors.kafka.broker_errors import broker_error
from penstock.engine.connectors.kafka.fetched_messages import PartitionConsumer, Wanted
from penstock.engine.connectors.kafka.librdkafka import load
from penstock.engine.connectors.kafka.native_consumer import NativeConsumer
from penstock.engine.connectors.kafka.reader import KafkaReader
from penstock.engine.connectors.kafka.source import KafkaSource, MakeConsumer
from tests.harness.kafka_broker import KafkaBroker, KafkaTopics, new_broker, shared_topics
from tests.harness.kafka_mock import FETCH, KAFKA_STORAGE_ERROR, TOPIC_AUTHORIZATION_FAILED, MockCluster
from tests.harness.patience import await_that

pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    made = new_broker()
    yield made
    made.kill()


def values(*numbers: int) -> list[tuple[None, bytes]]:
    return [(None, json.dumps({"a": number}).encode()) for number in numbers]


def source(bootstrap: str, topic: str, consumer: MakeConsumer | None = None, **options: str) -> KafkaSource:
    schema = Schema((Field("a", BIGINT),))
    given = {
        "connector": "kafka",
        "topic": topic,
        "format": "json",
        "properties.bootstrap.servers": bootstrap,
    }
    given |= {"scan.startup.mode": "earliest-offset"}
    given |= {key.replace("_", "."): text for key, text in options.items()}
    table = CatalogTable("t", schema, schema, given)
    return KafkaSource(ScanRequest(table, (0,), None, 1000, SystemClock(), Services()), consumer)


def opened(made: KafkaSource, topic: str, position: Position | None = None) -> KafkaReader:
    if position is None:
        made.splits()
        position = made.first_position(f"{topic}-0")
    return made.open(f"{topic}-0", position)


def take(reader: KafkaReader, count: int) -> list[int]:
    """Return so many numbers, as soon as they have come."""
    found: list[int] = []

    def enough() -> bool:
        rows: Any = reader.poll(1)
        found.extend([] if rows is None else rows.column(0).to_pylist())
        return len(found) >= count

    await_that(enough, f"{count} messages")
    return found


def failure(reader: KafkaReader) -> PenstockError:
    """Return the error that polling ends with."""
    raised: list[PenstockError] = []

    def failed() -> bool:
        try:
            reader.poll(100)
        except PenstockError as error:
            raised.append(error)
        return bool(raised)

    await_that(failed, "an error")
    reader.close()
    return raised[0]


def test_positions_and_lag_follow_the_messages(topics: KafkaTopics) -> None:
    topic = topics.create()
    topics.produce(topic, values(1, 2, 3))
    made = source(topics.bootstrap, topic)
    reader = opened(made, topic)
    assert isinstance(reader, LagReader)
    assert reader.position()["offset"] == 0
    assert take(reader, 2) == [1, 2]
    assert (reader.position()["offset"], lag_of(reader)) == (2, 1)
    position = reader.position()
    reader.close()
    again = opened(made, topic, position)
    assert take(again, 1) == [3]
    await_that(lambda: again.poll(1) is None and lag_of(again) == 0)
    again.close()


def test_the_positions_of_checkpoints_are_committed_to_the_group(topics: KafkaTopics) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = topics.create()
    topics.produce(topic, values(1, 2))
    made = source(topics.bootstrap, topic, properties_group_id=f"watched-{topic}")
    reader = opened(made, topic, {"offset": 0})
    take(reader, 2)
    reader.checkpoint_completed(reader.position())
    watcher = Consumer(
        {"bootstrap.servers": topics.bootstrap, "group.id": f"watched-{topic}", "log_level": 0}
    )
    place = [TopicPartition(topic, 0)]
    await_that(lambda: watcher.committed(place, 30)[0].offset == 2, "the commit")
    watcher.close()
    reader.close()


def test_a_broker_that_is_killed_and_comes_back(
    broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    topics = KafkaTopics(broker.bootstrap)
    topic = topics.create()
    topics.produce(topic, values(1, 2))
    options = {"properties_reconnect_backoff_max_ms": "100", "properties_reconnect_backoff_ms": "10"}
    reader = opened(source(broker.bootstrap, topic, **options), topic)
    assert take(reader, 2) == [1, 2]
    broker.stop()
    with caplog.at_level(logging.WARNING, "penstock.kafka"):
        await_that(lambda: reader.poll(10) is None and "no broker can be reached" in caplog.text)
        broker.start()
        KafkaTopics(broker.bootstrap).produce(topic, values(3))
        assert take(reader, 1) == [3]
    assert caplog.text.count("no broker can be reached") == 1
    assert "answers again" in caplog.text
    reader.close()


def test_expired_offsets_are_an_error_or_are_passed_over_loudly(
    topics: KafkaTopics, caplog: pytest.LogCaptureFixture
) -> None:
    from confluent_kafka import TopicPartition

    topic = topics.create()
    topics.produce(topic, values(*range(10)))
    for done in topics.admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        done.result(30)
    error = failure(opened(source(topics.bootstrap, topic), topic, {"offset": 2}))
    assert error.code == "DAT-5106"
    assert "the next offset to read is 2, the first stored one is 6" in str(error.detail)
    made = source(topics.bootstrap, topic, properties_auto_offset_reset="earliest")
    reader = opened(made, topic, {"offset": 2})
    with caplog.at_level(logging.WARNING, "penstock.kafka"):
        assert take(reader, 4) == [6, 7, 8, 9]
    assert "4 are skipped" in caplog.text
    assert made._request.metrics.counters["skipped_messages"] == 4
    reader.close()
    # a partition that was discovered begins with the first message there is
    found = opened(source(topics.bootstrap, topic), topic, {"offset": 0, "discovered": True})
    assert take(found, 4) == [6, 7, 8, 9]
    found.close()


def test_a_topic_that_was_created_again(topics: KafkaTopics) -> None:
    topic = topics.create()
    topics.produce(topic, values(1))
    error = failure(
        opened(source(topics.bootstrap, topic, properties_auto_offset_reset="earliest"), topic, {"offset": 5})
    )
    assert error.code == "DAT-5109"
    assert "its last offset is 0, the next one to read is 5" in str(error.detail)
    older = failure(opened(source(topics.bootstrap, topic), topic, {"offset": 0, "epoch": 9}))
    assert older.code == "DAT-5109"
    assert "its leader epoch was 9, it is 0" in str(older.detail)


def test_a_split_that_has_ended_opens_nothing(topics: KafkaTopics) -> None:
    topic = topics.create()
    reader = opened(source(topics.bootstrap, topic), topic, {"offset": 4, "end": 4})
    assert reader.ended
    assert reader.poll(1) is None
    assert reader.position() == {"offset": 4, "end": 4}
    reader.close()


def test_a_topic_that_is_deleted_is_noticed_by_the_next_discovery(topics: KafkaTopics) -> None:
    topic = topics.create()
    topics.produce(topic, values(1))
    made = source(topics.bootstrap, topic, **{"scan.topic-partition-discovery.interval": "20 ms"})
    reader = opened(made, topic)
    assert take(reader, 1) == [1]
    topics.delete(topic)
    raised: list[PenstockError] = []

    def noticed() -> bool:
        try:
            made.splits()
        except PenstockError as error:
            raised.append(error)
        return bool(raised)

    await_that(noticed, "the discovery")
    assert raised[0].code == "DAT-5103"
    assert f"topic {topic}" in raised[0].message
    reader.close()


def test_a_discovery_in_an_outage_is_passed_over(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_partitions, "FIRST_S", 0.05)
    monkeypatch.setattr(topic_partitions, "LIMIT_S", 0.1)
    topics = KafkaTopics(broker.bootstrap)
    topic = topics.create()
    made = source(broker.bootstrap, topic, **{"scan.topic-partition-discovery.interval": "20 ms"})
    monkeypatch.setattr(topic_partitions, "LIMIT_S", 20)
    assert made.splits() == [f"{topic}-0"]
    monkeypatch.setattr(topic_partitions, "LIMIT_S", 0.1)
    broker.stop()
    asked = [0]
    listed = topic_partitions.TopicPartitions.listed

    def counted(self: Any) -> Any:
        asked[0] += 1
        return listed(self)

    monkeypatch.setattr(topic_partitions.TopicPartitions, "listed", counted)
    # the next one begins when the one before has ended
    await_that(lambda: made.splits() == [f"{topic}-0"] and asked[0] >= 3, "three discoveries")


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    pytest.importorskip("confluent_kafka")
    made = MockCluster()
    made.create("m")
    KafkaTopics(made.bootstrap).produce("m", values(1, 2))
    yield made
    made.close()


def test_rights_that_are_missing_or_taken_away(mock: MockCluster) -> None:
    reader = opened(source(mock.bootstrap, "m"), "m")
    mock.refuse_requests(FETCH, *[TOPIC_AUTHORIZATION_FAILED] * 5)
    error = failure(reader)
    assert error.code == "DAT-5104"
    assert not error.retriable
    mock.refuse_topic("m", TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(PenstockError) as refused:
        source(mock.bootstrap, "m").splits()
    assert refused.value.code == "DAT-5104"


def test_errors_of_a_broker_that_pass_cost_no_message(mock: MockCluster) -> None:
    reader = opened(source(mock.bootstrap, "m"), "m")
    mock.refuse_requests(FETCH, *[KAFKA_STORAGE_ERROR] * 3)
    assert take(reader, 2) == [1, 2]
    reader.close()


class _Refusing:
    """A consumer that opens no partition."""

    is_closed = False

    def open(self, topic: str, partition: int, offset: int) -> PartitionConsumer:
        raise broker_error("TOPIC_AUTHORIZATION_FAILED", "no", f"topic {topic}")

    def outage(self) -> str | None:
        return None

    def close(self) -> None:
        self.is_closed = True


def test_the_client_is_closed_where_no_partition_is_opened() -> None:
    consumer = _Refusing()
    made = source("localhost:1", "t", consumer=lambda *_: consumer)
    with pytest.raises(PenstockError, match="DAT-5104"):
        made.open("t-0", {"offset": 0})
    # nobody has a reader that could close it
    assert consumer.is_closed


def test_a_partition_that_is_not_opened_leaves_no_queue(topics: KafkaTopics) -> None:
    library = load()
    assert library is not None
    consumer = NativeConsumer(library, {"bootstrap.servers": topics.bootstrap, "group.id": "g"}, Wanted())
    topic = topics.create()
    first = consumer.open(topic, 0, 0)
    # librdkafka reads a partition once
    with pytest.raises(PenstockError, match="DAT-51"):
        consumer.open(topic, -7, 0)
    assert consumer._partitions == [first]
    consumer.close()
