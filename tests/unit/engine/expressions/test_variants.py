"""VARIANT: as Spark had it when it was asked (``recorded/variants-UTC.arrow``), and what only we have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.feather as feather
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.engine.expressions.json.canonical_text import NotCanonical, canonical_text, canonical_texts
from tests.unit.engine.expressions.against_spark import differences
from tests.unit.engine.expressions.nested_cases import bound
from tests.unit.engine.expressions.record_variants import RECORDING
from tests.unit.engine.expressions.test_json_paths import Documents
from tests.unit.engine.expressions.variant_cases import COLUMNS, rows, texts


def test_same_values_and_types_as_spark() -> None:
    table, batch = feather.read_table(RECORDING), rows()
    assert table.column_names == texts(), (
        "the cases have changed: python -m tests.unit.engine.expressions.record_variants"
    )
    found = [
        line
        for text in texts()
        for line in differences(text, bound(text, COLUMNS), table.column(text), batch, "UTC")
    ]
    assert not found, "\n".join(found)


def _or_none(text: str | None) -> str | None:
    try:
        return None if text is None else canonical_text(text)
    except NotCanonical:
        return None


def test_the_loop_writes_what_the_general_parser_writes() -> None:
    """Else a value's text would depend on its neighbours, and equal values would not be equal."""
    documents = Documents(11)
    column = pa.array(["{}", None, *(documents.one() for _ in range(6_000))]).slice(2)
    written, wrong = canonical_texts(column)
    expected = [_or_none(text) for text in column.to_pylist()]
    assert written.to_pylist() == expected
    assert wrong.tolist() == [
        one is None and text is not None for one, text in zip(expected, column.to_pylist(), strict=True)
    ]
    # the parser of Python agrees on what they mean, and a second pass changes nothing
    for text, one in zip(column.to_pylist(), expected, strict=True):
        if one is not None and "e" not in text.lower():
            assert json.loads(one, parse_float=Decimal) == json.loads(text, parse_float=Decimal)
    known = written.drop_null()
    assert canonical_texts(known)[0].equals(known)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{" + ", ".join(f'"{chr(90 - i % 26)}{i}": {i}' for i in range(90)) + "}", None),
        ("[" * 60 + "1" + "]" * 60, None),
        ("[" * 70 + "1" + "]" * 70, "NULL"),
        ("9" * 38, None),
        ("9" * 39, "1.0E39"),
        ("-0.0", "0"),
        ("1e400", "NULL"),
        ('"\\ud800"', "NULL"),
        ('"\\u0000"', '"\\u0000"'),
    ],
)
def test_outsized_and_odd_values(text: str, written: str | None) -> None:
    (found,) = canonical_texts(pa.array([text]))[0].to_pylist()
    if written is not None:
        assert found == (None if written == "NULL" else written)
    else:
        assert (
            json.loads(found) == json.loads(text) and list(json.loads(found)) == sorted(json.loads(found))
            if found[0] == "{"
            else found == text
        )


DOCUMENT = """parse_json('{"b": [1, {"x y": "z"}, 2.50], "a": {"c": 1e2, "f": "5", "it''s": 1}}')"""


@pytest.fixture(scope="module")
def session() -> Iterator[Connection]:
    connection = penstock.connect()
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("v:a.c::INT", 100),
        ("v:b[1]['x y']::STRING", "z"),
        ("v:b[2]", "2.5"),
        ("(v):a:f", '"5"'),
        ("t.v:a.f::INT + 1", 6),
        ("v['a']['f']::INT", 5),
        ("v['b'][1]::INT", 1),
        ("v['b'][3]::DECIMAL(3, 1)", Decimal("2.5")),
        ("v['a']['it''s']::INT", 1),
        ("v:A", None),
        ("v:b[7]", None),
        ("typeof(v:a)", "variant"),
        ("v:b::ARRAY<VARIANT>", ["1", '{"x y":"z"}', "2.5"]),
        ("CAST(v:a AS MAP<STRING, STRING>)['f']", "5"),
        ("json_object('k' VALUE v:a.f)", '{"k":"5"}'),
        ("json_object(k:k)", '{"q":"q"}'),
        ("MAP {k:v:a.f}['q']", '"5"'),
        ("try_variant_get(v, '$.b', 'INT')", None),
        ("v IS NULL", False),
    ],
)
def test_paths(session: Connection, text: str, value: object) -> None:
    (row,) = session.execute(f"SELECT {text} FROM (VALUES ({DOCUMENT}, 'q')) AS t(v, k)").fetchall()
    assert row == (value,)


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("v = v", "SQL-1103", "v:name::STRING"),
        ("v = 1", "SQL-1103", "CAST(v AS INT)"),
        ("max(v)", "SQL-1103", "v:name::STRING"),
        ("v.a", "SQL-1108", "write v:a"),
        ("v[0]", "SQL-1109", "v:[0] counts from 0"),
        ("v[k]", "SQL-1108", "CAST(v AS MAP<STRING, VARIANT>)[k]"),
        ("upper(v)", "SQL-1103", "CAST(.. AS STRING)"),
        ("variant_get(v, 'a', 'INT')", "SQL-1103", "'$.name'"),
        ("variant_get(v, k, 'INT')", "SQL-1103", "'$.a[0]'"),
        ("variant_get(v, '$', 'BINARY')", "SQL-1106", "read it as STRING"),
        ("CAST(DATE '2024-01-01' AS VARIANT)", "SQL-1106", "CAST it to STRING"),
        ("to_variant_object(X'00')", "SQL-1103", "CAST times and bytes"),
        ("from_json('{}', 'a VARIANT')", "SQL-1103", "parse_json(text)"),
        ("CAST(v AS INT)", "RUN-2003", "TRY_CAST"),
        ('parse_json(\'{"a": 1, "a": 2}\')', "RUN-2004", "try_parse_json"),
        ("parse_json('[1')", "RUN-2004", "try_parse_json"),
    ],
)
def test_refusals_have_a_hint(session: Connection, text: str, code: str, hint: str) -> None:
    with pytest.raises(PenstockError) as raised:
        session.execute(f"SELECT {text} FROM (VALUES ({DOCUMENT}, 'q')) AS t(v, k)").fetchall()
    assert raised.value.code == code, raised.value
    assert hint in str(raised.value.hint), raised.value


def test_a_table_whose_connector_has_no_variant_computes_one(session: Connection) -> None:
    with pytest.raises(PenstockError) as raised:
        session.execute("CREATE TABLE p (v ARRAY<VARIANT>) WITH ('connector' = 'datagen')")
    assert raised.value.code == "SQL-1509" and "parse_json" in str(raised.value.hint)


def test_equal_values_are_one_group(session: Connection) -> None:
    text = """SELECT v, count(*) FROM (VALUES (parse_json('{"a": 1, "b": 2}')), (parse_json('{"b": 2.0, "a": 1}'))) AS t(v) GROUP BY v"""
    assert session.execute(text).fetchall() == [('{"a":1,"b":2}', 2)]
