"""Limits come before recursion: whatever the text, a clean error that names the limit, and nothing deeper
than the rest of the engine can walk.
"""

from __future__ import annotations

import sys

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.planner.binder.binder import Binder
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.parser.type_parser import parse_type
from penstock.planner.statements.script import parse_statement, split_script
from tests.unit.planner.frontend import sample_catalog


def code_of(text: str) -> str:
    with pytest.raises(PenstockError) as caught:
        parse_statement(text)
    assert caught.value.span is not None
    assert 0 <= caught.value.span.start < caught.value.span.end <= len(text) + 1
    return caught.value.code


def bound(text: str) -> LogicalPlan:
    return Binder(sample_catalog(), Settings()).bind_query(parse_statement(text))  # type: ignore[arg-type]


@pytest.mark.parametrize("depth", [201, 1_000, 10_000, 100_000])
def test_parentheses(depth: int) -> None:
    assert code_of("SELECT " + "(" * depth + "1" + ")" * depth) == "SQL-1006"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "CASE WHEN TRUE THEN " * 300 + "1" + " END" * 300,
        "SELECT " + "abs(" * 300 + "1" + ")" * 300,
        "SELECT " + "- " * 5_000 + "1",
        "SELECT " + "NOT " * 5_000 + "TRUE",
        "SELECT " + "1 + " * 50_000 + "1",
        "SELECT " + "1 * " * 500 + "1",
        "SELECT a" + "[1]" * 500,
        "SELECT * FROM " + "(SELECT * FROM " * 300 + "city" + ")" * 300,
        "CREATE TABLE t (a "
        + "ARRAY<" * 5
        + "INT"
        + ">" * 5
        + ", b AS "
        + "(" * 300
        + "1"
        + ")" * 300
        + ") WITH ()",
    ],
)
def test_nesting(text: str) -> None:
    assert code_of(text) == "SQL-1006"


def test_operators() -> None:
    assert code_of("SELECT " + "TRUE OR " * 6_000 + "TRUE") == "SQL-1007"
    assert code_of("SELECT 1" + " UNION ALL SELECT 1" * 1_001) == "SQL-1007"


def test_size() -> None:
    assert code_of("SELECT '" + "x" * 1_000_001 + "'") == "SQL-1005"


def test_what_is_within_the_limits_can_be_walked_at_the_usual_recursion_limit() -> None:
    plans = [
        bound("SELECT " + "(" * 190 + "1" + ")" * 190),
        bound("SELECT " + "abs(" * 150 + "price" + ")" * 150 + " FROM bid"),
        bound("SELECT " + "price + " * 190 + "1 FROM bid"),
        bound("SELECT * FROM bid WHERE " + "price > 1 AND " * 2_000 + "price > 1"),
        bound("SELECT * FROM bid WHERE auction IN (" + ", ".join(map(str, range(20_000))) + ")"),
        bound("SELECT * FROM " + "(SELECT name FROM " * 90 + "city" + ")" * 90),
        bound("SELECT 1" + " UNION ALL SELECT 1" * 900),
    ]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    try:
        for plan in plans:
            assert plan.transform(lambda node: node) is plan
            assert str(plan.walk())
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("text", ["", "  ", "-- only a comment", "/* only */", ";", ";;"])
def test_no_statement(text: str) -> None:
    assert split_script(text) == []


@pytest.mark.parametrize("kind", ["(INT)", "'INT'", "5", "+ INT", "SELECT", "ARRAY<(INT)>", ""])
@pytest.mark.parametrize("cast", ["CAST", "TRY_CAST"])
def test_what_is_no_type_is_an_error_of_syntax(cast: str, kind: str) -> None:
    assert code_of(f"SELECT {cast}(1 AS {kind})") == "SQL-1001"


@pytest.mark.parametrize("text", ["ROW<'a INT>", "ROW<`a INT>", 'ROW<"a INT>', "INT '", "'", "INT /* x"])
def test_a_type_that_never_ends_a_quote_is_refused_where_it_begins(text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        parse_type(text, 10)
    assert caught.value.code == "SQL-1003" and caught.value.span is not None
    assert text[caught.value.span.start - 10] in "'`\"/"
