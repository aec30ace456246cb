"""The doors to the grammar of queries: statements and windows of Flink, values of Spark."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.parser.query_parser import QueryParser
from penstock.planner.parser.scanner import allow_depth, check_text
from penstock.planner.parser.tokenizer import Penstock, tokenize


def _parser(text: str, start: int) -> QueryParser:
    check_text(text)
    allow_depth()
    parser = QueryParser(dialect=Penstock)
    parser.load(tokenize(" " * start + text[start:]), text)
    return parser


def parse_query(text: str, start: int = 0) -> exp.Expr:
    """Return the syntax tree of the query that reaches from ``start`` to the end of ``text``; raise
    SQL-10xx with a span into ``text``.
    """
    parser = _parser(text, start)
    if not parser.token():
        raise PenstockError(
            "SQL-1004",
            "a query is missing",
            span=Span(start, start + 1),
            hint="write SELECT .. FROM ..",
            sqlstate="42601",
        )
    return parser.whole_query()


def parse_expression(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of the scalar expression between ``start`` and ``end``; raise SQL-10xx with a
    span into ``text``.
    """
    parser = _parser(text[:end], start)
    if not parser.token():
        raise PenstockError(
            "SQL-1004", "an expression is missing", span=Span(start, start + 1), sqlstate="42601"
        )
    return parser.whole_expression()


def parse_item(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of one select item, an expression with an optional alias or a star, between
    ``start`` and ``end``.
    """
    parser = _parser(text[:end], start)
    if not parser.token():
        raise PenstockError(
            "SQL-1004", "an expression is missing", span=Span(start, start + 1), sqlstate="42601"
        )
    return parser.whole_item()


def parse_sort_item(text: str, start: int = 0, end: int | None = None) -> exp.Expr:
    """Return the syntax tree of one ORDER BY item between ``start`` and ``end``."""
    return _parser(text[:end], start).whole_sort_item()
