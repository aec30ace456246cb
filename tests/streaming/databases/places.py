"""Databases of the three kinds to test with: a file in a directory, or a PostgreSQL server of the test
session's own.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.harness.postgres_server import postgres_runs, start_postgres
from tests.harness.server_process import SharedServer

KINDS = ("sqlite", "duckdb", "postgres")
SECRET = "S3CR3T-7f1c"
_SERVER = SharedServer("the tests' PostgreSQL", lambda: start_postgres("penstock-pg-"), postgres_runs)


def server_url() -> str:
    """Return the url of the session's server, started when first asked for; the test is skipped where
    there is no server to be had.
    """
    return str(_SERVER.get().get_uri())


class Place:
    """One database: ``run`` and ``ask`` go around penstock, ``options`` are what a WITH clause says of a
    table in it.
    """

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self.path = str(directory / f"facts.{kind}")
        self.url = server_url() if kind == "postgres" else ""
        if kind == "postgres":
            self.url = self._own_database(directory.name)

    def _own_database(self, name: str) -> str:
        import psycopg

        word = "d" + "".join(c for c in name.lower() if c.isalnum())[-40:]
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {word} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {word}")
        head, _, query = self.url.partition("?")
        return f"{head.rpartition('/')[0]}/{word}?{query}"

    @contextlib.contextmanager
    def connection(self) -> Iterator[Any]:
        """Yield a connection of the driver's."""
        if self.kind == "sqlite":
            made: Any = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        elif self.kind == "duckdb":
            import duckdb

            made = duckdb.connect(self.path)
        else:
            import psycopg

            made = psycopg.connect(self.url, autocommit=True)
        try:
            yield made
        finally:
            made.close()

    def run(self, *texts: str) -> None:
        """Run statements."""
        with self.connection() as made:
            for text in texts:
                made.execute(text)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.connection() as made:
            return [tuple(row) for row in made.execute(text).fetchall()]

    def staged(self) -> int:
        """Return how many transactions are staged in the database; a sink by epoch stages none there."""
        if self.kind == "postgres" and self.ask("SELECT to_regclass('penstock_staged')") == [(None,)]:
            return 0
        return int(self.ask("SELECT COUNT(*) FROM penstock_staged")[0][0])

    def options(self, table: str, **more: str) -> str:
        """Return a WITH clause."""
        place = {"url": self.url} if self.kind == "postgres" else {"path": self.path}
        told = {
            "connector": self.kind,
            **place,
            "table-name": table,
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        return (
            "WITH ("
            + ", ".join(f"'{key.replace('_', '-')}' = '{value}'" for key, value in told.items())
            + ")"
        )
