"""The head of Confluent's serializers: a zero, and the four bytes of the id of a schema in a registry."""

from __future__ import annotations

import numpy as np

from penstock.engine.formats.decoded_batch import BadRecord
from penstock.engine.formats.messages.message_values import MessageValues

HEAD_BYTES = 5
NO_HEAD = "the value does not begin with a zero and the four bytes of a schema's id"


def schema_ids(messages: MessageValues) -> np.ndarray:
    """Return the schema id of each value, -1 where there is no head."""
    ids = np.full(len(messages), -1, np.int64)
    long = np.flatnonzero(messages.ends - messages.starts >= HEAD_BYTES)
    starts = messages.starts[long]
    headed = messages.data[starts] == 0 if len(long) else np.zeros(0, np.bool_)
    long, starts = long[headed], starts[headed]
    if len(long):
        octets = messages.data[starts[:, None] + np.arange(1, HEAD_BYTES)].astype(np.int64)
        ids[long] = octets @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
    return ids


def with_head(messages: MessageValues, record: BadRecord, head_bytes: int = HEAD_BYTES) -> BadRecord:
    """Return a bad record of a value without its head as one of the whole value."""
    position = int(np.searchsorted(messages.index, record.ordinal))
    byte = None if record.byte is None else record.byte + head_bytes
    return messages.bad(position, record.error, record.column, byte)
