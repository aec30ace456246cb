"""The Kafka source: a split is a partition of a topic, its position the next offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.catalog.connectors.kafka import UPSERT_KAFKA, key_fields
from penstock.catalog.connectors.kafka_properties import PROPERTIES
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.kafka.fallback_consumer import FallbackConsumer
from penstock.engine.connectors.kafka.fetched_messages import KafkaConsumer, Wanted
from penstock.engine.connectors.kafka.librdkafka import load
from penstock.engine.connectors.kafka.native_consumer import NativeConsumer
from penstock.engine.connectors.kafka.reader import KafkaReader, PartitionStart
from penstock.engine.connectors.kafka.topic_partitions import (
    Partition,
    TopicPartitions,
    consumer_properties,
)
from penstock.engine.connectors.messages.message_reader import KeyColumns, MessageReader

# How often the result of a discovery, which another thread makes, is looked for.
_LOOK_MS = 200
# Read ahead of the operator by all partitions of a table together, and by one at least.
_AHEAD_KIB = 64 << 10
_AHEAD_LEAST_KIB = 1 << 10
# The same in messages; librdkafka's default is 100,000 of each partition.
_MESSAGES_AHEAD = 400_000
_MESSAGES_AHEAD_LEAST = 1_000
_MESSAGES_OF_ONE = 100_000

MakeConsumer = Callable[[dict[str, str], Wanted, Callable[[], None]], KafkaConsumer]


class KafkaSource:
    """Lists the partitions of a table's topics and opens them, all with one client of the subtask.

    Partitions that are discovered later are read from their first message.
    """

    def __init__(self, request: ScanRequest, consumer: MakeConsumer | None = None) -> None:
        self._request = request
        self._make_consumer = consumer or default_consumer
        self._asked: TopicPartitions | None = None
        self._consumer: KafkaConsumer | None = None
        # readers that are open: the last one closes the client
        self._open = 0
        self._first: dict[str, Position] = {}
        self._known: list[str] = []
        self._listed = False
        self._interval_ms = int(str(option(request.table, "scan.topic-partition-discovery.interval")))
        self._discovery: Pump | None = None
        self._next_ms = 0.0
        self._keys = key_columns(request.table)

    def splits(self) -> list[str]:
        """Return the ids of all partitions. The first call of a new job also decides where each begins and
        ends. After a restore the partitions that are not known then are new ones.
        """
        if not self._listed:
            self._listed = True
            partitions = self._client().listed()
            first = self._client().first_offsets(partitions)
            ends = self._client().end_offsets(partitions)
            self._known = sorted(map(split_id, partitions))
            self._first = {
                split_id(partition): {"offset": first[partition]}
                | ({"end": ends[partition]} if partition in ends else {})
                for partition in partitions
            }
            self._next_ms = self._request.clock.monotonic_ms() + self._interval_ms
            self._release()
        else:
            self._discover()
        return self._known

    def recall(self, split_ids: list[str]) -> None:
        """The partitions a former run knew: later ones are discovered."""
        self._listed, self._known = True, sorted(split_ids)

    def first_position(self, split: str) -> Position:
        """Return where a partition begins that no checkpoint has: a discovered one at its first message."""
        return self._first.get(split, {"offset": 0, "discovered": True})

    def open(self, split: str, position: Position | None) -> KafkaReader:
        topic, partition = partition_of(split)
        where = f"topic {topic}, partition {partition}"
        messages = MessageReader(self._request, split, where, "offset", self._keys)
        if self._consumer is None:
            self._consumer = self._make_consumer(
                self._properties(), _wanted(messages), self._request.arrivals.notify
            )
        self._open += 1
        start = PartitionStart(topic, partition, position or self.first_position(split))
        try:
            return KafkaReader(start, self._consumer, messages, self._request, self)
        except PenstockError:
            # nobody closes a reader that there is not: the client would stay, with its threads
            self.closed()
            raise

    def discover_every_ms(self) -> int | None:
        return min(self._interval_ms, _LOOK_MS) if self._interval_ms else None

    def rows_per_second(self) -> int:
        return 0

    def range_of(self, partition: Partition) -> tuple[int, int]:
        """Return the first offset of a partition and the one behind its last readable message."""
        found = self._client().range_of(partition)
        self._release()
        return found

    def commit(self, partition: Partition, offset: int) -> None:
        """Commit an offset to the group a table names, for monitoring."""
        if self._request.table.options.get(PROPERTIES + "group.id"):
            self._client().commit({partition: offset})

    def closed(self) -> None:
        """One reader was closed."""
        self._open -= 1
        if not self._open:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None
            if self._asked is not None:
                self._asked.close()
                self._asked = None

    def _client(self) -> TopicPartitions:
        if self._asked is None:
            self._asked = TopicPartitions(self._request.table)
        return self._asked

    def _release(self) -> None:
        """Close the client that asks, where nothing is committed by it."""
        if self._asked is not None and not (
            self._open and self._request.table.options.get(PROPERTIES + "group.id")
        ):
            self._asked.close()
            self._asked = None

    def _properties(self) -> dict[str, str]:
        partitions = max(1, len(self._known))
        ahead = max(_AHEAD_LEAST_KIB, _AHEAD_KIB // partitions)
        return consumer_properties(self._request.table) | {
            "queued.max.messages.kbytes": str(ahead),
            # librdkafka adds some hundred bytes to each message, which the limit above does not count
            "queued.min.messages": str(
                min(_MESSAGES_OF_ONE, max(_MESSAGES_AHEAD_LEAST, _MESSAGES_AHEAD // partitions))
            ),
            # a full queue is looked at again soon: the default of a second would let a fast reader wait
            "fetch.queue.backoff.ms": "5",
        }

    def _discover(self) -> None:
        """Take the result of a discovery that has ended, or begin one that is due."""
        now_ms = self._request.clock.monotonic_ms()
        if self._discovery is not None:
            for listed in self._discovery.take(1):
                self._known = sorted({*self._known, *map(split_id, listed)})
            if self._discovery.ended:
                self._discovery = None
        elif now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            self._discovery = Pump(_discovered(self._request.table), "kafka discovery", 1)


def _discovered(table: CatalogTable) -> Iterator[list[Partition]]:
    """Yield the partitions there are now. DAT-5103 where a topic was deleted."""
    client = TopicPartitions(table)
    try:
        yield client.listed()
    except PenstockError as error:
        # an outage: the readers wait for its end, and the next discovery comes after it
        if not error.retriable:
            raise
    finally:
        client.close()


def default_consumer(
    properties: dict[str, str], wanted: Wanted, arrived: Callable[[], None]
) -> KafkaConsumer:
    """Return the consumer of the C library, else that of the package's objects, which reports no arrivals."""
    library = load()
    if library is None:
        return FallbackConsumer(properties, wanted)
    return NativeConsumer(library, properties, wanted, arrived)


def _wanted(messages: MessageReader) -> Wanted:
    asked = messages.metadata
    return Wanted(
        messages.wants_keys,
        bool(asked & {"timestamp", "timestamp-type"}),
        "leader-epoch" in asked,
        "headers" in asked,
    )


def key_columns(table: CatalogTable) -> KeyColumns:
    """Return which columns of a table are in the keys of its messages."""
    prefix = str(option(table, "key.fields-prefix"))
    only = option(table, "value.fields-include") == "except_key"
    if table.connector == UPSERT_KAFKA:
        return KeyColumns(table.primary_key, prefix, only, True)
    return KeyColumns(key_fields(table), prefix, only)


def split_id(partition: Partition) -> str:
    """Return the id of a partition's split, such as ``orders-3``."""
    return f"{partition[0]}-{partition[1]}"


def partition_of(split: str) -> Partition:
    """Return the topic and the partition of a split's id."""
    topic, _, number = split.rpartition("-")
    return topic, int(number)
