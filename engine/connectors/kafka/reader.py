"""Reads one partition: messages become rows, offsets are followed, and what brokers answer is understood."""

from __future__ import annotations

import logging
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.kafka_properties import PROPERTIES
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.kafka.broker_errors import broker_error, may_pass
from penstock.engine.connectors.kafka.fetched_messages import (
    TIMESTAMP_TYPES,
    FetchedMessages,
    KafkaConsumer,
    PartitionError,
)
from penstock.engine.connectors.messages.message_reader import MessageBatch, MessageReader

NEWS = logging.getLogger("penstock.kafka")
_OUT_OF_RANGE = frozenset(("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"))


@dataclass(frozen=True)
class PartitionStart:
    """A partition and the position to read it from."""

    topic: str
    partition: int
    position: Position

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f"topic {self.topic}, partition {self.partition}"


class PartitionOwner(Protocol):
    """The source of a reader: it asks brokers, and has the client of all readers."""

    def range_of(self, partition: tuple[str, int]) -> tuple[int, int]:
        """Return the first offset of a partition and the one behind its last readable message."""

    def commit(self, partition: tuple[str, int], offset: int) -> None:
        """Commit an offset to the table's group, if it names one."""

    def closed(self) -> None:
        """A reader was closed."""


class KafkaReader:
    """A split reader. Position: ``offset``, the next one; ``end``, the first that is not read, where reading
    ends. ``epoch`` is the leader's of the last message, by which a topic that was created again is known.
    """

    def __init__(
        self,
        start: PartitionStart,
        consumer: KafkaConsumer,
        messages: MessageReader,
        request: ScanRequest,
        owner: PartitionOwner,
    ) -> None:
        self._start, self._consumer, self._messages = start, consumer, messages
        self._request, self._owner = request, owner
        self._next = int(start.position["offset"])
        self._end: int | None = start.position.get("end")
        self._epoch: int = start.position.get("epoch", -1)
        # a partition of a pattern that was found later may have lost its first messages already
        self._discovered = bool(start.position.get("discovered"))
        self._reading = None if self.ended else consumer.open(start.topic, start.partition, self._next)
        self._down = False
        # whether the last poll left nothing in the client, which reports the next messages then
        self._emptied = False

    @property
    def reports_arrivals(self) -> bool:
        return self._emptied and self._consumer.reports_arrivals

    @property
    def ended(self) -> bool:
        return self._end is not None and self._next >= self._end

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        if self._reading is None or self.ended:
            return None
        fetched = self._reading.take(max_rows)
        self._emptied = fetched is None
        if fetched is None:
            self._report_outage(self._consumer.outage())
            return None
        self._down_is_over()
        rows = self._rows(fetched) if len(fetched) else None
        if fetched.error is not None and not self.ended:
            self._answer(fetched.error)
        return rows

    def position(self) -> Position:
        position: Position = {"offset": self._next}
        if self._end is not None:
            position["end"] = self._end
        if self._epoch >= 0:
            position["epoch"] = self._epoch
        if self._discovered:
            position["discovered"] = True
        return position

    def lag(self) -> int | None:
        """Return how many offsets there are to the end of the partition, or of what is read of it."""
        if self._reading is None:
            return 0
        end = self._reading.end_offset()
        if self._end is not None:
            end = self._end if end is None else min(end, self._end)
        return None if end is None else max(0, end - self._next)

    def checkpoint_completed(self, position: Position) -> None:
        """Commit the position to the group, for those who watch it."""
        self._owner.commit((self._start.topic, self._start.partition), int(position["offset"]))

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None
        self._owner.closed()

    def _rows(self, fetched: FetchedMessages) -> pa.RecordBatch | Batch:
        self._check_epoch(fetched)
        self._discovered = False
        following = int(fetched.offsets[-1]) + 1
        if self._end is not None and following > self._end:
            fetched = fetched.cut(int(np.searchsorted(fetched.offsets, self._end)))
            following = self._end
        # first the rows: a message that cannot be decoded fails with the position before it
        rows = self._messages.read(self._batch(fetched))
        self._next = following
        return rows

    def _check_epoch(self, fetched: FetchedMessages) -> None:
        first, last = fetched.epochs
        # epochs of a partition never go back
        if 0 <= first < self._epoch:
            raise self._recreated(f"its leader epoch was {self._epoch}, it is {first}")
        self._epoch = max(self._epoch, last)

    def _batch(self, fetched: FetchedMessages) -> MessageBatch:
        return MessageBatch(
            fetched.values,
            fetched.offsets,
            fetched.keys,
            {key: self._fact(key, fetched) for key in self._messages.metadata},
        )

    def _fact(self, key: str, fetched: FetchedMessages) -> pa.Array:
        count = len(fetched)
        match key:
            case "topic":
                return pa.repeat(pa.scalar(self._start.topic, pa.string()), count)
            case "partition":
                return pa.repeat(pa.scalar(self._start.partition, pa.int32()), count)
            case "offset":
                return array_of(fetched.offsets)
            case "key":
                return fetched.keys
            case "headers":
                return fetched.headers
            case "leader-epoch":
                assert fetched.leader_epochs is not None
                return array_of(fetched.leader_epochs.astype(np.int32), fetched.leader_epochs < 0)
        assert fetched.timestamps is not None and fetched.timestamp_types is not None
        if key == "timestamp":
            # a message of an old client has none
            return array_of(fetched.timestamps, fetched.timestamp_types == 0).cast(pa.timestamp("ms", "UTC"))
        names = pa.array(TIMESTAMP_TYPES, pa.string())
        return names.take(array_of(np.clip(fetched.timestamp_types, 0, 2)))

    def _answer(self, error: PartitionError) -> None:
        """Follow an answer that is no message: the end of the partition, an outage, an error."""
        if error.is_end:
            # offsets without a message: ends of transactions, compacted ones
            self._next = max(self._next, error.offset)
        elif error.name in _OUT_OF_RANGE:
            self._reset()
        elif may_pass(error.name):
            self._report_outage(error.text)
        else:
            raise broker_error(error.name, error.text, self._start.where)

    def _reset(self) -> None:
        """Continue where there are messages, if the table says so. DAT-5106 and DAT-5109."""
        assert self._reading is not None
        first, end = self._owner.range_of((self._start.topic, self._start.partition))
        if self._next > end:
            raise self._recreated(f"its last offset is {end - 1}, the next one to read is {self._next}")
        wanted = option(self._request.table, PROPERTIES + "auto.offset.reset")
        if self._discovered:
            wanted = "earliest"
        if wanted not in ("earliest", "latest"):
            raise broker_error(
                "OFFSET_OUT_OF_RANGE",
                f"the next offset to read is {self._next}, the first stored one is {first}",
                self._start.where,
            )
        to = first if wanted == "earliest" else end
        if not self._discovered:
            skipped = max(0, to - self._next)
            self._request.metrics.count("skipped_messages", skipped)
            NEWS.warning(
                "%s: offsets %d to %d are not stored any more; %d are skipped, reading continues at %d",
                *(self._start.where, self._next, first - 1, skipped, to),
            )
        self._next = to
        self._reading.restart(to)

    def _recreated(self, why: str) -> PenstockError:
        return PenstockError(
            "DAT-5109",
            f"{self._start.where}: the topic was deleted and created again, or has lost messages",
            detail=why,
            hint="start the job without its state, or restore the topic",
            kind=Kind.EXTERNAL,
        )

    def _report_outage(self, reason: str | None) -> None:
        if reason is None or self._down:
            return
        self._down = True
        self._request.metrics.count("broker_outages", 1)
        NEWS.warning("%s: no broker can be reached, waiting: %s", self._start.where, reason)

    def _down_is_over(self) -> None:
        if self._down:
            self._down = False
            NEWS.warning("%s: a broker answers again", self._start.where)
