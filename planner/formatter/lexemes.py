"""The lexemes of a script with their comments, and the spaces between two of them. Nothing of the text but
white space is missing from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.scanner import next_lexeme

# the longest first: <=> begins with <=
_OPERATORS = ("<=>", "=>", "->", "::", "||", ">=", "<=", "<>", "!=", "==")
_ANGLED = ("ARRAY", "MAP", "ROW", "STRUCT", "MULTISET")
# words behind which a sign is binary: they end an operand
_ENDS_OPERAND = ("END", "NULL", "TRUE", "FALSE")
# words with a blank before a parenthesis; other words stay as written, because they may be functions
_BLANK_BEFORE_PAREN = frozenset(
    (
        "ALL", "AND", "ANY", "AS", "BY", "ELSE", "EXCEPT", "EXISTS", "FILTER", "FROM", "GROUP", "HAVING",
        "IN", "INTERSECT", "JOIN", "KEY", "LATERAL", "MATCH_RECOGNIZE", "MINUS", "NOT", "ON", "OR", "OVER",
        "PATTERN", "QUALIFY", "SELECT", "SETS", "SOME", "THEN", "UNION", "USING", "VALUES", "WHEN",
        "WHERE", "WITH",
    )
)  # fmt: skip
_OPERANDS = ("word", "string", "quoted", "number")
# symbols of dialects to come, and those of row patterns: they touch their neighbours where they did
_AS_WRITTEN = frozenset("{}:@#$?!~^&\\")


@dataclass
class Lexeme:
    """One token of SQL. ``before``: comments on lines of their own, where an empty text is an empty line;
    ``after``: comments behind it on its line. ``touches``: no white space separates it from the one before.

    Kinds are those of the scanner, and ``unary`` (a sign), ``angle`` (a bracket of a type) and
    ``pattern`` (of a row pattern). Two more are ``command`` (a line of the shell) and ``verbatim`` (the
    rest of a statement).
    """

    kind: str
    text: str
    start: int
    end: int
    touches: bool = False
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """The word in upper case, or nothing for another lexeme."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def ends_line(self) -> bool:
        """Whether a comment behind it reaches to the end of the line."""
        return any(comment.startswith("--") or "\n" in comment for comment in self.after)

    @property
    def shown(self) -> str:
        """The text with the comments behind it."""
        return " ".join((self.text, *self.after))


def read_lexemes(text: str) -> tuple[list[Lexeme], list[str]]:
    """Return the lexemes of a script, and the comments behind the last one."""
    found: list[Lexeme] = []
    waiting: list[str] = []
    touches, fresh_line = False, True
    for kind, start, end in _pieces(text):
        piece = text[start:end]
        # one piece is all white space between two others; an empty line is kept as one
        if kind == "space":
            lines = piece.count("\n")
            if lines > 1 and (not waiting or waiting[-1]):
                waiting.append("")
            touches, fresh_line = False, fresh_line or lines > 0
            continue
        if kind == "comment":
            comment = piece.rstrip()
            # on the line of the lexeme before: it belongs to that one
            if found and not fresh_line and not waiting:
                found[-1].after.append(comment)
            else:
                waiting.append(comment)
            touches = False
            continue
        found.append(Lexeme(kind, piece, start, end, touches, before=waiting))
        waiting, touches, fresh_line = [], True, False
    _mark_signs(found)
    _mark_angles(found)
    _mark_patterns(found)
    _mark_columns(found)
    _move_comments(found)
    return found, waiting


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of everything in a text, operators and the shell's commands whole."""
    position = 0
    while position < len(text):
        kind, end = next_lexeme(text, position)
        # \i file.sql: the rest of the line is no SQL, and may hold half a pair of quotes
        if text[position] == "\\":
            line = text.find("\n", position)
            kind, end = "command", line if line >= 0 else len(text)
        elif kind == "symbol":
            operator = next((each for each in _OPERATORS if text.startswith(each, position)), "")
            end = max(end, position + len(operator))
        # a byte order mark is white space
        yield "space" if text[position] == "\ufeff" else kind, position, end
        position = end


def _mark_signs(lexemes: list[Lexeme]) -> None:
    """Mark + and - that have no operand before them, and the : and $ of a parameter."""
    before: Lexeme | None = None
    for lexeme in lexemes:
        # :limit: the name of a parameter is no keyword
        if before is not None and before.kind == "unary" and before.text in (":", "$") and lexeme.touches:
            lexeme.kind = "quoted"
        signs = lexeme.text in ("+", "-", ":") and (before is None or _needs_operand(before))
        if signs or lexeme.text == "$":
            lexeme.kind = "unary"
        before = lexeme


def _needs_operand(lexeme: Lexeme) -> bool:
    if lexeme.kind == "word":
        return lexeme.word in RESERVED and lexeme.word not in _ENDS_OPERAND
    return lexeme.kind in ("unary", "semicolon") or (
        lexeme.kind == "symbol" and lexeme.text not in (")", "]", "}", "?")
    )


def _mark_angles(lexemes: list[Lexeme]) -> None:
    """Mark < and > that enclose the parts of a type, as in ``MAP<STRING, ARRAY<INT>>``."""
    for index, lexeme in enumerate(lexemes[1:], 1):
        if lexeme.text == "<" and lexeme.kind == "symbol" and lexemes[index - 1].word in _ANGLED:
            brackets, depth = [], 0
            for inner in lexemes[index:]:
                if inner.text in ("<", ">"):
                    brackets.append(inner)
                    depth += 1 if inner.text == "<" else -1
                # a comparison: what is between would be no type
                elif inner.kind not in (*_OPERANDS, "angle") and inner.text not in (",", "(", ")"):
                    break
                if depth == 0:
                    for bracket in brackets:
                        bracket.kind = "angle"
                    break


def _mark_patterns(lexemes: list[Lexeme]) -> None:
    """Mark what is between the parentheses of PATTERN: in ``A+ (B | C)*`` the blanks stay as written."""
    for index, lexeme in enumerate(lexemes[:-1]):
        if lexeme.word == "PATTERN" and lexemes[index + 1].text == "(":
            depth = 0
            for inner in lexemes[index + 1 :]:
                depth += {"(": 1, ")": -1}.get(inner.text, 0)
                if depth == 0:
                    break
                inner.kind = "pattern"
            lexemes[index + 1].kind = "symbol"


def _mark_columns(lexemes: list[Lexeme]) -> None:
    """Separate the columns of ``CREATE TABLE t (a INT)`` and ``INSERT INTO t (a)`` from the name: it is no
    function.
    """
    named = False
    for before, lexeme in pairwise(lexemes):
        if before.word in ("TABLE", "VIEW", "INTO"):
            # TABLE(TUMBLE(..)): the parenthesis of a table function follows the word itself
            named = lexeme.text != "("
        elif named and lexeme.text == "(":
            lexeme.touches = named = False
        elif lexeme.word in ("AS", "WITH", "SELECT") or not _in_name(lexeme):
            named = False


def _in_name(lexeme: Lexeme) -> bool:
    return lexeme.kind in ("word", "quoted") or lexeme.text == "."


def _move_comments(lexemes: list[Lexeme]) -> None:
    """Move a comment at a line's end behind the comma or semicolon that follows it. ``a -- of x`` and
    then ``, b`` become ``a, -- of x`` and ``b``.
    """
    for lexeme, following in pairwise(lexemes):
        if following.text in (",", ";") and lexeme.ends_line and not following.before:
            following.after, lexeme.after = [*lexeme.after, *following.after], []


def blank_between(left: Lexeme, right: Lexeme) -> bool:
    """Return whether a space separates two lexemes of a line."""
    # a comment ends before the next lexeme; two dashes would begin one
    if left.after or right.kind == "command" or (left.text == "-" and right.text.startswith("-")):
        return True
    if left.kind == "pattern" or (right.kind == "pattern" and left.text != "("):
        return right.text != ")" and not right.touches
    if right.text in (",", ";", ")", "]", ".", "::") or left.text in ("(", "[", ".", "::"):
        return False
    if left.kind == "unary" or right.kind == "angle" or (left.kind == "angle" and left.text == "<"):
        return False
    # x = :name
    if right.kind == "unary" and right.text in (":", "$"):
        return True
    # f(x) and t (a, b), ARRAY[1] and `UNNEST [`: words that may be functions stay as written
    if right.text in ("(", "["):
        if left.word in _BLANK_BEFORE_PAREN:
            return True
        if left.kind in (*_OPERANDS, "angle") or left.text in (")", "]"):
            return not right.touches
    if left.text in _AS_WRITTEN or right.text in _AS_WRITTEN or _both_operands(left, right):
        return not right.touches
    return True


def _both_operands(left: Lexeme, right: Lexeme) -> bool:
    # x'ff', 10L: a blank between them may change what they mean
    return left.kind in _OPERANDS and right.kind in _OPERANDS
