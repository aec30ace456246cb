"""The tokenizer: sqlglot's, with the quotes, comments and symbols of our dialect."""

from __future__ import annotations

import re

from sqlglot import Dialect, tokens
from sqlglot.tokens import Token, TokenType


class Penstock(Dialect):
    """sqlglot dialect of penstock. Backticks and double quotes both quote names. Single quotes quote strings:
    a doubled quote is a quote, a backslash is a backslash.
    """

    class Tokenizer(tokens.Tokenizer):
        """Tokenizer settings. No keyword has a token type of its own: every word is VAR, and the grammar
        recognises keywords by text and position.
        """

        IDENTIFIERS = ["`", '"']  # noqa: RUF012  # sqlglot's class-level tables
        QUOTES = ["'"]  # noqa: RUF012
        COMMENTS = ["--", ("/*", "*/")]  # noqa: RUF012
        NESTED_COMMENTS = False
        # sqlglot reads the text behind a command such as SHOW as one string; ours has a grammar
        COMMANDS = set()  # noqa: RUF012
        # symbols of two or more characters; single ones are sqlglot's
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
    """Return the tokens of a text. Token positions are character offsets; the end is inclusive. A byte order
    mark at the start is read as a space.
    """
    # replaced and not removed: offsets stay those of the text
    tokens = Penstock().tokenize(text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text)
    return [part for token in tokens for part in _split_number(token)]


# 1e3-2: digits with an exponent, a sign, the rest
_EXPONENT_THEN_SIGN = re.compile(r"([\d.]+[eE]\d+)([+-])(.+)")


def _split_number(token: Token) -> list[Token]:
    """Split a number such as ``1e3-2``, which sqlglot reads as one token, into number, sign and number."""
    match = _EXPONENT_THEN_SIGN.fullmatch(token.text) if token.token_type is TokenType.NUMBER else None
    if match is None:
        return [token]
    sign = TokenType.DASH if match[2] == "-" else TokenType.PLUS
    first, operator, following = (
        Token(
            kind,
            match[i],
            token.line,
            token.col,
            token.start + match.start(i),
            token.start + match.end(i) - 1,
        )
        # each part has its own offsets within the token
        for i, kind in ((1, TokenType.NUMBER), (2, sign), (3, TokenType.NUMBER))
    )
    # 1e3-1e2-5 has several
    return [first, operator, *_split_number(following)]
