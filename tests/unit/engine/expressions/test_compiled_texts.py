"""LEVENSHTEIN, SOUNDEX, URL_ENCODE, URL_DECODE and PARSE_URL of any text: as the plain functions of Python."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from urllib.parse import quote_plus, unquote_plus

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import INT, STRING
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.text.encodings import _parse_url
from penstock.engine.expressions.text.string_metrics import _soundex
from penstock.planner.expressions.nodes import Literal
from tests.unit.engine.expressions.calls import call, col, run

ALPHABET = [
    *"abcdehwABCDEHW~*-._ +%/?#&=@:;19'\"|",
    "ñ",
    "日",
    "😀",
    "é",
    "ß",
    "ﬁ",
    "\x7f",
    "\n",
    "%4",
    "%C3%A9",
    "%ff",
    "%41",
]
SOUNDS = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "-", "7", "ß", "ı", ""]


def texts_of(seed: int, alphabet: list[str], count: int, longest: int) -> pa.Array:
    """Random texts, some NULL and empty, as a slice whose first text does not begin at the first byte."""
    chance = random.Random(seed)
    drawn = [
        None if chance.random() < 0.03 else "".join(chance.choices(alphabet, k=chance.randint(0, longest)))
        for _ in range(count)
    ]
    return pa.array(["xyz", *drawn]).slice(1)


def values_of(name: str, *columns: pa.Array, constants: tuple[object, ...] = ()) -> list:
    batch = pa.RecordBatch.from_arrays(list(columns), names=[f"c{i}" for i in range(len(columns))])
    args = [
        col(batch, f"c{i}", INT if pa.types.is_integer(c.type) else STRING) for i, c in enumerate(columns)
    ]
    return run(
        call(name, *args, *(Literal(STRING, False, value=value) for value in constants)), batch
    ).to_pylist()


@pytest.mark.parametrize(
    ("longest", "alphabet"),
    [(12, ["a", "b", "c"]), (40, ["a", "b", "ñ", "日", "😀"]), (150, ["a", "b", "ñ"])],
)
def test_distances_are_those_of_duckdb(longest: int, alphabet: list[str]) -> None:
    a, b = (texts_of(seed, alphabet, 600, longest) for seed in (1, 2))
    # DuckDB counts bytes: each letter is one of ASCII there
    letters = str.maketrans({letter: chr(97 + i) for i, letter in enumerate(alphabet)})
    sides = [pa.array([text and text.translate(letters) for text in side.to_pylist()]) for side in (a, b)]
    connection = duckdb.connect()
    connection.register("given", pa.table({"a": sides[0], "b": sides[1], "n": range(len(a))}))
    rows = connection.execute("SELECT levenshtein(a, b) FROM given ORDER BY n").fetchall()
    theirs = [distance for (distance,) in rows]
    assert values_of("levenshtein", a, b) == theirs
    limits = pa.array([i % 9 - 1 for i in range(len(a))], pa.int32())
    limited = [
        d if d is None or d <= limit else -1 for d, limit in zip(theirs, limits.to_pylist(), strict=True)
    ]
    assert values_of("levenshtein", a, b, limits) == limited


def each(function: Callable[..., object], texts: pa.Array, *rest: object) -> list:
    return [None if text is None else function(text, *rest) for text in texts.to_pylist()]


def test_sounds() -> None:
    texts = texts_of(3, SOUNDS, 3_000, 9)
    assert values_of("soundex", texts) == each(_soundex, texts)
    assert values_of("soundex", pa.array(["Robert", "Rupert", "Tymczak", "Pfister", "Honeyman"])) == [
        "R163",
        "R163",
        "T522",
        "P236",
        "H555",
    ]


def test_encoded_and_decoded() -> None:
    texts = texts_of(4, ALPHABET, 3_000, 10)
    encoded = values_of("url_encode", texts)
    assert encoded == each(lambda text: quote_plus(text, safe="*-._").replace("~", "%7E"), texts)
    assert values_of("url_decode", pa.array(encoded, pa.string())) == texts.to_pylist()
    well = [
        None if text is None or re.search(r"%(?![0-9A-Fa-f]{2})", text) else unquote_plus(text)
        for text in texts.to_pylist()
    ]
    assert values_of("try_url_decode", texts) == well
    assert any(text is not None and "\ufffd" in text for text in well)
    with pytest.raises(PenstockError, match="no encoded part of a URL"):
        values_of("url_decode", pa.array(["a", "%4"]))


URLS = [
    *(
        "https",
        "ftp",
        "x+y",
        "1x",
        "",
        "://",
        ":",
        "//",
        "/",
        "a.b",
        "user",
        "u:p",
        "@",
        "[::1]",
        ":80",
        ":",
        "?",
        "#",
        "&",
        "=",
        "k",
        "k=1",
        "kk=2",
        "&k=",
    ),
    *("%20", "path", "mailto:a@b", " ", "ñ", "^", "https://shop.example/de?k=1&b=2#top", "https://h"),
]


@pytest.mark.parametrize(
    "part", ["PROTOCOL", "AUTHORITY", "USERINFO", "HOST", "PATH", "QUERY", "REF", "FILE", "host"]
)
def test_parts_of_urls(part: str) -> None:
    texts = texts_of(5, URLS, 2_000, 9)

    def expected(url: str, *key: str) -> object:
        try:
            return _parse_url(url, part, *key)
        except Fault:
            return None

    assert values_of("try_parse_url", texts, constants=(part,)) == each(expected, texts)
    for key in ("k", "kk", "a.b", ""):
        assert values_of("try_parse_url", texts, constants=(part, key)) == each(expected, texts, key)
