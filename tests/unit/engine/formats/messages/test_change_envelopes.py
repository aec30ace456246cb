"""Changes as Maxwell, Canal and GoldenGate write them: recorded messages, partial old rows, bad messages."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.connectors.message_formats import (
    check_message_column,
    check_message_formats,
    emits_message_changes,
    value_format,
)
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, INT, STRING, Array, Boolean, Decimal, Double, Timestamp
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.messages.registry import deserializer, serializer

FIELDS = (Field("id", BIGINT), Field("name", STRING), Field("weight", Decimal(10, 2)))
NAMES = ("maxwell-json", "canal-json", "ogg-json")

# as the programs write them
MAXWELL = {
    "database": "test",
    "table": "product",
    "type": "update",
    "ts": 1596684883,
    "xid": 7201,
    "xoffset": 3,
    "data": {"id": 102, "name": "car battery", "weight": 5.17},
    "old": {"weight": 8.1},
}
CANAL = {
    "data": [
        {"id": "103", "name": "12-pack drill bits", "weight": "5.17"},
        {"id": "106", "name": None, "weight": "1.0"},
    ],
    "database": "inventory",
    "es": 1589373560000,
    "id": 9,
    "isDdl": False,
    "mysqlType": {"id": "INTEGER", "name": "VARCHAR(255)", "weight": "FLOAT"},
    "old": [{"weight": "0.8"}, {"name": "hammer"}],
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": 4, "name": 12, "weight": 7},
    "table": "products",
    "ts": 1589373560798,
    "type": "UPDATE",
}
OGG = {
    "table": "OGG.PRODUCTS",
    "op_type": "U",
    "op_ts": "2020-05-13 17:26:27.936727",
    "current_ts": "2020-05-13 17:26:31.293000",
    "pos": "00000000000000002928",
    "primary_keys": ["id"],
    "before": {"id": 106, "name": "hammer", "weight": 1},
    "after": {"id": 106, "name": "18oz hammer", "weight": 1.0},
}


def decode(
    name: str, messages: list[Any], fields: tuple[Field, ...] = FIELDS, wanted: Any = None, **options: str
) -> Any:
    form = value_format({"format": name} | {f"{name}.{key}.include": text for key, text in options.items()})
    raw = [
        one if one is None or isinstance(one, bytes) else json.dumps(one, indent=1).encode()
        for one in messages
    ]
    made = deserializer(form, fields if wanted is None else wanted, fields)
    return made.deserialize(pa.array(raw, pa.binary()))


def changes(decoded: Any) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in decoded.rows.to_pylist()]
    return [(int(w), *row) for w, row in zip(decoded.weights, rows, strict=True)]


def shown(decoded: Any) -> list[tuple[Any, ...]]:
    return [(w, i, n, None if v is None else str(v)) for w, i, n, v in changes(decoded)]


def test_an_update_of_maxwell_says_what_was_different() -> None:
    inserted = MAXWELL | {"type": "insert", "old": None}
    nulled = MAXWELL | {"data": {"id": 1, "name": "x"}, "old": {"name": None, "weight": 2}}
    deleted = MAXWELL | {"type": "delete"}
    decoded = decode("maxwell-json", [inserted, None, MAXWELL, nulled, deleted])
    assert shown(decoded) == [
        (1, 102, "car battery", "5.17"),
        (-1, 102, "car battery", "8.10"),
        (1, 102, "car battery", "5.17"),
        (-1, 1, None, "2.00"),
        (1, 1, "x", None),
        (-1, 102, "car battery", "5.17"),
    ]
    assert decoded.ordinals.tolist() == [0, 2, 2, 3, 3, 4]
    assert (decoded.records, decoded.bad) == (5, [])


def test_events_of_maxwells_own_are_no_rows() -> None:
    copied = MAXWELL | {"type": "bootstrap-insert"}
    others = [MAXWELL | {"type": word} for word in ("bootstrap-start", "bootstrap-complete", "table-alter")]
    decoded = decode("maxwell-json", [*others, copied])
    assert shown(decoded) == [(1, 102, "car battery", "5.17")]
    assert decoded.bad == []


def test_canal_writes_several_rows_in_texts() -> None:
    inserted = CANAL | {"type": "INSERT", "old": None}
    schema = {"data": None, "type": "CREATE", "isDdl": True, "sql": "CREATE TABLE t (a INT)"}
    decoded = decode("canal-json", [inserted, schema, CANAL, CANAL | {"type": "DELETE", "old": None}])
    first, second = (103, "12-pack drill bits", "5.17"), (106, None, "1.00")
    assert shown(decoded) == [
        (1, *first),
        (1, *second),
        (-1, 103, "12-pack drill bits", "0.80"),
        (1, *first),
        (-1, 106, "hammer", "1.00"),
        (1, *second),
        (-1, *first),
        (-1, *second),
    ]
    assert decoded.ordinals.tolist() == [0, 0, 2, 2, 2, 2, 3, 3]
    assert decoded.bad == []


def test_databases_and_tables_of_canal_are_chosen_by_their_whole_names() -> None:
    other = CANAL | {"database": "other"}
    nameless = {key: value for key, value in CANAL.items() if key != "database"}
    assert len(changes(decode("canal-json", [other, CANAL, nameless], database="inv.*"))) == 4
    assert len(changes(decode("canal-json", [CANAL], table="product"))) == 0
    assert len(changes(decode("canal-json", [CANAL], table="x|products"))) == 4
    with pytest.raises(PenstockError, match=r"SQL-1505.*no regular expression"):
        check_message_formats({"format": "canal-json", "canal-json.table.include": "("}, {}, {})
    with pytest.raises(PenstockError, match=r"SQL-1507.*is of format canal-json"):
        check_message_formats({"format": "ogg-json", "canal-json.table.include": "x"}, {}, {})


def test_goldengate_has_both_rows() -> None:
    created = OGG | {"op_type": "I", "before": None}
    deleted = OGG | {"op_type": "D", "after": None}
    assert shown(decode("ogg-json", [created, OGG, deleted])) == [
        (1, 106, "18oz hammer", "1.00"),
        (-1, 106, "hammer", "1.00"),
        (1, 106, "18oz hammer", "1.00"),
        (-1, 106, "hammer", "1.00"),
    ]


@pytest.mark.parametrize(
    ("name", "message", "column", "error"),
    [
        ("maxwell-json", b"", None, "the message is empty"),
        ("maxwell-json", b"[1]", None, "an array is where a message must contain one object"),
        ("maxwell-json", b'{"type":', None, "not JSON: expecting value at character 9"),
        ("maxwell-json", b'{"type": "\xff"}', None, "not UTF-8: byte 11 of the message is 0xff"),
        ("maxwell-json", {"data": {}}, None, "type is missing; changes of rows are insert, bootstrap-insert, "
         "update, delete"),
        ("maxwell-json", MAXWELL | {"type": "table-drop"}, None, "type is table-drop; changes of rows are insert, "
         "bootstrap-insert, update, delete"),
        ("maxwell-json", MAXWELL | {"old": None}, None, "type is update, and data and old must be an object"),
        ("maxwell-json", MAXWELL | {"data": {"id": "x"}}, "id", "x is not a valid BIGINT"),
        ("maxwell-json", MAXWELL | {"old": {"weight": "heavy"}}, "weight", "heavy is not a valid DECIMAL(10, 2)"),
        ("canal-json", CANAL | {"old": [{}]}, None, "type is UPDATE, and data and old must be an array of as many "
         "objects each"),
        ("canal-json", CANAL | {"data": {"id": 1}, "type": "INSERT"}, None, "type is INSERT, and data must be an "
         "array of as many objects each"),
        ("canal-json", CANAL | {"type": "TRUNCATE"}, None, "type is TRUNCATE; changes of rows are INSERT, UPDATE, "
         "DELETE"),
        ("ogg-json", OGG | {"before": None}, None, "op_type is U, and before and after must be an object; a source "
         "must log whole rows"),
        ("ogg-json", OGG | {"op_type": "T"}, None, "op_type is T; changes of rows are I, U, D"),
    ],
)  # fmt: skip
def test_bad_messages_leave_the_others(name: str, message: Any, column: str | None, error: str) -> None:
    good = {"maxwell-json": MAXWELL, "canal-json": CANAL, "ogg-json": OGG}[name]
    alone = decode(name, [good])
    decoded = decode(name, [good, message, None, good])
    assert [(bad.ordinal, bad.column, bad.error) for bad in decoded.bad] == [(1, column, error)]
    assert changes(decoded) == changes(alone) * 2
    assert set(decoded.ordinals.tolist()) == {0, 3}
    nothing = decode(name, [message])
    assert nothing.rows.num_rows == 0
    assert nothing.rows.schema == alone.rows.schema


@pytest.mark.parametrize(
    ("row", "number"),
    [
        ('{"f": 2.5,}', None),
        ('{"f": 2.5, "other": [1 , ]}', None),
        ('{"f": inf}', None),
        ('{"f": -nan}', None),
        ('{"f": 2.5, "other": ",} inf"}', 2.5),
        ('{"f": NaN}', math.nan),
        ('{"f": -Infinity}', -math.inf),
    ],
)
def test_json_is_what_it_is_in_the_other_formats(row: str, number: float | None) -> None:
    fields = (Field("f", Double()),)
    wrapped = {
        "json": row,
        "debezium-json": f'{{"op": "c", "before": null, "after": {row}}}',
        "maxwell-json": f'{{"type": "insert", "data": {row}}}',
        "canal-json": f'{{"type": "INSERT", "data": [{row}]}}',
        "ogg-json": f'{{"op_type": "I", "after": {row}}}',
    }
    for name, text in wrapped.items():
        decoded = deserializer(value_format({"format": name}), fields, fields).deserialize(
            pa.array([text.encode()], pa.binary())
        )
        found = [repr(value) for value in decoded.rows.column("f").to_pylist()]
        assert found == ([] if number is None else [repr(number)]), name
        assert len(decoded.bad) == (number is None), name


def test_numbers_have_all_their_digits() -> None:
    fields = (Field("d", Decimal(38, 5)), Field("t", STRING), Field("f", Double()))
    number = "123456789012345678901234567890.12345"
    trap = 'x: 1234567890123456789.5 , "'
    values = [
        f'{{"type":"insert","data":{{"d": {number} , "f": 0.1, "t": {json.dumps(text)}}}}}'.encode()
        for text in ("plain", trap)
    ]
    decoded = decode("maxwell-json", values, fields)
    assert [(str(d), t, f) for _, d, t, f in changes(decoded)] == [
        (number, "plain", 0.1),
        (number, trap, 0.1),
    ]


def test_types_of_columns() -> None:
    fields = (
        Field("b", Boolean()),
        Field("we\"i/rd~'{n}", INT),
        Field("at", Timestamp(3)),
        Field("doc", STRING),
    )
    data = {"b": "1", "we\"i/rd~'{n}": "7", "at": "2020-12-30 12:13:14.123", "doc": {"x": [1]}}
    decoded = decode("canal-json", [{"type": "INSERT", "data": [data, {"b": False}]}], fields)
    assert [(w, b, n, str(at), doc) for w, b, n, at, doc in changes(decoded)] == [
        (1, True, 7, "2020-12-30 12:13:14.123000", '{"x":[1]}'),
        (1, False, None, "None", None),
    ]
    for name in NAMES:
        assert emits_message_changes({"format": name})
        with pytest.raises(PenstockError, match="SQL-1509"):
            check_message_column({"format": name}, Field("c", Array(STRING)), None)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read(name: str) -> None:
    rows = pa.record_batch(
        {"id": [1, 2], "name": ['x"', None], "weight": pa.array([None, 1], pa.decimal128(10, 2))}
    )
    made = serializer(value_format({"format": name}), FIELDS, "s").serialize(Batch(rows, np.array([1, -1])))
    first = {"id": 1, "name": 'x"', "weight": None}
    created, deleted = (json.loads(value) for value in made.to_pylist())
    assert (
        created
        == {
            "maxwell-json": {"data": first, "type": "insert"},
            "canal-json": {"data": [first], "type": "INSERT"},
            "ogg-json": {"before": None, "after": first, "op_type": "I"},
        }[name]
    )
    assert {**deleted, "data": None, "before": None} == {
        "maxwell-json": {"data": None, "before": None, "type": "delete"},
        "canal-json": {"data": None, "before": None, "type": "DELETE"},
        "ogg-json": {"data": None, "before": None, "after": None, "op_type": "D"},
    }[name]
    decoded = decode(name, made.to_pylist())
    assert decoded.rows.equals(rows)
    assert decoded.weights.tolist() == [1, -1]
    counted = decode(name, made.to_pylist(), wanted=())
    assert (counted.rows.num_rows, counted.weights.tolist()) == (2, [1, -1])
    assert (
        len(serializer(value_format({"format": name}), FIELDS, "s").serialize(Batch(rows.slice(0, 0)))) == 0
    )
    assert decode(name, []).rows.num_rows == 0
