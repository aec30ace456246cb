"""Protobuf with a schema registry: Confluent's own serializers as the other side, heads that are none, and what a
registry can answer.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.connectors.message_formats import MessageFormat, value_format
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, INT, STRING
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.messages.registry import deserializer, serializer
from tests.harness.schema_registry import TestRegistry, schema_registry

pytest.importorskip("ptars")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

KIND = descriptor_pb2.FieldDescriptorProto
ORDER = (Field("id", BIGINT), Field("name", STRING))
LINE = (Field("x", INT),)
ROWS = pa.record_batch({"id": pa.array([7, 0], pa.int64()), "name": ["ä", ""]})


def shop(name: str = "shop.proto", others: tuple[str, ...] = ()) -> Any:
    """Return a file with shop.Order, and shop.Box, which has shop.Box.Other and shop.Box.Line in it."""
    file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=others)
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=KIND.TYPE_INT64, label=1)
    order.field.add(name="name", number=2, type=KIND.TYPE_STRING, label=1)
    box = file.message_type.add(name="Box")
    box.nested_type.add(name="Other")
    box.nested_type.add(name="Line").field.add(name="x", number=1, type=KIND.TYPE_INT32, label=1)
    return file


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with schema_registry() as made:
        yield made


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("proto") / "shop.desc"
    made.write_bytes(descriptor_pb2.FileDescriptorSet(file=[shop()]).SerializeToString())
    return made


def form(url: str, path: Path, message: str = "shop.Order", **more: str) -> MessageFormat:
    name = "protobuf-confluent"
    given = {"url": url, "descriptor-file": str(path), "message": message} | more
    return value_format({"format": name} | {f"{name}.{key}": text for key, text in given.items()})


def read(of: MessageFormat, fields: tuple[Field, ...], values: list[bytes | None]) -> Any:
    return deserializer(of, fields, fields).deserialize(pa.array(values, pa.binary()))


def added(registry: TestRegistry, file: Any) -> bytes:
    """Add a file; return the head of its values."""
    text = base64.b64encode(file.SerializeToString()).decode()
    return b"\0" + registry.add("other", text, schemaType="PROTOBUF").to_bytes(4, "big")


# what ProtobufSerializer of confluent-kafka 2.16.1 has written of ROWS and of x = 5, behind a zero and the id
OF_CONFLUENT = {
    "shop.Order": ["000807" + "1202c3a4", "00"],
    "shop.Box.Line": ["040202" + "0805"],
}


@pytest.mark.parametrize(
    ("message", "fields", "rows"),
    [("shop.Order", ORDER, ROWS), ("shop.Box.Line", LINE, pa.record_batch({"x": pa.array([5], pa.int32())}))],
)
def test_what_is_written_is_what_confluents_serializer_writes(
    registry: TestRegistry, path: Path, message: str, fields: tuple[Field, ...], rows: pa.RecordBatch
) -> None:
    of = form(registry.url, path, message)
    out = serializer(of, fields, "orders-value")
    assert registry.requests == []
    values = out.serialize(Batch(rows)).to_pylist()
    (schema_id,) = registry.subjects["orders-value"]
    head = b"\0" + schema_id.to_bytes(4, "big")
    assert values == [head + bytes.fromhex(one) for one in OF_CONFLUENT[message]]
    stored = registry.schemas[schema_id]
    assert stored["schemaType"] == "PROTOBUF"
    assert descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(stored["schema"])) == shop()
    decoded = read(of, fields, values)
    assert decoded.rows.equals(rows) and not decoded.bad
    # a second writer finds the file that was registered
    again = serializer(
        form(registry.url, path, message, **{"auto-register": "false"}), fields, "orders-value"
    )
    assert again.serialize(Batch(rows)).to_pylist() == values


def test_confluents_own_serializer_and_deserializer(registry: TestRegistry, path: Path) -> None:
    # it needs authlib, httpx and others that the package does not bring by itself
    confluent = pytest.importorskip("confluent_kafka.schema_registry.protobuf", exc_type=ImportError)
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.serialization import MessageField, SerializationContext

    client = SchemaRegistryClient({"url": registry.url})
    pool = descriptor_pool.DescriptorPool()
    pool.Add(shop())
    context = SerializationContext("t", MessageField.VALUE)
    for message, fields, rows in (
        ("shop.Order", ORDER, ROWS),
        ("shop.Box.Line", LINE, pa.record_batch({"x": pa.array([5, 0], pa.int32())})),
    ):
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
        write = confluent.ProtobufSerializer(kind, client, {"use.deprecated.format": False})
        sent = [write(kind(**row), context) for row in rows.to_pylist()]
        decoded = read(form(registry.url, path, message), fields, sent)
        assert decoded.rows.equals(rows) and not decoded.bad
        ours = serializer(form(registry.url, path, message), fields, "t-value").serialize(Batch(rows))
        back = confluent.ProtobufDeserializer(kind, {"use.deprecated.format": False}, client)
        assert [back(value, context) for value in ours.to_pylist()] == [kind(**r) for r in rows.to_pylist()]
        assert [value[5:] for value in ours.to_pylist()] == [value[5:] for value in sent]


def test_values_that_are_no_rows(registry: TestRegistry, path: Path) -> None:
    head = added(registry, shop())
    fine = head + b"\0\x08\x07"
    values = [
        fine,
        b"\0\0",
        b"\1" + fine[1:],
        b"\0\0\0\0\7\0",
        None,
        head,
        head + b"\x02\x02\x08\x05",
        head + b"\x02\x08",
        head + b"\x80\x80\x80\x80\x80\x80",
        head + b"\x04\x00",
        head + b"\x01\x00",
        head + b"\0\x08",
        # the same message, written as a list of one index
        head + b"\x02\x00\x08\x09",
    ]
    decoded = read(form(registry.url, path), ORDER, values)
    assert decoded.rows.column(0).to_pylist() == [7, 9]
    assert decoded.ordinals.tolist() == [0, 12]
    no_head = "the value does not begin with a zero and the four bytes of a schema's id"
    no_message = "no message of a file is named behind the id of the schema"
    schema_id = int.from_bytes(head[1:], "big")
    assert [(bad.ordinal, bad.error) for bad in decoded.bad][:-1] == [
        (1, no_head),
        (2, no_head),
        (3, f"schema 7 is not in the registry {registry.url}"),
        (5, no_message),
        (6, "the value is a message shop.Box, and the table reads shop.Order"),
        (7, f"schema {schema_id} has no message [4]"),
        (8, no_message),
        (9, no_message),
        (10, no_message),
    ]
    assert (decoded.bad[-1].ordinal, decoded.bad[-1].raw) == (11, values[11])
    # each id is asked for once
    assert len(registry.requests) == 2
    assert read(form(registry.url, path), ORDER, [None]).rows.num_rows == 0


def test_a_file_that_has_changed_and_one_whose_text_alone_is_known(
    registry: TestRegistry, path: Path
) -> None:
    newer = shop()
    newer.message_type[0].field.add(name="more", number=9, type=KIND.TYPE_STRING, label=1)
    values = [
        added(registry, newer) + b"\0\x08\x07\x4a\x01x",
        b"\0"
        + registry.add("text", 'syntax = "proto3";', schemaType="PROTOBUF").to_bytes(4, "big")
        + b"\0\x08\x08",
    ]
    assert read(form(registry.url, path), ORDER[:1], values).rows.column(0).to_pylist() == [7, 8]


def test_what_is_refused(registry: TestRegistry, path: Path, tmp_path: Path) -> None:
    avro = registry.add("a", '"string"')
    with pytest.raises(PenstockError, match=r"DAT-5222(?s:.*)AVRO, no protobuf"):
        read(form(registry.url, path), ORDER, [b"\0" + avro.to_bytes(4, "big") + b"\0"])
    two = tmp_path / "two.desc"
    files = [shop("a.proto"), descriptor_pb2.FileDescriptorProto(name="b.proto", dependency=["a.proto"])]
    files[1].message_type.add(name="B").field.add(name="x", number=1, type=KIND.TYPE_INT32, label=1)
    two.write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())
    with pytest.raises(PenstockError, match=r"DAT-5223(?s:.*)b\.proto imports a\.proto"):
        serializer(form(registry.url, two, "B"), LINE, "s")
    with pytest.raises(PenstockError, match="does not have the schema of subject s"):
        serializer(form(registry.url, path, **{"auto-register": "false"}), ORDER, "s").serialize(Batch(ROWS))
