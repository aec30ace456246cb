"""What only the consumer of the package's objects does: messages of other partitions wait, and not without
limit. That it reads what the native one reads is tested beside that one.
"""

from __future__ import annotations

import pytest

from penstock.engine.connectors.kafka import fallback_consumer
from penstock.engine.connectors.kafka.fallback_consumer import FallbackConsumer
from penstock.engine.connectors.kafka.fetched_messages import Wanted
from tests.harness.kafka_broker import shared_topics
from tests.harness.patience import await_that

pytestmark = pytest.mark.xdist_group("kafka")


def test_a_partition_nobody_reads_waits_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback_consumer, "TAKEN_MOST", 10)
    monkeypatch.setattr(fallback_consumer, "_WAITING_MOST", 20)
    topics = shared_topics()
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        topics.produce(topic, [(None, str(n).encode()) for n in range(200)], partition)
    properties = {"bootstrap.servers": topics.bootstrap, "group.id": "w", "enable.auto.commit": "false"}
    consumer = FallbackConsumer(properties | {"log_level": "0"}, Wanted())
    first, second = consumer.open(topic, 0, 0), consumer.open(topic, 1, 0)
    for reading, other in ((first, second), (second, first)):
        seen: list[int] = []

        def all_seen(reading=reading, other=other, seen=seen) -> bool:  # type: ignore[no-untyped-def]
            got = reading.take(7)
            seen += [] if got is None else got.offsets.tolist()
            assert len(other.waiting) <= 40
            return len(seen) == 200

        await_that(all_seen, "all messages of a partition")
        assert seen == [*range(200)]
    consumer.close()
