"""Samples of csv and JSON files: the dialect, the types that our readers read, and what is refused."""

from __future__ import annotations

import random

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem.sample_checks import TextSample
from penstock.engine.connectors.filesystem.text_sampling import csv_columns, json_columns
from penstock.engine.formats.file_task import CsvDialect
from penstock.engine.formats.json_lines import JsonParser


def csv(text: str, dialect: CsvDialect | None = None, *known: str) -> tuple[str, dict[str, str]]:
    sample = TextSample("x.csv", text.encode(), True)
    found = csv_columns(sample, dialect or CsvDialect(), frozenset(known))
    return ", ".join(f"{field.name} {field.type}" for field in found.fields), dict(found.options)


def json(*lines: str) -> str:
    found = json_columns([TextSample("x.jsonl", ("\n".join(lines) + "\n").encode(), True)])
    return ", ".join(f"{field.name} {field.type}" for field in found.fields)


@pytest.mark.parametrize(
    ("text", "columns", "options"),
    [
        ("a,b\n1,x\n2,\n", "a BIGINT, b STRING", {}),
        ("a;b\n1;1.5\n2;3\n", "a BIGINT, b DOUBLE", {"csv.delimiter": ";"}),
        ("a\tb\n1\ttrue\n", "a BIGINT, b BOOLEAN", {"csv.delimiter": "\\t"}),
        ("1,2\n3,4\n", "column0 BIGINT, column1 BIGINT", {"csv.header": "false"}),
        # what pandas writes: its index has no name
        (",a,n\n0,x,5\n1,y,6\n", "column0 BIGINT, a STRING, n BIGINT", {}),
        ('a,b\n1,"x\ny"\n2,"z"\n', "a BIGINT, b STRING", {"csv.multiline": "true"}),
        ("a,b\n1,'x,y'\n2,'z'\n", "a BIGINT, b STRING", {"csv.quote": "'"}),
        ("a,b\n", "a STRING, b STRING", {}),
        (
            "d,t,z\n2024-01-01,2024-01-01 10:00:00,2024-01-01T10:00:00Z\n",
            "d DATE, t TIMESTAMP(6), z TIMESTAMP_LTZ(6)",
            {},
        ),
        # a date that CAST does not read is a text; so is what the first row only seems to be
        ("d,n\n01/02/2024,1\n13/02/2024,x\n", "d STRING, n STRING", {}),
        ("big\n100000000000000000000\n1\n", "big DECIMAL(38, 0)", {}),
    ],
)
def test_a_csv_sample_says_names_types_and_what_differs_from_the_defaults(
    text: str, columns: str, options: dict[str, str]
) -> None:
    assert csv(text) == (columns, options)


def test_options_that_the_user_wrote_are_not_inferred() -> None:
    assert csv("a,b\n1,2\n", CsvDialect(header=False), "csv.header") == ("column0 STRING, column1 STRING", {})
    assert csv("a;b\n1;2\n", CsvDialect(delimiter=","), "csv.delimiter")[0] == "a;b STRING"
    dialect = CsvDialect(null_literal="NA")
    assert csv("a\n1\nNA\n", dialect, "csv.null-literal")[0] == "a BIGINT"


def test_infinity_is_a_number_among_numbers_and_a_text_among_texts() -> None:
    assert csv("a,b\n1.5,inf\nNaN,-Infinity\n+INF,\n")[0] == "a DOUBLE, b DOUBLE"
    assert csv("a,b\ninf,inf\nx,inform\n")[0] == "a STRING, b STRING"


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("a,A\n1,2\n", "DAT-4208", "two columns called A", "header => false)"),
        ("report\n\nid,name,n\n1,x,2\n2,y,3\n", "DAT-4122", "begins with", "tail -n +"),
    ],
)
def test_csv_that_no_reader_of_ours_reads_is_refused(text: str, code: str, message: str, hint: str) -> None:
    with pytest.raises(PenstockError) as caught:
        csv(text)
    assert (caught.value.code, message in caught.value.message) == (code, True)
    assert hint in str(caught.value.hint)


def test_json_samples_have_nested_types_that_our_reader_reads() -> None:
    line = '{"a": {"x": 1, "y": [{"z": "2024-01-01"}]}, "t": "2024-01-01 10:00:00", "n": null, "d": "01/02/2024"}'
    assert json(line) == "a ROW<x BIGINT, y ARRAY<ROW<z DATE>>>, t TIMESTAMP(6), n STRING, d STRING"
    # any line may lack any column, and one that is no object is bad whatever the types
    assert json("7", "[1]", '{"a": 1}') == "a BIGINT"
    # more names than DuckDB has columns for
    wide = json(*(f'{{"k{number}": 1, "m": {{"x{number}": 1}}}}' for number in range(300)))
    assert wide.startswith("k0 BIGINT, m ROW<x0 BIGINT, ") and wide.endswith(", k299 BIGINT")
    assert json('{"a": 1, "a_1": 2}') == "a BIGINT, a_1 BIGINT"
    # values of several kinds
    assert json('{"a": 1}', '{"a": "x"}') == "a VARIANT"
    assert json('{"a": {"b": 1}}', '{"a": [2]}', '{"b": true}') == "a VARIANT, b BOOLEAN"
    assert json('{"a": 1}', "no json", '{"b": 1.5}', '{"a": 2}') == "a BIGINT, b DOUBLE"


@pytest.mark.parametrize(
    ("text", "whole", "columns"),
    [
        ('[{"a": 1}, {"b": "],["}]', True, "a BIGINT, b STRING"),
        ('{\n"a": 1\n}\n{"a": 2}', True, "a BIGINT"),
        # a sample may end in a record
        ('[{"a": 1},\n{"a": 2, "b', False, "a BIGINT"),
    ],
)
def test_json_in_an_array_or_over_lines_is_found(text: str, whole: bool, columns: str) -> None:
    found = json_columns([TextSample("x.json", text.encode(), whole)])
    assert ", ".join(f"{field.name} {field.type}" for field in found.fields) == columns
    assert found.options == {"json.multiline": "true"}
    # said by the user: not inferred, and nothing else is tried
    with pytest.raises(PenstockError, match="DAT-412"):
        json_columns([TextSample("x.json", text.encode(), whole)], multiline=False)


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("[1, 2]", "DAT-4122", "jq -c '.[] | {value: .}' x.jsonl"),
        ('{\n"a": 1\n', "DAT-4122", "jq -c . x.jsonl"),
        ("[]", "DAT-4120", "declare the columns"),
        ('{"a": 1}\n{"A": 1}', "DAT-4208", "without case"),
        ('{"": 1}', "DAT-4121", "declare the columns"),
        ('{"a": {"b": 1, "b": 2}}\n{"a": 1}', "DAT-4123", "leave a out"),
    ],
)
def test_json_that_is_no_objects_is_refused(text: str, code: str, hint: str) -> None:
    with pytest.raises(PenstockError) as caught:
        json(text)
    assert caught.value.code == code
    assert hint in str(caught.value.hint)


def test_whatever_is_in_a_json_sample_our_reader_reads_it_by_the_inferred_types() -> None:
    rng = random.Random(7)
    values = [
        "1",
        "2.5",
        "true",
        "null",
        '"x"',
        '"2024-01-01"',
        '"10:00:00"',
        "[1, 2]",
        '{"k": 1}',
        "12345678901234567890",
    ]
    for _ in range(12):
        # of one kind, or of any
        kinds = rng.choice([[rng.choice(values), "null"], values])
        lines = [f'{{"a": {rng.choice(kinds)}, "b": {rng.choice(values[:3])}}}' for _ in range(5)]
        data = ("\n".join(lines) + "\n").encode()
        found = json_columns([TextSample("x", data, True)])
        rows = JsonParser(found.fields).parse(data)
        assert rows is not None and rows.num_rows == 5
