"""Rows that only the topic is too small for: left out, and the rows beside them written."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.kafka import topic_limit
from penstock.engine.connectors.kafka.sink import KafkaSink
from penstock.engine.connectors.kafka.target import KafkaTarget
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.unit.engine.connectors.kafka.kafka_sinks import WRITER, declared, request

pytestmark = pytest.mark.xdist_group("kafka")
LIMIT = 4_000


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


def rows() -> pa.RecordBatch:
    """Return rows of 3 kB each, the third of 5 kB."""
    sizes = [3_000, 3_000, 5_000, 3_000]
    return pa.record_batch({"k": pa.array(range(4), pa.int32()), "v": ["x" * size for size in sizes]})


def written(topics: KafkaTopics, topic: str) -> list[int]:
    return sorted(json.loads(message.value())["k"] for message in topics.read(topic))


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_row_that_the_topic_does_not_take_is_left_out_alone(
    topics: KafkaTopics, exactly_once: bool
) -> None:
    topic = topics.create(max_message_bytes=str(LIMIT))
    asked = request(declared(topic, topics.bootstrap, on__error="skip"))
    if exactly_once:
        target = KafkaTarget(asked)
        target.fence([WRITER])
        target.commit(WRITER, 1, [rows()])
        target.close()
    else:
        sink = KafkaSink(asked)
        sink.write(Batch(rows()))
        sink.prepare(1)
        sink.close()
    assert written(topics, topic) == [0, 1, 3]
    assert asked.metrics.counters["rows_refused"] == 1


def test_a_row_of_just_the_limit_is_taken_or_left_out_but_never_refused(topics: KafkaTopics) -> None:
    topic = topics.create(max_message_bytes=str(LIMIT))
    asked = request(declared(topic, topics.bootstrap, on__error="skip"))
    sink = KafkaSink(asked)
    keys = pa.array(range(200), pa.int32())
    sink.write(Batch(pa.record_batch({"k": keys, "v": ["x" * (LIMIT - 200 + n) for n in range(200)]})))
    sink.prepare(1)
    sink.close()
    taken = written(topics, topic)
    assert taken == list(range(len(taken))) and 50 < len(taken) < 200


def test_where_nothing_is_left_out_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    # nobody is there to answer
    assert topic_limit.topic_limit(declared("t")) is None
    monkeypatch.setattr(topic_limit, "_WAIT_S", 0.05)
    assert topic_limit.topic_limit(declared("t", on__error="skip")) is None
