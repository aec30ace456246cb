"""Parsed statements with their position in the text, so that every later error can show where."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, SourceText, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.statements.nodes import Statement
from penstock.planner.statements.script import parse_script

_BACKEND_ERRORS = ("BND-5003", "BND-5012")
"""Codes of errors that a backend raises about a query in its own words, without a position."""


@dataclass(frozen=True)
class LocatedStatement:
    """One parsed statement of a text: ``offset`` is where it starts in ``source``."""

    node: Statement
    text: str
    source: SourceText
    offset: int

    def locate(self, error: PenstockError) -> PenstockError:
        """Return an error of this statement with its position in the submitted text: the whole statement
        when it is about no one part of it.
        """
        if error.source is None and (error.code.startswith("SQL-") or error.code in _BACKEND_ERRORS):
            error.with_span(Span(0, len(self.text)))
        return error.with_source(self.source, self.offset)

    @property
    def ordinal(self) -> int:
        """The statement's number in the text, from 1."""
        return self.source.statement or 1


def parse_statements(
    text: str, file: str | None = None, *, errors: list[PenstockError] | None = None
) -> list[LocatedStatement]:
    """Return the statements of a text; raise the first syntax error, or collect them in ``errors``."""
    parsed = parse_script(text, file, errors=errors)
    return [
        LocatedStatement(one.node, one.text, SourceText(text, file, one.ordinal), one.offset)
        for one in parsed
    ]
