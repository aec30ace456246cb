"""The parser of SQL types, for DDL, CAST and the Table API. Syntax is read first and resolved once the whole
statement is read: a statement's first error is a syntax error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from sqlglot.tokens import Token, TokenType

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.other_dialects import TYPE_HINTS
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIME,
    TINYINT,
    VARIANT,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    Time,
    Timestamp,
    TimestampLtz,
)
from penstock.planner.parser.dialect import tokenize
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.scanner import MAX_DEPTH, allow_depth, check_text, too_deep_a_type
from penstock.planner.parser.token_stream import SYMBOLS, TYPE_BEGINS, AcceptingToken, ended, unexpected

# types without numbers, with the other names of them that Spark, PostgreSQL, DuckDB and Arrow have. INT8 has
# 8 bytes, as in PostgreSQL, whose tables are read; ClickHouse and Arrow mean 8 bits
_SIMPLE: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "TINYINT": TINYINT,
    "BYTE": TINYINT,
    "SMALLINT": SMALLINT,
    "SHORT": SMALLINT,
    "INT2": SMALLINT,
    "INT16": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "INT4": INT,
    "INT32": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "INT8": BIGINT,
    "INT64": BIGINT,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "FLOAT4": FLOAT,
    "FLOAT32": FLOAT,
    "DOUBLE": DOUBLE,
    "FLOAT8": DOUBLE,
    "FLOAT64": DOUBLE,
    "STRING": STRING,
    "TEXT": STRING,
    "BYTES": BINARY,
    "BYTEA": BINARY,
    "BLOB": BINARY,
    "DATE": DATE,
    "VARIANT": VARIANT,
}
# types that take one number, which is read and has no effect
_SIZED: dict[str, DataType] = {
    "VARCHAR": STRING,
    "CHAR": STRING,
    "CHARACTER": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
}
# words that take numbers, a time zone, or both
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATETIME", "TIMESTAMP_LTZ", "TIMESTAMPTZ")
TYPE_NAMES = (
    *_SIMPLE,
    *_SIZED,
    *_DECIMALS,
    *_TIMESTAMPS,
    "TIME",
    "INTERVAL",
    "ARRAY",
    "MAP",
    "ROW",
    "STRUCT",
)
# an interval has units of one group only: months have no fixed number of days
_DAY_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
_YEAR_UNITS = ("YEAR", "MONTH")


@dataclass(frozen=True)
class TypeToken:
    """A token of a type, with the terminals accepted at its position and the token before it."""

    type: str
    value: str
    start_pos: int
    end_pos: int
    name: str
    accepted: frozenset[str]
    previous: AcceptingToken | None = field(repr=False)

    @property
    def span(self) -> Span:
        """Its span in the text."""
        return Span(self.start_pos, self.end_pos)


@dataclass(frozen=True)
class TypeSyntax:
    """A type as written: its word, its numbers, its zone (WITH, LOCAL or WITHOUT). ``months`` is set for an
    interval of years and months.

    ``parts`` are the inner types of a nested type, ``fields`` the field names of a row.
    """

    word: TypeToken
    numbers: tuple[str, ...] = ()
    zone: str | None = None
    months: bool = False
    parts: tuple[TypeSyntax, ...] = ()
    fields: tuple[TypeToken, ...] = ()


def parse_type(text: str, offset: int = 0) -> DataType:
    """Return the type that a text names. ``offset`` is added to the spans of errors.

    Raise SQL-1001 for a syntax error, SQL-1204 to SQL-1206 for a type that does not exist, SQL-1002 and
    SQL-1003 for a lexical error.
    """
    try:
        check_text(text)
        return type_between(text, tokenize(text), len(text.rstrip()))
    except PenstockError as error:
        if error.span is not None:
            # the type is a part of a longer text
            error.span = error.span.shifted(offset)
        raise


def type_between(text: str, tokens: Sequence[Token], end: int) -> DataType:
    """Return the type that all of ``tokens`` together spell. ``end`` is the end of their text."""
    allow_depth()
    reader = TypeReader(text, tokens, 0, end)
    # tokens behind the type are an error before the type's own faults are
    syntax = reader.read()
    reader.need_end()
    return type_of(syntax)


class TypeReader:
    """Parses one type, and records the terminals it accepted, so that an error can name them.

    After the type, ``index`` is the next token, ``previous`` the last token of the type, ``looked_for`` the
    terminals that could continue it.
    """

    def __init__(
        self,
        text: str,
        tokens: Sequence[Token],
        index: int,
        end: int,
        previous: AcceptingToken | None = None,
        instead: frozenset[str] = frozenset(),
    ) -> None:
        """``end`` is the offset of the end of the text; ``instead`` are the terminals accepted in place of a
        type.
        """
        self._text, self._tokens, self._end = text, tokens, end
        self.index, self.previous = index, previous
        self.looked_for = set(instead)
        # terminals that may continue a complete type: not worth naming when the text ends
        self._optional: frozenset[str] = frozenset()

    def read(self, depth: int = 0) -> TypeSyntax:
        """Return the type at the current token. Raise SQL-1017 above ``MAX_DEPTH`` levels."""
        if depth > MAX_DEPTH:
            raise too_deep_a_type(self._first_name())
        # a type begins with a name or with the word of a nested type or interval
        word = self._need(*TYPE_BEGINS)
        match word.type:
            # DECIMAL(10, 2), TIMESTAMP(3) WITH LOCAL TIME ZONE
            case "NAME":
                read = self._simple(word)
            # INTERVAL DAY(3) TO SECOND(6); the precisions have no effect
            case "INTERVAL":
                read = self._interval(word)
            # ARRAY<INT>
            case "ARRAY":
                self._need("LESSTHAN")
                read = TypeSyntax(word, parts=(self._inner(depth),))
                self._need("MORETHAN")
            # MAP<STRING, INT>
            case "MAP":
                self._need("LESSTHAN")
                key = self._inner(depth)
                self._need("COMMA")
                read = TypeSyntax(word, parts=(key, self._inner(depth)))
                self._need("MORETHAN")
            case _:
                read = self._row(word, depth)
        self._optional = frozenset(self.looked_for)
        return read

    def need_end(self) -> None:
        """Raise for a token behind the type."""
        self.looked_for.add("$END")
        if self.index < len(self._tokens):
            raise self._unexpected()

    def _simple(self, word: TypeToken) -> TypeSyntax:
        # DOUBLE PRECISION, CHARACTER VARYING
        self._take("PRECISION", "VARYING")
        numbers = self._numbers()
        # WITHOUT TIME ZONE, WITH TIME ZONE, WITH LOCAL TIME ZONE
        zone = self._take("WITH", "WITHOUT")
        if zone is not None:
            zone = self._take("LOCAL") or zone if zone.type == "WITH" else zone
            self._need("TIME")
            self._need("ZONE")
        return TypeSyntax(word, numbers, None if zone is None else zone.type)

    def _numbers(self) -> tuple[str, ...]:
        if self._take("LPAR") is None:
            return ()
        # (10) or (10, 2)
        numbers = [self._need("NUMBER").value]
        if self._need("COMMA", "RPAR").type == "COMMA":
            numbers.append(self._need("NUMBER").value)
            self._need("RPAR")
        return tuple(numbers)

    def _interval(self, word: TypeToken) -> TypeSyntax:
        first = self._need(*_DAY_UNITS, *_YEAR_UNITS)
        units = _YEAR_UNITS if first.type in _YEAR_UNITS else _DAY_UNITS
        self._numbers()
        if self._take("TO") is not None:
            self._need(*units)
            self._numbers()
        return TypeSyntax(word, months=units is _YEAR_UNITS)

    def _row(self, word: TypeToken, depth: int) -> TypeSyntax:
        # ROW<a INT, b INT>, STRUCT<a: INT>, ROW(a INT)
        close = "MORETHAN" if self._need("LESSTHAN", "LPAR").type == "LESSTHAN" else "RPAR"
        names: list[TypeToken] = []
        kinds: list[TypeSyntax] = []
        while not names or self._need("COMMA", close).type == "COMMA":
            names.append(self._need("NAME"))
            self._take("COLON")
            kinds.append(self._inner(depth))
            # ROW<a INT COMMENT 'the a'>
            if self._take("COMMENT") is not None:
                self._need("STRING")
        return TypeSyntax(word, parts=tuple(kinds), fields=tuple(names))

    def _inner(self, depth: int) -> TypeSyntax:
        """Return the type of an element or field. NOT NULL behind it is a promise that nothing checks, as
        PRIMARY KEY NOT ENFORCED is.
        """
        read = self.read(depth + 1)
        if self._take("NOT") is not None:
            self._need("NULL")
        else:
            self._take("NULL")
            self._optional |= {"NOT", "NULL", "COMMENT"}
        return read

    def _need(self, *terminals: str) -> TypeToken:
        """Consume one of these terminals and return it, or raise for the current token."""
        consumed = self._take(*terminals)
        if consumed is None:
            raise self._unexpected()
        return consumed

    def _take(self, *terminals: str) -> TypeToken | None:
        """Consume one of these terminals and return it, or return ``None`` when another token is next."""
        self.looked_for.update(terminals)
        # the end: what was looked for is what an error then names
        if self.index >= len(self._tokens):
            return None
        token = self._seen()
        if token.type not in terminals:
            return None
        self.index += 1
        self.previous = token
        # a new position: nothing has been looked for there yet
        self.looked_for, self._optional = set(), frozenset()
        return token

    def _seen(self) -> TypeToken:
        """Return the current token as a terminal: the keyword that it spells where accepted, else a name."""
        token = self._tokens[self.index]
        if token.token_type is TokenType.VAR:
            word = token.text.upper()
            # a word is a keyword only where the type grammar looks for it
            kind = word if word in self.looked_for else "RESERVED" if word in RESERVED else "NAME"
        elif token.token_type is TokenType.IDENTIFIER:
            kind = "NAME"
        else:
            kind = SYMBOLS.get(token.token_type, "SYMBOL")
        # sqlglot's end is inclusive
        begin, end = token.start, token.end + 1
        accepted = frozenset(self.looked_for)
        return TypeToken(kind, self._text[begin:end], begin, end, token.text, accepted, self.previous)

    def _unexpected(self) -> PenstockError:
        if self.index < len(self._tokens):
            return unexpected(self._seen())
        # what could go on within a type that is whole is no more than an offer
        return ended(self._end, self.looked_for - self._optional)

    def _first_name(self) -> Span | None:
        """Return the span of the first name within a type: that of a plain type or of a field."""
        opening = ("ARRAY", "MAP", "ROW", "STRUCT", "<", "(")
        for token in self._tokens[self.index :]:
            if token.text.upper() not in opening:
                return Span(token.start, token.end + 1)
        return None


def type_of(syntax: TypeSyntax) -> DataType:
    """Return the data type of a type as written. Raise SQL-1204 for an unknown type, SQL-1205 for a field
    declared twice. Raise SQL-1206 for numbers or a zone that the type does not take.
    """
    match syntax.word.type:
        case "NAME":
            return _simple(syntax)
        case "INTERVAL":
            return YEAR_MONTH_INTERVAL if syntax.months else DAY_TIME_INTERVAL
        case "ARRAY":
            return Array(type_of(syntax.parts[0]))
        case "MAP":
            return Map(type_of(syntax.parts[0]), type_of(syntax.parts[1]))
    fields: dict[str, DataType] = {}
    for token, kind in zip(syntax.fields, syntax.parts, strict=True):
        # field names are case-insensitive
        if token.name.lower() in {known.lower() for known in fields}:
            raise PenstockError("SQL-1205", f'field "{token.name}" is declared twice', span=token.span)
        fields[token.name] = type_of(kind)
    return Row(tuple(fields.items()))


def _simple(syntax: TypeSyntax) -> DataType:
    written, span = syntax.word.value, syntax.word.span
    word = written.upper()
    # 1.5 is no length: -1 is out of every range
    numbers = [int(number) if number.isdigit() else -1 for number in syntax.numbers]
    if word in _TIMESTAMPS:
        return _timestamp(word, numbers, syntax.zone, span)
    if syntax.zone is not None:
        raise PenstockError("SQL-1206", f"{word} takes no time zone", span=span)
    # TIME(9) is read, and has microseconds
    if word == "TIME" and (not numbers or (len(numbers) == 1 and 0 <= numbers[0] <= 9)):
        return Time(min(*numbers, 6)) if numbers else TIME
    if word in _DECIMALS:
        # DECIMAL without numbers is DECIMAL(10, 0)
        return _with_span(lambda: Decimal(*numbers) if numbers else Decimal(10, 0), span)
    if word in _SIZED and len(numbers) <= 1:
        return _SIZED[word]
    if word in _SIMPLE and not numbers:
        return _SIMPLE[word]
    # the type exists, so its numbers are at fault: INT(3)
    if word in _SIMPLE or word in _SIZED or word == "TIME":
        raise PenstockError(
            "SQL-1206",
            f"{word} takes {'no number' if word in _SIMPLE else 'one number'} in parentheses",
            span=span,
        )
    hint = (
        TYPE_HINTS.get(word)
        or did_you_mean(word, TYPE_NAMES)
        or "types are BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL(p, s), STRING, DATE, TIMESTAMP(3), "
        "ARRAY<..> and others"
    )
    raise PenstockError(
        "SQL-1204", f'type "{written}" does not exist', span=span, hint=hint, sqlstate="42704"
    )


def _timestamp(word: str, numbers: list[int], zone: str | None, span: Span) -> DataType:
    # microseconds are the default and the finest; up to 9 is SQL, and has its own message
    precision = numbers[0] if numbers else 6
    if len(numbers) > 1 or not 0 <= precision <= 9:
        raise PenstockError("SQL-1206", f"the precision of {word} is one number from 0 to 9", span=span)
    if zone == "WITH":
        hint = "write TIMESTAMP_LTZ(3): an instant, shown in the session's zone"
        raise PenstockError("SQL-1206", "TIMESTAMP WITH TIME ZONE is not a type here", span=span, hint=hint)
    if precision > 6:
        hint = f"write {word}(6): times are kept in microseconds"
        raise PenstockError(
            "SQL-1206", f"{word}({precision}) is finer than microseconds", span=span, hint=hint
        )
    # TIMESTAMP WITH LOCAL TIME ZONE and TIMESTAMPTZ are TIMESTAMP_LTZ; TIMESTAMP WITHOUT TIME ZONE, TIMESTAMP
    local = word in ("TIMESTAMP_LTZ", "TIMESTAMPTZ") or zone == "LOCAL"
    return TimestampLtz(precision) if local else Timestamp(precision)


def _with_span(build: Any, span: Span) -> DataType:
    try:
        return build()
    except PenstockError as error:
        # Decimal tests its own range, and knows no position
        raise error.with_span(span) from None
