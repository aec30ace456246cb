"""Compiles a writer's schema and the wanted columns to a program of the reader's kernel. It is Avro's
resolution of schemas, with the columns of a table for the reader's schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal as Number
from typing import Any

import numpy as np

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    Array,
    BigInt,
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Int,
    Map,
    Row,
    SmallInt,
    String,
    Time,
    Timestamp,
    TimestampLtz,
    TinyInt,
)
from penstock.engine.formats.avro.columns import ColumnLayout, OutputColumn
from penstock.engine.formats.avro.schema import NO_DEFAULT, AvroField, AvroType
from penstock.engine.kernels.avro.operations import WIDTH, ReadFault, ReadOp

_RANGES = {
    TinyInt: (-(2**7), 2**7 - 1),
    SmallInt: (-(2**15), 2**15 - 1),
    Int: (-(2**31), 2**31 - 1),
    BigInt: (-(2**63), 2**63 - 1),
}
_ANY = (-(2**63), 2**63 - 1)
# what a count of each unit is multiplied with and divided by to be microseconds
_UNITS = {"millis": (1000, 1), "micros": (1, 1), "nanos": (1, 1000)}


@dataclass(frozen=True, eq=False)
class ReaderProgram:
    """What the kernel walks, and the columns it fills: ``fields`` of the table, in order; ``places`` name the
    column of each instruction.
    """

    code: np.ndarray
    tables: np.ndarray
    constants: np.ndarray
    layout: ColumnLayout
    columns: list[OutputColumn]
    fields: tuple[Field, ...]
    depth: int
    places: list[str | None]


def compile_reader(
    writer: AvroType, wanted: tuple[Field, ...], where: str, reader: AvroType | None = None
) -> ReaderProgram:
    """Return the program that reads values of a writer's schema as columns.

    A column is the writer's field of its name (of any case), or of an alias in the ``reader`` schema. One
    that the writer does not have is the reader's default, else NULL. DAT-5212 where they do not match.
    """
    return _Compiler(where).compile(writer, wanted, reader)


@dataclass
class _Label:
    """A place in the program that is known later."""

    place: int = -1
    # indexes of operands in the code that get it
    uses: list[int] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)


class _Compiler:
    def __init__(self, where: str) -> None:
        self._where = where
        self._layout = ColumnLayout()
        self._code: list[int] = []
        self._tables: list[int] = []
        self._constants = bytearray()
        self._places: list[str | None] = []
        self._place: str | None = None
        self._depth = 0
        self._deepest = 0

    def compile(self, writer: AvroType, wanted: tuple[Field, ...], reader: AvroType | None) -> ReaderProgram:
        columns = [self._layout.column(one.type, 0, one.nullable) for one in wanted]
        if writer.kind == "record":
            record = None if reader is None or reader.kind != "record" else reader
            self._record(writer, wanted, columns, record)
        elif len(wanted) == 1:
            # a key is often one text or number
            self._place = wanted[0].name
            self._value(columns[0], writer, reader)
        elif wanted:
            raise self._refusal(f"it is {writer}, and the table has {len(wanted)} columns")
        else:
            self._skip(writer)
        self._emit(ReadOp.END)
        return ReaderProgram(
            np.array(self._code, np.int64),
            np.array(self._tables or [0], np.int64),
            np.frombuffer(bytes(self._constants) or b"\0", np.uint8),
            self._layout,
            columns,
            wanted,
            self._deepest + 1,
            self._places,
        )

    def _refusal(self, reason: str) -> PenstockError:
        return PenstockError(
            "DAT-5212",
            f"{self._where} does not match the table: {reason}",
            hint="declare the columns as the schema has them",
            kind=Kind.EXTERNAL,
        )

    # --- code ---

    def _emit(self, op: ReadOp, column: OutputColumn | None = None, *operands: int | _Label) -> None:
        at = len(self._code)
        node, group, stride = (0, 0, 0) if column is None else (column.node, column.group, column.stride)
        self._code += [int(op), node, group, 0, 0, 0, 0, stride]
        self._places.append(self._place)
        for index, operand in enumerate(operands):
            if isinstance(operand, _Label):
                operand.uses.append(at + 3 + index)
                self._code[at + 3 + index] = operand.place
            else:
                self._code[at + 3 + index] = int(operand)

    def _set(self, label: _Label) -> None:
        label.place = len(self._code)
        for use in label.uses:
            self._code[use] = label.place
        for entry in label.entries:
            self._tables[entry] = label.place

    def _constant(self, data: bytes) -> tuple[int, int]:
        begin = len(self._constants)
        self._constants += data
        return begin, len(self._constants)

    # --- records ---

    def _record(
        self,
        writer: AvroType,
        fields: tuple[Field, ...] | tuple[tuple[str, DataType], ...],
        columns: list[OutputColumn],
        reader: AvroType | None,
    ) -> None:
        """Emit the writer's fields in their order, then what the writer does not have."""
        names = [one.name if isinstance(one, Field) else one[0] for one in fields]
        read = [_reader_field(reader, name) for name in names]
        sources = [self._source(writer, name, one) for name, one in zip(names, read, strict=True)]
        top = isinstance(fields[0], Field) if fields else True
        for part in writer.fields:
            owners = [i for i, source in enumerate(sources) if source is part]
            if not owners:
                self._skip(part.type)
                continue
            if len(owners) > 1:
                raise self._refusal(f"{names[owners[0]]} and {names[owners[1]]} are both {part.name}")
            self._enter(names[owners[0]], top)
            of_reader = read[owners[0]]
            self._value(columns[owners[0]], part.type, None if of_reader is None else of_reader.type)
        for name, column, source, of_reader in zip(names, columns, sources, read, strict=True):
            if source is None:
                self._enter(name, top)
                self._absent(name, column, of_reader)

    def _enter(self, name: str, top: bool) -> None:
        # errors name the column of the table, whatever field of it is at fault
        if top:
            self._place = name

    def _source(self, writer: AvroType, name: str, read: AvroField | None) -> AvroField | None:
        for wanted in (name,) if read is None else (read.name, *read.aliases):
            exact = [part for part in writer.fields if part.name == wanted]
            alike = exact or [part for part in writer.fields if part.name.lower() == wanted.lower()]
            if len(alike) > 1:
                raise self._refusal(f"{wanted} may be {alike[0].name} or {alike[1].name}")
            if alike:
                return alike[0]
        return None

    def _absent(self, name: str, column: OutputColumn, read: AvroField | None) -> None:
        if read is not None and read.default is not NO_DEFAULT:
            self._default(column, read.type, read.default)
        elif column.nullable:
            self._null(column)
        else:
            raise self._refusal(f"it has no field {name}, and column {name} is NOT NULL")

    # --- values ---

    def _value(self, column: OutputColumn, writer: AvroType, reader: AvroType | None) -> None:
        if writer.kind == "union":
            self._union(column, writer, reader)
        elif writer.kind == "null":
            self._branch(column, writer, reader)
        elif not self._read(column, writer, _without_null(reader)):
            raise self._refusal(f"{self._place} is {column.kind}, and the schema has {writer}")

    def _union(self, column: OutputColumn, writer: AvroType, reader: AvroType | None) -> None:
        labels = [_Label() for _ in writer.branches]
        end = _Label()
        self._jump_table(labels)
        fits = []
        for label, branch in zip(labels, writer.branches, strict=True):
            self._set(label)
            fits.append(self._branch(column, branch, reader))
            self._emit(ReadOp.JUMP, None, end)
        self._set(end)
        values = [branch for branch in writer.branches if branch.kind != "null"]
        if values and not any(fits):
            raise self._refusal(f"{self._place} is {column.kind}, and the schema has {writer}")

    def _jump_table(self, labels: list[_Label]) -> None:
        self._emit(ReadOp.UNION, None, len(labels), len(self._tables))
        for label in labels:
            label.entries.append(len(self._tables))
            self._tables.append(-1)

    def _branch(self, column: OutputColumn, branch: AvroType, reader: AvroType | None) -> bool:
        """Emit one branch of a union; return whether it can be a value of the column."""
        if branch.kind == "null":
            if column.nullable:
                self._null(column)
            else:
                self._emit(ReadOp.BAD, None, ReadFault.NULL)
            return False
        begun = len(self._code)
        if self._read(column, branch, _without_null(reader)):
            return True
        # what was emitted of it is unreachable; a value in this branch is bad, the others are read
        del self._code[begun:], self._places[begun // WIDTH :]
        self._emit(ReadOp.BAD, None, ReadFault.OTHER_BRANCH)
        return False

    def _read(self, column: OutputColumn, writer: AvroType, reader: AvroType | None) -> bool:
        """Emit the reading of a value that is no union; return whether the types match."""
        kind = column.kind
        match kind:
            case Array() if writer.kind == "array":
                items = None if reader is None or reader.kind != "array" else reader.items
                self._list(column, writer, items)
            case Map(String(), _) if writer.kind == "map":
                items = None if reader is None or reader.kind != "map" else reader.items
                self._list(column, writer, items)
            case Row(fields) if writer.kind == "record":
                self._emit(ReadOp.VALID, column)
                self._record(writer, fields, column.children, reader)
            case Array() | Map() | Row():
                return False
            case _:
                return self._scalar(column, writer, reader)
        return True

    def _scalar(self, column: OutputColumn, writer: AvroType, reader: AvroType | None) -> bool:
        kind, have, logical = column.kind, writer.kind, writer.logical or ""
        whole = have in ("int", "long")
        match kind:
            case Boolean() if have == "boolean":
                self._emit(ReadOp.BOOLEAN, column)
            case TinyInt() | SmallInt() | Int() | BigInt() if whole:
                self._emit(ReadOp.INT, column, *_RANGES[type(kind)])
            case Float() | Double() if have == "float" or (have == "double" and isinstance(kind, Double)):
                self._emit(ReadOp.FLOAT if have == "float" else ReadOp.DOUBLE, column)
            case Float() | Double() if whole and not logical:
                self._emit(ReadOp.INT_AS_DOUBLE, column, *_ANY)
            case String() if have == "enum":
                self._enum(column, writer, reader)
            case String() if have == "fixed" and logical == "uuid":
                self._emit(ReadOp.UUID, column)
            case String() | Binary() if have in ("string", "bytes") and logical != "decimal":
                self._emit(ReadOp.BYTES, column)
            case Binary() if have == "fixed":
                self._emit(ReadOp.FIXED, column, writer.size)
            case Decimal(precision, scale) if logical == "decimal" and writer.scale <= scale:
                added = scale - writer.scale
                self._emit(
                    ReadOp.DECIMAL,
                    column,
                    writer.size if have == "fixed" else -1,
                    added,
                    *_two_words(10 ** max(precision - added, 0)),
                )
            case Date() if logical == "date":
                self._emit(ReadOp.INT, column, *_RANGES[Int])
            case Time() if logical.startswith("time-"):
                self._scaled(column, logical)
            case Timestamp() | TimestampLtz() if "timestamp-" in logical:
                self._scaled(column, logical)
            case _:
                return False
        return True

    def _scaled(self, column: OutputColumn, logical: str) -> None:
        times, by = _UNITS[logical.rpartition("-")[2]]
        day = 86_400_000_000
        # a time of day; else what is still an int64 after the multiplication
        low, high = (0, day * by // times - 1) if isinstance(column.kind, Time) else _ANY
        low, high = max(low, -(2**63) // times + 1), min(high, (2**63 - 1) // times)
        self._emit(ReadOp.SCALED, column, low, high, times, by)

    def _enum(self, column: OutputColumn, writer: AvroType, reader: AvroType | None) -> None:
        known = None if reader is None or reader.kind != "enum" else reader
        begin = len(self._tables)
        for symbol in writer.symbols:
            text: str | None = symbol
            if known is not None and symbol not in known.symbols:
                text = known.default
            self._tables += (-1, -1) if text is None else self._constant(text.encode())
        self._emit(ReadOp.ENUM, column, len(writer.symbols), begin)

    def _list(self, column: OutputColumn, writer: AvroType, reader: AvroType | None) -> None:
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        self._emit(ReadOp.LIST_BEGIN)
        again, end = _Label(), _Label()
        self._set(again)
        # a map's element begins with its key, of one byte at least
        smallest = writer.element.smallest + (writer.kind == "map")
        self._emit(ReadOp.LIST_NEXT, column, column.inner, end, smallest)
        if writer.kind == "map":
            self._emit(ReadOp.BYTES, column.children[0])
        self._value(column.children[-1], writer.element, reader)
        self._emit(ReadOp.LIST_ITEM, column, column.inner, again)
        self._set(end)
        self._depth -= 1

    # --- what is not in the value ---

    def _null(self, column: OutputColumn) -> None:
        if column.is_list:
            self._emit(ReadOp.LIST_NULL, column, column.inner)
        elif isinstance(column.kind, Row):
            self._emit(ReadOp.NULL_ROW, column)
            for child in column.children:
                self._null(child)
        else:
            self._emit(ReadOp.NULL_TEXT if column.is_text else ReadOp.NULL_WORD, column)

    def _default(self, column: OutputColumn, kind: AvroType, value: Any) -> None:
        """Emit the default of a reader's field; one of a union may be of any branch."""
        if value is None and column.nullable:
            self._null(column)
            return
        candidates = kind.branches if kind.kind == "union" else (kind,)
        for candidate in candidates:
            if candidate.kind != "null" and self._constant_value(column, candidate, value):
                return
        raise self._refusal(f"the default {str(value)[:40]} of {self._place} is no {column.kind}")

    def _constant_value(self, column: OutputColumn, kind: AvroType, value: Any) -> bool:
        match column.kind:
            case Row(fields) if isinstance(value, dict) and kind.kind == "record":
                self._emit(ReadOp.VALID, column)
                for (name, _), child in zip(fields, column.children, strict=True):
                    part = _reader_field(kind, name)
                    if part is None or (part.name not in value and part.default is NO_DEFAULT):
                        self._null(child)
                    else:
                        self._default(child, part.type, value.get(part.name, part.default))
            case Array() | Map() if value in ([], {}):
                self._emit(ReadOp.LIST_CLOSE, column, column.inner)
            case String() if isinstance(value, str):
                self._emit(ReadOp.TEXT, column, *self._constant(value.encode()))
            case Binary() if isinstance(value, str):
                # bytes are written as characters 0 to 255
                self._emit(ReadOp.TEXT, column, *self._constant(value.encode("latin-1", "replace")))
            case Decimal(precision, scale) if isinstance(value, str) and kind.logical == "decimal":
                number = int.from_bytes(value.encode("latin-1", "replace"), "big", signed=True)
                number *= 10 ** max(scale - kind.scale, 0)
                if kind.scale > scale or abs(number) >= 10**precision:
                    return False
                self._emit(ReadOp.WIDE, column, *_two_words(number))
            case _:
                word = _word(column.kind, kind, value)
                if word is None:
                    return False
                self._emit(ReadOp.WORD, column, word)
        return True

    def _skip(self, writer: AvroType) -> None:
        match writer.kind:
            case "record":
                for part in writer.fields:
                    self._skip(part.type)
            case "union":
                labels = [_Label() for _ in writer.branches]
                end = _Label()
                self._jump_table(labels)
                for label, branch in zip(labels, writer.branches, strict=True):
                    self._set(label)
                    self._skip(branch)
                    self._emit(ReadOp.JUMP, None, end)
                self._set(end)
            case "array" | "map":
                self._depth += 1
                self._deepest = max(self._deepest, self._depth)
                self._emit(ReadOp.LIST_BEGIN)
                again, end = _Label(), _Label()
                self._set(again)
                smallest = writer.element.smallest + (writer.kind == "map")
                self._emit(ReadOp.SKIP_NEXT, None, 0, end, smallest)
                if writer.kind == "map":
                    self._emit(ReadOp.SKIP_BYTES)
                self._skip(writer.element)
                self._emit(ReadOp.JUMP, None, again)
                self._set(end)
                self._depth -= 1
            case "int" | "long" | "enum":
                self._emit(ReadOp.SKIP_INT)
            case "bytes" | "string":
                self._emit(ReadOp.SKIP_BYTES)
            case "boolean" | "float" | "double" | "fixed":
                size = {"boolean": 1, "float": 4, "double": 8}.get(writer.kind, writer.size)
                self._emit(ReadOp.SKIP_FIXED, None, size)


def _reader_field(reader: AvroType | None, name: str) -> AvroField | None:
    """Return the field of the reader's schema that a column is."""
    if reader is None:
        return None
    alike = [part for part in reader.fields if part.name.lower() == name.lower()]
    return next((part for part in alike if part.name == name), alike[0] if alike else None)


def _without_null(reader: AvroType | None) -> AvroType | None:
    """Return the one type of a reader's union beside null; ``None`` when there are several."""
    if reader is None or reader.kind != "union":
        return reader
    values = [branch for branch in reader.branches if branch.kind != "null"]
    return values[0] if len(values) == 1 else None


def _two_words(number: int) -> tuple[int, int]:
    """Return the low and the high word of a number of 128 bits, as int64."""
    low, high = number & (2**64 - 1), (number >> 64) & (2**64 - 1)
    return low - (low >> 63 << 64), high - (high >> 63 << 64)


def _word(kind: DataType, of: AvroType, value: Any) -> int | None:
    """Return the word of a default that is a number or a truth value; ``None`` where it does not fit."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(kind, Boolean):
        return int(value) if isinstance(value, bool) else None
    if isinstance(kind, Float | Double):
        if not whole and not isinstance(value, float):
            return None
        return int(np.array([float(Number(str(value)))]).view(np.int64)[0])
    if not whole:
        return None
    if type(kind) in _RANGES:
        low, high = _RANGES[type(kind)]
        return value if low <= value <= high else None
    if isinstance(kind, Date) and of.logical == "date":
        return int(value)
    if isinstance(kind, Time | Timestamp | TimestampLtz) and of.logical is not None:
        times, by = _UNITS.get(of.logical.rpartition("-")[2], (1, 1))
        return int(value) * times // by
    return None
