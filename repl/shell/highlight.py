"""Colours of SQL as it is typed, from the very scan the grammar begins with, so words never disagree with
the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from penstock.planner.parser.keywords import KEYWORDS
from penstock.planner.parser.scanner import scan

STYLES = {
    "keyword": "ansiblue bold",
    "function": "ansicyan",
    "string": "ansigreen",
    "number": "ansimagenta",
    "comment": "ansibrightblack italic",
    "open": "ansired",
    "command": "ansiyellow",
    "bottom-toolbar": "noreverse ansibrightblack",
    "prompt": "bold",
}
MAX_HIGHLIGHTED = 100_000


class SqlLexer(Lexer):
    """Gives prompt-toolkit the styled pieces of each line."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = styled_lines(document.text)
        return lambda number: lines[number] if number < len(lines) else []


def styled_lines(text: str) -> list[StyleAndTextTuples]:
    """Return a text's lines as (style, piece) pairs."""
    lines: list[StyleAndTextTuples] = [[]]
    for style, piece in styled_pieces(text):
        for number, part in enumerate(piece.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((style, part))
    return lines


def styled_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text piece by piece with its style; what lies between tokens and is not blank is a comment."""
    if text.lstrip().startswith("\\"):
        yield "class:command", text
        return
    if len(text) > MAX_HIGHLIGHTED:
        yield "", text
        return
    end = 0
    for kind, start, stop in scan(text):
        if start > end:
            yield _gap(text[end:start])
        piece = text[start:stop]
        yield _style(kind, piece, text[stop : stop + 1]), piece
        end = stop
    if end < len(text):
        yield _gap(text[end:])


def _gap(piece: str) -> tuple[str, str]:
    return ("class:comment" if piece.strip() else "", piece)


def _style(kind: str, piece: str, following: str) -> str:
    if kind == "word":
        if piece.upper() in KEYWORDS:
            return "class:keyword"
        return "class:function" if following == "(" else ""
    return f"class:{kind}" if kind in ("string", "number", "open") else ""
