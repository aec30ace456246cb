"""Protobuf with the head of Confluent's serializers: a zero, the id of the file in the registry, which of its
messages it is, and the value.

The message is named by indexes: their number, then each, as zigzag varints. One zero byte stands for the
first message of the file.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.decoded_batch import BadRecord, Decoded
from penstock.engine.formats.messages.confluent_head import HEAD_BYTES, NO_HEAD, schema_ids, with_head
from penstock.engine.formats.messages.message_values import MessageValues, message_values
from penstock.engine.formats.messages.protobuf import ProtobufDeserializer, ProtobufSerializer
from penstock.engine.formats.messages.schema_registry import SchemaRegistryClient, registry_options
from penstock.engine.metrics.operator_metrics import OperatorMetrics

# messages are inside others to this depth at most; more is no head
_MOST_INDEXES = 16
_VARINT_BYTES = 5
_NO_INDEXES = "no message of a file is named behind the id of the schema"
# files that every registry and every reader has
_BUILT_IN = "google/protobuf/"


class ConfluentProtobufDeserializer:
    """Decodes values as one message. It asks the registry for each id once, which blocks.

    A value of another message is a bad record. DAT-522x of the registry.
    """

    def __init__(
        self, form: MessageFormat, wanted: tuple[Field, ...], metrics: OperatorMetrics | None
    ) -> None:
        self._values = ProtobufDeserializer(form, wanted)
        self._client = SchemaRegistryClient(registry_options(form), metrics)
        # the file of each id that was asked for: None where it is not known what messages it has
        self._files: dict[int, Any] = {}

    def deserialize(self, values: pa.Array) -> Decoded:
        messages = message_values(values)
        ids = schema_ids(messages)
        paths, ends = _indexes(messages, ids >= 0)
        bad: list[BadRecord] = []
        fine = np.ones(len(messages), np.bool_)
        # all values of one message of one file have one fate
        groups, group = np.unique(np.column_stack([ids, paths]), axis=0, return_inverse=True)
        for number, (schema_id, count, *path) in enumerate(groups.tolist()):
            if (error := self._error(schema_id, path[:count], count)) is not None:
                chosen = np.flatnonzero(group.reshape(-1) == number)
                fine[chosen] = False
                bad += [messages.bad(position, error, None, 0) for position in chosen.tolist()]
        payload = MessageValues(messages.data, ends, messages.ends, messages.index, messages.count)
        decoded = self._values.decode(payload if fine.all() else payload.select(fine))
        bad += [with_head(messages, record) for record in decoded.bad]
        bad.sort(key=lambda record: record.ordinal)
        return Decoded(decoded.rows, 0, decoded.records, decoded.ordinals, bad)

    def _error(self, schema_id: int, path: list[int], count: int) -> str | None:
        """Return why values with such a head are no rows; ``None`` for those that are."""
        if schema_id < 0:
            return NO_HEAD
        if count < 0:
            return _NO_INDEXES
        if schema_id not in self._files:
            text = self._client.protobuf_file(schema_id)
            if text is None:
                return f"schema {schema_id} is not in the registry {self._client.name}"
            self._files[schema_id] = _file_of(text)
        file = self._files[schema_id]
        # a registry that only has the text of the file: its messages are taken for ours
        if file is None:
            return None
        name = _message_name(file, path)
        if name is None:
            return f"schema {schema_id} has no message {path}"
        wanted = self._values.message
        return None if name == wanted else f"the value is a message {name}, and the table reads {wanted}"


def _indexes(messages: MessageValues, headed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of indexes of each value with its indexes, -1 for a head that is none; and where the
    value begins behind them.
    """
    at = np.where(headed, messages.starts + HEAD_BYTES, messages.ends)
    found = np.full((len(messages), 1 + _MOST_INDEXES), 0, np.int64)
    count, at, whole = _varints(messages, at, headed)
    whole &= (count >= 0) & (count <= _MOST_INDEXES)
    # a zero stands for the list of one zero
    found[:, 0] = np.maximum(count, 1)
    for place in range(int(count[whole].max(initial=0))):
        more = whole & (count > place)
        index, at, read = _varints(messages, at, more)
        found[more, 1 + place] = index[more]
        whole &= ~more | (read & (index >= 0))
    found[~whole, 0] = -1
    found[~whole, 1:] = 0
    return found, at


def _varints(
    messages: MessageValues, at: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read one zigzag varint of each wanted value at its position. Return the numbers, the positions behind
    them, and which could be read.
    """
    at, number = at.copy(), np.zeros(len(messages), np.int64)
    reading, done = wanted.copy(), np.zeros(len(messages), np.bool_)
    for place in range(_VARINT_BYTES):
        reading &= at < messages.ends
        chosen = np.flatnonzero(reading)
        octets = messages.data[at[chosen]].astype(np.int64)
        number[chosen] |= (octets & 0x7F) << (7 * place)
        at[chosen] += 1
        ended = chosen[octets < 0x80]
        done[ended], reading[ended] = True, False
        if not reading.any():
            break
    return (number >> 1) ^ -(number & 1), at, done


def _file_of(text: str) -> Any:
    """Return the file that a registry has serialized in base64, ``None`` for another text."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError):
        return None
    return file if file.message_type else None


def _message_name(file: Any, path: list[int]) -> str | None:
    """Return the full name of a message of a file, ``None`` when there is none."""
    names, inside = [file.package] if file.package else [], file.message_type
    for index in path:
        if index >= len(inside):
            return None
        names.append(inside[index].name)
        inside = inside[index].nested_type
    return ".".join(names)


class ConfluentProtobufSerializer:
    """Encodes rows as one message; the first batch registers its file, which blocks. DAT-5223 for a file that
    imports others than protobuf's own.
    """

    def __init__(self, form: MessageFormat, fields: tuple[Field, ...], subject: str) -> None:
        self._values = ProtobufSerializer(form, fields)
        self._subject = form.text(f"{form.name}.subject") or subject
        self._registers = bool(form.option(f"{form.name}.auto-register"))
        self._options = registry_options(form)
        self._head: pa.Scalar | None = None
        file = self._values.message.file
        if others := [name for name in file.dependency if not name.startswith(_BUILT_IN)]:
            raise PenstockError(
                "DAT-5223",
                f"file {file.name} imports {others[0]}, and cannot be registered with what it imports",
                hint="write the messages into one file",
                kind=Kind.USER,
            )

    def serialize(self, batch: Batch) -> pa.Array:
        """Return one value a row."""
        if self._head is None:
            message = self._values.message
            text = base64.b64encode(message.file.SerializeToString(deterministic=True)).decode()
            client = SchemaRegistryClient(self._options)
            schema_id = client.register(self._subject, text, self._registers, "PROTOBUF")
            head = b"\0" + schema_id.to_bytes(4, "big") + _indexes_as_bytes(message.indexes)
            self._head = pa.scalar(head, pa.binary())
        values = self._values.serialize(batch)
        return pc.binary_join_element_wise(self._head, values, pa.scalar(b"", pa.binary()))


def _indexes_as_bytes(path: list[int]) -> bytes:
    if path == [0]:
        return b"\0"
    made = bytearray()
    # none is negative: zigzag doubles them
    for number in (len(path), *path):
        rest = 2 * number
        while rest >= 0x80:
            made.append(rest & 0x7F | 0x80)
            rest >>= 7
        made.append(rest)
    return bytes(made)
