"""Decodes the values of messages that are Avro, by a program and the reader's kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.types import String
from penstock.engine.expressions.nested.lists import codes_of, firsts
from penstock.engine.formats.avro.columns import (
    MOST_BYTES,
    ColumnBuffers,
    OutputColumn,
    lists_by_group,
    map_columns,
)
from penstock.engine.formats.avro.reader_program import ReaderProgram, compile_reader
from penstock.engine.formats.avro.schema import AvroType
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, batch_of
from penstock.engine.formats.messages.message_values import MessageValues, message_values
from penstock.engine.kernels.avro.operations import WIDTH, ReadFault

_SENTENCES = {
    ReadFault.TRUNCATED: "the value ends too early",
    ReadFault.LONG_NUMBER: "a number has more than 64 bits",
    ReadFault.NO_BRANCH: "there is no such branch of the union",
    ReadFault.OUT_OF_RANGE: "the number is out of the range of the column",
    ReadFault.NULL: "NULL is in a column that is NOT NULL",
    ReadFault.OTHER_BRANCH: "the branch of the union is of another type than the column",
    ReadFault.NO_SYMBOL: "there is no such symbol of the enum",
    ReadFault.UNKNOWN_SYMBOL: "the symbol is not one of the reader's schema",
    ReadFault.NO_BOOLEAN: "the byte is no truth value",
    ReadFault.NEGATIVE_LENGTH: "a length is negative",
    ReadFault.TRAILING: "bytes are left behind the value",
    ReadFault.BLOCK_COUNT: "the number of elements is impossible",
    ReadFault.DIGITS: "the number has more digits than the column",
}
_TEXT_BYTES = 64
"""Bytes a row that a column of texts has beside those of the values, for symbols of enums and defaults."""
_ELEMENTS, _MOST_ELEMENTS = 4, 64
"""Elements a row that a list may have before its buffers grow, and what of the growth is remembered."""


@dataclass(frozen=True)
class DecodedValues:
    """Decoded values: ``kept`` are the positions of those that became rows."""

    batch: pa.RecordBatch
    kept: np.ndarray
    bad: list[BadRecord]


class AvroDeserializer:
    """Decodes Avro of one schema, without a head: the format ``avro``."""

    def __init__(self, writer: AvroType, wanted: tuple[Field, ...], where: str) -> None:
        self._decoder = ValueDecoder(compile_reader(writer, wanted, where))

    def deserialize(self, values: pa.Array) -> Decoded:
        messages = message_values(values)
        rows = self._decoder.decode(messages)
        return Decoded(rows.batch, 0, messages.count, messages.ordinals(rows.kept), rows.bad)


class ValueDecoder:
    """Runs a program over values."""

    def __init__(self, program: ReaderProgram) -> None:
        self._program = program
        self._parents = lists_by_group(program.layout)
        self._maps = map_columns(program.layout)
        self._texts = [column for column in program.layout.columns if isinstance(column.kind, String)]
        self._elements = _ELEMENTS

    def decode(self, messages: MessageValues) -> DecodedValues:
        """Return the rows of values; what is in them must begin at their first byte."""
        kept = np.arange(len(messages))
        wrong: dict[int, BadRecord] = {}
        while True:
            part = messages if len(kept) == len(messages) else messages.select(kept)
            pieces, fine, faults = self._pieces(part)
            # texts that are not UTF-8 and keys that are there twice are found in whole columns
            found = {int(fine[row]): told for row, told in self._suspects(pieces)}
            if not found:
                break
            for at, (column, error) in found.items():
                wrong[int(kept[at])] = part.bad(at, error, column)
            kept = np.delete(kept, list(found))
        wrong |= {
            int(kept[i]): self._fault(part, i, faults[i]) for i in np.flatnonzero(faults[:, 0]).tolist()
        }
        batches = [self._batch(buffers) for buffers in pieces]
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        return DecodedValues(batch, kept[fine], [wrong[i] for i in sorted(wrong)])

    def _pieces(self, messages: MessageValues) -> tuple[list[ColumnBuffers], np.ndarray, np.ndarray]:
        """Return the filled buffers, the positions of good values, and the fault of each value."""
        from penstock.engine.kernels.avro.reader import decode

        program = self._program
        stack = np.zeros(program.depth, np.int64)
        faults = np.zeros((len(messages), 3), np.int64)
        left = int((messages.ends - messages.starts).sum())
        text_bytes = left + _TEXT_BYTES * len(messages) + 1024
        elements = self._elements
        first = 0
        pieces: list[ColumnBuffers] = []
        while True:
            rows = len(messages) - first
            limits = [rows] + [elements * rows + 64] * (program.layout.groups - 1)
            buffers = ColumnBuffers(program.layout, limits, text_bytes)
            stopped = decode(
                messages.data, messages.starts, messages.ends, first, program.code, program.tables,
                program.constants, buffers.nodes, buffers.words, buffers.numbers, buffers.valid,
                buffers.octets, buffers.groups, buffers.limits, stack, faults.reshape(-1),
            )  # fmt: skip
            pieces.append(buffers)
            if stopped == len(messages):
                # the next values have about as many elements
                self._elements = min(elements, _MOST_ELEMENTS)
                return pieces, np.flatnonzero(faults[:, 0] == 0), faults
            if stopped == first:
                # not even one value fits
                pieces.pop()
                text_bytes *= 2
            first = stopped
            elements = min(elements * 2, MOST_BYTES)

    def _batch(self, buffers: ColumnBuffers) -> pa.RecordBatch:
        arrays = [buffers.array(column) for column in self._program.columns]
        return batch_of(arrays, self._program.fields, int(buffers.groups[0]))

    def _fault(self, messages: MessageValues, position: int, fault: np.ndarray) -> BadRecord:
        kind, byte, place = fault.tolist()
        column = self._program.places[place // WIDTH]
        # behind the last field it is no column's fault
        column = None if kind == ReadFault.TRAILING else column
        return messages.bad(position, _SENTENCES[ReadFault(kind)], column, byte)

    def _suspects(self, pieces: list[ColumnBuffers]) -> Iterator[tuple[int, tuple[str | None, str]]]:
        """Yield the rows, counted over all pieces, that hold what cannot be a value."""
        before = 0
        for buffers in pieces:
            for column in self._texts:
                items = _not_utf8(buffers, column)
                for row in buffers.rows_of_items(column, items, self._parents).tolist():
                    yield before + row, (self._name(column), "a text is not UTF-8")
            for column in self._maps:
                items = _repeated_keys(buffers, column, self._texts)
                for row in buffers.rows_of_items(column, items, self._parents).tolist():
                    yield before + row, (self._name(column), "a MAP has a key twice")
            before += int(buffers.groups[0])

    def _name(self, column: OutputColumn) -> str | None:
        return next(
            (
                one.name
                for one, top in zip(self._program.fields, self._program.columns, strict=True)
                if _is_in(column, top)
            ),
            None,
        )


def _is_in(column: OutputColumn, top: OutputColumn) -> bool:
    return column is top or any(_is_in(column, child) for child in top.children)


def _not_utf8(buffers: ColumnBuffers, column: OutputColumn) -> np.ndarray:
    """Return the items of a STRING that are not UTF-8, by bisection."""
    texts = buffers.array(column)
    found: list[int] = []
    todo = [(0, len(texts))]
    while todo:
        low, high = todo.pop()
        try:
            texts.slice(low, high - low).validate(full=True)
        except pa.ArrowInvalid:
            if high - low == 1:
                found.append(low)
            else:
                todo += [((low + high) // 2, high), (low, (low + high) // 2)]
    return np.array(found, np.int64)


def _repeated_keys(buffers: ColumnBuffers, column: OutputColumn, texts: list[OutputColumn]) -> np.ndarray:
    """Return the items of a MAP that have a key twice."""
    key = column.children[0]
    # keys that are not UTF-8 are told of first
    if key in texts and len(_not_utf8(buffers, key)):
        return np.zeros(0, np.int64)
    keys = buffers.array(key)
    first = int(buffers.nodes[column.node * 4])
    ends = buffers.words[first : first + int(buffers.groups[column.group])]
    parents = np.searchsorted(ends, np.arange(len(keys)), "right")
    starts = np.concatenate(([0], ends)).astype(np.int64)
    return np.unique(parents[~firsts(starts, codes_of(keys))])
