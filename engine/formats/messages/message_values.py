"""The values of a batch of messages as kernels read them: one buffer, and the bounds of each value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import truths
from penstock.engine.formats.decoded_batch import BadRecord

_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(frozen=True, eq=False)
class MessageValues:
    """The values that are not NULL: value ``i`` is ``data[starts[i]:ends[i]]`` of message ``index[i]``.

    ``count``: the number of messages, those without a value included.
    """

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    index: np.ndarray
    count: int

    def __len__(self) -> int:
        return len(self.starts)

    def raw(self, position: int) -> bytes:
        """Return the bytes of one value."""
        return self.data[self.starts[position] : self.ends[position]].tobytes()

    def select(self, chosen: np.ndarray) -> MessageValues:
        """Return some of the values: positions, or a mask."""
        return MessageValues(
            self.data, self.starts[chosen], self.ends[chosen], self.index[chosen], self.count
        )

    def without_prefix(self, size: int) -> MessageValues:
        """Return the values without their first bytes, of which each must have that many."""
        return MessageValues(self.data, self.starts + size, self.ends, self.index, self.count)

    def ordinals(self, chosen: np.ndarray | None = None) -> np.ndarray | None:
        """Return the message of each (chosen) value; ``None`` when every message has one, in order."""
        if chosen is None:
            return None if len(self) == self.count else self.index
        return None if len(chosen) == self.count else self.index[chosen]

    def bad(self, position: int, error: str, column: str | None = None, byte: int | None = None) -> BadRecord:
        """Return the bad record of a value; ``byte`` is a position within the value."""
        return BadRecord(int(self.index[position]), self.raw(position), error, column, byte)

    def binary(self) -> pa.Array:
        """Return the values as a BINARY array."""
        lengths = self.ends - self.starts
        if len(self) and (self.starts[1:] == self.ends[:-1]).all():
            # one after another: nothing is copied
            offsets = np.append(self.starts, self.ends[-1])
            offsets = offsets - offsets[0]
            data = self.data[self.starts[0] : self.ends[-1]]
        else:
            offsets = np.concatenate(([0], np.cumsum(lengths)))
            data = np.empty(int(offsets[-1]), np.uint8)
            positions = np.repeat(self.starts - offsets[:-1], lengths) + np.arange(len(data))
            data = self.data[positions] if len(data) else data
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
        return pa.Array.from_buffers(pa.binary(), len(self), buffers)


def message_values(values: pa.Array) -> MessageValues:
    """Return the values of a BINARY or STRING array."""
    assert values.type in (pa.binary(), pa.string()), f"values of messages are BINARY, not {values.type}"
    _, offsets, data = values.buffers()
    bounds = np.zeros(1, np.int64)
    if len(values):
        bounds = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    view = _NO_BYTES if data is None else np.frombuffer(data, np.uint8)
    starts, ends = np.ascontiguousarray(bounds[:-1]), np.ascontiguousarray(bounds[1:])
    index = np.arange(len(values))
    made = MessageValues(view, starts, ends, index, len(values))
    return made.select(truths(values.is_valid())) if values.null_count else made
