"""Avro both ways over random schemas and values, with fastavro as the oracle; damaged values; resolution."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    SMALLINT,
    STRING,
    Array,
    Date,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    Map,
    Row,
    Time,
    Timestamp,
    TimestampLtz,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.avro.deserializer import AvroDeserializer, ValueDecoder
from penstock.engine.formats.avro.reader_program import compile_reader
from penstock.engine.formats.avro.schema import parse_schema
from penstock.engine.formats.avro.serializer import AvroSerializer
from penstock.engine.formats.avro.writer_program import schema_text, table_schema
from penstock.engine.formats.messages.message_values import message_values
from penstock.engine.formats.messages.registry import deserializer, serializer
from tests.unit.engine.formats.avro.random_schemas import Maker, comparable

SEEDS = range(60)


def encoded(schema: Any, rows: list[Any]) -> list[bytes]:
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    made = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        made.append(out.getvalue())
    return made


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def reading(schema: Any, *fields: Field) -> AvroDeserializer:
    return AvroDeserializer(parse_schema(json.dumps(schema), "the schema"), fields, "the schema")


def decode(schema: Any, values: list[bytes | None], *fields: Field) -> Any:
    return reading(schema, *fields).deserialize(pa.array(values, pa.binary()))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_values_are_those_of_fastavro(seed):
    maker = Maker(seed)
    schema, kind = maker.record()
    rows = [maker.value(schema) for _ in range(maker.chance.choice([1, 7, 200]))]
    fields = tuple(Field(name, part) for name, part in kind.fields)
    decoded = decode(schema, encoded(schema, rows), *fields)
    assert decoded.bad == []
    decoded.rows.validate(full=True)
    assert [comparable(row) for row in decoded.rows.to_pylist()] == [comparable(row) for row in rows]
    # some columns only, in another order: the others are skipped
    chosen = tuple(maker.chance.sample(fields, maker.chance.randint(0, len(fields))))
    part = decode(schema, encoded(schema, rows), *chosen)
    assert part.rows.num_rows == len(rows)
    assert part.rows.equals(decoded.rows.select([field.name for field in chosen])) or not chosen


@pytest.mark.parametrize("seed", SEEDS)
def test_random_rows_are_read_by_fastavro(seed):
    maker = Maker(seed, widening=False)
    schema, kind = maker.record()
    rows = [maker.value(schema) for _ in range(maker.chance.choice([1, 7, 200]))]
    fields = tuple(Field(name, part) for name, part in kind.fields)
    batch = decode(schema, [*encoded(schema, rows[:1]), *encoded(schema, rows)], *fields).rows.slice(1)
    # in the schema the values came in, and in the one the table has by itself
    own = table_schema(fields)
    for each in (schema, own):
        values = AvroSerializer(parse_schema(json.dumps(each), "s"), fields).serialize(Batch(batch))
        parsed = fastavro.parse_schema(json.loads(json.dumps(each)))
        read = [fastavro.schemaless_reader(io.BytesIO(value), parsed, parsed) for value in values.to_pylist()]
        assert [comparable(row) for row in read] == [comparable(row) for row in rows]
        assert decode(each, values.to_pylist(), *fields).rows.equals(batch)


@pytest.mark.parametrize("seed", range(25))
def test_damaged_values_are_bad_and_never_crash(seed):
    maker = Maker(seed)
    schema, kind = maker.record()
    fields = tuple(Field(name, part) for name, part in kind.fields)
    good = encoded(schema, [maker.value(schema) for _ in range(40)])
    damaged: list[bytes | None] = []
    for value in good:
        octets = bytearray(value)
        for _ in range(maker.chance.randint(1, 4)):
            if octets:
                octets[maker.chance.randrange(len(octets))] = maker.chance.choice([0, 1, 127, 128, 255, 254])
        damaged += [
            bytes(octets[: maker.chance.randint(0, len(octets))]),
            bytes(octets),
            value + b"\0",
            value,
            None,
        ]
        damaged.append(bytes(maker.chance.randrange(256) for _ in range(maker.chance.randint(0, 40))))
    decoded = decode(schema, damaged, *fields)
    decoded.rows.validate(full=True)
    told = {bad.ordinal for bad in decoded.bad}
    assert decoded.rows.num_rows + len(told) == sum(value is not None for value in damaged)
    # a good value among damaged ones is what it is alone
    at = {ordinal: row for row, ordinal in enumerate(decoded.ordinals.tolist())}
    alone = decode(schema, good, *fields).rows
    for index in range(len(good)):
        assert decoded.rows.slice(at[6 * index + 3], 1).equals(alone.slice(index, 1))
        assert 6 * index + 2 in told


def test_errors_name_column_and_byte():
    schema = record(("a", "int"), ("b", ["null", "string"]), ("c", "boolean"), ("d", "long"))
    fields = (
        Field("a", SMALLINT),
        Field("b", STRING, nullable=False),
        Field("c", BOOLEAN),
        Field("d", BIGINT),
    )
    one = {"a": 1, "b": "x", "c": True, "d": 5}
    (good,) = encoded(schema, [one])
    (null,) = encoded(schema, [one | {"b": None}])
    (wide,) = encoded(schema, [one | {"a": 70_000}])
    values = [
        good,
        null,
        wide,
        good[:3],
        good[:2] + b"\x04\xc3",
        b"\x02\x06",
        b"\x02\x02\x01",
        good[:4] + b"\x02",
    ]
    values += [good[:5] + b"\xff" * 9 + b"\x02", good + b"!", b"\x02\x02\x02\xff\x01\x02", None]
    decoded = decode(schema, values, *fields)
    assert decoded.ordinals.tolist() == [0]
    assert [(bad.ordinal, bad.column, bad.byte, bad.error) for bad in decoded.bad] == [
        (1, "b", 2, "NULL is in a column that is NOT NULL"),
        (2, "a", 0, "the number is out of the range of the column"),
        (3, "b", 2, "the value ends too early"),
        (4, "b", 2, "the value ends too early"),
        (5, "b", 1, "there is no such branch of the union"),
        (6, "b", 2, "a length is negative"),
        (7, "c", 4, "the byte is no truth value"),
        (8, "d", 5, "a number has more than 64 bits"),
        (9, None, 6, "bytes are left behind the value"),
        (10, "b", None, "a text is not UTF-8"),
    ]


def test_a_text_that_is_not_utf8_and_a_key_twice_spoil_their_row_only():
    schema = record(("t", "string"), ("m", {"type": "map", "values": {"type": "array", "items": "string"}}))
    rows = [{"t": f"é{i}", "m": {"a": ["x", "y"], "b": []}} for i in range(50)]
    values = encoded(schema, rows)
    values[7] = values[7].replace("é".encode(), b"\xc3\x28")
    values[20] = values[20].replace(b"\x02b", b"\x02a")
    values[33] = values[33].replace(b"y", b"\xff")
    decoded = decode(schema, values, Field("t", STRING), Field("m", Map(STRING, Array(STRING))))
    assert [(bad.ordinal, bad.column, bad.error) for bad in decoded.bad] == [
        (7, "t", "a text is not UTF-8"),
        (20, "m", "a MAP has a key twice"),
        (33, "m", "a text is not UTF-8"),
    ]
    assert decoded.rows.num_rows == 47
    assert decoded.rows.column(0).to_pylist() == [f"é{i}" for i in range(50) if i not in (7, 20, 33)]


def test_hostile_counts_do_not_take_memory_or_time():
    schema = record(("n", {"type": "array", "items": "null"}), ("a", {"type": "array", "items": "long"}))
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    least = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    values = [huge, b"\0" + huge, least + b"\0", b"\0" + least + b"\0", b"\0" + b"\x02" * 3]
    for fields in ((), (Field("a", Array(BIGINT)),)):
        decoded = decode(schema, values, *fields)
        assert len(decoded.bad) == len(values)


def test_buffers_grow():
    schema = record(("a", {"type": "array", "items": {"type": "array", "items": "string"}}))
    rows = [{"a": [["x" * 3] * size for size in range(i % 40)]} for i in range(300)]
    decoded = decode(schema, encoded(schema, rows), Field("a", Array(Array(STRING))))
    assert decoded.rows.to_pylist() == rows
    long = record(("e", {"type": "enum", "name": "e", "symbols": ["S" * 500]}))
    decoded = decode(long, [b"\0"] * 1000, Field("e", STRING))
    assert decoded.rows.column(0).to_pylist() == ["S" * 500] * 1000


def test_blocks_with_sizes_as_other_writers_make_them():
    schema = record(("a", {"type": "array", "items": "long"}), ("b", "long"))
    # two blocks, the first of a negative count with its size in bytes
    value = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\0" + b"\x0a"
    decoded = decode(schema, [value], Field("a", Array(BIGINT)), Field("b", BIGINT))
    assert decoded.rows.to_pylist() == [{"a": [1, 2, 3], "b": 5}]


def test_resolution_of_names_promotions_defaults_and_aliases():
    writer = record(
        ("a", "int"), ("old", "int"), ("T", ["null", "float"]), ("gone", "string"), ("e", "bytes")
    )
    values = encoded(writer, [{"a": 1, "old": 2, "T": 1.5, "gone": "g", "e": b"text"}])
    reader = {
        "type": "record",
        "name": "other",
        "fields": [
            {"name": "e", "type": "string"},
            {"name": "t", "type": ["null", "double"]},
            {"name": "new", "type": "long", "aliases": ["old"]},
            {"name": "a", "type": "double"},
            {"name": "d", "type": "string", "default": "dé"},
            {"name": "n", "type": ["null", "long"], "default": None},
            {
                "name": "m",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
                "default": "\u007f",
            },
            {
                "name": "w",
                "type": {
                    "type": "record",
                    "name": "w",
                    "fields": [{"name": "x", "type": "int", "default": 7}],
                },
                "default": {},
            },
            {"name": "l", "type": {"type": "array", "items": "int"}, "default": []},
        ],
    }
    fields = (
        Field("e", STRING), Field("t", Double()), Field("new", BIGINT), Field("a", Double()),
        Field("d", STRING), Field("n", BIGINT), Field("m", Decimal(6, 2)), Field("w", Row((("x", INT),))),
        Field("l", Array(INT)), Field("lost", STRING),
    )  # fmt: skip
    program = compile_reader(
        parse_schema(json.dumps(writer), "w"), fields, "w", parse_schema(json.dumps(reader), "r")
    )
    rows = ValueDecoder(program).decode(message_values(pa.array(values, pa.binary())))
    assert [str(value) for value in rows.batch.to_pylist()[0].values()] == [
        "text", "1.5", "2", "1.0", "dé", "None", "12.70", "{'x': 7}", "[]", "None",
    ]  # fmt: skip


def test_resolution_is_that_of_fastavro():
    writer = record(("s", {"type": "enum", "name": "s", "symbols": ["A", "B", "C"]}), ("x", "int"))
    reader = record(
        ("x", "long"), ("s", {"type": "enum", "name": "s", "symbols": ["A", "D"], "default": "D"})
    )
    values = encoded(writer, [{"s": symbol, "x": i} for i, symbol in enumerate("ABC")])
    parsed = [fastavro.parse_schema(json.loads(json.dumps(each))) for each in (writer, reader)]
    expected = [fastavro.schemaless_reader(io.BytesIO(value), *parsed) for value in values]
    program = compile_reader(
        parse_schema(json.dumps(writer), "w"), (Field("x", BIGINT), Field("s", STRING)), "w",
        parse_schema(json.dumps(reader), "r"),
    )  # fmt: skip
    decoder = ValueDecoder(program)
    assert decoder.decode(message_values(pa.array(values, pa.binary()))).batch.to_pylist() == expected


def test_unions_of_several_types_and_single_values():
    schema = record(("u", ["null", "int", "string", "long"]))
    values = encoded(schema, [{"u": 1}, {"u": "x"}, {"u": None}, {"u": 2**40}])
    decoded = decode(schema, values, Field("u", BIGINT))
    assert decoded.rows.column(0).to_pylist() == [1, None, 2**40]
    assert [(bad.ordinal, bad.error) for bad in decoded.bad] == [
        (1, "the branch of the union is of another type than the column")
    ]
    assert decode("string", encoded("string", ["k"]), Field("key", STRING)).rows.to_pylist() == [{"key": "k"}]
    assert decode(["null", "long"], [b"\0", b"\x02\x04"], Field("k", BIGINT)).rows.column(0).to_pylist() == [
        None,
        2,
    ]


def test_other_units_and_uuids():
    schema = record(
        ("n", {"type": "long", "logicalType": "timestamp-nanos"}),
        ("u", {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}),
        ("s", {"type": "string", "logicalType": "uuid"}),
        ("d", {"type": "fixed", "name": "d", "size": 12, "logicalType": "duration"}),
    )
    # -1 ns is the microsecond before 1970
    text = "00112233-4455-6677-8899-aabbccddeeff"
    value = b"\x01" + bytes.fromhex(text.replace("-", "")) + b"\x48" + text.encode() + bytes(12)
    fields = (Field("n", TimestampLtz(6)), Field("u", STRING), Field("s", STRING), Field("d", BINARY))
    (row,) = decode(schema, [value], *fields).rows.to_pylist()
    assert (row["n"].timestamp(), row["u"], row["s"], row["d"]) == (-1e-6, text, text, bytes(12))


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("string", INT), ("int", STRING), ("double", Float()), ("long", Timestamp(3)), ("boolean", BIGINT),
        ({"type": "array", "items": "int"}, INT), ({"type": "map", "values": "int"}, Map(BIGINT, INT)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 3}, Decimal(5, 2)),
        (["null", "string"], INT), ({"type": "int", "logicalType": "date"}, Time()), ("int", Date()),
    ],
    ids=str,
)  # fmt: skip
def test_types_that_do_not_match_are_refused(kind, column):
    with pytest.raises(PenstockError, match="does not match the table: a is ") as refused:
        reading(record(("a", kind)), Field("a", column))
    assert refused.value.code == "DAT-5212"


def test_missing_fields_and_several_columns_of_one_value_are_refused():
    with pytest.raises(PenstockError, match="no field b, and column b is NOT NULL"):
        reading(record(("a", "int")), Field("b", INT, nullable=False))
    with pytest.raises(PenstockError, match="it is string, and the table has 2 columns"):
        reading("string", Field("a", STRING), Field("b", STRING))
    with pytest.raises(PenstockError, match="AB may be Ab or aB"):
        reading(record(("Ab", "int"), ("aB", "int")), Field("AB", INT))


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("{", "DAT-5210", "it is not JSON"),
        ('{"type": "thing"}', "DAT-5210", "there is no type thing"),
        ('{"type": "record", "name": "r"}', "DAT-5210", "record has no fields"),
        ('{"type": "record", "name": "r", "fields": [{"name": "a"}]}', "DAT-5210", "has no type"),
        ("[]", "DAT-5210", "a union has types"),
        ('["null", ["int"]]', "DAT-5210", "a union has types"),
        ('{"type": "fixed", "name": "f", "size": "4"}', "DAT-5210", "the size of f"),
        ('{"type": "enum", "name": "e", "symbols": [1]}', "DAT-5210", "the symbols of e"),
        ("7", "DAT-5210", "7 is no type"),
        (
            '{"type": "record", "name": "a.r", "fields": [{"name": "next", "type": ["null", "r"]}]}',
            "DAT-5211",
            "a.r holds itself",
        ),
        ("[" * 5000 + "]" * 5000, "DAT-5210", "it is"),
    ],
)
def test_bad_schemas(text, code, said):
    with pytest.raises(PenstockError) as refused:
        parse_schema(text, "the schema")
    assert refused.value.code == code
    assert said in refused.value.message


def test_what_cannot_be_written_is_refused():
    rows = pa.record_batch({"a": pa.array([1, None], pa.int32()), "b": ["A", "Z"], "c": [b"xy", b"xyz"]})
    fields = (Field("a", INT), Field("b", STRING), Field("c", BINARY))

    def write(name: str, kind: Any) -> None:
        field = next(field for field in fields if field.name == name)
        schema = parse_schema(json.dumps(record((name, kind))), "s")
        AvroSerializer(schema, (field,)).serialize(Batch(rows.select([name])))

    for name, kind, said in (
        ("a", "int", "column a cannot be written as Avro: it is NULL"),
        ("b", {"type": "enum", "name": "e", "symbols": ["A"]}, "'Z', which is no symbol"),
        ("c", {"type": "fixed", "name": "f", "size": 2}, "not 2 bytes long"),
    ):
        with pytest.raises(PenstockError, match=said) as refused:
            write(name, kind)
        assert refused.value.code == "DAT-5214"
    for name, kind in (("a", "string"), ("b", "int"), ("a", ["null", "string"])):
        with pytest.raises(PenstockError) as refused:
            write(name, kind)
        assert refused.value.code == "DAT-5213"
    schema = parse_schema(json.dumps(record(("a", ["null", "int"]), ("z", "int"))), "s")
    with pytest.raises(PenstockError, match="there is no column z"):
        AvroSerializer(schema, fields[:1])
    with pytest.raises(PenstockError, match="the schema has no field b"):
        AvroSerializer(parse_schema(json.dumps(record(("a", ["null", "int"]))), "s"), fields[:2])
    for field in (Field("a b", INT), Field("i", DayTimeInterval()), Field("m", Map(BIGINT, INT))):
        with pytest.raises(PenstockError) as refused:
            table_schema((field,))
        assert refused.value.code == "DAT-5213"


def test_the_schema_of_a_table():
    fields = (Field("a", INT, nullable=False), Field("r", Row((("t", Timestamp(3)),))))
    assert schema_text(table_schema(fields)) == (
        '{"type":"record","name":"record","fields":[{"name":"a","type":"int"},{"name":"r","type":["null",'
        '{"type":"record","name":"record_r","fields":[{"name":"t","type":["null",{"type":"long",'
        '"logicalType":"local-timestamp-millis"}],"default":null}]}],"default":null}]}'
    )
    empty = Schema(fields).to_arrow().empty_table().to_batches() or [
        pa.RecordBatch.from_pylist([], Schema(fields).to_arrow())
    ]
    schema = parse_schema(schema_text(table_schema(fields)), "s")
    assert len(AvroSerializer(schema, fields).serialize(Batch(empty[0]))) == 0


def test_the_format_avro_both_ways():
    fields = (Field("a", BIGINT), Field("b", STRING))
    rows = pa.record_batch({"a": [1, None], "b": ["x", None]})
    form = MessageFormat("avro", {"avro.schema": None})
    values = serializer(form, fields, "s").serialize(Batch(rows))
    decoded = deserializer(form, fields, fields).deserialize(values)
    assert decoded.rows.equals(rows)
    # the wanted columns alone; the schema is that of all
    assert deserializer(form, fields[1:], fields).deserialize(values).rows.equals(rows.select(["b"]))
    given = MessageFormat("avro", {"avro.schema": json.dumps(record(("b", ["null", "string"])))})
    assert serializer(given, fields[1:], "s").serialize(Batch(rows.select(["b"]))).to_pylist() == [
        b"\x02\x02x",
        b"\0",
    ]
    with pytest.raises(PenstockError, match=r"the schema of option 'avro.schema' is no Avro schema"):
        deserializer(MessageFormat("avro", {"avro.schema": "{"}), fields, fields)
