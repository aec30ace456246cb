"""Encodes rows as Avro, by a program and the writer's kernel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import Decimal, Double, Float, Row
from penstock.engine.api.arrow_numpy import texts, truths
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.nested.lists import lists_of
from penstock.engine.formats.avro.columns import MOST_BYTES, OutputColumn
from penstock.engine.formats.avro.schema import AvroType
from penstock.engine.formats.avro.writer_program import compile_writer
from penstock.engine.kernels.arrow_views import floats, string_parts, wide_words, words
from penstock.engine.kernels.avro.operations import NODE_WIDTH, WIDTH, ReadFault

_ROW_BYTES = 64
"""Bytes a row at first; the output grows when they do not suffice."""
_SLACK = 64


class AvroSerializer:
    """Encodes rows in one schema; ``head`` begins each value. DAT-5214 for a value that the schema cannot
    hold.
    """

    def __init__(self, schema: AvroType, fields: tuple[Field, ...], head: bytes = b"") -> None:
        self._program = compile_writer(schema, fields)
        self._fields = fields
        self._head = head

    def serialize(self, batch: Batch) -> pa.Array:
        """Return one value a row."""
        return self.values(batch.rows)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return one value a row, whatever its weight."""
        from penstock.engine.kernels.avro.writer import encode

        filled = _Filled(len(self._program.layout.columns))
        for column, array, field in zip(self._program.columns, rows.columns, self._fields, strict=True):
            self._fill(filled, column, array, field.name)
        nodes, slots, valid, octets = filled.joined()
        count = rows.num_rows
        program = self._program
        groups, stack = np.zeros(program.layout.groups, np.int64), np.zeros(program.depth, np.int64)
        ends, fault = np.zeros(count + 1, np.int64), np.zeros(2, np.int64)
        out = np.empty(len(octets) + _ROW_BYTES * count + _SLACK, np.uint8)
        first = 0
        while first < count:
            first = encode(
                program.code, nodes, slots, valid, octets, groups, first, count, stack, out, ends, fault
            )
            if first < count:
                if fault[0] != ReadFault.FULL_BYTES:
                    raise self._fault(int(fault[0]), program.places[int(fault[1]) // WIDTH])
                grown = np.empty(len(out) * 2, np.uint8)
                grown[: int(ends[first])] = out[: int(ends[first])]
                out = grown
        return _with_head(out[: int(ends[-1])], ends, self._head)

    def _fault(self, fault: int, column: str) -> PenstockError:
        if fault == ReadFault.NULL:
            reason, hint = "NULL, which the schema does not have", "filter it: WHERE it IS NOT NULL"
        else:
            reason, hint = "a number with more digits than the schema has", "CAST it to fewer digits"
        return _unwritable(column, reason, hint)

    def _fill(self, filled: _Filled, column: OutputColumn, array: pa.Array, name: str) -> None:
        """Put a column and what is in it into the buffers of the kernel."""
        valid = truths(array.is_valid()).view(np.uint8) if array.null_count else np.ones(len(array), np.uint8)
        if isinstance(column.kind, Row):
            filled.add(column.node, np.zeros(0, np.int64), valid)
            for child, part in zip(column.children, array.flatten(), strict=True):
                self._fill(filled, child, part, name)
        elif column.is_list:
            lists = lists_of(array)
            filled.add(column.node, np.cumsum(lists.lengths), valid)
            parts = [lists.flat]
            if len(column.children) == 2:
                parts = [pc.struct_field(lists.flat, index) for index in range(2)]
            for child, part in zip(column.children, parts, strict=True):
                self._fill(filled, child, part, name)
        elif column.node in self._program.written:
            schema = self._program.written[column.node]
            if column.is_text and schema.kind != "enum":
                ends, octets = _texts(array)
                if schema.kind == "fixed" and (np.diff(ends, prepend=0)[valid != 0] != schema.size).any():
                    raise _unwritable(name, f"not {schema.size} bytes long", "write as many bytes")
                filled.add(column.node, ends, valid, octets)
            else:
                filled.add(column.node, _words(column, array, schema, name), valid)


class _Filled:
    """The parts of the buffers, node by node."""

    def __init__(self, nodes: int) -> None:
        self._nodes = np.zeros(max(1, nodes) * NODE_WIDTH, np.int64)
        self._words: list[np.ndarray] = []
        self._valid: list[np.ndarray] = []
        self._octets: list[np.ndarray] = []
        self._sizes = [0, 0, 0]

    def add(self, node: int, slots: np.ndarray, valid: np.ndarray, octets: np.ndarray | None = None) -> None:
        self._nodes[node * NODE_WIDTH : node * NODE_WIDTH + 3] = self._sizes
        parts = (
            slots.astype(np.int64, copy=False),
            valid,
            np.zeros(0, np.uint8) if octets is None else octets,
        )
        for index, (target, part) in enumerate(
            zip((self._words, self._valid, self._octets), parts, strict=True)
        ):
            target.append(part)
            self._sizes[index] += len(part)

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return nodes, words, validity and bytes."""
        # one more of each, so that none is empty
        return (
            self._nodes,
            np.concatenate([*self._words, np.zeros(1, np.int64)]),
            np.concatenate([*self._valid, np.zeros(1, np.uint8)]),
            np.concatenate([*self._octets, np.zeros(1, np.uint8)]),
        )


def _texts(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the end of each text, and the bytes of all."""
    offsets, data = string_parts(array)
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets[1:].astype(np.int64) - first, data[first:last]


def _words(column: OutputColumn, array: pa.Array, schema: AvroType, name: str) -> np.ndarray:
    """Return the words of scalars as the schema has them: a symbol by its index, a time in its unit."""
    if column.is_text:
        found = pc.index_in(array, texts(list(schema.symbols)))
        if found.null_count > array.null_count:
            strange = array.filter(pc.and_(pc.is_null(found), pc.is_valid(array)))[0].as_py()
            raise _unwritable(name, f"'{strange[:40]}', which is no symbol of the enum", "use its symbols")
        return words(found)
    if isinstance(column.kind, Decimal):
        if column.kind.precision > 18:
            low, high = wide_words(array)
        else:
            low = words(array)
            high = low >> 63
        return np.stack([low, high], axis=1).reshape(-1)
    if isinstance(column.kind, Float | Double):
        number = np.float32 if schema.kind == "float" else np.float64
        values = floats(array).astype(number)
        return values.view(np.int32).astype(np.int64) if number is np.float32 else values.view(np.int64)
    counts = words(array)
    if schema.logical is not None and schema.logical.endswith("-millis"):
        return counts // 1000
    if schema.logical is not None and schema.logical.endswith("-nanos"):
        fits = np.abs(counts) < 2**63 // 1000
        if not fits[truths(array.is_valid())].all():
            raise _unwritable(name, "a time that nanoseconds cannot count", "use timestamp-micros")
        return counts * 1000
    return counts


def _unwritable(column: str, reason: str, hint: str) -> PenstockError:
    return PenstockError(
        "DAT-5214",
        f"a value of column {column} cannot be written as Avro: it is {reason}",
        hint=hint,
        kind=Kind.USER,
        sqlstate="22000",
    )


def _with_head(octets: np.ndarray, ends: np.ndarray, head: bytes) -> pa.Array:
    """Return values as BINARY, each with the head before it."""
    count = len(ends) - 1
    if head and count:
        # byte j of value i goes to j + (i + 1) heads
        space = np.empty(len(octets) + count * len(head), np.uint8)
        starts = ends[:-1] + np.arange(count) * len(head)
        body = np.ones(len(space), np.bool_)
        heads = starts[:, None] + np.arange(len(head))
        body[heads.reshape(-1)] = False
        space[heads] = np.frombuffer(head, np.uint8)
        space[body] = octets
        octets, ends = space, ends + np.arange(count + 1) * len(head)
    assert ends[-1] <= MOST_BYTES, "a batch of messages has less than 2 GiB"
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(octets)]
    )
