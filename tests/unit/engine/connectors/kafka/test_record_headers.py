"""Records with headers and timestamps over the wire."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.connectors.kafka.native_producer import KafkaFailed, NativeProducer
from penstock.engine.connectors.kafka.producer_records import Records
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.unit.engine.connectors.kafka.kafka_sinks import binary


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


def test_headers_and_timestamps_are_written(topics: KafkaTopics) -> None:
    topic = topics.create()
    made = NativeProducer(topic, {"bootstrap.servers": topics.bootstrap}, "table t")
    kind = pa.map_(pa.string(), pa.binary())
    given = [[("z", b"0")], None, [("a", b"1"), ("b", None), ("ü", b"")], []]
    headers = pa.array(given, kind).slice(1)
    stamps = np.array([1_795_000_000_000, 1_795_000_000_001, 0])
    made.produce(Records(binary(b"x", None, b""), binary(None, b"k", b""), None, stamps, headers))
    made.flush()
    found = topics.read(topic)
    assert [(m.key(), m.value()) for m in found] == [(None, b"x"), (b"k", None), (b"", b"")]
    assert [m.headers() for m in found] == [None, [("a", b"1"), ("b", None), ("ü", b"")], None]
    assert [m.timestamp()[1] for m in found[:2]] == stamps[:2].tolist()
    assert found[2].timestamp()[1] > 1_600_000_000_000, "0 is now"
    with pytest.raises(KafkaFailed):
        made.produce(Records(binary(b"x"), None, np.array([7], np.int32), stamps[:1], headers.slice(1, 1)))
        made.flush()
    made.close()
