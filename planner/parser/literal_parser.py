"""The grammar of literals: numbers with Spark's suffixes, strings, typed literals, intervals, parameters."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.parser.syntax_nodes import IntervalLiteral, TypedLiteral
from penstock.planner.parser.token_stream import TokenStream

# Spark's: BIGINT, SMALLINT, TINYINT, DOUBLE, FLOAT, DECIMAL
_SUFFIXES = frozenset(("L", "S", "Y", "D", "F", "BD"))
# types whose name before a string makes a literal
_TYPED = frozenset(("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"))
# sqlglot also reads 1e as a number
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?", re.ASCII)
INTERVAL_UNITS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
)


class LiteralParser:
    """Parses literals."""

    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens

    def literal(self) -> exp.Expr | None:
        """Return the literal or parameter at the current token, or ``None`` when there is none."""
        begin = self._tokens.index
        if self._tokens.take(TokenType.NUMBER):
            return self._number(begin)
        # .5 comes as a dot and a number
        if self._tokens.at(TokenType.DOT) and self._tokens.at(TokenType.NUMBER, 1) and self._touches():
            self._tokens.advance(2)
            return self._tokens.spanned(begin, exp.Literal.number("." + self._tokens.previous.text))
        if self._tokens.take(TokenType.STRING):
            return self._tokens.spanned(begin, exp.Literal.string(self._tokens.previous.text))
        if (parameter := self._parameter(begin)) is not None:
            return parameter
        word = self._tokens.word()
        if word == "NULL":
            self._tokens.advance()
            return self._tokens.spanned(begin, exp.Null())
        if word in ("TRUE", "FALSE"):
            self._tokens.advance()
            return self._tokens.spanned(begin, exp.Boolean(this=word == "TRUE"))
        # DATE '2024-01-01'
        if word in _TYPED and self._tokens.at(TokenType.STRING, 1):
            self._tokens.advance(2)
            return self._tokens.spanned(begin, TypedLiteral(this=self._tokens.previous.text, kind=word))
        # X'CAFE', without a space
        if word == "X" and self._tokens.at(TokenType.STRING, 1) and self._touches():
            self._tokens.advance(2)
            return self._tokens.spanned(begin, TypedLiteral(this=self._tokens.previous.text, kind="X"))
        return self._interval(begin) if word == "INTERVAL" else None

    def _parameter(self, begin: int) -> exp.Expr | None:
        # a parameter ?, numbered from left to right
        if self._tokens.take(TokenType.PLACEHOLDER):
            node: exp.Expr = self._tokens.spanned(begin, exp.Placeholder())
            node.meta["index"] = self._tokens.parameters
            self._tokens.parameters += 1
            return node
        # :name, without a space
        if self._tokens.at(TokenType.COLON) and self._tokens.at(TokenType.VAR, 1) and self._touches():
            self._tokens.advance(2)
            return self._tokens.spanned(begin, exp.Placeholder(this=self._tokens.previous.text))  # type: ignore[no-any-return]
        # $name: the tokenizer reads it as one word, which no name begins with
        if self._tokens.at(TokenType.VAR) and re.match(r"\$\w", self._tokens.current.text):
            self._tokens.advance()
            return self._tokens.spanned(begin, exp.Placeholder(this=self._tokens.previous.text[1:]))  # type: ignore[no-any-return]
        return None

    def _touches(self) -> bool:
        left, right = self._tokens.token(), self._tokens.token(1)
        return left is not None and right is not None and left.end + 1 == right.start

    def _number(self, begin: int) -> exp.Expr:
        # the text as written: the binder derives the type from it
        node = exp.Literal.number(self._tokens.previous.text)
        token = self._tokens.token()
        if _NUMBER.fullmatch(self._tokens.previous.text) is None:
            hint = "write it as 12, 1.5 or 1e3"
            raise PenstockError(
                "SQL-1011",
                f"{self._tokens.previous.text} is no number",
                span=self._tokens.span_from(begin),
                hint=hint,
                sqlstate="42601",
            )
        # 12abc: a word that touches a number is a suffix or an error
        if (
            token is not None
            and token.start == self._tokens.previous.end + 1
            and token.token_type in (TokenType.VAR, TokenType.NUMBER, TokenType.DOT)
        ):
            if self._tokens.word() not in _SUFFIXES:
                text = self._tokens.text[self._tokens.previous.start : token.end + 1]
                hint = "quote it if it is a name, or write a space"
                message = f"{text} is neither a number nor a name"
                raise PenstockError(
                    "SQL-1011", message, span=self._tokens.span_from(begin), hint=hint, sqlstate="42601"
                )
            node.meta["suffix"] = self._tokens.word()
            self._tokens.advance()
        return self._tokens.spanned(begin, node)

    def string(self, what: str) -> exp.Expr:
        """Return the string at the current token, or raise SQL-1001: a ``what`` was expected."""
        begin = self._tokens.index
        if not self._tokens.take(TokenType.STRING):
            raise self._tokens.unexpected(f"{what} in quotes")
        return self._tokens.spanned(begin, exp.Literal.string(self._tokens.previous.text))

    def unit_as_string(self) -> exp.Expr:
        """Return the bare word at the current token, a unit of time, as a string literal in lower case."""
        begin = self._tokens.index
        if not self._tokens.word():
            raise self._tokens.unexpected("a unit of time")
        self._tokens.advance()
        return self._tokens.spanned(begin, exp.Literal.string(self._tokens.previous.text.lower()))

    def _interval(self, begin: int) -> exp.Expr:
        self._tokens.advance()
        # INTERVAL -5 MINUTE
        negative = self._tokens.take(TokenType.DASH)
        if not self._tokens.take(TokenType.STRING) and not self._tokens.take(TokenType.NUMBER):
            raise self._tokens.unexpected("a number such as '10' after INTERVAL")
        quoted = self._tokens.previous.token_type is TokenType.STRING
        text = self._tokens.previous.text
        # INTERVAL '1 day 2 hours' has its units in the string, INTERVAL 5 MINUTE behind the number
        unit = self._unit() if self._is_unit() or not quoted else None
        # INTERVAL 1 DAY 2 HOURS is INTERVAL '1 DAY 2 HOURS'
        if unit is not None and not quoted and not negative:
            parts = [f"{text} {unit}"]
            while self._tokens.at(TokenType.NUMBER) and self._is_unit(1):
                self._tokens.advance()
                parts.append(f"{self._tokens.previous.text} {self._unit()}")
            if len(parts) > 1:
                whole = IntervalLiteral(this=" ".join(parts), negative=False, unit=None, last=None)
                return self._tokens.spanned(begin, whole)
        # INTERVAL '1 02:03' DAY TO MINUTE
        last = None
        if unit is not None and self._tokens.take_words("TO"):
            last = self._unit()
        return self._tokens.spanned(
            begin, IntervalLiteral(this=text, negative=negative, unit=unit, last=last)
        )

    def _is_unit(self, ahead: int = 0) -> bool:
        # MINUTES is MINUTE
        return self._tokens.word(ahead).removesuffix("S") in INTERVAL_UNITS

    def _unit(self) -> str:
        word = self._tokens.word()
        if not self._is_unit():
            if not word:
                raise self._tokens.unexpected("a unit such as MINUTE")
            hint = (
                did_you_mean(word, INTERVAL_UNITS)
                or "units are YEAR, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND"
            )
            raise PenstockError(
                "SQL-1011",
                f"{word} is no unit of an interval",
                span=self._tokens.current_span(),
                hint=hint,
                sqlstate="42601",
            )
        self._tokens.advance()
        # SECOND(3): the precision is read and has no effect
        if self._tokens.take(TokenType.L_PAREN):
            self._tokens.need(TokenType.NUMBER, "a precision")
            self._tokens.need(TokenType.R_PAREN, ")")
        return word.removesuffix("S")
