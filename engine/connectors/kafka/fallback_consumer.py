"""A consumer by the package's own objects, where its C library is not found: slower, the same messages."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.connectors.kafka.broker_errors import ConnectionErrors, broker_error, kafka_exception
from penstock.engine.connectors.kafka.fetched_messages import (
    HEADERS_TYPE,
    FetchedMessages,
    PartitionError,
    Wanted,
)
from penstock.engine.connectors.kafka.librdkafka import refused_properties

# Messages taken off the client at once.
TAKEN_MOST = 10_000
# A partition that nobody reads at the moment is fetched no further beyond so many messages.
_WAITING_MOST = 2 * TAKEN_MOST


class FallbackConsumer:
    """One ``confluent_kafka.Consumer``. It returns the messages of all partitions mixed; those of other
    partitions than the one that is read wait here.
    """

    reports_arrivals = False
    """``consume()`` has no notice of messages."""

    def __init__(self, properties: dict[str, str], wanted: Wanted) -> None:
        from confluent_kafka import Consumer, KafkaException

        self.wanted = wanted
        self._errors = ConnectionErrors()
        self._partitions: dict[tuple[str, int], FallbackPartition] = {}
        try:
            self.client: Any = Consumer({**properties, "error_cb": self._on_error})
        except KafkaException as error:
            raise refused_properties(str(error.args[0].str())) from None

    def open(self, topic: str, partition: int, offset: int) -> FallbackPartition:
        """Begin to read a partition."""
        opened = FallbackPartition(self, topic, partition)
        self._partitions[topic, partition] = opened
        opened.begin(offset)
        return opened

    def outage(self) -> str | None:
        if (refusal := self._errors.refusal) is not None:
            raise broker_error(*refusal, "brokers")
        return self._errors.take_outage()

    def fetch(self) -> None:
        """Hand the messages that have come to their partitions."""
        for message in self.client.consume(TAKEN_MOST, 0):
            partition = self._partitions.get((message.topic(), message.partition()))
            error = message.error()
            if partition is not None:
                partition.waiting.append(message)
                if error is None:
                    self._errors.answered()
            elif error is not None:
                self._on_error(error)
        for partition in self._partitions.values():
            partition.pause_if_full()

    def forget(self, topic: str, partition: int) -> None:
        """Forget a partition that is closed."""
        self._partitions.pop((topic, partition), None)

    def close(self) -> None:
        for partition in tuple(self._partitions.values()):
            partition.close()
        self.client.close()

    def _on_error(self, error: Any) -> None:
        self._errors.note(str(error.name()), str(error.str()))


class FallbackPartition:
    """One partition and its messages that wait."""

    def __init__(self, consumer: FallbackConsumer, topic: str, partition: int) -> None:
        self._consumer, self._topic, self._partition = consumer, topic, partition
        self.waiting: deque[Any] = deque()
        self._paused = self._closed = False

    def _assignment(self, offset: int = -1001) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._topic, self._partition, offset)

    def begin(self, offset: int) -> None:
        """Begin to fetch at an offset."""
        from confluent_kafka import KafkaException

        try:
            self._consumer.client.incremental_assign([self._assignment(offset)])
        except KafkaException as error:
            raise kafka_exception(error, f"topic {self._topic}, partition {self._partition}") from None

    def take(self, most: int) -> FetchedMessages | None:
        if not self.waiting:
            if self._paused:
                self._paused = False
                self._consumer.client.resume([self._assignment()])
            self._consumer.fetch()
        rows: list[Any] = []
        error = None
        while self.waiting and len(rows) < most and error is None:
            message = self.waiting.popleft()
            if message.error() is None:
                rows.append(message)
            else:
                of = message.error()
                error = PartitionError(str(of.name()), str(of.str()), message.offset())
        return None if not rows and error is None else self._columns(rows, error)

    def _columns(self, rows: list[Any], error: PartitionError | None) -> FetchedMessages:
        wanted = self._consumer.wanted
        times = [message.timestamp() for message in rows] if wanted.timestamps else []
        # every call costs: without the column the epochs of the first and the last are enough
        of = rows if wanted.leader_epochs else [*rows[:1], *rows[-1:]]
        epochs = [-1 if (e := message.leader_epoch()) is None else int(e) for message in of]
        return FetchedMessages(
            pa.array([message.value() for message in rows], pa.binary()),
            np.array([message.offset() for message in rows], np.int64),
            pa.array([message.key() for message in rows], pa.binary()) if wanted.keys else None,
            np.array([time for _, time in times], np.int64) if wanted.timestamps else None,
            np.array([kind for kind, _ in times], np.int64) if wanted.timestamps else None,
            np.array(epochs, np.int64) if wanted.leader_epochs else None,
            pa.array([list(dict(message.headers() or ()).items()) for message in rows], HEADERS_TYPE)
            if wanted.headers
            else None,
            (epochs[0], epochs[-1]) if epochs else (-1, -1),
            error,
        )

    def pause_if_full(self) -> None:
        """Let the client fetch no more of a partition whose messages are not read."""
        if len(self.waiting) > _WAITING_MOST and not self._paused:
            self._paused = True
            self._consumer.client.pause([self._assignment()])

    def end_offset(self) -> int | None:
        _, high = self._consumer.client.get_watermark_offsets(self._assignment(), cached=True)
        return int(high) if high is not None and high >= 0 else None

    def restart(self, offset: int) -> None:
        self._consumer.client.incremental_unassign([self._assignment()])
        self.waiting.clear()
        self.begin(offset)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._consumer.client.incremental_unassign([self._assignment()])
            self.waiting.clear()
            self._consumer.forget(self._topic, self._partition)
