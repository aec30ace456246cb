"""The tokenizer: sqlglot's, with the quotes, comments and symbols of our dialect."""

from __future__ import annotations

import re

from sqlglot import Dialect, tokens
from sqlglot.tokens import Token, TokenType


class Penstock(Dialect):
    """sqlglot dialect of penstock. Backticks and double quotes both quote names. Single quotes quote strings:
    a doubled quote is a quote, a backslash is a backslash. In ``E'..'`` a backslash escapes; ``R'..'`` is a
    plain string, as Spark writes one where backslashes escape.
    """

    class Tokenizer(tokens.Tokenizer):
        """Tokenizer settings. No keyword has a token type of its own: every word is VAR, and the grammar
        recognises keywords by text and position.
        """

        IDENTIFIERS = ["`", '"']  # noqa: RUF012  # sqlglot's class-level tables
        QUOTES = ["'"]  # noqa: RUF012
        BYTE_STRINGS = [("e'", "'"), ("E'", "'")]  # noqa: RUF012
        RAW_STRINGS = [("r'", "'"), ("R'", "'")]  # noqa: RUF012
        BYTE_STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012
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
    return [part for token in tokens for part in _split_number(_unescaped(token, text))]


# Spark's: letters, octal and hexadecimal codes of characters, any other character for itself
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def _unescaped(token: Token, text: str) -> Token:
    """Return ``E'..'`` as a string of what its escapes mean, ``R'..'`` as a string; other tokens as they
    are.
    """
    if token.token_type is TokenType.RAW_STRING:
        return Token(
            TokenType.STRING, token.text.replace("''", "'"), token.line, token.col, token.start, token.end
        )
    if token.token_type is not TokenType.BYTE_STRING:
        return token
    body = text[token.start + 2 : token.end].replace("''", "'")
    return Token(
        TokenType.STRING, _ESCAPE.sub(_character, body), token.line, token.col, token.start, token.end
    )


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _CHARACTERS.get(code, code)
    number = int(code[1:], 16) if code[0] in "uU" else int(code, 8)
    # no character has such a code: the text stays
    return chr(number) if number < 0xD800 or 0xDFFF < number <= 0x10FFFF else match[0]


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
