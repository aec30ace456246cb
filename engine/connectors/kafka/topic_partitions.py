"""Questions to brokers that are asked rarely: which partitions there are, where reading begins and ends, and
the offsets of a group. Each may take as long as a broker takes to answer.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any

from penstock.catalog.connectors.kafka import specific_offsets, topics_of
from penstock.catalog.connectors.kafka_properties import CONSUMER_PROPERTIES, PROPERTIES
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.kafka.broker_errors import (
    broker_error,
    kafka_exception,
    may_pass,
    refuses_connection,
    unreachable,
)
from penstock.engine.connectors.kafka.client_properties import bootstrap_servers, client_properties
from penstock.engine.connectors.kafka.librdkafka import check_package, refused_properties

NEWS = logging.getLogger("penstock.kafka")
# A broker that does not answer at once is told of, and waited for this long in all.
FIRST_S = 5.0
LIMIT_S = 30.0
# The client needs the name of a group, even where it joins none.
NO_GROUP = "penstock"
# Offsets that librdkafka knows by these numbers.
END, UNKNOWN = -1, -1001

Partition = tuple[str, int]


def consumer_properties(table: CatalogTable) -> dict[str, str]:
    """Return the properties of a client that reads a table: it commits and resets nothing by itself."""
    properties = {
        "group.id": NO_GROUP,
        "isolation.level": "read_committed",
    } | client_properties(table, *CONSUMER_PROPERTIES)
    return properties | {
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "enable.partition.eof": "true",
        # an offset that is not there is for us to decide about
        "auto.offset.reset": "error",
    }


class TopicPartitions:
    """A client that asks. Its calls block: at most ``LIMIT_S``."""

    def __init__(self, table: CatalogTable) -> None:
        check_package()
        from confluent_kafka import Consumer, KafkaException

        self._table = table
        self._bootstrap = bootstrap_servers(table)
        self._group = table.options.get(PROPERTIES + "group.id")
        self._refusal: PenstockError | None = None
        try:
            self._client: Any = Consumer(consumer_properties(table) | {"error_cb": self._on_error})
        except KafkaException as error:
            raise refused_properties(str(error.args[0].str())) from None

    def _on_error(self, error: Any) -> None:
        name, text = str(error.name()), str(error.str())
        if refuses_connection(name, text):
            self._refusal = broker_error(
                "_SSL" if may_pass(name) else name, text, f"brokers {self._bootstrap}"
            )

    def listed(self) -> list[Partition]:
        """Return all partitions of the table's topics, sorted. DAT-5103 where a topic does not exist."""
        names = topics_of(self._table.options)
        if not names:
            return self._matching(re.compile(self._table.options["topic-pattern"]))
        found: list[Partition] = []
        for name in names:
            metadata = self._metadata(name).topics[name]
            if metadata.error is not None:
                raise kafka_exception(metadata.error, f"topic {name}")
            found += [(name, partition) for partition in metadata.partitions]
        return sorted(found)

    def _matching(self, pattern: re.Pattern[str]) -> list[Partition]:
        return sorted(
            (name, partition)
            for name, topic in self._metadata(None).topics.items()
            # names with two underscores are the brokers' own
            if pattern.fullmatch(name) and not name.startswith("__") and topic.error is None
            for partition in topic.partitions
        )

    def _metadata(self, topic: str | None) -> Any:
        return self._patient(
            lambda seconds: self._client.list_topics(*([topic] if topic else []), timeout=seconds)
        )

    def _patient(self, ask: Any) -> Any:
        """Return an answer; where none comes say so, then wait until the limit. DAT-5102."""
        from confluent_kafka import KafkaException

        try:
            return ask(FIRST_S)
        except KafkaException as error:
            self._raise_unless_unreachable(error)
            NEWS.warning("no broker of %s answers; waiting up to %g s", self._bootstrap, LIMIT_S)
        try:
            return ask(LIMIT_S - FIRST_S)
        except KafkaException as error:
            self._raise_unless_unreachable(error)
            raise unreachable(self._bootstrap, LIMIT_S, str(error.args[0].str())) from None

    def _raise_unless_unreachable(self, error: Any) -> None:
        # serves the callback of errors of connections
        self._client.poll(0)
        made = self._refusal or kafka_exception(error, f"brokers {self._bootstrap}")
        if not made.retriable:
            raise made from None

    def range_of(self, partition: Partition) -> tuple[int, int]:
        """Return the first offset of a partition and the one behind its last readable message."""
        from confluent_kafka import TopicPartition

        where = TopicPartition(*partition)
        low, high = self._patient(lambda seconds: self._client.get_watermark_offsets(where, timeout=seconds))
        return int(low), int(high)

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return where a new job begins in each partition: 'scan.startup.mode'."""
        mode = str(option(self._table, "scan.startup.mode"))
        return self._offsets("startup", mode, list(partitions))

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the first offset that is not read any more in each partition; empty where reading never
        ends: 'scan.bounded.mode'.
        """
        mode = str(option(self._table, "scan.bounded.mode"))
        return {} if mode == "unbounded" else self._offsets("bounded", mode, list(partitions))

    def _offsets(self, end: str, mode: str, partitions: list[Partition]) -> dict[Partition, int]:
        if mode == "specific-offsets":
            return self._specific(end, partitions)
        if mode == "timestamp":
            time_ms = int(str(option(self._table, f"scan.{end}.timestamp-millis")))
            return self._at_time(time_ms, partitions)
        if mode == "group-offsets":
            return self._committed(partitions)
        place = 0 if mode == "earliest-offset" else 1
        return {partition: self.range_of(partition)[place] for partition in partitions}

    def _specific(self, end: str, partitions: list[Partition]) -> dict[Partition, int]:
        """Return the offsets that an option names. DAT-5103 for a partition that there is not, DAT-5106 where
        reading would begin behind the end.
        """
        key = f"scan.{end}.specific-offsets"
        named = specific_offsets(self._table.options[key])
        known = {*partitions, *((None, number) for _, number in partitions)}
        if missing := [one for one in named if one not in known]:
            topic, number = missing[0]
            raise PenstockError(
                "DAT-5103",
                f"option '{key}' names partition {number}, which "
                + (f"topic {topic} does not have" if topic is not None else "no topic of the table has"),
                hint=f"there are {', '.join(f'{topic}-{number}' for topic, number in partitions[:10])}",
                kind=Kind.USER,
            )
        found = {p: named.get(p, named.get((None, p[1]), UNKNOWN)) for p in partitions}
        # one that is not named begins at its first message, and ends there too
        return {p: self._in_range(end, p, at) for p, at in found.items()}

    def _in_range(self, end: str, partition: Partition, at: int) -> int:
        # an end that is not there yet is waited for
        if at >= 0 and end == "bounded":
            return at
        first, behind = self.range_of(partition)
        if 0 <= at <= behind:
            return at
        reset = option(self._table, PROPERTIES + "auto.offset.reset")
        if at < 0 or reset == "earliest":
            return first
        if reset == "latest":
            return behind
        raise PenstockError(
            "DAT-5106",
            f"topic {partition[0]}, partition {partition[1]} ends before offset {at}: "
            f"its next one is {behind}",
            hint="correct 'scan.startup.specific-offsets', or say where to begin then by "
            "'properties.auto.offset.reset' = 'latest' or 'earliest'",
            kind=Kind.USER,
        )

    def _at_time(self, time_ms: int, partitions: list[Partition]) -> dict[Partition, int]:
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(topic, number, time_ms) for topic, number in partitions]
        answer = self._patient(lambda seconds: self._client.offsets_for_times(asked, timeout=seconds))
        found = {}
        for one in answer:
            if one.error is not None:
                raise kafka_exception(one.error, f"topic {one.topic}, partition {one.partition}")
            partition = (one.topic, one.partition)
            # no message is as late
            found[partition] = one.offset if one.offset >= 0 else self.range_of(partition)[1]
        return found

    def _committed(self, partitions: list[Partition]) -> dict[Partition, int]:
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(*partition) for partition in partitions]
        answer = self._patient(lambda seconds: self._client.committed(asked, timeout=seconds))
        reset = option(self._table, PROPERTIES + "auto.offset.reset")
        found = {}
        for one in answer:
            partition = (one.topic, one.partition)
            if one.error is not None:
                raise kafka_exception(one.error, f"topic {one.topic}, group {self._group}")
            if one.offset < 0 and reset not in ("earliest", "latest"):
                raise PenstockError(
                    "DAT-5108",
                    f"group {self._group} has no offset of topic {one.topic}, partition {one.partition}",
                    hint="add 'properties.auto.offset.reset' = 'earliest' or 'latest'",
                    kind=Kind.EXTERNAL,
                )
            found[partition] = one.offset if one.offset >= 0 else self.range_of(partition)[reset == "latest"]
        return found

    def commit(self, offsets: dict[Partition, int]) -> None:
        """Commit offsets to the group, for those who watch it; nothing waits for it, or reads it back."""
        from confluent_kafka import KafkaException, TopicPartition

        entries = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        try:
            self._client.commit(offsets=entries, asynchronous=True)
        except KafkaException as error:
            NEWS.warning("offsets are not committed to group %s: %s", self._group, error.args[0].str())

    def close(self) -> None:
        """Close the client."""
        self._client.close()
