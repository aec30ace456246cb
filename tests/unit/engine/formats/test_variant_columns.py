"""VARIANT columns in files and messages: every format, both encodings, values that are none."""

from __future__ import annotations

import json
import random
import re

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, VARIANT, Array, Row
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.json.canonical_text import canonical_texts
from penstock.engine.formats.file_types import Fit, fit
from penstock.engine.formats.json_lines import JsonParser
from penstock.engine.formats.messages.registry import deserializer, serializer
from penstock.engine.formats.variant_columns import BINARY_TYPE, SPARK_SCHEMA, decoded, encoded

NUMBERS = [
    0,
    1,
    -1,
    127,
    128,
    -128,
    -129,
    2**15,
    -(2**31),
    2**31,
    2**63 - 1,
    -(2**63),
    2**63,
    10**37,
    -(10**37),
]
LINES = """\
{"k": 1, "v": {"b": 1.50, "a": [1, "x", null]}, "w": [1, "a", {"z": 1e3}]}
{"k": 2, "v": "text", "w": []}
{"v": 12345678901234567890123, "k": 3}
{"k": 4, "v": null, "w": null}
{"k": 5}
{"k": 6, "v": {"a": "\\u00e9\\n", "\\u0062": true}, "w": [-1.25e-300]}
"""
VALUES = [
    '{"a":[1,"x",null],"b":1.5}',
    '"text"',
    "12345678901234567890123",
    "null",
    None,
    '{"a":"é\\n","b":true}',
]
LISTS = [["1", '"a"', '{"z":1000}'], [], None, None, None, ["-1.25E-300"]]


def document(chance: random.Random, depth: int = 0) -> str:
    names = ["", "a", "b", 'q"', "\\", "c\n", "ü", "long name of a field", *map(str, range(40))]
    many = chance.choice([0, 1, 3, 40]) if depth < 2 else chance.choice([0, 1, 2])
    match chance.randrange(9 if depth < 4 else 6):
        case 0:
            return chance.choice(["null", "true", "false"])
        case 1:
            return str(chance.choice(NUMBERS))
        case 2:
            behind = chance.randrange(10 ** chance.randrange(1, 18))
            return f"{chance.choice(['', '-'])}{chance.randrange(10**12)}.{behind}"
        case 3:
            return repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300))
        case 4 | 5:
            size = chance.choice([0, 1, 5, 62, 63, 64, 300])
            text = "".join(chance.choice('ab"\\\n\x01éü漢😀/') for _ in range(size))
            return json.dumps(text, ensure_ascii=chance.random() < 0.5)
        case 6 | 7:
            taken = chance.sample(names, many)
            return "{" + ",".join(f"{json.dumps(name)}:{document(chance, depth + 1)}" for name in taken) + "}"
    parts = chance.choice([0, 1, 3, 300]) if depth < 1 else chance.choice([0, 1, 3])
    return "[" + ",".join(document(chance, depth + 1) for _ in range(parts)) + "]"


def documents(count: int) -> pa.Array:
    chance = random.Random(5)
    texts, wrong = canonical_texts(
        pa.array([document(chance) if chance.random() > 0.05 else None for _ in range(count)])
    )
    assert not wrong.any()
    return texts


def test_the_encoding_of_parquet_gives_the_same_values_back():
    texts = documents(400)
    made = encoded(texts)
    made.validate(full=True)
    assert decoded(made).equals(texts)
    # slices begin elsewhere in the same buffers
    assert decoded(made.slice(33, 50)).equals(texts.slice(33, 50))
    assert decoded(encoded(texts.slice(33, 50))).equals(texts.slice(33, 50))
    assert decoded(encoded(texts.slice(0, 0))).to_pylist() == []


def test_bytes_that_are_no_variant_are_refused_and_never_read_beyond_their_end():
    chance, made = random.Random(6), encoded(documents(200)).drop_null()
    refused = 0
    for _ in range(200):
        row = {name: bytearray(octets) for name, octets in made[chance.randrange(len(made))].as_py().items()}
        part = row[chance.choice(["value", "metadata"])]
        for _ in range(chance.randrange(1, 4)):
            part[chance.randrange(len(part))] = chance.randrange(256)
        del part[len(part) - chance.randrange(2) :]
        damaged = pa.array([{name: bytes(octets) for name, octets in row.items()}], made.type)
        try:
            texts = decoded(damaged)
        except pa.ArrowInvalid:
            refused += 1
        else:
            assert canonical_texts(texts)[0].equals(texts)
    assert refused > 50


# an array whose elements are all its own beginning: read as often as it says, it would never end
def test_a_value_within_itself_is_refused():
    value = bytes([3, 2, 0, 0, 0])
    looped = pa.array([{"metadata": b"\x01\x00\x00", "value": value}], encoded(pa.array(["1"])).type)
    with pytest.raises(pa.ArrowInvalid):
        decoded(looped)


def hostile(chance: random.Random, depth: int = 0) -> bytes:
    """Return bytes as a value has them, of which any part may be wrong."""
    match chance.randrange(4 if depth < 5 else 2):
        case 0:
            size = chance.choice([1, 2, 4, 8, 9, 16, 17, 20])
            return bytes([chance.randrange(24) << 2]) + bytes(chance.choices([0, 255, 127, 128, 9], k=size))
        case 1:
            size = chance.randrange(6)
            return bytes([size << 2 | 1]) + bytes(
                chance.choices([65, 0, 255, 0xC3, 0xA9, 0xE2, 34, 92], k=size)
            )
        case kind:
            parts = [hostile(chance, depth + 1) for _ in range(chance.randrange(4))]
            names = bytes(chance.randrange(5) for _ in parts) if kind == 2 else b""
            ends = [sum(map(len, parts[:k])) for k in range(len(parts) + 1)]
            if chance.random() < 0.1:
                ends[chance.randrange(len(ends))] = chance.choice([0, 2**31, 2**32 - 1])
            offsets = b"".join(end.to_bytes(4, "little") for end in ends)
            return bytes([kind | 3 << 2, len(parts)]) + names + offsets + b"".join(parts)


def test_hostile_bytes_are_a_value_or_an_error():
    chance, names = random.Random(9), b"\x01\x04\x00\x01\x02\x03\x04abcd"
    read = 0
    for _ in range(1500):
        metadata = names
        if chance.random() < 0.2:
            metadata = bytes([chance.choice([1, 0x41, 0xC1])]) + bytes(chance.choices([0, 1, 2, 5, 255], k=9))
        row = {"metadata": metadata, "value": hostile(chance)}
        try:
            texts = decoded(pa.array([row], BINARY_TYPE))
        except pa.ArrowInvalid:
            continue
        texts.validate(full=True)
        assert canonical_texts(texts)[0].equals(texts) and "out of range" not in texts[0].as_py()
        read += 1
    assert read > 200


# each element is the same text, or each field has the same name: their JSON has more bytes than any memory
@pytest.mark.parametrize("kind", [2, 3])
def test_a_value_that_repeats_its_bytes_is_refused(kind):
    count, text = 200_000, b"x" * 200_000
    names, part = (
        (bytes(count), b"\0") if kind == 2 else (b"", b"\x40" + len(text).to_bytes(4, "little") + text)
    )
    head = bytes([2 | 3 << 2 | 1 << 6 if kind == 2 else 3 | 3 << 2 | 1 << 4]) + count.to_bytes(4, "little")
    ends = np.arange(count + 1) if kind == 2 else np.zeros(count + 1)
    value = head + names + ends.astype("<i4").tobytes() + part * (count if kind == 2 else 1)
    metadata = b"\xc1\x01\0\0\0" + b"\0" * 4 + len(text).to_bytes(4, "little") + text
    with pytest.raises(pa.ArrowInvalid, match="no VARIANT"):
        decoded(pa.array([{"metadata": metadata, "value": value}], BINARY_TYPE))


@pytest.mark.parametrize("kind", [11, 12, 13, 17])
def test_times_out_of_range_are_refused(kind):
    value = bytes([kind << 2]) + (b"\xff\xff\xff\x7f" if kind == 11 else b"\xff" * 7 + b"\x7f")
    with pytest.raises(pa.ArrowInvalid, match="out of range"):
        decoded(pa.array([{"metadata": b"\x01\0\0", "value": value}], BINARY_TYPE))


def test_the_rest_of_an_object_in_columns_is_an_object():
    typed = pa.array([{"a": {"typed_value": 1}}])
    for rest, good in ((b"\x02\0\0", True), (b"\x03\0\0", False), (b"\x05,", False)):
        octets = [pa.array([part], pa.binary()) for part in (b"\x01\0\0", rest)]
        column = pa.StructArray.from_arrays([*octets, typed], ["metadata", "value", "typed_value"])
        if good:
            assert decoded(column).to_pylist() == ['{"a":1}']
        else:
            with pytest.raises(pa.ArrowInvalid, match="no object"):
                decoded(column)


TYPED = {
    "1::TINYINT": "1",
    "'2024-02-03'::DATE": '"2024-02-03"',
    "'2024-02-03 04:05:06.5'::TIMESTAMP": '"2024-02-03 04:05:06.5"',
    "'2024-02-03 04:05:06+00'::TIMESTAMPTZ": '"2024-02-03 04:05:06+00:00"',
    "'04:05:06'::TIME": '"04:05:06"',
    "1.5::DOUBLE": "1.5",
    "1e300::DOUBLE": "1.0E300",
    "1.5::FLOAT": "1.5",
    "'\\x00\\xFF'::BLOB": '"AP8="',
    "12.340::DECIMAL(9, 3)": "12.34",
    "'6f7c8a0e-1111-2222-3333-444455556666'::UUID": '"6f7c8a0e-1111-2222-3333-444455556666"',
    "-5::DECIMAL(38, 2)": "-5",
}


def test_values_of_another_writer(tmp_path):
    path = tmp_path / "typed.parquet"
    values = ", ".join(f"({i}, {text}::VARIANT)" for i, text in enumerate(TYPED))
    duckdb.connect().sql(f"COPY (SELECT * FROM (VALUES {values}) AS t(k, v) ORDER BY k) TO '{path}'")
    # the most frequent type is a column of its own
    assert decoded(pq.read_table(path)["v"].combine_chunks()).to_pylist() == list(TYPED.values())


def shred(path, texts: list[str]) -> None:
    connection = duckdb.connect()
    connection.register("given", pa.table({"k": range(len(texts)), "t": texts}))
    connection.sql(f"COPY (SELECT k, t::JSON::VARIANT AS v FROM given ORDER BY k) TO '{path}'")


def test_objects_of_another_writer_whose_fields_are_columns(tmp_path):
    path, texts = tmp_path / "shredded.parquet", documents(300).drop_null()
    objects = [text for text in texts.to_pylist() if not any(word in text for word in ("E", "\\\\", "."))]
    # to DuckDB null is NULL, and numbers beyond BIGINT are doubles
    shown = [
        text
        for text in objects
        if text != "null" and not any(len(word.strip('-"')) > 17 for word in re.split("[][,:{}]", text))
    ]
    shred(path, shown)
    column = pq.read_table(path)["v"].combine_chunks()
    assert "typed_value" in [field.name for field in column.type]
    assert decoded(column).to_pylist() == shown
    some = [
        '{"a":1,"b":"x"}',
        '{"a":2,"b":"y","c":[1,{"d":null}]}',
        '{"a":"z","b":"x"}',
        "[1]",
        '{"a":3}',
    ] * 20
    shred(path, some)
    column = pq.read_table(path)["v"].combine_chunks()
    assert pa.types.is_struct(column.type.field("typed_value").type)
    assert decoded(column).to_pylist() == some


def test_every_format_holds_what_it_is_given(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(LINES)
    with penstock.connect() as connection, connection.cursor() as cursor:
        columns = "k INT, v VARIANT, w ARRAY<VARIANT>"
        cursor.execute("SET 'table.dml-sync' = 'true'")
        cursor.execute(
            f"CREATE TABLE docs ({columns}) "
            f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/in', 'format' = 'json')"
        )
        read = cursor.execute("SELECT k, v, w FROM docs ORDER BY k").fetchall()
        assert read == [(k + 1, v, w) for k, (v, w) in enumerate(zip(VALUES, LISTS, strict=True))]
        assert cursor.execute("SELECT COUNT(*) FROM docs").fetchall() == [(6,)]
        for kind, with_lists in (("json", True), ("parquet", True), ("arrow", True), ("csv", False)):
            some = columns if with_lists else "k INT, v VARIANT"
            cursor.execute(
                f"CREATE TABLE {kind}s ({some}) WITH ('connector' = 'filesystem', "
                f"'path' = '{tmp_path}/{kind}', 'format' = '{kind}')"
            )
            names = "k, v, w" if with_lists else "k, v"
            cursor.execute(f"INSERT INTO {kind}s SELECT {names} FROM docs")
            written = cursor.execute(f"SELECT {names} FROM {kind}s ORDER BY k").fetchall()
            assert written == [row[: names.count(",") + 1] for row in read], kind
    file = next((tmp_path / "parquet").glob("*.parquet"))
    kinds = json.loads(pq.read_metadata(file).metadata[SPARK_SCHEMA.encode()])
    assert [field["type"] for field in kinds["fields"]][:2] == ["integer", "variant"]


@pytest.mark.parametrize("policy", ["skip", "table"])
def test_a_line_with_a_bad_value_is_a_bad_record(tmp_path, policy):
    (tmp_path / "a.jsonl").write_text('{"v": {"a": 1}}\n{"v": {"a": 1, "a": 2}}\n{"v": 2}\n')
    with penstock.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE docs (v VARIANT) WITH ('connector' = 'filesystem', "
            f"'path' = '{tmp_path}/a.jsonl', 'format' = 'json', 'on-error' = '{policy}')"
        )
        assert sorted(cursor.execute("SELECT v FROM docs").fetchall()) == [("2",), ('{"a":1}',)]
        if policy == "table":
            ((column, error),) = cursor.execute('SELECT "column", error FROM docs$errors').fetchall()
            assert column == "v" and error == 'a JSON object has the name "a" twice'


def test_messages_of_json_read_and_write_variants():
    fields = (Field("k", BIGINT), Field("v", VARIANT))
    form = MessageFormat("json", {})
    values = [
        b'{"k": 1, "v": {"b": [1.0]}}',
        b'{"v": "\\u00e9"}',
        b'{"k": 2, "v": nul}',
        b'{"k": 3, "v": null}',
        b'{"k": 4}',
    ]
    found = deserializer(form, fields, fields).deserialize(pa.array(values, pa.binary()))
    assert found.rows.to_pydict() == {"k": [1, None, 3, 4], "v": ['{"b":[1]}', '"é"', "null", None]}
    assert [record.ordinal for record in found.bad] == [2]
    written = serializer(form, fields, "s").serialize(Batch(found.rows))
    assert [value.as_py().decode() for value in written] == [
        '{"k":1,"v":{"b":[1]}}',
        '{"k":null,"v":"é"}',
        '{"k":3,"v":null}',
        '{"k":4}',
    ]


def test_a_raw_message_is_a_variant_as_a_whole():
    field = (Field("v", VARIANT),)
    form = MessageFormat("raw", {"raw.endianness": "big-endian"})
    values = pa.array([b" [1, 2.0] ", b"{", b"\xff", None], pa.binary())
    found = deserializer(form, field, field).deserialize(values)
    assert found.rows.column(0).to_pylist() == ["[1,2]", None]
    assert [(record.ordinal, record.column) for record in found.bad] == [(1, "v"), (2, "v")]
    assert found.bad[0].error == "'{' is no JSON"


def test_a_first_column_that_is_left_out_leaves_no_comma():
    fields = (Field("v", VARIANT), Field("w", VARIANT))
    rows = pa.record_batch([pa.array([None, "1", None]), pa.array([None, None, "{}"])], names=["v", "w"])
    written = serializer(MessageFormat("json", {}), fields, "s").serialize(Batch(rows))
    assert [value.as_py() for value in written] == [b"{}", b'{"v":1}', b'{"w":{}}']


def test_rows_and_lists_of_variants_are_read():
    kind = Row((("a", VARIANT), ("b", Array(VARIANT))))
    parser = JsonParser((Field("r", kind),))
    rows = parser.parse(b'{"r": {"a": {"x": 1}, "b": [null, "s"]}}\n{"r": null}\n{}\n')
    assert rows.column(0).to_pylist() == [{"a": '{"x":1}', "b": ["null", '"s"']}, None, None]


def test_types_of_files_that_are_read_as_variant():
    octets = pa.struct([("value", pa.binary()), ("metadata", pa.large_binary())])
    assert fit(octets, VARIANT) is fit(pa.string(), VARIANT) is fit(pa.json_(), VARIANT) is Fit.TESTED
    shredded = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    assert fit(shredded, VARIANT) is Fit.TESTED
    others = pa.int64(), pa.struct([("metadata", pa.binary())]), pa.struct([("a", pa.binary())])
    assert [fit(kind, VARIANT) for kind in others] == [None] * 3


@pytest.mark.parametrize(
    ("connector", "hint"),
    [
        (
            "'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'format' = 'avro'",
            "Avro has no VARIANT",
        ),
        ("'filesystem', 'path' = 'x', 'format' = 'debezium-json'", "parse_json"),
        ("'datagen'", "parse_json"),
    ],
)
def test_what_cannot_hold_a_variant_says_so(connector, hint):
    with penstock.connect() as connection, pytest.raises(PenstockError, match="SQL-1509") as caught:
        connection.cursor().execute(f"CREATE TABLE t (v VARIANT) WITH ('connector' = {connector})")
    assert hint in (caught.value.hint or "")
