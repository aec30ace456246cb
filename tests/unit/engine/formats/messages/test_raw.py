"""Raw messages: bytes, texts and numbers, both orders of bytes, what does not fit."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    STRING,
    Double,
    Float,
    Int,
    SmallInt,
    TinyInt,
    to_arrow,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.messages.registry import deserializer, serializer

NUMBERS = [
    (TinyInt(), "b", [1, -1, 127, -128]),
    (SmallInt(), "h", [1, -1, 32767, -32768]),
    (Int(), "i", [1, -1, 2**31 - 1, -(2**31)]),
    (BIGINT, "q", [1, -1, 2**63 - 1, -(2**63)]),
    (Float(), "f", [1.5, -0.25]),
    (Double(), "d", [1.1, -1e300]),
    (BOOLEAN, "?", [True, False]),
]


def raw(order="big-endian"):
    return MessageFormat("raw", {"raw.endianness": order})


@pytest.mark.parametrize("order", ["big-endian", "little-endian"])
@pytest.mark.parametrize(("kind", "letter", "numbers"), NUMBERS, ids=lambda value: str(value)[:9])
def test_numbers_are_those_of_struct(kind, letter, numbers, order):
    field = (Field("v", kind),)
    values = [struct.pack((">" if order == "big-endian" else "<") + letter, number) for number in numbers]
    decoded = deserializer(raw(order), field, field).deserialize(pa.array([*values, None], pa.binary()))
    assert decoded.rows.column(0).to_pylist() == [*numbers, None]
    assert decoded.rows.column(0).type == to_arrow(kind)
    back = serializer(raw(order), field, "s").serialize(Batch(decoded.rows.slice(1)))
    assert back.to_pylist() == [*values[1:], None]


def test_what_does_not_fit_is_bad():
    field = (Field("v", Int()),)
    values = pa.array([b"\0\0\0\1", b"\0", None, b"", b"\0\0\0\2"], pa.binary())
    decoded = deserializer(raw(), field, field).deserialize(values)
    assert decoded.rows.column(0).to_pylist() == [1, None, 2]
    assert decoded.ordinals.tolist() == [0, 2, 4]
    assert [(bad.ordinal, bad.error) for bad in decoded.bad] == [
        (1, "1 bytes are no INT, which has 4"),
        (3, "0 bytes are no INT, which has 4"),
    ]


def test_texts_and_bytes():
    values = pa.array([b"a", "é".encode(), None, b"a\xff", b"", b"\xc3"], pa.binary())
    text, octets = (Field("v", STRING),), (Field("v", BINARY),)
    decoded = deserializer(raw(), text, text).deserialize(values)
    assert decoded.rows.column(0).to_pylist() == ["a", "é", None, ""]
    assert decoded.ordinals.tolist() == [0, 1, 2, 4]
    assert [(bad.ordinal, bad.byte) for bad in decoded.bad] == [(3, 1), (5, 0)]
    assert deserializer(raw(), octets, octets).deserialize(values).rows.column(0).equals(values)
    assert serializer(raw(), octets, "s").serialize(Batch(pa.record_batch({"v": values}))).equals(values)
    assert deserializer(raw(), (), text).deserialize(values.slice(0, 3)).rows.num_rows == 3


def test_several_columns_are_refused():
    with pytest.raises(PenstockError, match="format raw has one column, and there are 2: a, b") as refused:
        deserializer(raw(), (), (Field("a", STRING), Field("b", STRING)))
    assert refused.value.code == "DAT-5201"
