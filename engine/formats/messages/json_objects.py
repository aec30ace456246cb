"""JSON objects in messages: a kernel for flat columns, and the general parser for the values it leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field
from penstock.catalog.types import (
    BigInt,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Int,
    SmallInt,
    String,
    Time,
    Timestamp,
    TimestampLtz,
    TinyInt,
    Variant,
    to_arrow,
)
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, batch_of
from penstock.engine.formats.json_lines import JsonParser
from penstock.engine.formats.messages.message_values import MessageValues, message_values
from penstock.engine.formats.messages.text_messages import TextDeserializer, json_frame
from penstock.engine.formats.text_conversion import from_text
from penstock.engine.kernels.arrow_views import NO_BYTES, array_of_words, bitmap

# the kinds of engine/kernels/json_fields, which is loaded with the first batch
_INT, _DOUBLE, _EXACT_LATER, _TRUTH, _TEXT, _DECIMAL, _JSON = range(7)
_BYTES = (_TEXT, _JSON)
_TEXTS = String | Date | Time | Timestamp | TimestampLtz
_MOST_TEXT_BYTES = 1 << 30
"""Memory that is reserved for texts at once; a batch that could need more is cut in two."""
_BATCHES_APART = 16
"""After a batch that was mostly not plain, so many are left to the general parser alone."""


class JsonDeserializer:
    """Decodes JSON objects, one a message. Both parsers return the same rows for the same values."""

    def __init__(self, wanted: tuple[Field, ...]) -> None:
        self._wanted = wanted
        self._general = TextDeserializer(JsonParser(wanted, "message"), json_frame)
        self._flat = (
            FlatObjects(wanted) if wanted and all(_kind(one.type) is not None for one in wanted) else None
        )
        self._wait = 0

    def deserialize(self, values: pa.Array) -> Decoded:
        if self._flat is None or self._wait:
            self._wait = max(0, self._wait - 1)
            return self._general.deserialize(values)
        messages = message_values(values)
        parsed = self._flat.parse(messages)
        # a text that is no time or not UTF-8: the general parser finds it
        if parsed is None:
            return self._general.deserialize(values)
        rows, given_up = parsed
        left = np.flatnonzero(given_up >= 0)
        if not len(left):
            return Decoded(rows, 0, messages.count, messages.ordinals())
        if 2 * len(left) > len(messages):
            self._wait = _BATCHES_APART
        return self._merged(messages, rows, given_up, left)

    def _merged(
        self, messages: MessageValues, rows: pa.RecordBatch, given_up: np.ndarray, left: np.ndarray
    ) -> Decoded:
        """Return the rows of both parsers in the order of the messages."""
        decoded = self._general.deserialize(messages.select(left).binary())
        general = left if decoded.ordinals is None else left[decoded.ordinals]
        plain = np.flatnonzero(given_up < 0)
        positions = np.concatenate([plain, general])
        # rows of the general parser are behind all of the kernel's
        sources = np.concatenate([plain, np.arange(decoded.rows.num_rows) + rows.num_rows])
        order = np.argsort(positions, kind="stable")
        both = pa.concat_batches([rows, decoded.rows]).take(array_of(sources[order]))
        bad = [self._whole_record(messages, record, left, given_up) for record in decoded.bad]
        return Decoded(both, 0, messages.count, messages.ordinals(positions[order]), bad)

    def _whole_record(
        self, messages: MessageValues, record: BadRecord, left: np.ndarray, given_up: np.ndarray
    ) -> BadRecord:
        position = int(left[record.ordinal])
        byte = record.byte
        # a value of another type than its column: the kernel has stopped there
        if byte is None and record.column is not None:
            byte = int(given_up[position])
        return replace(record, ordinal=int(messages.index[position]), byte=byte)


def _kind(kind: DataType) -> int | None:
    """Return the kernel's kind of a column, ``None`` for a type that only the general parser knows."""
    match kind:
        case TinyInt() | SmallInt() | Int() | BigInt():
            return _INT
        case Double():
            return _DOUBLE
        case Float():
            # rounded once from its digits, not from a double
            return _EXACT_LATER
        case Boolean():
            return _TRUTH
        case Decimal():
            return _DECIMAL
        case Variant():
            return _JSON
    return _TEXT if isinstance(kind, _TEXTS) else None


class FlatObjects:
    """Parses objects whose wanted columns are all flat."""

    def __init__(self, wanted: tuple[Field, ...]) -> None:
        self._wanted = wanted
        self._kinds = [kind for one in wanted if (kind := _kind(one.type)) is not None]
        names = [one.name.encode() for one in wanted]
        bounds = np.concatenate(([0], np.cumsum([len(name) for name in names])))
        self._names = np.frombuffer(b"".join(names), np.uint8)
        self._columns = np.zeros((len(wanted), 6), np.int64)
        self._columns[:, 0] = np.array(self._kinds, np.int64)
        self._columns[:, 1], self._columns[:, 2] = bounds[:-1], bounds[1:]
        for row, one in zip(self._columns, wanted, strict=True):
            row[3:5] = _limits(one.type)
        self._texts = sum(kind in _BYTES for kind in self._kinds)

    def parse(self, messages: MessageValues) -> tuple[pa.RecordBatch, np.ndarray] | None:
        """Return a row a value, and per value where reading it ended (-1: it was read). ``None`` when a text
        is not what its column is.
        """
        from penstock.engine.kernels.json_fields import parse

        rows = len(messages)
        size = int((messages.ends - messages.starts).sum()) + rows
        if size * self._texts > _MOST_TEXT_BYTES and rows > 1:
            parts = [self.parse(messages.select(half)) for half in np.array_split(np.arange(rows), 2)]
            found = [part for part in parts if part is not None]
            if len(found) < len(parts):
                return None
            return pa.concat_batches([part[0] for part in found]), np.concatenate([part[1] for part in found])
        columns = self._columns.copy()
        columns[np.isin(self._kinds, _BYTES), 5] = np.arange(self._texts) * size
        words = np.empty(max(1, len(self._wanted) * rows), np.int64)
        valid = np.empty(len(words), np.uint8)
        texts = np.empty(max(1, size * self._texts), np.uint8)
        exact = sum(kind in (_DOUBLE, _EXACT_LATER) for kind in self._kinds)
        later = np.empty(3 * rows * exact + 4, np.int64)
        later[0] = 0
        given_up = np.empty(rows, np.int64)
        parse(
            messages.data, messages.starts, messages.ends, self._names, columns.reshape(-1), words,
            words.view(np.float64), valid, texts, later, given_up,
        )  # fmt: skip
        try:
            if not is_utf8(messages):
                return None
            return self._batch(messages, rows, words, valid, (texts, columns[:, 5]), later), given_up
        except pa.ArrowInvalid:
            return None

    def _batch(
        self,
        messages: MessageValues,
        rows: int,
        words: np.ndarray,
        valid: np.ndarray,
        texts: tuple[np.ndarray, np.ndarray],
        later: np.ndarray,
    ) -> pa.RecordBatch:
        rounded = _rounded(messages, later[1 : 1 + 3 * int(later[0])].reshape(-1, 3))
        arrays = []
        for index, (one, kind) in enumerate(zip(self._wanted, self._kinds, strict=True)):
            slots = words[index * rows : (index + 1) * rows]
            marks = valid[index * rows : (index + 1) * rows]
            marks = NO_BYTES if marks.all() else marks
            if kind in _BYTES:
                first = int(texts[1][index])
                column = _text_array(slots, marks, texts[0][first:])
                arrays.append(column if isinstance(one.type, String) else from_text(column, one.type))
            elif kind in (_DOUBLE, _EXACT_LATER):
                numbers = slots.view(np.float64)
                at, values = rounded
                mine = (at >= index * rows) & (at < (index + 1) * rows)
                if isinstance(one.type, Float):
                    singles = np.zeros(rows, np.float32)
                    chosen = values.filter(array_of(mine)).cast(pa.float32())
                    singles[at[mine] - index * rows] = numbers_of(chosen)
                    arrays.append(array_of(singles, None if not marks.size else marks == 0))
                    continue
                if mine.any():
                    chosen = values.filter(array_of(mine)).cast(pa.float64())
                    numbers[at[mine] - index * rows] = numbers_of(chosen)
                arrays.append(array_of_words(slots, marks, to_arrow(one.type)))
            else:
                arrays.append(array_of_words(slots, marks, to_arrow(one.type)))
        return batch_of(arrays, self._wanted, rows)


def _limits(kind: DataType) -> tuple[int, int]:
    """Return the least and the greatest number of a column; of a DECIMAL the digits behind and before the
    point.
    """
    match kind:
        case Decimal(precision, scale):
            return scale, precision - scale
        case TinyInt() | SmallInt() | Int() | BigInt():
            bits = to_arrow(kind).bit_width
            return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, 0


def _text_array(ends: np.ndarray, valid: np.ndarray, octets: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(octets[: offsets[-1]])]
    return pa.Array.from_buffers(pa.string(), len(ends), buffers)


def _rounded(messages: MessageValues, later: np.ndarray) -> tuple[np.ndarray, pa.Array]:
    """Return the slots of the numbers that Arrow rounds, and their texts."""
    texts = MessageValues(messages.data, later[:, 1], later[:, 2], later[:, 0], len(later)).binary()
    return later[:, 0], texts.cast(pa.string())


def is_utf8(messages: MessageValues) -> bool:
    """Return whether the bytes of all values are UTF-8."""
    if not len(messages):
        return True
    low, high = int(messages.starts[0]), int(messages.ends[-1])
    if (messages.data[low:high] < 0x80).all():
        return True
    try:
        messages.binary().cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
