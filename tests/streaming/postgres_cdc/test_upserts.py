"""Tables whose server logs only keys: the rows that are replaced, and values out of line, come from state. Also
with a column that is added there and then here.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import penstock
from tests.harness.patience import await_that
from tests.harness.postgres_server import PostgresServer, logical_server
from tests.streaming.postgres_cdc.test_three_acts import with_options

pytestmark = pytest.mark.xdist_group("postgres-cdc")
SOURCE = "id BIGINT, g INT, n BIGINT, doc STRING, size AS CHAR_LENGTH(doc)"
SINKS = {
    "copied": "id BIGINT, g INT, n BIGINT, doc STRING, size INT, PRIMARY KEY (id) NOT ENFORCED",
    "counted": "g INT, c BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED",
}
QUERIES = {
    "copied": "SELECT id, g, n, doc, size FROM src",
    "counted": "SELECT g, COUNT(*), SUM(n + size) FROM src GROUP BY g",
}
ORACLE = {
    "copied": "SELECT id, g, n, md5(doc), length(doc) FROM {} ORDER BY id",
    "counted": "SELECT g, count(*), sum(n + length(doc))::bigint FROM {} GROUP BY g ORDER BY g",
}
FOUND = {
    "copied": "SELECT id, g, n, md5(doc), size FROM {}_copied ORDER BY id",
    "counted": "SELECT g, c, s FROM {}_counted ORDER BY g",
}


class UpsertedTable:
    """A table of the server with REPLICA IDENTITY DEFAULT, and the tables that a job writes of it."""

    def __init__(self, server: PostgresServer, there: Any, name: str) -> None:
        self.server, self.there, self.name = server, there, name
        there.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, g int, n bigint, doc text)")
        there.execute(f"ALTER TABLE {name} ALTER doc SET STORAGE EXTERNAL")
        there.execute(
            f"INSERT INTO {name} SELECT i, i % 5, i, repeat(chr(97 + i % 26), 3000 + i) FROM generate_series(1, 60) i"
        )
        there.execute(
            f"CREATE TABLE {name}_copied (id bigint PRIMARY KEY, g int, n bigint, doc text, size int)"
        )
        there.execute(f"CREATE TABLE {name}_counted (g int PRIMARY KEY, c bigint, s bigint)")

    def change(self, turn: int) -> None:
        """Update without the long values, with them, and both in one transaction; delete and insert."""
        self.there.execute(
            f"UPDATE {self.name} SET n = n + {turn}, g = (g + 1) % 7 WHERE id % 3 = {turn % 3}"
        )
        with self.there.transaction():
            self.there.execute(f"UPDATE {self.name} SET doc = repeat('{turn}', 4000) WHERE id % 7 = {turn}")
            self.there.execute(f"UPDATE {self.name} SET n = n - 1 WHERE id % 7 = {turn}")
            self.there.execute(f"DELETE FROM {self.name} WHERE id % 20 = {turn}")
            self.there.execute(f"INSERT INTO {self.name} VALUES ({1000 + turn}, 1, 1, 'short')")
            # a key moves, with all its values in the row
            self.there.execute(f"UPDATE {self.name} SET id = id + 5000 WHERE id = {1000 + turn}")

    def is_right(self, kinds: Iterable[str]) -> bool:
        """Return whether the job's tables are what the server says."""
        return all(
            self.there.execute(FOUND[kind].format(self.name)).fetchall()
            == self.there.execute(ORACLE[kind].format(self.name)).fetchall()
            for kind in kinds
        )


def opened(table: UpsertedTable, state: Path, parallelism: int, *added: str) -> Any:
    """Return a session with the tables; ``added``: columns of the source and of its copy."""
    made = penstock.connect(
        settings={
            "execution.runtime-mode": "streaming",
            "execution.checkpointing.dir": str(state),
            "execution.checkpointing.interval": "50 ms",
            "execution.state-recovery.ignore-unclaimed-state": "true",
            "pipeline.name": table.name,
            "parallelism.default": str(parallelism),
        }
    )
    options = table.server.options(
        "postgres", table.name, f"slot_{table.name}", heartbeat__interval="50 ms", changelog_mode="upsert"
    )
    columns = "".join(f", {column}" for column in added)
    made.execute(
        f"CREATE TABLE src ({SOURCE}{columns}, PRIMARY KEY (id) NOT ENFORCED) {with_options(options)}"
    )
    for kind, declared in SINKS.items():
        sink = {"connector": "postgres", "url": table.server.url, "table-name": f"{table.name}_{kind}"}
        more = columns if kind == "copied" else ""
        made.execute(f"CREATE TABLE {kind} ({declared}{more}) {with_options(sink)}")
    return made


def right(table: UpsertedTable, job: Any, kinds: Iterable[str] = tuple(SINKS)) -> None:
    await_that(lambda: job.error is not None or table.is_right(kinds), "the tables are right")
    assert job.error is None, job.error


def test_rows_of_keys_and_long_values_come_from_state(tmp_path: Path) -> None:
    inserts = "; ".join(f"INSERT INTO {kind} {query}" for kind, query in QUERIES.items())
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        table = UpsertedTable(logical_server(), there, "upserted")
        for turn, parallelism in enumerate((1, 3, 2), 1):
            with opened(table, tmp_path / "state", parallelism) as made:
                job = made.execute(f"EXECUTE STATEMENT SET BEGIN {inserts}; END").job
                right(table, job)
                table.change(turn)
                right(table, job)
                job.cancel()
            table.change(turn + 3)
        with opened(table, tmp_path / "state", 1) as made:
            right(table, made.execute(f"EXECUTE STATEMENT SET BEGIN {inserts}; END").job)


def test_a_column_is_added_there_and_then_here(tmp_path: Path) -> None:
    """The job resumes from its state: rows that were read before have NULL in the column until they change."""
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        table, state, kinds = (
            UpsertedTable(logical_server(), there, "widened"),
            tmp_path / "state",
            ("copied",),
        )
        with opened(table, state, 1) as made:
            job = made.execute(f"INSERT INTO copied {QUERIES['copied']}").job
            right(table, job, kinds)
            there.execute("ALTER TABLE widened ADD COLUMN note text DEFAULT 'none'")
            table.change(1)
            right(table, job, kinds)
        there.execute("ALTER TABLE widened_copied ADD COLUMN note text")
        with opened(table, state, 1, "note STRING") as made:
            job = made.execute("INSERT INTO copied SELECT id, g, n, doc, size, note FROM src").job
            there.execute("UPDATE widened SET note = 'x' WHERE id % 2 = 0")
            table.change(2)
            right(table, job, kinds)
            notes = "SELECT DISTINCT coalesce(note, 'NULL') FROM widened_copied WHERE id < 100 AND id % 2 = {} ORDER BY 1"
            assert there.execute(notes.format(0)).fetchall() == [("x",)]
            assert there.execute(notes.format(1)).fetchall() == [("NULL",), ("none",)]
            # what the notice says to run
            there.execute("UPDATE public.widened SET note = note")
            await_that(
                lambda: job.error is not None or there.execute(notes.format(1)).fetchall() == [("none",)],
                "the notes",
            )
            assert job.error is None, job.error
            right(table, job, kinds)
