"""penstock's SQL as a sqlglot dialect: statements and windows of Flink, values of Spark. The doors to the
grammar of queries.
"""

from __future__ import annotations

import re

from sqlglot import Dialect, exp, tokens
from sqlglot.tokens import Token, TokenType

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.parser.query_parser import QueryParser
from penstock.planner.parser.scanner import allow_depth, check_text


class Penstock(Dialect):
    """Backticks and double quotes both quote names; single quotes quote strings, in which a quote is
    doubled and a backslash is itself.
    """

    class Tokenizer(tokens.Tokenizer):
        """Words are words: no keyword has a token of its own, the grammar knows them by their text and
        place.
        """

        IDENTIFIERS = ["`", '"']  # noqa: RUF012  # sqlglot's class-level tables
        QUOTES = ["'"]  # noqa: RUF012
        COMMENTS = ["--", ("/*", "*/")]  # noqa: RUF012
        NESTED_COMMENTS = False
        COMMANDS = set()  # noqa: RUF012
        KEYWORDS = {  # noqa: RUF012
            "==": TokenType.EQ,
            "::": TokenType.DCOLON,
            "||": TokenType.DPIPE,
            ">=": TokenType.GTE,
            "<=": TokenType.LTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "<=>": TokenType.NULLSAFE_EQ,
            "=>": TokenType.FARROW,
            "->": TokenType.ARROW,
        }

    class Parser(QueryParser):
        """The strict grammar."""


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text; places are character offsets, the end inclusive."""
    tokens = Penstock().tokenize(text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text)
    return [part for token in tokens for part in _split_number(token)]


_EXPONENT_THEN_SIGN = re.compile(r"([\d.]+[eE]\d+)([+-])(.+)")


def _split_number(token: Token) -> list[Token]:
    """sqlglot reads ``1e3-2`` as one number: give its parts back."""
    match = _EXPONENT_THEN_SIGN.fullmatch(token.text) if token.token_type is TokenType.NUMBER else None
    if match is None:
        return [token]
    sign = TokenType.DASH if match[2] == "-" else TokenType.PLUS
    first, operator, rest = (
        Token(
            kind,
            match[i],
            token.line,
            token.col,
            token.start + match.start(i),
            token.start + match.end(i) - 1,
        )
        for i, kind in ((1, TokenType.NUMBER), (2, sign), (3, TokenType.NUMBER))
    )
    return [first, operator, *_split_number(rest)]


def _parser(text: str, start: int) -> Penstock.Parser:
    check_text(text)
    allow_depth()
    parser = Penstock.Parser(dialect=Penstock)
    parser.load(tokenize(" " * start + text[start:]), text)
    return parser


def parse_query(text: str, start: int = 0) -> exp.Expr:
    """Return the syntax tree of the query that reaches from ``start`` to the end of ``text``; raise
    SQL-10xx with a span into ``text``.
    """
    parser = _parser(text, start)
    if not parser.token():
        raise PenstockError(
            "SQL-1004",
            "a query is missing",
            span=Span(start, start + 1),
            hint="write SELECT .. FROM ..",
            sqlstate="42601",
        )
    return parser.whole_query()


def parse_expression(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of the scalar expression between ``start`` and ``end``; raise SQL-10xx with a
    span into ``text``.
    """
    parser = _parser(text[:end], start)
    if not parser.token():
        raise PenstockError(
            "SQL-1004", "an expression is missing", span=Span(start, start + 1), sqlstate="42601"
        )
    return parser.whole_expression()


def parse_item(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of one select item, an expression with an optional alias or a star, between
    ``start`` and ``end``.
    """
    parser = _parser(text[:end], start)
    if not parser.token():
        raise PenstockError(
            "SQL-1004", "an expression is missing", span=Span(start, start + 1), sqlstate="42601"
        )
    return parser.whole_item()


def parse_sort_item(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of one ORDER BY item between ``start`` and ``end``."""
    return _parser(text[:end], start).whole_sort_item()
