"""JSON read, written and put together: as Spark did when it was asked (``recorded/json-UTC.arrow``), and
what only we have.
"""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP_LTZ,
    Array,
    DataType,
    Row,
    to_arrow,
)
from penstock.engine.expressions.json.from_json import rows_of_lines
from tests.unit.engine.expressions.against_spark import differences
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.json_cases import COLUMNS, rows, texts
from tests.unit.engine.expressions.nested_cases import bound
from tests.unit.engine.expressions.record_json import RECORDING

OWN: dict[str, tuple[DataType, list]] = {
    "j": (STRING, ['{"a": 1}', "[1, 2]", None, "x"]),
    "s": (STRING, ["a", 'q"', None, "ñ\n"]),
    "i": (INT, [1, 2, None, -3]),
    "z": (
        TIMESTAMP_LTZ,
        [datetime(2024, 7, 1, 12), datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime(2024, 1, 1)],
    ),
    "y": (BINARY, [b"Hello", b"", None, b"\xff"]),
}


def given() -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(column, to_arrow(kind)) for kind, column in OWN.values()], names=list(OWN)
    )


def test_same_values_and_types_as_spark() -> None:
    table, batch = feather.read_table(RECORDING), rows()
    assert table.column_names == texts(), (
        "the cases have changed: python -m tests.unit.engine.expressions.record_json"
    )
    found = [
        line
        for text in texts()
        for line in differences(text, bound(text, COLUMNS), table.column(text), batch, "UTC")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("json_object('a' VALUE i, KEY 'b' VALUE s)", ['{"a":1,"b":"a"}', '{"a":2,"b":"q\\""}', '{"a":null,"b":null}', '{"a":-3,"b":"ñ\\n"}']),
        ("json_object('a', i, 'b', s ABSENT ON NULL)", ['{"a":1,"b":"a"}', '{"a":2,"b":"q\\""}', "{}", '{"a":-3,"b":"ñ\\n"}']),
        ("json_object('a': json_array(i, 7), 'x': j)",
         ['{"a":[1,7],"x":"{\\"a\\": 1}"}', '{"a":[2,7],"x":"[1, 2]"}', '{"a":[7],"x":null}', '{"a":[-3,7],"x":"x"}']),
        ("json_object('y' VALUE json_query(j, '$') ABSENT ON NULL)", ['{"y":{"a":1}}', '{"y":[1,2]}', "{}", "{}"]),
        ("json_object(coalesce(s, '') VALUE TRUE)", ['{"a":true}', '{"q\\"":true}', '{"":true}', '{"ñ\\n":true}']),
        ("json_object()", ["{}"] * 4),
        ("json_array()", ["[]"] * 4),
        ("json_array(i, NULL, 'x' NULL ON NULL)", ['[1,null,"x"]', '[2,null,"x"]', '[null,null,"x"]', '[-3,null,"x"]']),
        ("json_array(i, struct(s))", ['[1,{"s":"a"}]', '[2,{"s":"q\\""}]', "[{}]", '[-3,{"s":"ñ\\n"}]']),
        ("to_json(array(y))", ['["SGVsbG8="]', '[""]', "[null]", '["/w=="]']),
        ("from_json(j, 'a INT').a", [1, None, None, None]),
        ("from_json(to_json(struct(i, s)), 'i INT, s STRING').s", ["a", 'q"', None, "ñ\n"]),
    ],
)  # fmt: skip
def test_what_is_put_together(text: str, values: list[object]) -> None:
    assert run(bound(text, OWN), given()).to_pylist() == values


@pytest.mark.parametrize(
    ("zone", "first"),
    [("UTC", '["2024-07-01T12:00:00.000Z"]'), ("America/New_York", '["2024-07-01T08:00:00.000-04:00"]'),
     ("Asia/Kolkata", '["2024-07-01T17:30:00.000+05:30"]')],
)  # fmt: skip
def test_instants_with_their_distance_from_utc(zone: str, first: str) -> None:
    found = run(bound("to_json(array(z))", OWN), given(), zone).to_pylist()
    assert found[0] == first and found[2] == "[null]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from_json(j, 'a INT', map('mode', 'FAILFAST'))", "cannot read"),
        ("from_json(j, 'a INT', map('mode', 'DROPMALFORMED'))", "the only option is mode"),
        ("from_json(j, s)", "no constant text"),
        ("from_json(j, 'a INTT')", '"INTT" does not exist'),
        ("from_json(j, 'MAP<INT, INT>')", "are texts, not INT"),
        ("to_json(i)", "wanted a ROW"),
        ("to_json(array(INTERVAL '1' DAY))", "no form in JSON"),
        ("schema_of_json('{')", "is no JSON"),
        ("json_object(s VALUE i)", "is NULL"),
        ("json_object('a')", 'VALUE, : or "," was expected'),
        ("json_object(i VALUE 1)", "wanted STRING"),
    ],
)
def test_what_cannot_be_is_told(text: str, words: str) -> None:
    with pytest.raises(PenstockError, match=words):
        run(bound(text, OWN), given())


def test_plain_lines_are_read_at_once_and_the_others_are_not() -> None:
    kind = to_arrow(Row((("a", INT), ("b", Array(STRING)), ("c", Row((("d", DOUBLE), ("e", BOOLEAN)))))))
    plain = [
        '{"a": 1, "b": ["x", null], "c": {"d": 1, "e": true}, "z": {}}',
        None,
        '\n{"b": [],\n "c": null}',
        '{"b": ["}, {"]}',
    ]
    odd = [
        "",
        "1",
        '{"a": "1"}',
        '{"a": 1} {"a": 2}',
        '{"a": 1.5}',
        '{"a": 1, "a": 2}',
        '{"a": 1} x',
        '{"b": [1]}',
        '{"c": {"d": 1}',
    ]
    found = rows_of_lines(pa.array(plain[:3]), kind)
    assert found is not None and found.to_pylist() == [
        {"a": 1, "b": ["x", None], "c": {"d": 1.0, "e": True}},
        None,
        {"a": None, "b": [], "c": None},
    ]
    assert rows_of_lines(pa.array(plain), kind) is not None
    assert all(rows_of_lines(pa.array([*plain, text]), kind) is None for text in odd)
    assert rows_of_lines(pa.array(["{}"]), to_arrow(Row((("a", DATE),)))) is None
    assert rows_of_lines(pa.array(['{"b": [', "]}", "{}"]), kind) is None
