"""The search of a pattern in sorted rows: matches against Python's ``re``, values of earlier rows, ranks of strings,
the first row at which a match may still end.
"""

from __future__ import annotations

import random
import re

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.operators.match.nfa_search import Matches, MatchSearch, Parts, _joined, _ranks, earlier
from penstock.engine.operators.over.partitions import Partitions
from tests.unit.engine.operators.match.test_match_recognize import spec_for

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), ("x", pa.int64()), ("s", pa.string())])


def search_of(pattern: str, skip: str) -> MatchSearch:
    """A row with the letter A is an A, so a pattern is a regular expression over these letters."""
    defined = ", ".join(f"{name} AS s = '{name}'" for name in sorted(set(re.findall("[A-Z]", pattern))))
    clauses = (
        f"PARTITION BY k ORDER BY t MEASURES COUNT(*) AS n AFTER MATCH SKIP {skip} "
        f"PATTERN ({pattern}) DEFINE {defined}"
    )
    spec = spec_for(clauses)
    return MatchSearch(spec, "UTC")


def sorted_rows(texts: list[str]) -> Partitions:
    """Return a partition for each text, with a row for each letter."""
    lengths = np.array([len(text) for text in texts], np.int64)
    ends = np.cumsum(lengths)
    count = int(lengths.sum())
    columns = [
        np.repeat(np.arange(len(texts)), lengths),
        pa.array(np.arange(count), pa.timestamp("us")),
        np.arange(count),
        pa.array(list("".join(texts)), pa.string()),
    ]
    rows = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)
    slots = np.repeat(np.arange(len(texts)), lengths)
    return Partitions(
        rows, slots, np.repeat(ends - lengths, lengths), np.repeat(ends, lengths), np.arange(count)
    )


def parts_of(part: Partitions, texts: list[str], *, final: bool) -> Parts:
    """Return all partitions to be searched from their first rows."""
    lengths = np.array([len(text) for text in texts], np.int64)
    ends = np.cumsum(lengths)
    finals = np.full(len(texts), int(final), np.uint8)
    steps = np.empty(part.rows.num_rows, np.int64)
    return Parts(ends - lengths, np.zeros(len(texts), np.int64), ends, finals, steps)


def search(
    pattern: str, texts: list[str], *, final: bool = True, skip: str = "PAST LAST ROW"
) -> list[list[str]]:
    part = sorted_rows(texts)
    found = search_of(pattern, skip)
    times = np.arange(part.rows.num_rows, dtype=np.int64)
    matches, _ = found.of(part, times, parts_of(part, texts, final=final), 1 << 60)
    words: list[list[str]] = [[] for _ in texts]
    first, letters = 0, "".join(texts)
    for number, end in zip(matches.parts.tolist(), matches.ends.tolist(), strict=True):
        words[number].append("".join(letters[row] for row in matches.rows[first:end]))
        first = end
    return words


@pytest.mark.parametrize(
    "pattern", ["A B* C", "A+ B?", "(A | B) C{2}", "A B*? (C | A)", "(A B){1,2}", "B+? A"]
)
def test_matches_are_those_of_a_regular_expression(pattern: str) -> None:
    dice = random.Random(pattern)
    texts = ["".join(dice.choices("ABC", k=dice.randrange(12))) for _ in range(80)]
    expected = [[match[0] for match in re.finditer(pattern.replace(" ", ""), text)] for text in texts]
    assert search(pattern, texts) == expected
    assert any(expected)


def test_more_matches_than_fit_into_the_first_output_arrays_are_joined() -> None:
    # from each row to the end: 80 matches of 80, 79, .. rows are more than the 1,024 rows of the first arrays
    text = "A" * 80
    (words,) = search("A+", [text], skip="TO NEXT ROW")
    assert words == [text[row:] for row in range(80)]


def test_a_match_that_more_rows_may_change_waits() -> None:
    assert search("A+", ["AAB", "AA"], final=False) == [["AA"], []]
    assert search("A+", ["AAB", "AA"], final=True) == [["AA"], ["AA"]]


def test_the_first_row_at_which_a_waiting_match_may_end() -> None:
    texts = ["AB", "CC", "A"]
    part = sorted_rows(texts)
    found = search_of("A B+", "PAST LAST ROW")
    parts = parts_of(part, texts, final=False)
    _, tests = found.of(part, np.arange(5, dtype=np.int64), parts, 1 << 60)
    again = parts_of(part, texts, final=False)
    # AB may end at its second row; no row of CC begins a match; A needs a row that is not there yet
    assert found.first_ends(again, tests, np.arange(3, dtype=np.int64)).tolist() == [1, -1, -1]


def test_earlier_values_stay_in_their_partition() -> None:
    part = sorted_rows(["ABC", "AB"])
    values = part.rows.column(3)
    assert earlier(values, part, 0).to_pylist() == list("ABCAB")
    assert earlier(values, part, 1).to_pylist() == [None, "A", "B", None, "A"]
    assert earlier(values, part, 2).to_pylist() == [None, None, "A", None, None]


def test_ranks_order_the_strings_of_all_columns() -> None:
    columns = [["b", None, "a"], ["ä", "", "b"]]
    ranks = [rank.tolist() for rank in _ranks([pa.array(column, pa.string()) for column in columns])]
    flat = [
        (rank, text)
        for rows, column in zip(ranks, columns, strict=True)
        for rank, text in zip(rows, column, strict=True)
    ]
    known = sorted((text.encode(), rank) for rank, text in flat if text is not None)
    assert [rank for _, rank in known] == sorted(rank for _, rank in known)
    assert ranks[0][0] == ranks[1][2] and len({rank for _, rank in known}) == 4
    assert _ranks([]) == []


def test_joined_pieces_count_the_rows_of_all() -> None:
    def piece(part: int, rows: list[int]) -> Matches:
        return Matches(np.array([part]), np.array([len(rows)]), np.array(rows), np.zeros(len(rows), np.int64))

    joined = _joined([piece(0, [0, 1]), piece(1, [5]), piece(1, [6, 7, 8])])
    assert joined.parts.tolist() == [0, 1, 1]
    assert joined.ends.tolist() == [2, 3, 6]
    assert joined.rows.tolist() == [0, 1, 5, 6, 7, 8]
