"""The grammar of statements, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark, Tree
from lark.exceptions import UnexpectedToken

from penstock.planner.parser.unexpected_token import ended, unexpected
from penstock.planner.statements.grammar_cache import tables_of
from penstock.planner.statements.lexer import StatementLexer, StatementToken, with_types_begun


@cache
def _grammar() -> Lark:
    return tables_of(Path(__file__).with_name("statements.lark"), StatementLexer, ["statement"])


def parse_tree(text: str) -> Tree:
    """Return lark's tree of a statement; raise SQL-1001 or SQL-1008 with a span and what was expected."""
    try:
        return _grammar().parse(text, start="statement")
    except UnexpectedToken as error:
        if isinstance(error.token, StatementToken):
            raise unexpected(error.token) from None
        raise ended(len(text.rstrip()), with_types_begun(error.expected)) from None
