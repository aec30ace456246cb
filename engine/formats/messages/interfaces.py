"""The interfaces of message formats: a deserializer makes rows of the values of messages, a serializer makes
values of rows. Names as in Flink.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.decoded_batch import Decoded


class Deserializer(Protocol):
    """Decodes the values of messages, all at once."""

    def deserialize(self, values: pa.Array) -> Decoded:
        """Return the rows of messages; ``values`` is BINARY, NULL for a message without a value.

        ``Decoded.first`` is 0 and an ordinal is an index of ``values``. A value that cannot be decoded is in
        ``bad`` and has no row. A NULL value gives no row and is not bad, except where the format gives it a
        meaning.
        """


class Serializer(Protocol):
    """Encodes rows as values of messages."""

    def serialize(self, batch: Batch) -> pa.Array:
        """Return one BINARY value a row, NULL where the row is a message without a value."""
