"""The grammar of statements, read once, and the words for what it does not accept."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark, Tree
from lark.exceptions import UnexpectedEOF, UnexpectedToken

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import nearest
from penstock.planner.statements.grammar_cache import tables_of
from penstock.planner.statements.lexer import REGIONS, StatementLexer, StatementToken

_SHOWN = {
    "LPAR": '"("',
    "RPAR": '")"',
    "COMMA": '","',
    "EQUAL": '"="',
    "LESSTHAN": '"<"',
    "MORETHAN": '">"',
    "COLON": '":"',
    "SEMICOLON": '";"',
    "DOT": '"."',
    "STRING": "a text in single quotes",
    "NUMBER": "a number",
    "NAME": "a name",
    **REGIONS,
}


@cache
def _grammar() -> Lark:
    return tables_of(Path(__file__).with_name("statements.lark"), StatementLexer, ["statement", "type"])


def parse_tree(text: str, start: str = "statement") -> Tree:
    """Return lark's tree of a statement or type; raise SQL-1001 or SQL-1008 with a span and what was
    expected.
    """
    try:
        return _grammar().parse(text, start=start)
    except UnexpectedToken as error:
        raise _refusal(error, text) from None
    except UnexpectedEOF as error:
        raise _ended(text, sorted(error.expected)) from None


def _refusal(error: UnexpectedToken, text: str) -> PenstockError:
    expected = sorted(token.accepted if isinstance(token := error.token, StatementToken) else error.expected)
    if not isinstance(token, StatementToken):
        return _ended(text, expected)
    before = token.previous
    span = Span(token.start_pos or 0, token.end_pos or 0)
    meant = _meant(token, expected)
    if meant is None and before is not None and before.type == "NAME":
        meant = _meant(before, before.accepted)
        if meant is not None:
            token, span = before, Span(before.start_pos or 0, before.end_pos or 0)
    if meant is not None:
        return PenstockError(
            "SQL-1001",
            f'unexpected "{token.value}"',
            span=span,
            hint=f'did you mean "{meant}"?',
            sqlstate="42601",
        )
    if before is None:
        hint = (
            "statements begin with SELECT, INSERT, CREATE, DROP, EXPLAIN, SET, SHOW, DESCRIBE and "
            "others: HELP lists them"
        )
        return PenstockError(
            "SQL-1010",
            f'no statement begins with "{_short(token.value)}"',
            span=span,
            hint=hint,
            sqlstate="42601",
        )
    if token.type == "RESERVED" and "NAME" in expected:
        hint = f"quote it to use it as a name: `{token.value}`"
        return PenstockError(
            "SQL-1008", f"{token.value.upper()} is a reserved word", span=span, hint=hint, sqlstate="42601"
        )
    shown = _short(token.value)
    shown = shown if shown.startswith(("'", '"', "`")) else f'"{shown}"'
    return PenstockError(
        "SQL-1001", f"unexpected {shown}: {_wanted(expected)} was expected", span=span, sqlstate="42601"
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + "..."


def _meant(token: StatementToken, accepted: object) -> str | None:
    words = {word for word in accepted if word.isalpha() and word not in _SHOWN and not word.startswith("$")}  # type: ignore[attr-defined]
    if "QUERY" in accepted:  # type: ignore[operator]
        words |= {"SELECT", "WITH", "VALUES"}
    meant = nearest(token.value, words) if token.type in ("NAME", "RESERVED") else None
    return None if meant == token.value.upper() else meant


def _ended(text: str, expected: list[str]) -> PenstockError:
    end = len(text.rstrip())
    return PenstockError(
        "SQL-1001",
        f"the statement ends where {_wanted(expected)} was expected",
        span=Span(end, end + 1),
        sqlstate="42601",
    )


def _wanted(expected: list[str]) -> str:
    words = [_SHOWN.get(word, word) for word in expected if word not in ("$END", "DOT")]
    words += ["the end of the statement"] if "$END" in expected else []
    if len(words) > 7:
        words = [word for word in words if not word.isupper()] or ["something else"]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "something else"
