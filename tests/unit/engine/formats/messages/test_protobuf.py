"""Protobuf both ways, with protobuf's own Python as the oracle; damaged messages; descriptors that are none."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.connectors.message_formats import value_format
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BINARY, INT, STRING, Array, Double, Map, Row, TimestampLtz
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.messages.registry import deserializer, serializer

pytest.importorskip("ptars")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

KIND = descriptor_pb2.FieldDescriptorProto
FIELDS = (
    Field("id", BIGINT), Field("name", STRING), Field("price", Double()), Field("size", STRING),
    Field("inner", Row((("x", INT),))), Field("tags", Array(STRING)), Field("opt", BIGINT),
    Field("at", TimestampLtz(6)), Field("counts", Map(STRING, INT)), Field("raw", BINARY),
)  # fmt: skip


def described() -> Any:
    """Return a file with the message shop.Order, as protoc makes it."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    size = file.enum_type.add(name="Size")
    for number, name in enumerate(("SMALL", "LARGE")):
        size.value.add(name=name, number=number)
    file.message_type.add(name="Inner").field.add(name="x", number=1, type=KIND.TYPE_INT32, label=1)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=KIND.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=KIND.TYPE_INT32, label=1)
    parts = [
        ("id", KIND.TYPE_INT64, 1, None), ("name", KIND.TYPE_STRING, 1, None), ("price", KIND.TYPE_DOUBLE, 1, None),
        ("size", KIND.TYPE_ENUM, 1, ".shop.Size"), ("inner", KIND.TYPE_MESSAGE, 1, ".shop.Inner"),
        ("tags", KIND.TYPE_STRING, 3, None), ("opt", KIND.TYPE_UINT64, 1, None),
        ("at", KIND.TYPE_MESSAGE, 1, ".google.protobuf.Timestamp"),
        ("counts", KIND.TYPE_MESSAGE, 3, ".shop.Order.CountsEntry"), ("raw", KIND.TYPE_BYTES, 1, None),
    ]  # fmt: skip
    for number, (name, kind, label, of) in enumerate(parts, 1):
        made = order.field.add(name=name, number=number, type=kind, label=label)
        if of is not None:
            made.type_name = of
        if name == "opt":
            made.proto3_optional, made.oneof_index = True, 0
    order.oneof_decl.add(name="_opt")
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="child", number=1, type=KIND.TYPE_MESSAGE, label=1, type_name=".shop.Tree")
    return file


@pytest.fixture(scope="module")
def order() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(described())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    made = tmp_path_factory.mktemp("proto") / "shop.desc"
    made.write_bytes(descriptor_pb2.FileDescriptorSet(file=[stamp, described()]).SerializeToString())
    return str(made)


def form(path: str, message: str = "shop.Order") -> Any:
    return value_format({"format": "protobuf", "protobuf.descriptor-file": path, "protobuf.message": message})


def some(chance: random.Random, order: Any) -> Any:
    made = order(
        id=chance.randint(-(2**63), 2**63 - 1), name="é" * chance.randint(0, 3), size=chance.randint(0, 1)
    )
    made.price = chance.random()
    made.tags.extend("t" * index for index in range(chance.randint(0, 3)))
    if chance.random() < 0.5:
        made.opt = chance.randint(0, 2**40)
        made.inner.x = chance.randint(-9, 9)
        made.at.FromMicroseconds(chance.randint(-(2**40), 2**50))
        made.counts["a"] = 1
        made.raw = b"\xff\0"
    return made


def as_row(made: Any) -> dict[str, Any]:
    return {
        "id": made.id, "name": made.name, "price": made.price, "size": ("SMALL", "LARGE")[made.size],
        "inner": {"x": made.inner.x} if made.HasField("inner") else None, "tags": list(made.tags),
        "opt": made.opt if made.HasField("opt") else None,
        "at": made.at.ToMicroseconds() if made.HasField("at") else None,
        "counts": list(made.counts.items()), "raw": made.raw,
    }  # fmt: skip


def test_both_ways_as_protobufs_own_python(path, order):
    chance = random.Random(3)
    sent = [some(chance, order) for _ in range(50)] + [order()]
    values = pa.array([one.SerializeToString() for one in sent], pa.binary())
    decoded = deserializer(form(path), FIELDS, FIELDS).deserialize(values)
    assert decoded.bad == []
    rows = decoded.rows.set_column(7, "at", decoded.rows.column(7).cast(pa.int64()))
    assert rows.to_pylist() == [as_row(one) for one in sent]
    back = serializer(form(path), FIELDS, "s").serialize(Batch(decoded.rows))
    assert [as_row(order.FromString(value)) for value in back.to_pylist()] == [as_row(one) for one in sent]
    some_columns = (FIELDS[1], Field("new", STRING), FIELDS[0])
    part = deserializer(form(path), some_columns, FIELDS).deserialize(values).rows
    assert part.column(1).null_count == len(sent)
    assert part.column(2).equals(decoded.rows.column(0))
    assert deserializer(form(path), (), FIELDS).deserialize(values).rows.num_rows == len(sent)


def test_damaged_messages_are_bad(path, order):
    chance = random.Random(4)
    values: list[bytes | None] = []
    for _ in range(40):
        octets = bytearray(some(chance, order).SerializeToString())
        octets[chance.randrange(len(octets))] ^= 1 << chance.randrange(8)
        values += [bytes(octets[: chance.randint(0, len(octets))]), order(id=7).SerializeToString(), None]
    decoded = deserializer(form(path), FIELDS, FIELDS).deserialize(pa.array(values, pa.binary()))
    decoded.rows.validate(full=True)
    bad = {record.ordinal for record in decoded.bad}
    assert bad
    assert not any(ordinal % 3 for ordinal in bad)
    assert len(decoded.ordinals) + len(bad) == 80
    wide = pa.array([order(opt=2**63).SerializeToString()], pa.binary())
    (found,) = deserializer(form(path), FIELDS, FIELDS).deserialize(wide).bad
    assert found.column == "opt"


def test_what_is_refused(path, tmp_path):
    def refused(make: Any) -> tuple[str, str]:
        with pytest.raises(PenstockError) as error:
            make()
        return error.value.code, error.value.message

    nothing = tmp_path / "none.desc"
    assert refused(lambda: deserializer(form(str(nothing)), (), ()))[0] == "DAT-5230"
    for content in (
        b"",
        b"\xff\xff",
        descriptor_pb2.FileDescriptorSet(file=[described()]).SerializeToString(),
    ):
        nothing.write_bytes(content)
        assert refused(lambda: deserializer(form(str(nothing)), (), ()))[0] == "DAT-5230"
    assert refused(lambda: deserializer(form(path, "shop.Ordr"), (), ()))[0] == "DAT-5231"
    assert "holds itself" in refused(lambda: deserializer(form(path, "shop.Tree"), (), ()))[1]
    text = (Field("id", STRING),)
    assert refused(lambda: deserializer(form(path), text, text)) == (
        "DAT-5212",
        "message shop.Order does not match the table: id is STRING, and the message has BIGINT",
    )
    missing = (Field("z", STRING, nullable=False),)
    assert refused(lambda: deserializer(form(path), missing, missing))[0] == "DAT-5212"
    assert refused(lambda: serializer(form(path), missing, "s"))[0] == "DAT-5212"
    for name, values in (("size", ["HUGE"]), ("tags", [["a", None]]), ("opt", [-1])):
        field = next(field for field in FIELDS if field.name == name)
        rows = pa.record_batch({name: values})
        out = serializer(form(path), (field,), "s")
        assert refused(lambda out=out, rows=rows: out.serialize(Batch(rows)))[0] == "DAT-5214"
