"""Protobuf messages, by ptars: a descriptor file says what is in them.

``protoc --include_imports --descriptor_set_out=FILE`` writes that file. It is read when a job starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field
from penstock.engine.api.arrow_numpy import texts
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.nested.lists import lists_of
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, batch_of
from penstock.engine.formats.file_types import fit, matching, read_as, type_name
from penstock.engine.formats.messages.message_values import MessageValues, message_values

_DECODING = "failed to decode Protobuf message: "


class ProtobufMessage:
    """One message type of a descriptor file. ``schema``: the Arrow schema that ptars reads it as.

    DAT-5230 for a file that is no descriptor set, DAT-5231 for a message that is not in it or is recursive.
    DAT-5232 when ptars is not installed.
    """

    def __init__(self, form: MessageFormat) -> None:
        try:
            # imported with the first table of this format: an extra
            import ptars
            from google.protobuf import descriptor_pb2, descriptor_pool
            from google.protobuf.message import DecodeError
        except ImportError:
            raise PenstockError(
                "DAT-5232",
                "the format protobuf needs ptars, which is not installed",
                hint="pip install 'penstock[protobuf]'",
                kind=Kind.EXTERNAL,
            ) from None
        path = str(form.option(f"{form.name}.descriptor-file"))
        self.name = str(form.option(f"{form.name}.message"))
        files = descriptor_pb2.FileDescriptorSet()
        pool = descriptor_pool.DescriptorPool()
        try:
            files.ParseFromString(Path(path).read_bytes())
            for file in files.file:
                pool.Add(file)
        except (OSError, DecodeError, TypeError, ValueError) as error:
            raise _bad_descriptors(path, str(error)) from None
        if not files.file:
            raise _bad_descriptors(path, "it is empty")
        try:
            self._descriptor = pool.FindMessageTypeByName(self.name)
        except KeyError:
            names = [
                ".".join(filter(None, (file.package, one.name)))
                for file in files.file
                for one in file.message_type
            ]
            raise PenstockError(
                "DAT-5231",
                f"there is no message {self.name} in {path}",
                hint=did_you_mean(self.name, names, others=True),
                kind=Kind.EXTERNAL,
            ) from None
        self._refuse_recursion(self._descriptor, ())
        self.file: Any = next(file for file in files.file if file.name == self._descriptor.file.name)
        config = ptars.PtarsConfig(
            timestamp_unit="us", time_unit="us", duration_unit="us", enum_repr="string"
        )
        pooled = ptars.HandlerPool([self._descriptor.file], config=config)
        self.handler: Any = pooled.get_for_message(self._descriptor)
        self.schema: pa.Schema = self.handler.schema()

    def _refuse_recursion(self, descriptor: Any, inside: tuple[str, ...]) -> None:
        # ptars would make a type without an end
        if descriptor.full_name in inside:
            raise PenstockError(
                "DAT-5231",
                f"message {self.name} is recursive: {descriptor.full_name} holds itself",
                hint="a column has a fixed type: read it as 'format' = 'raw' into BYTES",
                kind=Kind.EXTERNAL,
            )
        for part in descriptor.fields:
            if part.message_type is not None:
                self._refuse_recursion(part.message_type, (*inside, descriptor.full_name))

    def position(self, field: Field) -> int | None:
        """Return the index of a column's field; ``None`` when there is none. DAT-5212 for another type."""
        found = matching(self.schema.names, field.name)
        if len(found) != 1:
            return None
        have = self.schema.field(found[0]).type
        if fit(have, field.type) is None:
            raise self.refusal(f"{field.name} is {field.type}, and the message has {type_name(have)}")
        return found[0]

    def refusal(self, reason: str) -> PenstockError:
        """Return the error for columns that do not match the message."""
        return PenstockError(
            "DAT-5212",
            f"message {self.name} does not match the table: {reason}",
            hint="declare the columns as the message has them",
            kind=Kind.EXTERNAL,
        )

    @property
    def indexes(self) -> list[int]:
        """The position of the message in its file; of an inner one those of the messages around it first."""
        path, inside = list[int](), self.file.message_type
        inner = self.name.removeprefix(f"{self.file.package}." if self.file.package else "")
        for name in inner.split("."):
            path.append([one.name for one in inside].index(name))
            inside = inside[path[-1]].nested_type
        return path

    def symbols(self, name: str) -> list[str] | None:
        """Return the names of an enum's values; ``None`` for a field that is no enum."""
        enum = self._descriptor.fields_by_name[name].enum_type
        return None if enum is None else [value.name for value in enum.values]


class ProtobufDeserializer:
    """Decodes protobuf. A field that was not sent is NULL where it has presence; else it has its
    default, as protobuf says.
    """

    def __init__(self, form: MessageFormat, wanted: tuple[Field, ...]) -> None:
        self._message = ProtobufMessage(form)
        self._wanted = wanted
        self._positions = [self._message.position(field) for field in wanted]
        for field, position in zip(wanted, self._positions, strict=True):
            if position is None and not field.nullable:
                raise self._message.refusal(
                    f"it has no field {field.name}, and column {field.name} is NOT NULL"
                )

    @property
    def message(self) -> str:
        """The name of the message, with its package."""
        return self._message.name

    def deserialize(self, values: pa.Array) -> Decoded:
        return self.decode(message_values(values))

    def decode(self, messages: MessageValues) -> Decoded:
        """Return the rows of values."""
        bad: list[BadRecord] = []
        pieces: list[pa.RecordBatch] = []
        kept: list[np.ndarray] = []
        # bisection: halve what fails until single bad messages remain
        todo = [(0, len(messages))]
        while todo:
            low, high = todo.pop()
            rows, column, error = self._rows(messages.select(np.arange(low, high)))
            if rows is not None:
                pieces.append(rows)
                kept.append(np.arange(low, high))
            elif high - low == 1:
                bad.append(messages.bad(low, error, column))
            else:
                todo += [((low + high) // 2, high), (low, (low + high) // 2)]
        if not pieces:
            rows, _, error = self._rows(messages.select(np.zeros(0, np.int64)))
            assert rows is not None, error
            pieces, kept = [rows], [np.zeros(0, np.int64)]
        rows = pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
        return Decoded(rows, 0, messages.count, messages.ordinals(np.concatenate(kept)), bad)

    def _rows(self, messages: MessageValues) -> tuple[pa.RecordBatch | None, str | None, str]:
        """Return the rows of messages; or the column at fault, and the error."""
        try:
            batch = self._message.handler.array_to_record_batch(messages.binary())
        except ValueError as error:
            return None, None, str(error).removeprefix(_DECODING)[:200]
        arrays = []
        for field, position in zip(self._wanted, self._positions, strict=True):
            try:
                column = pa.nulls(len(messages)) if position is None else batch.column(position)
                arrays.append(read_as(column, field.type))
            except pa.ArrowInvalid as error:
                return None, field.name, f"the value is not a valid {field.type}: {str(error)[:100]}"
        return batch_of(arrays, self._wanted, len(messages)), None, ""


class ProtobufSerializer:
    """Encodes rows as protobuf; a NULL is a field that is not sent. DAT-5214 for a value that the message
    cannot hold.
    """

    def __init__(self, form: MessageFormat, fields: tuple[Field, ...]) -> None:
        self._message = ProtobufMessage(form)
        self._fields = fields
        for field in fields:
            if self._message.position(field) is None:
                raise self._message.refusal(f"it has no field {field.name}")

    @property
    def message(self) -> ProtobufMessage:
        """The message that rows are written as."""
        return self._message

    def serialize(self, batch: Batch) -> pa.Array:
        """Return one value a row."""
        arrays, names = [], []
        for field, column in zip(self._fields, batch.rows.columns, strict=True):
            position = self._message.position(field)
            assert position is not None
            target = self._message.schema.field(position)
            names.append(target.name)
            arrays.append(self._converted(field, column, target))
        rows = pa.RecordBatch.from_arrays(arrays, names=names)
        return self._message.handler.record_batch_to_array(rows).cast(pa.binary())

    def _converted(self, field: Field, column: pa.Array, target: pa.Field) -> pa.Array:
        # ptars writes nothing for a type or a symbol that it does not expect: all are checked here
        try:
            wanted = _nullable(target.type)
            made = column.cast(wanted) if column.type != wanted else column
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _unwritable(field, str(error)[:200]) from None
        symbols = self._message.symbols(target.name)
        if symbols is not None and pa.types.is_string(made.type):
            known = pc.index_in(made, texts(symbols))
            if known.null_count > made.null_count:
                raise _unwritable(field, "a text is no value of the enum")
        if pa.types.is_list(made.type) and lists_of(made).flat.null_count:
            raise _unwritable(field, "an element of an array is NULL, which protobuf does not have")
        return made


def _nullable(kind: pa.DataType) -> pa.DataType:
    """Return a type of ptars with parts that may be NULL: those are not sent."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _nullable(part.type)) for part in kind])
    return pa.list_(_nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def _unwritable(field: Field, reason: str) -> PenstockError:
    return PenstockError(
        "DAT-5214",
        f"a value of column {field.name} cannot be written as protobuf",
        detail=reason,
        hint="CAST it, or filter it",
        sqlstate="22000",
    )


def _bad_descriptors(path: str, reason: str) -> PenstockError:
    return PenstockError(
        "DAT-5230",
        f"{path} is no descriptor file of protobuf",
        detail=reason[:200],
        hint="write it with: protoc --include_imports --descriptor_set_out=FILE X.proto",
        kind=Kind.EXTERNAL,
    )
