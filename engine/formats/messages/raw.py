"""Raw messages: the whole value is the value of one column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import DataType, String, Variant, to_arrow
from penstock.engine.api.arrow_numpy import array_of, numbers_of, truths
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.json.canonical_text import canonical_texts, why_none
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, batch_of
from penstock.engine.formats.messages.message_values import MessageValues, message_values


class RawDeserializer:
    """Decodes values that are one column: bytes, text, a truth value of one byte, or a number of its type's
    bytes. A message without a value is a row of NULL.
    """

    def __init__(self, form: MessageFormat, wanted: tuple[Field, ...], declared: tuple[Field, ...]) -> None:
        self._field = only_column(declared)
        self._wanted = wanted
        self._big_endian = form.option("raw.endianness") == "big-endian"

    def deserialize(self, values: pa.Array) -> Decoded:
        kind = self._field.type
        arrow = to_arrow(kind)
        if arrow == pa.binary():
            return self._decoded(values.cast(arrow), len(values), None, [])
        if isinstance(kind, String):
            return self._texts(values)
        if isinstance(kind, Variant):
            return self._variants(values)
        messages = message_values(values)
        width = 1 if pa.types.is_boolean(arrow) else arrow.bit_width // 8
        fits = messages.ends - messages.starts == width
        bad = [
            messages.bad(i, f"{messages.ends[i] - messages.starts[i]} bytes are no {kind}, which has {width}")
            for i in np.flatnonzero(~fits).tolist()
        ]
        good = messages.select(fits)
        # NULLs are rows: all messages but the bad ones
        kept = np.ones(len(values), np.bool_)
        kept[[record.ordinal for record in bad]] = False
        column = pa.nulls(len(values), arrow)
        if len(good):
            found = np.full(len(values), -1, np.int64)
            found[good.index] = np.arange(len(good))
            column = self._numbers(good, width, arrow).take(array_of(found, found < 0))
        chosen = np.flatnonzero(kept)
        if bad:
            column = column.take(array_of(chosen))
        return self._decoded(column, len(values), chosen if bad else None, bad)

    def _numbers(self, good: MessageValues, width: int, arrow: pa.DataType) -> pa.Array:
        from penstock.engine.kernels.message_frames import read_numbers

        words = np.empty(len(good), np.int64)
        read_numbers(good.data, good.starts, width, int(self._big_endian), words)
        # the low bytes of a word are the number's, whatever its sign
        narrow = words.view(np.uint8).reshape(-1, 8)[:, :width]
        if pa.types.is_boolean(arrow):
            return array_of(narrow[:, 0] != 0)
        buffer = pa.py_buffer(np.ascontiguousarray(narrow))
        return pa.Array.from_buffers(arrow, len(good), [None, buffer])

    def _texts(self, values: pa.Array) -> Decoded:
        try:
            return self._decoded(values.cast(pa.string()), len(values), None, [])
        except pa.ArrowInvalid:
            pass  # some value is not UTF-8: they are told apart below
        messages = message_values(values)
        bad: list[BadRecord] = []
        todo = [(0, len(messages))]
        while todo:
            low, high = todo.pop()
            try:
                messages.select(np.arange(low, high)).binary().cast(pa.string())
            except pa.ArrowInvalid:
                if high - low == 1:
                    bad.append(messages.bad(low, *_not_utf8(messages.raw(low), self._field.name)))
                else:
                    todo += [((low + high) // 2, high), (low, (low + high) // 2)]
        kept = np.ones(len(values), np.bool_)
        kept[[record.ordinal for record in bad]] = False
        chosen = np.flatnonzero(kept)
        return self._decoded(values.take(array_of(chosen)).cast(pa.string()), len(values), chosen, bad)

    def _variants(self, values: pa.Array) -> Decoded:
        texts = self._texts(values)
        column = texts.rows.column(0) if self._wanted else pa.nulls(texts.rows.num_rows, pa.string())
        made, wrong = canonical_texts(column)
        if not wrong.any():
            return self._decoded(made, len(values), texts.ordinals, texts.bad)
        ordinals = np.arange(len(made)) if texts.ordinals is None else texts.ordinals
        bad = [
            BadRecord(int(ordinals[i]), raw.encode(), why_none(raw), self._field.name)
            for i in np.flatnonzero(wrong).tolist()
            if (raw := column[i].as_py()) is not None
        ]
        both = sorted([*texts.bad, *bad], key=lambda record: record.ordinal)
        return self._decoded(made.filter(array_of(~wrong)), len(values), ordinals[~wrong], both)

    def _decoded(
        self, column: pa.Array, records: int, ordinals: np.ndarray | None, bad: list[BadRecord]
    ) -> Decoded:
        # with a key or metadata columns alone the value may not be wanted
        arrays = [column for _ in self._wanted]
        return Decoded(batch_of(arrays, self._wanted, len(column)), 0, records, ordinals, bad)


def _not_utf8(raw: bytes, column: str) -> tuple[str, str, int]:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x}", column, error.start
    return "not UTF-8", column, 0


class RawSerializer:
    """Encodes the one column; a NULL is a message without a value."""

    def __init__(self, form: MessageFormat, fields: tuple[Field, ...]) -> None:
        self._kind: DataType = only_column(fields).type
        self._big_endian = form.option("raw.endianness") == "big-endian"

    def serialize(self, batch: Batch) -> pa.Array:
        column = batch.rows.column(0)
        arrow = column.type
        if arrow in (pa.string(), pa.binary()):
            return column.cast(pa.binary())
        width = 1 if pa.types.is_boolean(arrow) else arrow.bit_width // 8
        if pa.types.is_boolean(arrow):
            numbers = truths(column).astype(np.uint8)
        else:
            filled = column.fill_null(0) if column.null_count else column
            numbers = numbers_of(filled)
        if self._big_endian:
            numbers = numbers.astype(numbers.dtype.newbyteorder(">"))
        offsets = np.arange(len(column) + 1, dtype=np.int32) * width
        made = pa.Array.from_buffers(
            pa.binary(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(numbers.tobytes())]
        )
        if not column.null_count:
            return made
        missing = truths(column.is_null())
        return made.take(array_of(np.arange(len(column)), missing))


def only_column(fields: tuple[Field, ...]) -> Field:
    """Return the one column of a table of raw messages. DAT-5201 when there are several."""
    if len(fields) == 1:
        return fields[0]
    names = ", ".join(field.name for field in fields[:5]) or "none"
    raise PenstockError(
        "DAT-5201",
        f"format raw has one column, and there are {len(fields)}: {names}",
        hint="declare one column, such as value BYTES; others can be METADATA",
        kind=Kind.USER,
    )
