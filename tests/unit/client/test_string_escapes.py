"""Strings with escapes: E'..', and every string by a setting, in statements and in what is stored of them."""

from __future__ import annotations

from contextlib import closing

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.planner.parser.scanner import escape_strings
from tests.harness.patience import PATIENCE_S

ESCAPED = r"""'it\'s', 'a\tb', '\101\u0042', 'a''b', '50\%', r'\d', "n", E'\\' -- it's"""


def first_row(session: Session, query: str) -> list[object]:
    rows = session.execute(query).final_rows(PATIENCE_S)
    return [column.to_pylist()[0] for column in rows.columns]


def test_every_string_by_the_setting() -> None:
    with closing(Session({"bounded.backend": "duckdb", "sql.string-escapes": "backslash"})) as session:
        query = f"SELECT {ESCAPED}\nFROM (VALUES (1)) AS t (n)"
        values = ["it's", "a\tb", "AB", "a'b", r"50\%", r"\d", 1, "\\"]
        assert first_row(session, query) == values
        # a view keeps what it was, whatever the setting becomes
        session.execute(
            f"CREATE VIEW v AS SELECT {ESCAPED.replace('E', ' E').replace(' -- it', ' AS z -- it')}"
            "\nFROM (VALUES (1)) AS t (n)"
        )
        session.execute("SET 'sql.string-escapes' = 'none'")
        assert first_row(session, "SELECT * FROM v") == values
        assert first_row(session, r"SELECT 'a\b', E'a\'b'") == [r"a\b", "a'b"]
        with pytest.raises(PenstockError, match="SQL-1003"):
            session.execute(r"SELECT 'it\'s'")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"x LIKE'a\_b'", r"x LIKE E'a\_b'"),
        (r"'a' -- 'b\n'", r"'a' -- 'b\n'"),
        (r"/* '\' */ `\'`", r"/* '\' */ `\'`"),
        (r"E'\'', X'1A', var'a'", r"E'\'', X'1A', var'a'"),
    ],
)
def test_only_strings_with_a_backslash_are_changed(text: str, written: str) -> None:
    assert escape_strings(text) == written
