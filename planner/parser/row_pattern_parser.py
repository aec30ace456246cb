"""The parser of PATTERN: text to a row pattern."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from pathlib import Path

from lark import Lark, Token, Transformer, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.expressions.row_pattern import (
    Alternation,
    Concatenation,
    Exclusion,
    Pattern,
    Repetition,
    Variable,
)

# a repetition is written out as states of the automaton: A{1000} B{1000} is at the limit
MAX_PATTERN_SIZE = 2000
# PERMUTE of n variables is written out as n! alternatives: 720 for six, 5,040 for seven
_MAX_PERMUTED = 6
# least and most repetitions of * + ?
_COUNTS: dict[str, tuple[int, int | None]] = {"any": (0, None), "some": (1, None), "maybe": (0, 1)}


@cache
def _grammar() -> Lark:
    text = Path(__file__).with_name("row_pattern.lark").read_text(encoding="utf-8")
    # built in the process at the first pattern: the grammar is small, unlike that of statements
    return Lark(text, parser="lalr", start="pattern", maybe_placeholders=False, propagate_positions=True)


def parse_pattern(text: str, offset: int) -> Pattern:
    """Return the row pattern of the text between PATTERN's parentheses; ``offset`` is the text's position in
    the statement.

    Raise SQL-1001 for a syntax error and SQL-1601 for an anchor. Raise SQL-1741 for a pattern that may match
    no row or is too large, and for an impossible count.
    """
    try:
        pattern = _Builder(offset).transform(_grammar().parse(text))
    except UnexpectedInput as error:
        raise _refusal(error, text, offset) from None
    except VisitError as error:
        # lark wraps what a method of the builder raises
        if isinstance(error.orig_exc, PenstockError):
            raise error.orig_exc from None
        raise error.orig_exc from error
    assert isinstance(pattern, Pattern)
    span = Span(offset, offset + max(1, len(text)))
    # limits of the whole pattern, tested when it is built
    if pattern.size > MAX_PATTERN_SIZE:
        message = (
            f"the pattern has {pattern.size:,} places with its repetitions written out, over the limit "
            f"of {MAX_PATTERN_SIZE:,}"
        )
        raise PenstockError(
            "SQL-1741",
            message,
            span=span,
            hint="count rows in a DEFINE instead: B AS COUNT(B.*) <= 5000",
            sqlstate="54001",
        )
    if pattern.empty:
        hint = "ask for at least one row: write A+ instead of A*"
        raise PenstockError(
            "SQL-1741", "the pattern may match no row at all", span=span, hint=hint, sqlstate="42601"
        )
    return pattern


def _refusal(error: UnexpectedInput, text: str, offset: int) -> PenstockError:
    # a character that begins no token, a token at a wrong position, or the end
    if isinstance(error, UnexpectedCharacters):
        start, shown = error.pos_in_stream, text[error.pos_in_stream]
    elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start, shown = error.token.start_pos or 0, str(error.token)
    else:
        end = offset + len(text.rstrip())
        message = "the pattern ends where a variable was expected"
        return PenstockError(
            "SQL-1001", message, span=Span(end, end + 1), hint="write PATTERN (A B+ C?)", sqlstate="42601"
        )
    span = Span(offset + start, offset + start + len(shown))
    hint = (
        "a pattern has variables, ( ) |, PERMUTE(..) and the quantifiers * + ? {n} {n,} {n,m}; "
        "a ? behind a quantifier matches as few rows as possible"
    )
    return PenstockError(
        "SQL-1001", f'unexpected "{shown}" in the pattern', span=span, hint=hint, sqlstate="42601"
    )


class _Builder(Transformer[Token, Pattern]):
    """Builds patterns bottom-up. Variable names are case-insensitive; their first spelling is the one that
    appears in the pattern.
    """

    def __init__(self, offset: int) -> None:
        super().__init__()
        self._offset = offset
        self._written: dict[str, str] = {}

    def _span(self, start: int, end: int) -> Span:
        return Span(self._offset + start, self._offset + end)

    def pattern(self, items: list[Pattern]) -> Pattern:
        return items[0]

    def alternation(self, items: list[Pattern]) -> Pattern:
        return Alternation(tuple(items))

    def sequence(self, items: list[Pattern]) -> Pattern:
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def variable(self, items: list[Token]) -> Pattern:
        name = str(items[0])
        # quotes are no part of the name, and do not make it case-sensitive
        name = name[1:-1] if name[0] in '`"' else name
        return Variable(self._written.setdefault(name.lower(), name))

    def excluded(self, items: list[Pattern]) -> Pattern:
        return Exclusion(items[0])

    def permute(self, items: list[Token | Pattern]) -> Pattern:
        # PERMUTE (A, B) is A B | B A; the first item is the word itself
        members = [item for item in items if isinstance(item, Pattern)]
        if len(members) > _MAX_PERMUTED:
            word = items[0]
            assert isinstance(word, Token)
            span = self._span(word.start_pos or 0, word.end_pos or 0)
            message = f"PERMUTE takes at most {_MAX_PERMUTED} patterns, not {len(members)}"
            raise PenstockError(
                "SQL-1741",
                message,
                span=span,
                hint="match any of them with (A | B | ..){n} and test the rest in a DEFINE",
            )
        return Alternation(tuple(Concatenation(order) for order in permutations(members)))

    def anchor(self, items: list[Token]) -> Pattern:
        token = items[0]
        hint = "leave it out: a stream's partition has no last row, and its first is one like any other"
        raise PenstockError(
            "SQL-1601",
            "an anchor in a pattern is not supported",
            span=self._span(token.start_pos or 0, token.end_pos or 0),
            hint=hint,
            sqlstate="0A000",
        )

    def quantifier(self, items: list[Tree[Token] | Token]) -> Pattern:
        count = items[0]
        assert isinstance(count, Tree)
        least, most = self._bounds(count)
        # the repeated part is not known yet: repeat() below replaces the empty variable
        return Repetition(Variable(""), least, most, len(items) == 1)

    def _bounds(self, count: Tree[Token]) -> tuple[int, int | None]:
        tokens = [token for token in count.children if isinstance(token, Token)]
        numbers = [int(token) for token in tokens if token.type == "NUMBER"]
        if count.data in _COUNTS:
            return _COUNTS[count.data]
        if count.data == "exactly":
            return self._checked(numbers[0], numbers[0], count)
        # {,m} begins with the comma, {n,} ends with it
        comma = next(i for i, token in enumerate(tokens) if token.type == "COMMA")
        return self._checked(
            numbers[0] if comma else 0, numbers[-1] if comma < len(tokens) - 1 else None, count
        )

    def _checked(self, least: int, most: int | None, count: Tree[Token]) -> tuple[int, int | None]:
        if most is not None and (most == 0 or least > most):
            span = self._span(count.meta.start_pos, count.meta.end_pos)
            message = (
                f"nothing can be repeated {least} to {most} times"
                if least != most
                else "nothing is repeated 0 times"
            )
            raise PenstockError(
                "SQL-1741",
                message,
                span=span,
                hint="write {n}, {n,} or {n,m} with n <= m and m at least 1",
                sqlstate="42601",
            )
        return least, most

    def repeat(self, items: list[Pattern]) -> Pattern:
        part, count = items
        assert isinstance(count, Repetition)
        # A*? is reluctant: as few rows as possible
        return Repetition(part, count.least, count.most, count.greedy)
