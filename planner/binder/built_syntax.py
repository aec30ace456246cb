"""Syntax trees that the binder builds of statements that are queries: SUMMARIZE, UPDATE, DELETE and MERGE.

Names are nodes and never a part of a text, so they may have any characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from sqlglot import exp

from penstock.catalog.errors import Span
from penstock.planner.parser.syntax_nodes import AllColumns, FunctionCall, Reference, set_span

_Tree = TypeVar("_Tree", bound=exp.Expr)


def call(function: str, *args: exp.Expr, **clauses: object) -> FunctionCall:
    """Return a call of a function."""
    return FunctionCall(this=function, expressions=list(args), **clauses)


def column(*parts: str) -> Reference:
    """Return the name of a column: ``column("t", "a")`` is t.a."""
    return Reference(expressions=[exp.to_identifier(part, quoted=True) for part in parts])


def number(value: int | str) -> exp.Expr:
    """Return a literal of a number."""
    return exp.Literal.number(value)


def named(value: exp.Expr, name: str) -> exp.Alias:
    """Return ``value AS name``."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def case(whens: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> exp.Expr:
    """Return a CASE, or ``default`` where there are no conditions. Without a default that is NULL."""
    if not whens:
        return exp.Null() if default is None else default
    return exp.Case(ifs=[exp.If(this=test, true=value) for test, value in whens], default=default)


def is_null(value: exp.Expr) -> exp.Is:
    """Return ``value IS NULL``."""
    return exp.Is(this=value, expression=exp.Null())


def from_table(table: exp.Expr | str) -> exp.From:
    """Return a FROM of a table, or of the table of a name."""
    if isinstance(table, str):
        table = exp.Table(this=exp.to_identifier(table, quoted=True))
    return exp.From(this=table)


def with_columns(source: exp.From, *added: exp.Expr, name: str) -> exp.Subquery:
    """Return ``(SELECT *, added FROM source) AS name``."""
    query = exp.Select(expressions=[AllColumns(), *added], from_=source)
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))


def with_spans(tree: _Tree, span: Span | None) -> _Tree:
    """Give those nodes of a tree a span that have none; return the tree. Parts of the user's statement keep
    theirs.
    """
    if span is not None:
        for node in tree.walk():
            if "start" not in node.meta:
                set_span(node, span.start, span.end)
    return tree


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that begins like ``name`` and is none of ``taken``, in any case of letters."""
    known = {one.lower() for one in taken}
    while name.lower() in known:
        name += "_"
    return name
