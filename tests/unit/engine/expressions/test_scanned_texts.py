"""Functions of compiled loops: the same as the general ones for what is rare, at any place of a column."""

from __future__ import annotations

import base64
import random
import zlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.catalog.types import STRING, from_arrow
from penstock.engine.expressions.nested.lists import firsts, lists_of, members
from penstock.engine.expressions.text import scanned_texts
from penstock.engine.expressions.text.scanned_texts import crc32, like_kernel, reversed_texts, unbase64
from tests.unit.engine.expressions.against_spark import run
from tests.unit.engine.expressions.calls import call, col
from tests.unit.engine.expressions.nested_cases import bound

WORDS = [
    "",
    "a",
    "ab",
    "item",
    "ITEM 7",
    "an item of 70",
    "ünder",
    "item\nitem",
    "\u212aelvin",
    "a%b",
    None,
    "İtem 7",
]


def texts(count: int = 400) -> pa.Array:
    chance = random.Random(4)
    pieces = ["", "a", "b", "item", "7", "é", "K", "\n"]
    made = ["".join(chance.choices(pieces, k=chance.randrange(9))) for _ in range(count)]
    return pa.array([*WORDS, *made])[3:]


@pytest.mark.parametrize(
    "pattern", ["%item%7", "a%b", "a%b%", "%a%b%7%", "it%em", "%é%a", "a%%a", "%kel%n", "ab%b"]
)
@pytest.mark.parametrize("without_case", [False, True])
def test_like_of_several_parts_is_that_of_arrow(pattern, without_case):
    kernel, column = like_kernel(pattern, without_case), texts()
    expected = pc.match_like(column, pattern, ignore_case=without_case)
    if without_case and not pattern.isascii():
        assert kernel is None
        return
    assert kernel(column).equals(expected)
    ascii_only = column.filter(pc.fill_null(pc.string_is_ascii(column), False))
    assert kernel(ascii_only).equals(pc.match_like(ascii_only, pattern, ignore_case=without_case))
    one = pa.scalar("an item of 7")
    assert kernel(one) == pc.match_like(one, pattern, ignore_case=without_case)


@pytest.mark.parametrize("pattern", ["item", "%item%", "a_b%c", "a\\%b%c", "", "%"])
def test_other_patterns_are_left_to_arrow(pattern):
    assert like_kernel(pattern, False) is None


NUMBERS = [
    0.0,
    -0.0,
    0.125,
    2.675,
    -2.675,
    0.5,
    1.5,
    1e15,
    -1e22,
    1e300,
    1234567.891,
    -0.001,
    999.995,
    5e-324,
]
NUMBERS += [float("nan"), float("inf"), -float("inf"), None]


@pytest.mark.parametrize("digits", [0, 1, 2, 6])
def test_format_number_is_that_of_each_value(digits):
    chance = np.random.default_rng(3)
    wide, prices = (
        chance.random(300) * 10.0 ** chance.integers(-8, 18, 300),
        np.round(chance.random(300) * 1e4, 3),
    )
    doubles = pa.array([*NUMBERS, *wide, *prices])
    wholes = pa.array([0, -1, 999, 1000, -1_000_000, 2**63 - 1, -(2**63), None])
    exact = pa.array([Decimal(n) / 1000 for n in (*range(-3010, 3010, 5), 10**14)], pa.decimal128(18, 3))
    for column in (doubles, doubles.cast(pa.float32()), wholes, exact, exact.slice(5)):
        call = bound(f"format_number(x, {digits})", {"x": (from_arrow(column.type), [])})
        made = run(call, pa.record_batch([column], names=["x"]), "UTC")
        expected = [
            None if value is None else scanned_texts._format_number(value, digits)
            for value in column.to_pylist()
        ]
        assert made.to_pylist() == expected


def test_checksums_and_base_64():
    column = texts()
    expected = [None if text is None else zlib.crc32(text.encode()) for text in column.to_pylist()]
    assert crc32(column).to_pylist() == expected
    octets = [None if text is None else text.encode() for text in column.to_pylist()]
    coded = [None if raw is None else base64.b64encode(raw).decode() for raw in octets]
    assert unbase64(pa.array(coded)).to_pylist() == octets
    bare = [None if text is None else text.rstrip("=") for text in coded]
    assert unbase64(pa.array(bare)).to_pylist() == octets
    assert unbase64(pa.array(["YW Jj", "YWJj", "YQ==\n"])).to_pylist() == [b"abc", b"abc", b"a"]
    for wrong in ("YWJ!", "Y", "YQ==YQ=="):
        with pytest.raises(Exception, match="base 64"):
            unbase64(pa.array([wrong]))


def test_texts_backwards():
    assert reversed_texts(pa.array(["abc", None, ""])).to_pylist() == ["cba", None, ""]
    assert reversed_texts(pa.array(["aé", "b"])).to_pylist() == ["éa", "b"]
    assert reversed_texts(pa.array(["é", "ab"]).slice(1)).to_pylist() == ["ba"]


def test_sets_of_lists_are_those_of_python():
    chance = random.Random(5)
    values = [0, 1, -1, 2**62, -(2**63), 2**63 - 1, *(n << 40 for n in range(5)), *range(10)]

    def lists(count):
        return [[chance.choice(values) for _ in range(chance.choice([0, 1, 3, 60]))] for _ in range(count)]

    mine, theirs = lists(200), lists(200)
    a, b = (lists_of(pa.array(one, pa.list_(pa.int64()))) for one in (mine, theirs))
    codes, others = (one.flat.to_numpy() for one in (a, b))
    first = [value not in one[:i] for one in mine for i, value in enumerate(one)]
    assert firsts(a.starts, codes).tolist() == first
    shared = [value in other for one, other in zip(mine, theirs, strict=True) for value in one]
    assert members(a, codes, b, others).tolist() == shared


def test_the_code_of_the_first_character_is_that_of_python() -> None:
    letters = ["a", "\x00", "\x7f", "\x80", "é", "\u07ff", "\u0800", "日", "\uffff", "😀", "\U0010ffff"]
    texts = ["", None, *letters, *(letter + "xyz" for letter in letters), "", "é"]
    expected = [None if text is None else ord(text[0]) if text else 0 for text in texts]
    for column, wanted in [
        (pa.array(["zz", *texts]).slice(1), expected),
        (pa.array(texts).slice(0, 2), expected[:2]),
        (pa.array(["ab", "", "c"]), [97, 0, 99]),
        (pa.array([None, None], pa.string()), [None, None]),
        (pa.array([], pa.string()), []),
    ]:
        batch = pa.record_batch([column], names=["s"])
        assert run(call("ascii", col(batch, "s", STRING)), batch).to_pylist() == wanted
