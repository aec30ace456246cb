"""The words for a token that a strict grammar does not accept: what stands there, what was expected, and
what a misspelt word may have meant.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import nearest

SYMBOLS = {
    TokenType.L_PAREN: "LPAR",
    TokenType.R_PAREN: "RPAR",
    TokenType.COMMA: "COMMA",
    TokenType.EQ: "EQUAL",
    TokenType.LT: "LESSTHAN",
    TokenType.GT: "MORETHAN",
    TokenType.COLON: "COLON",
    TokenType.SEMICOLON: "SEMICOLON",
    TokenType.STRING: "STRING",
    TokenType.NUMBER: "NUMBER",
    TokenType.DOT: "DOT",
}
"""The terminals of tokens that are no words and no names."""
REGIONS = {
    "EXPRESSION": "an expression",
    "QUERY": "a query",
    "SETTING": "a setting",
    "VALUE": "a value",
    "REST": "the rest of the statement",
}
TYPE_BEGINS = frozenset(("NAME", "INTERVAL", "ARRAY", "MAP", "ROW", "STRUCT"))
"""The terminals a type may begin with."""
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


class AcceptingToken(Protocol):
    """A token of a text, the terminals the grammar accepted in its place, and the token before it."""

    @property
    def type(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def start_pos(self) -> int | None: ...

    @property
    def end_pos(self) -> int | None: ...

    @property
    def accepted(self) -> frozenset[str]: ...

    @property
    def previous(self) -> AcceptingToken | None: ...


def unexpected(token: AcceptingToken) -> PenstockError:
    """Return the error of a token that was not accepted: SQL-1001, or SQL-1008 for a reserved word where a
    name was.
    """
    expected = sorted(token.accepted)
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
    if before is None and TYPE_BEGINS.issuperset(expected):  # a type that stands in a query, or alone
        message = f"unexpected {_quoted(token.value)}: a type was expected"
        return PenstockError("SQL-1001", message, span=span, sqlstate="42601")
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
    message = f"unexpected {_quoted(token.value)}: {_wanted(expected)} was expected"
    return PenstockError("SQL-1001", message, span=span, sqlstate="42601")


def _quoted(text: str) -> str:
    shown = _short(text)
    return shown if shown.startswith(("'", '"', "`")) else f'"{shown}"'


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + "..."


def _meant(token: AcceptingToken, accepted: Collection[str]) -> str | None:
    words = {word for word in accepted if word.isalpha() and word not in _SHOWN and not word.startswith("$")}
    if "QUERY" in accepted:
        words |= {"SELECT", "WITH", "VALUES"}
    meant = nearest(token.value, words) if token.type in ("NAME", "RESERVED") else None
    return None if meant == token.value.upper() else meant


def ended(end: int, expected: Collection[str]) -> PenstockError:
    """Return the error of a text that ends, at ``end``, where something was expected."""
    return PenstockError(
        "SQL-1001",
        f"the statement ends where {_wanted(sorted(expected))} was expected",
        span=Span(end, end + 1),
        sqlstate="42601",
    )


def _wanted(expected: list[str]) -> str:
    words = [_SHOWN.get(word, word) for word in expected if word not in ("$END", "DOT")]
    words += ["the end of the statement"] if "$END" in expected else []
    if len(words) > 7:
        words = [word for word in words if not word.isupper()] or ["something else"]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "something else"
