"""Statements with their place: what a text holds, so that every later error can show where."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, SourceText, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.statements.nodes import Statement
from penstock.planner.statements.script import parse_script

_OF_QUERIES = ("BND-5003", "BND-5012")
"""What a backend says of a query in words of its own."""


@dataclass(frozen=True)
class PlacedStatement:
    """One parsed statement of a text: ``offset`` is where it starts in ``source``."""

    node: Statement
    text: str
    source: SourceText
    offset: int

    def place(self, error: PenstockError) -> PenstockError:
        """Return an error of this statement with its place in the submitted text: the whole statement when
        it is about no one part of it.
        """
        if error.source is None and (error.code.startswith("SQL-") or error.code in _OF_QUERIES):
            error.with_span(Span(0, len(self.text)))
        return error.with_source(self.source, self.offset)

    @property
    def ordinal(self) -> int:
        """The statement's number in the text, from 1."""
        return self.source.statement or 1


def placed_statements(
    text: str, file: str | None = None, *, errors: list[PenstockError] | None = None
) -> list[PlacedStatement]:
    """Return the statements of a text; raise the first syntax error, or gather them in ``errors`` and go
    on.
    """
    parsed = parse_script(text, file, errors=errors)
    return [
        PlacedStatement(one.node, one.text, SourceText(text, file, one.ordinal), one.offset) for one in parsed
    ]
