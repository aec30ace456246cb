"""The words of a statement, by which the statements of PostgreSQL's clients are told from ours."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.scanner import scan
from penstock.planner.statements.script import split_script


@dataclass(frozen=True)
class SqlToken:
    """A piece of a statement: ``kind`` is the scanner's, ``upper`` the text in upper case, of a quoted name
    without its quotes.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        return self.text.upper()


def tokens_of(sql: str) -> list[SqlToken]:
    """Return the tokens of a statement; none where the scanner cannot read it."""
    try:
        return [SqlToken(kind, sql[start:end], start, end) for kind, start, end in scan(sql)]
    except PenstockError:
        return []


def split_statements(sql: str) -> list[tuple[int, str]]:
    """Return each statement of a text with its offset; a text that the scanner cannot read is one."""
    try:
        return [(start, sql[start:end]) for start, end in split_script(sql)]
    except PenstockError:
        return [(0, sql)] if sql.strip() else []


def unquoted(text: str) -> str:
    """Return a name or string without its quotes; an unquoted name is folded, as PostgreSQL does."""
    for quote in ("'", '"'):
        if len(text) >= 2 and text[0] == text[-1] == quote:
            return text[1:-1].replace(quote * 2, quote)
    return text.lower()
