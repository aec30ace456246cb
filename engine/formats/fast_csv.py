"""Blocks of CSV without quotes, parsed by our own kernels. They search eight bytes at a time and decode only
the requested columns.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field
from penstock.catalog.types import String, Timestamp, is_integer, to_arrow
from penstock.engine.api.arrow_numpy import array_of

# offsets are int32
_MOST_BYTES = 1 << 30
_HIGH_BITS = np.uint64(0x8080808080808080)
_WORTH_BYTES = 1 << 20
"""Arrow reads this much before the kernels are loaded, because loading takes a moment. Once loaded, they read
every block.
"""
_KERNELS = "penstock.engine.kernels.csv_fields"


class PlainCsv:
    """Reads integers, timestamps and texts out of blocks of plain records. ``positions``: the index of each
    requested column among ``width``.
    """

    def __init__(
        self,
        wanted: tuple[Field, ...],
        positions: list[int],
        width: int,
        delimiter: str,
        quote: str,
        null_literal: str,
    ) -> None:
        self._wanted = wanted
        self._positions = positions
        self._width = width
        self._delimiter = np.uint8(ord(delimiter))
        self._quote = quote.encode()
        self._literal = np.frombuffer(null_literal.encode(), np.uint8)
        self._seen = 0
        # ends of all values, record by record: (records * width); reused for the next block
        self._ends = np.empty(0, np.int32)
        self._ascii = False
        # with one column a blank line would count as a record; without a column nothing is decoded
        self._usable = width > 1 and bool(wanted) and all(_is_plain(field) for field in wanted)

    def columns(self, data: bytes) -> list[pa.Array] | None:
        """Return the requested columns of a block; ``None`` when anything in it is not plain, which leaves
        the block to Arrow's reader.
        """
        # another reader of this process may have loaded the kernels
        begun, self._seen = self._seen >= _WORTH_BYTES or _KERNELS in sys.modules, self._seen + len(data)
        if not begun or not self._usable or len(data) > _MOST_BYTES or self._quote in data or b"\r" in data:
            return None
        from penstock.engine.kernels.csv_fields import find_ends

        view = np.frombuffer(data, np.uint8)
        # a block cannot have more values than bytes, plus one
        if len(self._ends) <= len(data):
            self._ends = np.empty(len(data) + 1, np.int32)
        bits = np.empty(1, np.uint64)
        records = find_ends(
            # the bytes, and the same as words of eight, which the kernel searches at once
            view,
            view[: len(data) // 8 * 8].view(np.uint64),
            self._delimiter,
            self._width,
            self._ends,
            bits,
        )
        # a record with more or fewer values than columns: Arrow's reader reports it
        if records <= 0:
            return None
        # all words or-ed: without a high bit the block is ASCII and needs no UTF-8 test
        self._ascii = not bits[0] & _HIGH_BITS
        arrays = []
        for field, position in zip(self._wanted, self._positions, strict=True):
            array = self._column(field, position, view, records)
            if array is None:
                return None
            arrays.append(array)
        return arrays

    def _column(self, field: Field, position: int, data: np.ndarray, records: int) -> pa.Array | None:
        from penstock.engine.kernels.csv_fields import read_integers, read_timestamps

        nulls = np.empty(records, np.uint8)
        if isinstance(field.type, String):
            return self._texts(position, data, records, nulls)
        read = read_timestamps if isinstance(field.type, Timestamp) else read_integers
        values = np.empty(records, np.int64)
        count = read(data, self._ends, records, self._width, position, self._literal, values, nulls)
        # a spelling that the kernel does not know: the whole block goes to Arrow's reader
        if count < 0:
            return None
        array = array_of(values, nulls.view(np.bool_) if count else None)
        try:
            return (
                # timestamps are int64 microseconds already; integers are narrowed, which checks their range
                array.view(to_arrow(field.type))
                if isinstance(field.type, Timestamp)
                else array.cast(to_arrow(field.type))
            )
        except pa.ArrowInvalid:  # a number too great for its type
            return None

    def _texts(self, position: int, data: np.ndarray, records: int, nulls: np.ndarray) -> pa.Array | None:
        from penstock.engine.kernels.csv_fields import find_texts

        # start and end of each text: even positions are texts, odd ones what is between them
        bounds = np.empty(2 * records + 1, np.int32)
        count = find_texts(data, self._ends, records, self._width, position, self._literal, bounds, nulls)
        # texts and what lies between
        all_ = pa.Array.from_buffers(
            pa.string(), 2 * records, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
        )
        array = all_.take(array_of(np.arange(0, 2 * records, 2), nulls.view(np.bool_) if count else None))
        try:
            if not self._ascii:
                array.validate(full=True)
        except pa.ArrowInvalid:  # not UTF-8
            return None
        return array


def _is_plain(field: Field) -> bool:
    return isinstance(field.type, String | Timestamp) or is_integer(field.type)
