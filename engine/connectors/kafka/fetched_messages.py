"""Messages of one partition as columns, as both kinds of consumer return them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass

BATCH_BYTES = 64 << 20
"""Values, or keys, of one batch at most; a single message may be longer."""

TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")
HEADERS_TYPE = pa.map_(pa.string(), pa.binary())


@dataclass(frozen=True)
class Wanted:
    """Which columns of messages are asked for; values and offsets always are."""

    keys: bool = False
    timestamps: bool = False
    leader_epochs: bool = False
    headers: bool = False


@dataclass(frozen=True)
class PartitionError:
    """What a broker answered instead of messages: ``rd_kafka_err2name``, a text, and of the end of a
    partition the next offset.
    """

    name: str
    text: str
    offset: int = -1

    @property
    def is_end(self) -> bool:
        """Whether it is the present end of the partition."""
        return self.name == "_PARTITION_EOF"


@dataclass(frozen=True)
class FetchedMessages:
    """Messages in the order of their offsets. ``values`` and ``keys`` are BINARY, NULL for none;
    ``timestamps`` are milliseconds; a column that was not asked for is ``None``. ``epochs``:
    the leader epochs of the first and the last, -1 where unknown. ``error`` comes after them.
    """

    values: pa.Array
    offsets: np.ndarray
    keys: pa.Array | None = None
    timestamps: np.ndarray | None = None
    timestamp_types: np.ndarray | None = None
    leader_epochs: np.ndarray | None = None
    headers: pa.Array | None = None
    epochs: tuple[int, int] = (-1, -1)
    error: PartitionError | None = None

    def __len__(self) -> int:
        return len(self.values)

    def cut(self, count: int) -> FetchedMessages:
        """Return the first ``count`` messages, without the error behind them."""
        return FetchedMessages(
            self.values.slice(0, count),
            self.offsets[:count],
            None if self.keys is None else self.keys.slice(0, count),
            None if self.timestamps is None else self.timestamps[:count],
            None if self.timestamp_types is None else self.timestamp_types[:count],
            None if self.leader_epochs is None else self.leader_epochs[:count],
            None if self.headers is None else self.headers.slice(0, count),
            self.epochs,
        )


class PartitionConsumer(Protocol):
    """Messages of one partition, in order. Its consumer's thread is the only one that calls it."""

    def take(self, most: int) -> FetchedMessages | None:
        """Return messages that are there now; ``None`` when there are none and nothing has happened."""

    def end_offset(self) -> int | None:
        """Return the offset behind the last readable message, as far as the client knows it."""

    def restart(self, offset: int) -> None:
        """Read from another offset."""

    def close(self) -> None:
        """Stop reading the partition."""


class KafkaConsumer(Protocol):
    """One client of a subtask, for all partitions it reads. Made, used and closed by one thread."""

    @property
    def reports_arrivals(self) -> bool:
        """Whether it reports messages that come to a partition of which none were there."""

    def open(self, topic: str, partition: int, offset: int) -> PartitionConsumer:
        """Begin to read a partition at an offset."""

    def outage(self) -> str | None:
        """Return what is wrong while no broker can be reached, as the client says it, once an outage.
        DAT-5105 once all of them refuse the connection.
        """

    def close(self) -> None:
        """Close all partitions and the client."""
