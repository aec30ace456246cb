"""The kernel of flat JSON objects: the same rows and the same bad records as the general parser, and the values
of json.loads.
"""

from __future__ import annotations

import json
import random
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.schema import Field
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    TINYINT,
    Array,
    Date,
    Decimal,
    Double,
    Float,
    Time,
    Timestamp,
    TimestampLtz,
)
from penstock.engine.formats.json_lines import JsonParser
from penstock.engine.formats.messages.json_objects import FlatObjects, JsonDeserializer
from penstock.engine.formats.messages.message_values import message_values
from penstock.engine.formats.messages.text_messages import TextDeserializer, json_frame

FIELDS = (
    Field("i", BIGINT), Field("n", INT), Field("t", TINYINT), Field("d", Double()), Field("f", Float()),
    Field("b", BOOLEAN), Field("s", STRING), Field("text", STRING), Field("m", Decimal(12, 3)),
    Field("w", Decimal(38, 10)), Field("at", Timestamp(6)), Field("é", STRING), Field("day", Date()),
)  # fmt: skip
NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "-129",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1.0",
    "1e2",
    "1E+2",
    "0.1",
    "-0.0",
    "1.5e-7",
    "123456789012345678",
    "1234567890123456789012",
    "0.30000000000000004",
    "2.2250738585072014e-308",
    "5e-324",
    "1e400",
    "-1e400",
    "1e-400",
    "9007199254740993",
    "9007199254740992.5",
    "1e22",
    "1e23",
    "3.4028235e38",
    "16777217",
    "1.17549435e-38",
    "0.000000000000000000000001",
    "01",
    "+1",
    "1.",
    ".5",
    "-",
    "1e",
    "1e+",
    "0x10",
    "NaN",
    "Infinity",
    "-Infinity",
    "1_0",
    "123456789.123",
    "123456789.1234",
    "1234567890.5",
    "99999999999999999999999999.0123456789",
    "7.0000",
]
OTHERS = (
    (
        'null true false "" "x" "true" "1" "a\\"b" "\\n\\t\\/\\\\\\b\\f\\r" "\\u00e9" "\\ud83d\\ude00" "\\ud800" "\\u12" '
        '"\\x" "é" "日本" "😀" [] {} [1,2] {"a":1} [[[]]] {"a":{"b":[1,{"c":null}]}} [1,,2] [1,] {"a"} {"a":} {a:1} nul '
        'tru "open [ "2024-01-02" "2024-01-02 03:04:05" "2024-01-02T03:04:05.123456" "2024-01-02T03:04:05Z" '
        '"2024-13-01" "10:11:12" ["\\u00e9","\\"]"] [tru] [1 2]'
    )
    .replace('"2024-01-02 03', '"2024-01-02\x0003')
    .split()
)
VALUES = [*NUMBERS, *(word.replace("\x00", " ") for word in OTHERS)]


def told(decoded: Any) -> list[Any]:
    return [(bad.ordinal, bad.raw, bad.column, bad.error) for bad in decoded.bad]


def check(values: list[bytes | None], fields: tuple[Field, ...] = FIELDS) -> Any:
    array = pa.array(values, pa.binary())
    ours = JsonDeserializer(fields).deserialize(array)
    theirs = TextDeserializer(JsonParser(fields, "message"), json_frame).deserialize(array)
    assert told(ours) == told(theirs)
    # NaN differs from itself: texts of rows do not
    assert str(ours.rows.to_pylist()) == str(theirs.rows.to_pylist())
    assert ours.rows.schema == theirs.rows.schema
    everything = list(range(len(values)))
    assert (everything if ours.ordinals is None else ours.ordinals.tolist()) == (
        everything if theirs.ordinals is None else theirs.ordinals.tolist()
    )
    ours.rows.validate(full=True)
    return ours


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: str(field.type))
def test_every_value_in_every_column(field):
    # each alone, since one bad time sends its whole batch to the general parser
    for value in VALUES:
        check([f'{{"{field.name}": {value}}}'.encode()], (field,))


def test_every_value_in_a_field_that_nobody_wants():
    check([f'{{"other": {value}, "i": 7}}'.encode() for value in VALUES])


@pytest.mark.parametrize("seed", range(30))
def test_random_objects(seed):
    chance = random.Random(seed)
    blanks = ["", "", "", " ", "\n", "\t", "\r\n  "]
    good = {
        "i": ["12", "-7", "0", "null"], "n": ["5", "null"], "t": ["-128"], "d": ["1.5", "0.30000000000000004", "1e5"],
        "f": ["0.1", "3"], "b": ["true", "false"], "s": ['"x"', '"é\\n"', '""'], "text": ['"a b"', '"\\u00e9"'],
        "m": ["1.5", "-0.125"], "w": ["1"], "at": ['"2024-01-02 03:04:05"'], "é": ['"é"'], "day": ['"2024-01-02"'],
        "more": [*VALUES[:9], '{"a": [1, {"b": "\\"}"}]}'],
    }  # fmt: skip
    values: list[bytes | None] = []
    for _ in range(chance.choice([5, 150])):
        names = chance.sample(sorted(good), chance.randint(0, len(good)))
        names += names[:1] if chance.random() < 0.02 else []
        parts = []
        for name in names:
            value = chance.choice(VALUES if chance.random() < 0.01 else good[name])
            key = json.dumps(name) if chance.random() < 0.05 else f'"{name}"'
            parts.append(
                f"{chance.choice(blanks)}{key}{chance.choice(blanks)}:{chance.choice(blanks)}{value}"
            )
        text = (
            chance.choice(blanks)
            + "{"
            + ",".join(parts)
            + chance.choice(blanks)
            + "}"
            + chance.choice(blanks)
        )
        octets = bytearray(text.encode())
        if chance.random() < 0.1:
            for _ in range(chance.randint(1, 3)):
                octets[chance.randrange(len(octets))] = chance.choice(b'"\\{}[],:0 \n\xffx\x01')
        if chance.random() < 0.03:
            octets = octets[: chance.randint(0, len(octets))]
        values.append(None if chance.random() < 0.05 else bytes(octets))
    decoded = check(values)
    rows = decoded.rows.select(["i", "b", "s", "m"]).to_pylist()
    at = range(len(values)) if decoded.ordinals is None else decoded.ordinals.tolist()
    for row, ordinal in zip(rows, at, strict=True):
        expected = json.loads(values[ordinal], parse_float=Number)
        assert row == {name: expected.get(name) for name in ("i", "b", "s", "m")}


def test_the_kernel_reads_what_is_plain():
    values = [
        b'{"i": 1, "s": "a\\"\\n", "d": 0.30000000000000004, "x": {"y": [1, "\\\\"]}}',
        '{"s": "é", "i": -5, "d": 1e30, "b": true, "m": 7, "f": 0.1}'.encode(),
        b"{}",
    ]
    parsed = FlatObjects(FIELDS).parse(message_values(pa.array(values, pa.binary())))
    assert parsed is not None
    rows, given_up = parsed
    assert given_up.tolist() == [-1, -1, -1]
    assert rows.column(3).to_pylist() == [0.30000000000000004, 1e30, None]
    assert rows.column(6).to_pylist() == ['a"\n', "é", None]


def test_bad_values_are_told_by_byte():
    decoded = check(
        [b'{"i": 1}', b'{"s": "x", "i": "y"}', b'{"i": 2.5}', b'{"n": 3000000000}', b'{"i": 3}', b"{}"]
    )
    assert [(bad.ordinal, bad.column, bad.byte) for bad in decoded.bad] == [
        (1, "i", 16),
        (2, "i", 6),
        (3, "n", 6),
    ]


def test_deep_nesting_and_long_texts():
    def deep(size):
        return b'{"x": ' + b"[" * size + b"]" * size + b', "i": 4}'

    check([deep(10), deep(59), deep(60), deep(61), deep(900), b'{"s": "' + b"x" * 100_000 + b'", "i": 1}'])


def test_mostly_not_plain_and_parts_of_a_batch(monkeypatch):
    odd = b'{"s": "\\u00e9", "i": 1}'
    made = JsonDeserializer(FIELDS)
    values = pa.array([odd] * 5 + [b'{"i": 2}'], pa.binary())
    first = made.deserialize(values).rows
    for _ in range(20):
        assert made.deserialize(values).rows.equals(first)
    monkeypatch.setattr("penstock.engine.formats.messages.json_objects._MOST_TEXT_BYTES", 400)
    plain = [b'{"i": %d, "s": "t%d", "at": "2024-01-02 03:04:05"}' % (i, i) for i in range(50)]
    check(plain)
    check([*plain, b'{"at": "nonsense"}', b'{"s": "\xff"}', None])


def test_nested_columns_are_for_the_general_parser():
    fields = (Field("a", Array(BIGINT)), Field("z", TimestampLtz(3)), Field("o", Time()))
    check([b'{"a": [1, 2], "z": "2024-01-02T03:04:05Z", "o": "10:11:12"}', b'{"a": 1}'], fields)
    check(
        [b'{"z": "2024-01-02T03:04:05+01:00", "o": "10:11:12.5"}', b'{"z": "2024-01-02 03:04:05"}'],
        fields[1:],
    )
    check([b"{}", b"?", None], ())
