"""Tables over topics of the test broker, and sessions that read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import penstock

EARLIEST = {"scan.startup.mode": "earliest-offset"}
WHOLE = {**EARLIEST, "scan.bounded.mode": "latest-offset"}


def create_table(bootstrap: str, topic: str, columns: str, name: str = "t", **options: str) -> str:
    """Return a CREATE TABLE; underscores of option names stand for dots, unless a name is given in
    ``options['more']``.
    """
    given = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "format": "json",
    } | {key.replace("__", "-").replace("_", "."): text for key, text in options.items()}
    texts = ", ".join(f"'{key}' = '{text}'" for key, text in given.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({texts})"


@contextmanager
def opened(statement: str, **settings: str) -> Iterator[penstock.Connection]:
    """Open a session with a table."""
    with penstock.connect(settings={k.replace("_", "."): v for k, v in settings.items()}) as connection:
        connection.execute(statement)
        yield connection


def rows_of(statement: str, query: str, **settings: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query over one table, sorted by their text."""
    with opened(statement, **settings) as connection:
        return sorted(connection.execute(query).fetchall(), key=repr)
