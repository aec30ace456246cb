"""Scripts: where statements begin and end, and all errors of a file at once."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError
from penstock.planner.statements.script import is_complete, parse_script, split_script


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in split_script(text)]


def test_semicolons_in_strings_names_and_comments_do_not_count() -> None:
    text = "SELECT ';' -- ;\n, `a;b` /* ; */ ;\r\n ;; SELECT \"x;\"\n"
    assert pieces(text) == ["SELECT ';' -- ;\n, `a;b`", 'SELECT "x;"']


def test_a_statement_set_is_one_statement() -> None:
    text = "SELECT 1; EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN TRUE THEN 1 END; INSERT INTO b SELECT 2; END; SELECT 3"
    assert [piece[:10] for piece in pieces(text)] == ["SELECT 1", "EXECUTE ST", "SELECT 3"]
    assert len(pieces("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END; SELECT 1")) == 2
    assert len(pieces("EXPLAIN BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END")) == 1


def test_complete() -> None:
    assert is_complete("SELECT 1;")
    assert is_complete("SELECT 1; -- done")
    assert is_complete("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;")
    for text in [
        "",
        "SELECT 1",
        "SELECT ';",
        "SELECT 1 /* ;",
        "BEGIN STATEMENT SET; INSERT INTO a SELECT 1;",
        "SELECT 1; SELECT 2",
    ]:
        assert not is_complete(text), text


def test_a_byte_order_mark_and_line_ends_are_fine() -> None:
    statements = parse_script("\ufeffSELECT 1;\r\nSELECT 2\r\n;")
    assert [(s.ordinal, s.text) for s in statements] == [(1, "SELECT 1"), (2, "SELECT 2")]


def test_offsets_lead_back_to_the_file() -> None:
    text = "SELECT 1;\n\n-- two\nSELEC 2;\nSELECT 3;\nSELECT 4 +;"
    errors: list[PenstockError] = []
    statements = parse_script(text, "a.sql", errors=errors)
    assert [s.ordinal for s in statements] == [1, 3]
    assert [(e.line, e.column, e.source.statement if e.source else None) for e in errors] == [
        (4, 1, 2),
        (6, 11, 4),
    ]
    assert errors[0].render().startswith("a.sql:4:1: error[SQL-1001]: ")


def test_at_most_twenty_errors_are_gathered() -> None:
    errors: list[PenstockError] = []
    parse_script("SELEC;" * 50, errors=errors)
    assert len(errors) == 20
