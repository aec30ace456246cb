"""json, csv and Debezium's json over messages: one value one record, bad ones apart, rows by message."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BINARY, STRING, Array, Double, Map, Row, Timestamp
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.messages.registry import deserializer, serializer

JSON = MessageFormat("json", {})
CSV = MessageFormat("csv", {"csv.delimiter": ",", "csv.quote": '"', "csv.null-literal": ""})
DEBEZIUM = MessageFormat("debezium-json", {"debezium-json.schema-include": False})
FIELDS = (Field("a", BIGINT), Field("b", STRING))


def decode(form, values, fields=FIELDS, wanted=None):
    return deserializer(form, fields if wanted is None else wanted, fields).deserialize(
        pa.array(values, pa.binary())
    )


def faults(decoded):
    return [(bad.ordinal, bad.column, bad.byte, bad.error) for bad in decoded.bad]


def test_json_values_may_hold_line_ends_and_be_missing():
    decoded = decode(JSON, [b'{"a": 1,\r\n "b": "x"}\n', None, b'  {"b": "\\n{", "a": null}', b"{}"])
    assert decoded.rows.to_pylist() == [{"a": 1, "b": "x"}, {"a": None, "b": "\n{"}, {"a": None, "b": None}]
    assert decoded.ordinals.tolist() == [0, 2, 3]
    assert (decoded.first, decoded.records, decoded.bad) == (0, 4, [])


def test_json_of_bad_values_is_told_by_message_column_and_byte():
    values = [
        b'{"a": 1}',
        b'{"a": "x"}',
        b"",
        b'{"a": 2}{"a": 3}',
        b'{"a":',
        b"[1]",
        b'{"b": "\n"}',
        b'{"a": 4}',
    ]
    values += [b'{"b": "\xff"}', b"null", b"\xef\xbb\xbf{}", b'{"a": 1, "a": 2}', b'{"a" 1}']
    decoded = decode(JSON, values)
    assert decoded.rows.column(0).to_pylist() == [1, 4]
    assert decoded.ordinals.tolist() == [0, 7]
    assert faults(decoded) == [
        (1, "a", None, '"x" is not a valid BIGINT'),
        (2, None, 0, "the message is empty"),
        (3, None, 8, "not JSON: extra data at character 9"),
        (4, None, 5, "not JSON: expecting value at character 6"),
        (5, None, None, "an array is where a message must contain one object"),
        (6, None, 7, "not JSON: invalid control character at at character 8"),
        (8, None, 7, "not UTF-8: byte 8 of the message is 0xff"),
        (9, None, None, "null is where a message must contain one object"),
        (10, None, 0, "the message begins with a byte order mark"),
        (11, "a", None, "the name occurs twice in the object"),
        (12, None, 5, "not JSON: expecting ':' delimiter at character 6"),
    ]


def test_halves_of_objects_in_two_messages_are_bad():
    decoded = decode(JSON, [b'{"a":', b"1}", b'{"a":1}{"a":2}', b'{"a": 7}'])
    assert [bad.ordinal for bad in decoded.bad] == [0, 1, 2]
    assert decoded.rows.column(0).to_pylist() == [7]


def test_json_of_slices_no_rows_and_no_columns():
    values = pa.array([b"x", b'{"a": 5, "b": "y"}', b'{"a": 6}', b"z"], pa.binary())
    made = deserializer(JSON, FIELDS, FIELDS)
    assert made.deserialize(values.slice(1, 2)).rows.to_pylist() == [{"a": 5, "b": "y"}, {"a": 6, "b": None}]
    assert made.deserialize(values.slice(0, 0)).rows.num_rows == 0
    counted = decode(JSON, [b'{"a": 1}', None, b"{}", b"?"], wanted=())
    assert (counted.rows.num_rows, [bad.ordinal for bad in counted.bad]) == (2, [3])


def test_json_nested_and_back():
    fields = (
        Field("r", Row((("x", Double()), ("y", Array(BIGINT))))),
        Field("m", Map(STRING, BIGINT)),
        Field("t", Timestamp(6)),
    )
    value = {"r": {"x": 1.5, "y": [1, None]}, "m": {"k": 2}, "t": "2020-01-01 10:00:00.123456"}
    decoded = decode(JSON, [json.dumps(value, indent=1).encode()], fields)
    back = serializer(JSON, fields, "s").serialize(Batch(decoded.rows))
    assert back.type == pa.binary()
    assert json.loads(back[0].as_py()) == value


def test_csv_values():
    texts = [b"1,x", b'2,"a ""q"" and\nb"\n', None, b",\r\n", b'3,"', b"", b"4", b"5,y\n6,z", b"7,", b"x,y"]
    decoded = decode(CSV, texts)
    assert decoded.rows.to_pylist() == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": 'a "q" and\nb'},
        {"a": None, "b": None},
        {"a": 7, "b": None},
    ]
    assert decoded.ordinals.tolist() == [0, 1, 3, 8]
    assert [(bad.ordinal, bad.column, bad.error) for bad in decoded.bad] == [
        (4, None, "a quoted value does not end"),
        (5, None, "the message is empty"),
        (6, None, "1 values where the file has 2 columns"),
        (7, None, "a message is one record, and this one has several lines"),
        (9, "a", "'x' is not a valid BIGINT"),
    ]


def test_csv_out_is_what_pythons_reader_reads():
    rows = pa.record_batch({"a": [1, None, 3], "b": ['x,"', "line\nend", None]})
    made = serializer(CSV, FIELDS, "s").serialize(Batch(rows))
    read = [next(csv.reader(io.StringIO(value.decode(), newline=""))) for value in made.to_pylist()]
    assert read == [["1", 'x,"'], ["", "line\nend"], ["3", ""]]
    assert decode(CSV, made.to_pylist()).rows.to_pylist() == rows.to_pylist()


def test_debezium_changes_and_tombstones():
    change = {"before": {"a": 1, "b": "x"}, "after": {"a": 1, "b": "y"}, "op": "u"}
    created = {"before": None, "after": {"a": 2}, "op": "c"}
    bad = {"after": None, "op": "d"}
    values = [
        json.dumps(created, indent=2).encode(),
        None,
        json.dumps(change).encode(),
        json.dumps(bad).encode(),
    ]
    decoded = decode(DEBEZIUM, values)
    assert decoded.rows.column(1).to_pylist() == [None, "x", "y"]
    assert decoded.weights.tolist() == [1, -1, 1]
    assert decoded.ordinals.tolist() == [0, 2, 2]
    assert [(b.ordinal, b.error.split(":")[0]) for b in decoded.bad] == [
        (3, "op is d, a row is deleted, but there is no before")
    ]


def test_debezium_out():
    rows = pa.record_batch({"a": [1, 2], "b": ["x", None]})
    batch = Batch(rows, np.array([1, -1]))
    made = serializer(DEBEZIUM, FIELDS, "s").serialize(batch)
    assert [json.loads(value) for value in made.to_pylist()] == [
        {"before": None, "after": {"a": 1, "b": "x"}, "op": "c"},
        {"before": {"a": 2, "b": None}, "after": None, "op": "d"},
    ]
    again = decode(DEBEZIUM, made.to_pylist())
    assert again.rows.to_pylist() == rows.to_pylist()
    assert again.weights.tolist() == [1, -1]
    with_schema = MessageFormat("debezium-json", {"debezium-json.schema-include": True})
    made = serializer(with_schema, FIELDS, "s").serialize(batch)
    assert decode(with_schema, made.to_pylist()).weights.tolist() == [1, -1]


def test_bytes_that_are_no_text_are_refused():
    rows = pa.record_batch({"a": pa.array([b"\xff"], pa.binary())})
    for form in (JSON, CSV, DEBEZIUM):
        with pytest.raises(PenstockError, match="which a message of") as refused:
            serializer(form, (Field("a", BINARY),), "s").serialize(Batch(rows))
        assert refused.value.code == "DAT-4607"


def test_no_rows_out():
    empty = pa.record_batch({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    for form in (JSON, CSV, DEBEZIUM):
        assert len(serializer(form, FIELDS, "s").serialize(Batch(empty))) == 0
