"""Values at paths of JSON texts: the compiled loop and DuckDB's own functions have one answer, whatever the
texts are.
"""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.types import STRING
from penstock.engine.expressions.json.path_scan import LEFT, scan
from penstock.planner.expressions.nodes import Literal
from tests.unit.engine.expressions.calls import call, col, run

PIECES = (
    *(
        "a",
        "b",
        "ñ",
        "😀",
        "\\n",
        '\\"',
        "\\\\",
        "\\/",
        "\\u0041",
        "\\ud83d\\ude00",
        "\\u00f1",
        "x y",
        "'",
        "{",
        "]",
    ),
    *("\\ud83d", "\\u0000", "\\x", "\x7f"),
)
NUMBERS = (
    *(
        "0",
        "1",
        "-12",
        "-0",
        "1.5",
        "1.50",
        "0.1",
        "0.01",
        "1e5",
        "1E-2",
        "-0.0",
        "1.0",
        "100.25",
        "-0.25",
        "01",
    ),
    *(
        "123456789012345678",
        "1234567890123456789",
        "9" * 30,
        "3.141592653589793",
        "0.30000000000000004",
        "1e400",
    ),
)
BROKEN = (
    None,
    "",
    "  ",
    "[1,]",
    "nul",
    '{"a":NaN}',
    "[" * 70 + "]" * 70,
    "[1] 2",
    '{"a" 1}',
    "{1:2}",
    "\ufeff1",
)
PATHS = ("$", "$.a", "$.a.b", "$[0]", "$.a[1]", "$['x y']", "$.ñ", "$[1].a", "$.a.a.a", "$.b[0].b")
VALID = "(CASE WHEN json_valid(s) THEN s::JSON END)"
FUNCTIONS = {
    "get_json_object": "json_extract_string(#json, #path)",
    "json_value": "CASE WHEN json_type(#json, #path) NOT IN ('OBJECT', 'ARRAY', 'NULL') "
    "THEN json_extract_string(#json, #path) END",
    "json_query": "CASE WHEN json_type(#json, #path) IN ('OBJECT', 'ARRAY') "
    "THEN json_extract_string(#json, #path) END",
    "json_exists": "CASE WHEN s IS NOT NULL THEN coalesce(json_exists(#json, #path), false) END",
}
WHOLE = {
    "is_json": "json_valid(s)",
    "json_array_length": "CASE WHEN json_type(#json) = 'ARRAY' THEN json_array_length(#json)::INT END",
    "json_length": "CASE json_type(#json) WHEN 'ARRAY' THEN json_array_length(#json)::INT "
    "WHEN 'OBJECT' THEN len(json_keys(#json))::INT ELSE CASE WHEN #json IS NOT NULL THEN 1 END END",
    "json_object_keys": "CASE WHEN json_type(#json) = 'OBJECT' THEN json_keys(#json) END",
}


class Documents:
    """Random JSON with blanks, escapes, duplicate names, numbers of every form; some of it is broken."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def one(self) -> str | None:
        chance = self._chance
        if chance.random() < 0.05:
            return chance.choice(BROKEN)
        text = self._blank() + self._value(0) + self._blank()
        if chance.random() < 0.15:
            at = chance.randrange(len(text) + 1)
            text = (
                text[:at]
                + chance.choice(["", "x", ",", "}", "]", '"', "\\"])
                + text[at + chance.randint(0, 2) :]
            )
        return text

    def _blank(self) -> str:
        return self._chance.choice(["", "", "", " ", "\n\t "])

    def _string(self) -> str:
        return '"' + "".join(self._chance.choice(PIECES) for _ in range(self._chance.randint(0, 3))) + '"'

    def _value(self, depth: int) -> str:
        chance, kind = self._chance, self._chance.random()
        if depth < 3 and kind < 0.3:
            names = [
                chance.choice(['"a"', '"b"', '"x y"', '"ñ"', '"\\u0061"', self._string()]) for _ in range(3)
            ]
            fields = [f"{name}{self._blank()}:{self._blank()}{self._value(depth + 1)}" for name in names]
            return "{" + ", ".join(fields[: chance.randint(0, 3)]) + self._blank() + "}"
        if depth < 3 and kind < 0.5:
            return "[" + " ,".join(self._value(depth + 1) for _ in range(chance.randint(0, 3))) + "]"
        return chance.choice(
            [self._string(), chance.choice(NUMBERS), chance.choice(["true", "false", "null"])]
        )


@pytest.fixture(scope="module")
def texts() -> pa.Array:
    documents = Documents(5)
    # a slice: its first text does not begin at the first byte
    return pa.array(["{}", None, *(documents.one() for _ in range(4_000))]).slice(2)


def answers(expression: str, texts: pa.Array) -> list:
    connection = duckdb.connect()
    connection.register("given", pa.table({"s": texts, "n": range(len(texts))}))
    return connection.sql(f"SELECT {expression} FROM given ORDER BY n").to_arrow_table().column(0).to_pylist()


@pytest.mark.parametrize("path", PATHS)
def test_paths_find_what_duckdb_finds(path: str, texts: pa.Array) -> None:
    batch = pa.RecordBatch.from_arrays([texts], names=["s"])
    for name, expression in FUNCTIONS.items():
        ours = run(call(name, col(batch, "s", STRING), Literal(STRING, False, value=path)), batch).to_pylist()
        written = path.replace("['", '."').replace("']", '"').replace("'", "''")
        theirs = answers(expression.replace("#json", VALID).replace("#path", f"'{written}'"), texts)
        different = [
            (text, *two)
            for text, *two in zip(texts.to_pylist(), ours, theirs, strict=True)
            if two[0] != two[1]
        ]
        assert not different, (name, different[:3])


@pytest.mark.parametrize("name", WHOLE)
def test_whole_texts_are_as_duckdb_has_them(name: str, texts: pa.Array) -> None:
    batch = pa.RecordBatch.from_arrays([texts], names=["s"])
    ours = run(call(name, col(batch, "s", STRING)), batch).to_pylist()
    theirs = answers(WHOLE[name].replace("#json", VALID), texts)
    assert [
        three for three in zip(texts.to_pylist(), ours, theirs, strict=True) if three[1] != three[2]
    ] == []


def test_plain_texts_are_read_by_the_loop(texts: pa.Array) -> None:
    """Else DuckDB would be compared with itself."""
    kinds = scan(texts, ["a"]).kinds
    assert (kinds != LEFT).mean() > 0.5
    assert len(set(kinds.tolist())) == 9
