"""The SQL all databases share: names in quotes, placeholders and their values, texts for people, and errors
as a person reads them.
"""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.connectors.database.database import (
    Condition,
    Select,
    conflict_text,
    failed,
    insert_text,
    quoted,
    quoted_table,
    select_text,
    shown,
)

K, S = Field("k", BIGINT), Field('s"x', STRING)
CONDITIONS = (
    Condition(K, ">=", (3,)),
    Condition(S, "IN", ("a", "it's")),
    Condition(S, "IS NOT NULL"),
    Condition(K, "<", (9,)),
)
SELECT = Select("main.t", (S, K), CONDITIONS)


def item(field: Field) -> str:
    return quoted(field.name)


def test_a_select_has_a_placeholder_for_each_value_in_turn() -> None:
    assert select_text(SELECT, "?", item) == (
        'SELECT "s""x", "k" FROM "main"."t" WHERE "k" >= ? AND "s""x" IN (?, ?) AND "s""x" IS NOT NULL AND "k" < ?',
        [3, "a", "it's", 9],
    )
    assert select_text(Select("t", ()), "?", item) == ('SELECT 1 FROM "t"', [])


def test_a_text_for_people_has_the_values_and_can_be_executed() -> None:
    text = shown(*select_text(SELECT, "?", item), "?")
    assert text.endswith("""WHERE "k" >= 3 AND "s""x" IN ('a', 'it''s') AND "s""x" IS NOT NULL AND "k" < 9""")
    with sqlite3.connect(":memory:") as database:
        database.execute('CREATE TABLE t (k INTEGER, "s""x" TEXT)')
        database.executemany(
            "INSERT INTO t VALUES (?, ?)", [(2, "a"), (3, "it's"), (4, None), (5, "b"), (9, "a")]
        )
        assert database.execute(text).fetchall() == [("it's", 3)]
        assert database.execute(*select_text(SELECT, "?", item)).fetchall() == [("it's", 3)]


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1))
def test_any_name_is_one_name_in_quotes(name: str) -> None:
    with sqlite3.connect(":memory:") as database:
        found = database.execute(f"SELECT 1 AS {quoted(name)}").description[0][0]
    assert found == name


def test_a_table_may_have_a_schema() -> None:
    assert quoted_table('a.b"c') == '"a"."b""c"'


@pytest.mark.parametrize(
    ("names", "keys", "rows"),
    [
        (["k", "v"], ["k"], [(1, "new"), (2, "two")]),
        (["k"], ["k"], [(1, "old"), (2, None)]),
    ],
)
def test_an_insert_replaces_the_row_of_its_key(
    names: list[str], keys: list[str], rows: list[tuple[int, str]]
) -> None:
    """A table of nothing but its key has nothing to replace."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)")
        database.execute("INSERT INTO t VALUES (1, 'old')")
        text = insert_text("t", names, f"VALUES ({', '.join('?' * len(names))})") + conflict_text(names, keys)
        database.executemany(text, [row[: len(names)] for row in [(1, "new"), (2, "two")]])
        assert database.execute("SELECT * FROM t ORDER BY k").fetchall() == rows


def test_an_error_says_what_failed_and_shows_no_secret() -> None:
    error = OSError("no  answer\nfrom me:hunter2@host" + "." * 400)
    made = failed("it failed", error, lambda text: text.replace("hunter2", "***"), state="X1", transient=True)
    assert (made.code, made.message, made.retriable, made.sqlstate) == (
        "DAT-4705",
        "it failed",
        True,
        "58000",
    )
    detail = str(made.detail)
    assert detail.startswith("X1: no answer from me:***@host") and len(detail) == len("X1: ") + 300
    empty = failed("it failed", KeyError(), str, state="X2")
    assert empty.detail == "X2: KeyError" and not empty.retriable
