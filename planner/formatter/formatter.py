"""Scripts in one layout. The statements stay what they were: the parser decides which words are keywords,
and compares what it reads before and after.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from sqlglot import exp

from penstock.catalog.errors import Kind, PenstockError, SourceText, Span
from penstock.planner.formatter.layout import Line, lay_out
from penstock.planner.formatter.lexemes import Lexeme, read_lexemes
from penstock.planner.parser.keywords import KEYWORDS
from penstock.planner.parser.syntax_nodes import RowPattern
from penstock.planner.parser.type_parser import TYPE_NAMES
from penstock.planner.statements.nodes import Query, SqlExpression, Statement
from penstock.planner.statements.script import parse_script, parse_statement, split_script

_CAPITALS = KEYWORDS.union(TYPE_NAMES)
# the rest of these statements is text with a meaning of its own: SET a.b = any words
_VERBATIM = ("SET", "RESET", "HELP")


def format_script(text: str, file: str | None = None) -> str:
    """Return a script in the one layout. Raise the errors of statements that cannot be parsed, all in one
    list. CLI-6154 for a statement that would not be the same afterwards.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lexemes, behind = read_lexemes(text)
    plain = _without_commands(text, lexemes)
    errors: list[PenstockError] = []
    parsed = parse_script(plain, file, errors=errors)
    if errors:
        raise ExceptionGroup("statements that cannot be parsed", errors)
    lines: list[Line] = []
    pieces = split_script(plain)
    for statement in _statements(lexemes, pieces):
        _capitalize(plain, statement)
        lines += _lines(plain, statement)
    lines += [Line(0, comment) for comment in behind]
    # empty lines at both ends of a file go
    while lines and not lines[0].text:
        del lines[0]
    while lines and not lines[-1].text:
        del lines[-1]
    done = newline.join(f"{' ' * line.indent}{line.text}" if line.text else "" for line in lines)
    done = done + newline if done else ""
    _check_same(SourceText(plain, file), [each.node for each in parsed], done)
    return done


def _without_commands(text: str, lexemes: Sequence[Lexeme]) -> str:
    """Return a script with a semicolon and blanks in place of the shell's commands, so that offsets stay."""
    for lexeme in lexemes:
        if lexeme.kind == "command":
            text = text[: lexeme.start] + ";".ljust(len(lexeme.text)) + text[lexeme.end :]
    return text


def _statements(lexemes: list[Lexeme], pieces: list[tuple[int, int]]) -> Iterator[list[Lexeme]]:
    """Yield the lexemes of each statement with its semicolon, and those of each command by itself."""
    ends = [end for _, end in pieces]
    current: list[Lexeme] = []
    for lexeme in lexemes:
        # behind the last token of a statement only its semicolon or a command such as \gx may follow
        if current and current[-1].end in ends and lexeme.kind != "semicolon":
            on_its_line = lexeme.kind == "command" and not lexeme.before and not current[-1].ends_line
            if not on_its_line:
                yield current
                current = []
        current.append(lexeme)
        if lexeme.kind == "command" or (lexeme.kind == "semicolon" and _closes(current, ends)):
            yield current
            current = []
    if current:
        yield current


def _closes(current: list[Lexeme], ends: list[int]) -> bool:
    # a semicolon inside a statement set is in the middle of its piece
    return len(current) == 1 or current[-2].end in ends


def _capitalize(text: str, statement: list[Lexeme]) -> None:
    """Write keywords in capitals: those words whose capitals the parser reads as it reads the text."""
    sql = [lexeme for lexeme in statement if lexeme.kind not in ("command", "semicolon")] or statement
    start, end = sql[0].start, sql[-1].end
    words = [each for each in sql if each.word in _CAPITALS and each.text != each.word]
    if not words:
        return
    shape = list(shape_of(parse_statement(text[start:end])))

    def same(chosen: Sequence[Lexeme]) -> bool:
        out = list(text[start:end])
        for lexeme in chosen:
            out[lexeme.start - start : lexeme.end - start] = lexeme.word
        try:
            return list(shape_of(parse_statement("".join(out)))) == shape
        except PenstockError:
            return False

    # most words of that kind are keywords: halves are asked for only where a name is among them
    waiting: list[Sequence[Lexeme]] = [words]
    while waiting:
        chosen = waiting.pop()
        if same(chosen):
            for lexeme in chosen:
                lexeme.text = lexeme.word
        elif len(chosen) > 1:
            waiting += [chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]]


def _lines(text: str, statement: list[Lexeme]) -> list[Line]:
    """Return the lines of a statement with the comments before it."""
    head = statement[0]
    # inside a statement an empty line stays only beside a comment
    for lexeme in statement[1:]:
        lexeme.before = lexeme.before if any(lexeme.before) else []
    # between the options of SET and the semicolon everything is a value
    if head.word in _VERBATIM and not (len(statement) > 1 and statement[1].kind == "string"):
        body = [lexeme for lexeme in statement[1:] if lexeme.kind not in ("semicolon", "command")]
        if body:
            rest = Lexeme("verbatim", text[body[0].start : body[-1].end], body[0].start, body[-1].end)
            rest.after = body[-1].after
            statement = [head, rest, *statement[1 + len(body) :]]
    return [*(Line(0, comment) for comment in head.before), *lay_out(statement)]


def _check_same(before: SourceText, nodes: Sequence[Statement], done: str) -> None:
    """Raise CLI-6154 unless a formatted script has the statements of the script before."""
    plain = _without_commands(done, read_lexemes(done)[0])
    pieces = split_script(before.text)
    try:
        after = [each.node for each in parse_script(plain)]
    except PenstockError:
        after = []
    for number, node in enumerate(nodes):
        if number >= len(after) or list(shape_of(node)) != list(shape_of(after[number])):
            raise PenstockError(
                "CLI-6154",
                "this statement cannot be formatted: it would not be the same afterwards",
                span=Span(*pieces[number]),
                source=before,
                hint="leave the file as it is, and report the statement",
                kind=Kind.INTERNAL,
                sqlstate="XX000",
            )


def shape_of(statement: Statement) -> Iterator[object]:
    """Yield what a statement consists of, without its text, its positions and its white space. A loop, so
    that no nesting depth overflows the stack.
    """
    waiting: list[Any] = [statement]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Span):
            continue
        # the text of PATTERN (..) is parsed later
        if isinstance(part, RowPattern):
            yield " ".join(str(part.this).split())
        elif isinstance(part, exp.Expr):
            yield type(part).__name__
            facts = {key: value for key, value in part.meta.items() if key not in ("start", "end")}
            waiting += [facts, dict(part.args)]
        elif isinstance(part, dict):
            for key in sorted(part):
                # what is absent may be missing, None or empty
                if part[key] is not None and part[key] != []:
                    waiting += [part[key], str(key)]
        elif isinstance(part, list | tuple | frozenset):
            members = sorted(part) if isinstance(part, frozenset) else part
            yield len(members)
            waiting += members
        elif dataclasses.is_dataclass(part) and not isinstance(part, type | Enum):
            yield type(part).__name__
            # a query has its text beside its tree
            text_too = isinstance(part, Query | SqlExpression)
            waiting += [
                getattr(part, field.name)
                for field in dataclasses.fields(part)
                if not (text_too and field.name == "text")
            ]
        else:
            yield part
