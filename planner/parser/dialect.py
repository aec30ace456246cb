"""sqlglot's tokens of our dialect."""

from __future__ import annotations

import re

from sqlglot import Dialect, tokens
from sqlglot.tokens import Token, TokenType


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
