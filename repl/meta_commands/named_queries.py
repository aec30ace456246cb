"""Queries that are saved under a name, as pgcli has them: in a file of the user, for all sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands.context import MetaContext
from penstock.repl.meta_commands.query_file import changed_queries, read_queries

_NAME = re.compile(r"[\w-]+")
# A value behind the name: a text in quotes, or up to the next space.
_VALUE = re.compile(r"'((?:[^']|'')*)'|(\S+)")


def run_named(context: MetaContext, command: MetaCommand) -> None:
    """Run a named query with its values; without a name, list all."""
    queries = read_queries(context.config.named_queries)
    name, _, rest = command.argument.partition(" ")
    if not name:
        _list(context, queries)
        return
    text = _query(queries, name)
    values = [_value(*found) for found in _VALUE.findall(rest)]
    for statement in context.session.parse(text):
        context.run_statement(statement, values)


def save_named(context: MetaContext, command: MetaCommand) -> None:
    """Save a query, or the last statement, under a name."""
    name, _, query = command.argument.partition(" ")
    text = query.strip() or context.last_statement
    if not _NAME.fullmatch(name) or not text:
        raise PenstockError(
            "CLI-6141",
            r"\ns takes a name and a query",
            hint=r"\ns NAME QUERY, or \ns NAME behind a statement",
        )
    # A query that is no SQL is found now and not when it is needed.
    context.session.parse(text)
    path = context.config.named_queries
    with changed_queries(path) as queries:
        verb = "replaced" if name in queries else "saved"
        queries[name] = text
    context.note(f"{name} {verb} in {path}")


def drop_named(context: MetaContext, command: MetaCommand) -> None:
    """Drop a named query."""
    path = context.config.named_queries
    with changed_queries(path) as queries:
        _query(queries, command.argument)
        del queries[command.argument]
    context.note(f"{command.argument} dropped")


def _list(context: MetaContext, queries: Mapping[str, str]) -> None:
    from penstock.client.results.result import text_rows  # Arrow: not before there are rows to print

    context.printer.show(text_rows(["name", "query"], sorted(queries.items())), keep=False)


def _query(queries: Mapping[str, str], name: str) -> str:
    if name not in queries:
        hint = did_you_mean(name, queries, others=True) or r"\ns NAME QUERY saves one"
        raise PenstockError("CLI-6148", f"there is no named query {name}", hint=hint)
    return queries[name]


def _value(text: str, word: str) -> Any:
    """Return a value as Python has it: a text in quotes, a number, or else a text."""
    if not word:
        return text.replace("''", "'")
    if re.fullmatch(r"[+-]?\d+", word):
        return int(word)
    return Decimal(word) if re.fullmatch(r"[+-]?\d*\.\d+", word) else word
