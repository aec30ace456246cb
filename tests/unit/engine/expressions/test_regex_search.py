"""Regular expressions searched by runs and tables of states: as RE2 searches them, in Arrow and in DuckDB."""

from __future__ import annotations

import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import INT, STRING
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.text import regex_search
from penstock.engine.expressions.text.like_and_regexp import usable_pattern
from penstock.engine.expressions.text.regex_automaton import build_tables
from penstock.engine.expressions.text.regex_parser import Unsupported, parse_regex
from penstock.engine.expressions.text.regex_runs import build_runs
from penstock.engine.expressions.text.regex_search import matches_empty
from penstock.engine.kernels.arrow_views import string_parts
from penstock.planner.expressions.nodes import Literal
from tests.unit.engine.expressions.calls import call, col, run

FUNCTIONS = ("extract", "extract_all", "replace", "count", "substr", "instr", "split")
LETTERS = [*"aabbcABk1_-/ \n.", "é", "日", "😀", "\u212a", "ſ"]
PATTERNS = [
    "[0-9]+",
    "item/([0-9]+)",
    r"^(\w+)@(\w+)\.com$",
    r"(\d+)-(\d+)",
    "(a|ab)(c|bcd)?",
    "(.*)/(.*)",
    "(.*?)/(.*)",
    r"^\s+|\s+$",
    "(?i)k+S?",
    "(?i)[^k]s",
    r"(?i)\w+",
    r"(?i)\W",
    "[[:alpha:]]+[[:^space:]]",
    r"[^\x{1F600}a]+",
    r"[é-日]",
    "(?s)a.b",
    "a.b",
    "(?:(a)|b)+c?",
    "a{2,3}?b{1,}",
    "()a",
    "(a)|(b)|c",
    r"[\w.-]+[^]a-]",
    "$",
    "^",
    "x?",
    "(a+|b+)+$",
    "a$|b",
    r"\Aab\z",
    "(ab?)(b?)",
]
RUNS = [
    "item/([0-9]+)",
    "[0-9]+",
    "(a|^)(b*)",
    "(/|^)a([^/]*)",
    "(/|^)[ab]*$",
    "^([a-b]+)/",
    "[ab]*",
    "[ab]*$",
    "^a?b{2}$",
    "a{1,2}(?:b+)",
    "é([^/]*)",
    "a(é)(日)b?",
    r"(\d+)-(\d+)",
    "([^ ]*) ([^ ]*)",
    "(?i)aB+",
    "()a",
    "",
    "$",
    "^",
]
"""Patterns whose texts need no trial."""
EMPTY_AT_BOUNDS = ["", None, "a", "\n", "ab", "k"]


def random_pattern(chance: random.Random, depth: int = 3) -> str:
    kind = chance.random()
    if depth == 0 or kind < 0.35:
        return chance.choice(
            [
                *"abc1",
                ".",
                "[ab]",
                "[^a]",
                r"\d",
                r"\w",
                r"\s",
                r"\W",
                "é",
                "[a-zé]",
                "[^é/]",
                "日",
                "/",
                r"\.",
                "k",
            ]
        )
    if kind < 0.6:
        return "".join(random_pattern(chance, depth - 1) for _ in range(chance.randint(1, 4)))
    if kind < 0.75:
        return "(" + "|".join(random_pattern(chance, depth - 1) for _ in range(chance.randint(1, 3))) + ")"
    if kind < 0.8:
        return chance.choice(["(?i:", "(?s:", "(?:"]) + random_pattern(chance, depth - 1) + ")"
    if kind < 0.84:
        return chance.choice(["^", "$"]) + random_pattern(chance, depth - 1)
    if kind < 0.88:
        return random_pattern(chance, depth - 1) + "$"
    sign = chance.choice(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?", "??"])
    return "(?:" * (wide := chance.random() < 0.6) + random_pattern(chance, depth - 1) + ")" * wide + sign


def texts_of(chance: random.Random, count: int) -> pa.Array:
    """Random texts, some NULL and empty, as a slice whose first text does not begin at the first byte."""
    drawn = [
        None if chance.random() < 0.03 else "".join(chance.choices(LETTERS, k=chance.randint(0, 14)))
        for _ in range(count)
    ]
    return pa.array(["xyz", *EMPTY_AT_BOUNDS, *drawn, "zzz"]).slice(1, count + len(EMPTY_AT_BOUNDS))


def values_of(function: str, texts: pa.Array, *constants: object) -> pa.Array:
    batch = pa.record_batch([texts], names=["s"])
    literals = [Literal(INT if isinstance(c, int) else STRING, False, value=c) for c in constants]
    name = function if function == "split" else f"regexp_{function}"
    return run(call(name, col(batch, "s", STRING), *literals), batch)


def answers(texts: pa.Array, pattern: str, groups: int) -> list[tuple[object, list]]:
    """Return what each function says of a pattern."""
    found: list[tuple[object, list]] = []
    for function in FUNCTIONS:
        for constants in {
            "extract": [(group,) for group in range(groups + 1)],
            "extract_all": [(group,) for group in range(groups + 1)],
            "replace": [("",), ("<#>",), ("$0$0",), *[(f"é$1\\$${groups}\\\\",)] * (groups > 0)],
            "split": [()] if matches_empty(pattern) else [(), (1,), (2,), (3,)],
        }.get(function, [()]):
            result = values_of(function, texts, pattern, *constants)
            result.validate(full=True)
            found.append(((function, constants), result.to_pylist()))
    return found


def compare(pattern: str, texts: pa.Array, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compare both ways. Return whether the tables were used."""
    try:
        usable_pattern(pattern)
    except Fault:
        return False
    try:
        build_tables(parse_regex(pattern), ())
    except Unsupported:
        return False
    groups = pattern.replace(r"\(", "").count("(") - pattern.count("(?")
    monkeypatch.setattr(regex_search, "FIRST_ROWS", 1 << 60)
    expected = answers(texts, pattern, groups)
    monkeypatch.setattr(regex_search, "FIRST_ROWS", 0)
    assert answers(texts, pattern, groups) == expected, pattern
    with monkeypatch.context() as only_tables:
        only_tables.setattr(regex_search, "build_runs", unsupported)
        assert answers(texts, pattern, groups) == expected, pattern
    return True


def unsupported(*_: object) -> None:
    raise Unsupported


@pytest.mark.parametrize("pattern", PATTERNS)
def test_searches_are_those_of_re2(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare(pattern, texts_of(random.Random(5), 400), monkeypatch)


@pytest.mark.parametrize("pattern", RUNS)
def test_runs_are_those_of_re2(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build_runs(parse_regex(pattern), ())
    assert compare(pattern, texts_of(random.Random(8), 150), monkeypatch)
    in_ascii = texts_of(random.Random(9), 150).to_pylist()
    texts = pa.array([text and text.encode("ascii", "ignore").decode() for text in in_ascii])
    assert compare(pattern, texts, monkeypatch)


@pytest.mark.parametrize(
    "pattern",
    ["a*a", "(a|b)c", "(^|a)b", "(a|^)a", "a+?b", "(a)?b", "[ab]{1,2}b", "a?a", "$a", "b^", "(é|^)a"],
)
def test_what_needs_a_trial_is_no_run(pattern: str) -> None:
    with pytest.raises(Unsupported):
        build_runs(parse_regex(pattern), ())


def test_random_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)
    texts = texts_of(chance, 150)
    assert sum(compare(random_pattern(chance), texts, monkeypatch) for _ in range(60)) > 30


def test_texts_that_would_be_read_too_often_are_left_to_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_search, "FIRST_ROWS", 0)
    long = "1" * 200_000
    search = regex_search.RegexSearch("[0-9]+x")
    assert search.matches(pa.array([long])) is None
    assert search.matches(pa.array(["12x3", "7x8x"])).counts.tolist() == [1, 2]
    assert values_of("replace", pa.array([long, long + "x"]), "[0-9]+x", "-").to_pylist() == [long, "-"]
    # where it happens again and again the tables are no longer asked
    for _ in range(4):
        search.matches(pa.array([long]))
    assert search.matches(pa.array(["12x3"])) is None


def test_more_matches_than_expected_are_all_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_search, "FIRST_ROWS", 0)
    texts = pa.array(["a" * 5_000, None, "ba"])
    assert values_of("count", texts, "a").to_pylist() == [5_000, None, 1]
    assert values_of("split", texts, "a").to_pylist() == [[""] * 5_001, None, ["b", ""]]


def test_few_rows_are_left_to_re2() -> None:
    search = regex_search.RegexSearch("a")
    assert search.matches(pa.array(["a"] * 1_999)) is None
    assert search.matches(pa.array(["a"])) is not None


@pytest.mark.parametrize("pattern", ["$", "^", "x*", "(^|b)", r"\b", "(?m)^"])
def test_split_by_a_pattern_that_matches_nothing_ends(pattern: str) -> None:
    # Arrow's search finds the same empty match for ever; on DuckDB the same function is asked
    texts = pa.array(["abx", "", None, "a b"])
    (expected,) = (
        duckdb.connect()
        .execute(
            "SELECT list(string_split_regex(t, ?)) FROM (SELECT unnest(?) AS t)", [pattern, texts.to_pylist()]
        )
        .fetchone()
    )
    assert values_of("split", texts, pattern).to_pylist() == expected


def test_machine_code_is_as_python_runs_it() -> None:
    from penstock.engine.kernels.functions import regex_search as kernels

    tables = build_tables(parse_regex(r"([ab]+)(\d)|é(b?)"), (1, 2, 3))
    offsets, data = string_parts(texts_of(random.Random(3), 60))
    found = []
    for way in (lambda kernel: kernel, lambda kernel: kernel.interpreted):
        counts, spans = np.zeros(len(offsets), np.int64), np.zeros(200, np.int32)
        way(kernels.find_matches)(
            *(
                offsets,
                data,
                np.zeros(0, np.uint8),
                tables.classes,
                tables.cells,
                tables.firsts,
                tables.starts,
            ),
            *(1 << 40, 0, counts, spans),
        )
        groups = np.zeros(tables.slots * int(counts[-1]), np.int32)
        scratch = np.zeros(2 * tables.slots * tables.positions, np.int32)
        way(kernels.locate_groups)(
            *(offsets, data, tables.classes, tables.cells, tables.moves, tables.steps, tables.finals),
            *(tables.starts, tables.slots, counts, spans, scratch, groups),
        )
        ends, out = np.zeros(len(offsets), np.int64), np.zeros(5_000, np.uint8)
        parts, literal = np.array([-1, 0, 2, 2, 0, 0], np.int32), np.frombuffer(b"<>", np.uint8)
        way(kernels.replace_matches)(
            *(offsets, data, counts[:-1], spans, groups, tables.slots, parts, literal, ends, out)
        )
        pieces, cuts = counts[:-1] + 1, np.zeros(400, np.int64)
        between = np.zeros(5_000, np.uint8)
        way(kernels.copy_between)(offsets, data, pieces, spans, cuts, between)
        found.append([array.tolist() for array in (counts, spans, groups, ends, out, cuts, between)])
    assert found[0] == found[1] and found[0][0][-1] > 5


def test_machine_code_of_runs_is_as_python_runs_it() -> None:
    from penstock.engine.kernels.functions import regex_search as kernels

    offsets, data = string_parts(texts_of(random.Random(3), 60))
    found = []
    for way in (lambda kernel: kernel, lambda kernel: kernel.interpreted):
        for pattern, most in (("(a|^)([b/]*)", 1), (r"([ab]+)(\d*)", 1 << 40), ("^a?b", 1), ("b$", 9)):
            runs = build_runs(parse_regex(pattern), (1, 2) if "(" in pattern else ())
            counts, spans, groups = (
                np.zeros(len(offsets), np.int64),
                np.zeros(400, np.int32),
                np.zeros(800, np.int32),
            )
            way(kernels.find_runs)(
                *(offsets, data, np.zeros(0, np.uint8), runs.bounds, runs.sets, runs.firsts, runs.slots),
                *(runs.from_start, runs.start_is_letter, runs.to_end, most, 0, np.zeros(9, np.int64)),
                *(counts, spans, groups),
            )
            found.append([array.tolist() for array in (counts, spans, groups)])
    assert found[:4] == found[4:] and all(counts[-1] > 1 for counts, _, _ in found)


def test_texts_that_repeat_are_extracted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = regex_search._search

    def counted(form, column, most):
        searched.append(len(column))
        return search(form, column, most)

    monkeypatch.setattr(regex_search, "_search", counted)
    monkeypatch.setattr(regex_search, "FIRST_ROWS", 0)
    texts = pa.array(["item/1", "item/22", "x", None] * 1_000)
    assert values_of("extract", texts, "item/([0-9]+)", 1).to_pylist() == ["1", "22", "", None] * 1_000
    assert sum(searched) == 3
