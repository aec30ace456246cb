"""Records for a producer: keys, values, partitions, timestamps and headers as columns, and their layout as
structures of librdkafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import truths

CHUNK_BYTES = 8 << 20
"""Bytes of records that a producer is given at once."""
CHUNK_RECORDS = 1 << 16
ANY_PARTITION = -1
"""The partitioner chooses."""

# rd_kafka_message_t of rdkafka.h, a public structure of 64-bit machines
MESSAGE = np.dtype(
    {
        "names": ["err", "rkt", "partition", "payload", "len", "key", "key_len", "offset", "private"],
        "formats": ["i4", "u8", "i4", "u8", "u8", "u8", "u8", "i8", "u8"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 64],
        "itemsize": 72,
    }
)


@dataclass(frozen=True, eq=False)
class Records:
    """Records of one topic. ``values`` and ``keys`` are BINARY, NULL where a record has none.

    ``partitions``: a number each, or ``ANY_PARTITION``. ``timestamps``: milliseconds since 1970, 0 for now.
    ``headers``: MAP<STRING, BYTES>, NULL for none.
    """

    values: pa.Array
    keys: pa.Array | None = None
    partitions: np.ndarray | None = None
    timestamps: np.ndarray | None = None
    headers: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def are_plain(self) -> bool:
        """Whether they have neither timestamps nor headers."""
        return self.timestamps is None and self.headers is None

    def sizes(self) -> np.ndarray:
        """Return the bytes of key and value of each record, as librdkafka compares them with its limit."""
        made = places(self.values)[1]
        return made if self.keys is None else made + places(self.keys)[1]

    def take(self, positions: np.ndarray) -> Records:
        """Return some of the records."""
        chosen = pa.array(positions)
        return Records(
            self.values.take(chosen),
            None if self.keys is None else self.keys.take(chosen),
            None if self.partitions is None else self.partitions[positions],
            None if self.timestamps is None else self.timestamps[positions],
            None if self.headers is None else self.headers.take(chosen),
        )

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of records of about ``CHUNK_BYTES``, one record at least."""
        ends = np.cumsum(self.sizes())
        start = 0
        while start < len(self):
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + CHUNK_BYTES, "right"))
            stop = min(max(stop, start + 1), start + CHUNK_RECORDS)
            yield start, stop
            start = stop

    def records_of_a_chunk(self) -> int:
        """Return how many records a chunk may have that are as long as these on the average."""
        mean = int(self.sizes().sum()) // max(1, len(self))
        return max(1, min(CHUNK_RECORDS, CHUNK_BYTES // max(1, mean)))

    def messages(self) -> np.ndarray:
        """Return the records as ``MESSAGE`` structures, which point into ``values`` and ``keys``."""
        made = np.zeros(len(self), MESSAGE)
        made["payload"], made["len"] = places(self.values)
        if self.keys is not None:
            made["key"], made["key_len"] = places(self.keys)
        made["partition"] = ANY_PARTITION if self.partitions is None else self.partitions
        made["private"] = np.arange(1, len(self) + 1)
        return made


def places(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return where each value is in memory, and its length; address 0 for NULL."""
    assert values.type == pa.binary(), f"keys and values are BINARY, not {values.type}"
    if not len(values):
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.uint64)
    # an empty value is no NULL: it has an address, of nothing
    base = offsets.address if data is None or not data.size else data.address
    addresses, lengths = bounds[:-1] + np.uint64(base), np.diff(bounds)
    if values.null_count:
        missing = truths(values.is_null())
        addresses[missing], lengths[missing] = 0, 0
    return addresses, lengths
