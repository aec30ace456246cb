import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.repl.output.cell_text import json_column, text_column, visible


def text(values, kind, zone=None):
    return text_column(pa.array(values, kind), zone).to_pylist()


def test_numbers_keep_their_kind():
    assert text([3.0, 0.1, None, float("nan"), float("-inf"), 1e20], pa.float64()) == [
        "3.0",
        "0.1",
        None,
        "NaN",
        "-Infinity",
        "1e+20",
    ]
    assert text([3, None], pa.int64()) == ["3", None]
    assert text([Decimal("1.50")], pa.decimal128(5, 2)) == ["1.50"]
    assert text([True, False, None], pa.bool_()) == ["true", "false", None]


def test_times_lose_trailing_zeros():
    moments = [dt.datetime(2013, 1, 1, 5, 15), dt.datetime(2013, 1, 1, 5, 15, 0, 120000)]
    assert text(moments, pa.timestamp("us")) == ["2013-01-01 05:15:00", "2013-01-01 05:15:00.12"]
    assert text(moments, pa.timestamp("us", "UTC")) == ["2013-01-01 05:15:00Z", "2013-01-01 05:15:00.12Z"]
    assert text(moments[:1], pa.timestamp("us", "UTC"), "Europe/Berlin") == ["2013-01-01 06:15:00"]
    assert text([dt.time(5, 15)], pa.time64("us")) == ["05:15:00"]
    assert text([dt.date(2013, 1, 1)], pa.date32()) == ["2013-01-01"]
    assert text([dt.timedelta(days=1, seconds=5), dt.timedelta(seconds=-1.5)], pa.duration("us")) == [
        "1 00:00:05",
        "-0 00:00:01.5",
    ]


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_bytes_are_hexadecimal(cut):
    column = pa.array([b"ab", None, b"\x00\xff", b""], pa.binary()).slice(cut)
    assert text_column(column).to_pylist() == ["0x6162", None, "0x00ff", "0x"][cut:]


NESTED = pa.array(
    [
        {"a": [1, None], "m": [("k", 1.5)], "s": 'q"\n\\'},
        None,
        {"a": None, "m": [("x", None), ("y", float("nan"))], "s": "\x01"},
        {"a": [], "m": [], "s": None},
    ],
    pa.struct([("a", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.float64())), ("s", pa.string())]),
)
EXPECTED = [
    {"a": [1, None], "m": {"k": 1.5}, "s": 'q"\n\\'},
    None,
    {"a": None, "m": {"x": None, "y": "NaN"}, "s": "\x01"},
    {"a": [], "m": {}, "s": None},
]


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4])
def test_nested_values_are_json_also_when_sliced(start):
    assert [json.loads(cell) for cell in json_column(NESTED.slice(start)).to_pylist()] == EXPECTED[start:]
    assert [
        json.loads(cell) if cell else None for cell in text_column(NESTED.slice(start)).to_pylist()
    ] == EXPECTED[start:]


def test_a_nested_value_that_is_null_is_null_not_the_text():
    assert [value is None for value in text_column(NESTED).to_pylist()] == [row is None for row in EXPECTED]
    assert text([[1, None], None, []], pa.list_(pa.int64())) == ["[1, null]", None, "[]"]
    assert text([[("k", None)], None], pa.map_(pa.string(), pa.int64())) == ['{"k": null}', None]


def test_every_control_character_survives_json():
    every = "".join(map(chr, range(0x80)))
    assert json.loads(json_column(pa.array([every])).to_pylist()[0]) == every


def test_a_cell_cannot_steer_the_terminal():
    assert visible(pa.array(["a\nb\tc\x1b[31m", "plain"])).to_pylist() == [
        "a\\nb\\tc\N{REPLACEMENT CHARACTER}[31m",
        "plain",
    ]
