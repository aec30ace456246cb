"""The producer over the wire: what it delivers, what it refuses, transactions, and who is fenced off."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.kafka import native_producer, producer_records
from penstock.engine.connectors.kafka.native_producer import (
    KafkaFailed,
    KafkaFailure,
    NativeProducer,
    committed_offset,
)
from penstock.engine.connectors.kafka.producer_records import Records
from tests.harness.kafka_broker import KafkaTopics, new_broker, shared_topics
from tests.unit.engine.connectors.kafka.kafka_sinks import binary, records, there


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


def producer(topics: KafkaTopics, topic: str, **more: str) -> NativeProducer:
    properties = {"bootstrap.servers": topics.bootstrap} | {k.replace("_", "."): v for k, v in more.items()}
    return NativeProducer(topic, properties, "table t")


def test_records_are_delivered_in_order(topics: KafkaTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    # several calls of librdkafka, and waiting for room
    monkeypatch.setattr(producer_records, "CHUNK_RECORDS", 100)
    topic = topics.create()
    made = producer(topics, topic, enable_idempotence="true")
    assert made.partitions() == 1
    values: list[bytes | None] = [b"%d" % n for n in range(1000)] + [None, b""]
    made.produce(records(*values, keys=(b"k",) * 1002))
    made.flush()
    assert there(topics, topic) == [(b"k", value) for value in values]
    made.close()
    made.close()


def test_small_batches_do_not_wait_for_those_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1"}
    made = NativeProducer("t", nobody, "table t")
    for _ in range(20):
        made.produce(records(b"a", b"b"))
    assert made._library.rd_kafka_outq_len(made._client) == 40
    made.close()
    # more bytes than two chunks have wait for a broker, here until they fail
    monkeypatch.setattr(producer_records, "CHUNK_BYTES", 10)
    made = NativeProducer("t", nobody | {"message.timeout.ms": "100"}, "table t")
    with pytest.raises(KafkaFailed):
        for _ in range(3):
            made.produce(records(b"x" * 8))
    made.close()


def test_keys_are_in_the_partition_that_java_chooses(topics: KafkaTopics) -> None:
    topic = topics.create(partitions=4)
    made = producer(topics, topic, partitioner="murmur2_random")
    keys = (b"21", b"foobar", b"a-little-bit-long-string", b"abc")
    made.produce(records(*keys, keys=keys))
    made.flush()
    found = {message.key(): message.partition() for message in topics.read(topic)}
    # toPositive(murmur2(key)) of Kafka's own UtilsTest, modulo 4
    hashes = (-973932308, -790332482, -985981536, 479470107)
    assert found == {key: (number & 0x7FFFFFFF) % 4 for key, number in zip(keys, hashes, strict=True)}
    made.close()


def test_records_go_to_the_partitions_they_have(topics: KafkaTopics) -> None:
    topic = topics.create(partitions=3)
    made = producer(topics, topic)
    made.produce(Records(binary(b"a", b"b", b"c"), None, np.array([2, 0, 2], np.int32)))
    made.flush()
    assert [(m.partition(), m.value()) for m in topics.read(topic)] == [(0, b"b"), (2, b"a"), (2, b"c")]
    with pytest.raises(KafkaFailed) as raised:
        made.produce(Records(binary(b"a"), None, np.array([9], np.int32)))
        made.flush()
    assert made.error(raised.value.failure).code == "DAT-5103"
    made.close()


def test_a_transaction_has_its_rows_and_its_offset_or_neither(topics: KafkaTopics) -> None:
    topic, properties = topics.create(), {"bootstrap.servers": topics.bootstrap}
    name = f"w-{topic}"
    one = producer(topics, topic, transactional_id=name)
    one.init_transactions()
    assert committed_offset(topic, properties | {"group.id": name}) == (None, None)
    one.begin()
    one.produce(records(b"a"))
    one.send_offset(name, 7, "penstock epoch 7")
    one.commit()
    one.begin()
    one.produce(records(b"b"))
    one.flush()
    one.send_offset(name, 8, "penstock epoch 8")
    one.abort()
    assert committed_offset(topic, properties | {"group.id": name}) == (7, None)
    assert there(topics, topic) == [(None, b"a")]
    one.begin()
    one.produce(records(b"c"))
    one.flush()
    two = producer(topics, topic, transactional_id=name)
    two.init_transactions()
    with pytest.raises(KafkaFailed) as raised:
        one.commit()
    assert raised.value.failure.is_fenced and raised.value.failure.fatal
    assert there(topics, topic) == [(None, b"a")]
    one.close()
    two.close()


def test_a_dead_broker_is_an_error_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_producer, "REQUEST_MS", 100)
    made = NativeProducer("t", {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": "100"}, "table t")
    with pytest.raises(PenstockError, match="DAT-5102") as raised:
        made.partitions()
    assert raised.value.retriable
    made.produce(records(b"a"))
    with pytest.raises(KafkaFailed) as failed:
        made.flush()
    assert made.error(failed.value.failure).retriable
    # a new producer may do what this one never will
    assert made.error(KafkaFailure("OUT_OF_ORDER_SEQUENCE_NUMBER", "text", fatal=True)).retriable
    assert not made.error(KafkaFailure("TOPIC_AUTHORIZATION_FAILED", "text", fatal=True)).retriable
    made.close()


def test_calls_about_a_transaction_wait_no_longer_than_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_producer, "REQUEST_MS", 600)
    made = NativeProducer("t", {"bootstrap.servers": "127.0.0.1:1", "transactional.id": "w"}, "table t")
    waits: list[int] = []
    native = made._library.rd_kafka_init_transactions

    def init(client: int, ms: int) -> int | None:
        waits.append(ms)
        answer: int | None = native(client, ms)
        return answer

    monkeypatch.setattr(made._library, "rd_kafka_init_transactions", init)
    with pytest.raises(KafkaFailed) as failed:
        made.init_transactions()
    assert failed.value.failure.retriable
    assert waits and sum(waits) <= 600
    made.close()


def test_a_client_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = new_broker()
    topics = KafkaTopics(broker.bootstrap)
    topic = topics.create()
    # what the sink switches off: librdkafka forgets all brokers, and the call below never returns
    made = producer(topics, topic, transactional_id="w", metadata_recovery_strategy="rebootstrap")
    made.init_transactions()
    for offset in (1, 2):
        made.begin()
        made.produce(records(b"a"))
        made.flush()
        if offset == 2:
            broker.kill()
            monkeypatch.setattr(native_producer, "OFFSET_MS", 300)
            monkeypatch.setattr(native_producer, "_GRACE_MS", 200)
            with pytest.raises(KafkaFailed) as failed:
                made.send_offset("w", offset, "x")
            assert failed.value.failure.retriable
        else:
            made.send_offset("w", offset, "x")
            made.commit()
    made.close()
    broker.kill()
