"""A log as message brokers keep one: partitions that are only appended to, transactions that hide records
until they are committed, fenced producers.

A test's double: its server is a file of SQLite. A record has its offset from when it is written; who reads
what is committed reads, as Kafka's clients do, up to the first record of a transaction that is still open,
and passes over records of those that were aborted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

PARTITIONS = 4
KEYS = 35
_TABLES = """
CREATE TABLE IF NOT EXISTS records (partition INTEGER, at INTEGER, txn INTEGER, value INTEGER, PRIMARY KEY (partition, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS txns (id INTEGER PRIMARY KEY AUTOINCREMENT, producer INTEGER, state TEXT);
CREATE TABLE IF NOT EXISTS producers (id INTEGER PRIMARY KEY, epoch INTEGER);
"""


class Refused(Exception):
    """The log does not do what it was asked, and never will."""


class Log:
    """One connection. A number's key is what is left of it by ``KEYS``, its partition goes by its key."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._made = sqlite3.connect(
            directory / "log.sqlite", timeout=60, isolation_level=None, check_same_thread=False
        )
        self._made.execute("PRAGMA journal_mode = WAL")
        self._made.execute("PRAGMA synchronous = OFF")  # processes are killed here, not machines
        self._made.executescript(_TABLES)

    @contextmanager
    def _at_once(self) -> Iterator[sqlite3.Connection]:
        self._made.execute("BEGIN IMMEDIATE")
        try:
            yield self._made
            self._made.execute("COMMIT")
        except BaseException:
            self._made.execute("ROLLBACK")
            raise

    def take_over(self, producers: int, index: int, kept: Iterable[int]) -> int:
        """Fence off whoever was producer ``index`` of so many, abort what it left open but for the
        ``kept``; return the epoch that may write now.
        """
        with self._at_once() as made:
            mine, kept = f"producer % {producers} = {index}", set(kept)
            open_ = made.execute(f"SELECT id FROM txns WHERE {mine} AND state = 'open'").fetchall()
            made.executemany(
                "UPDATE txns SET state = 'aborted' WHERE id = ?", [row for row in open_ if row[0] not in kept]
            )
            made.execute("INSERT OR IGNORE INTO producers VALUES (?, 0)", (index,))
            made.execute(f"UPDATE producers SET epoch = epoch + 1 WHERE id % {producers} = {index}")
            return int(made.execute("SELECT epoch FROM producers WHERE id = ?", (index,)).fetchone()[0])

    def append(self, producer: int, epoch: int, txn: int | None, values: Sequence[int]) -> int:
        """Append numbers within a transaction, a new one when there is none; return which. Refused to a
        producer that was fenced off.
        """
        with self._at_once() as made:
            if made.execute("SELECT epoch FROM producers WHERE id = ?", (producer,)).fetchone() != (epoch,):
                raise Refused(f"producer {producer} of epoch {epoch} is fenced off")
            txn = (
                txn
                or made.execute(
                    "INSERT INTO txns (producer, state) VALUES (?, 'open')", (producer,)
                ).lastrowid
            )
            ends = dict(made.execute("SELECT partition, MAX(at) FROM records GROUP BY partition").fetchall())
            for value in values:
                partition = value % KEYS % PARTITIONS
                ends[partition] = ends.get(partition, -1) + 1
                made.execute(
                    "INSERT INTO records VALUES (?, ?, ?, ?)", (partition, ends[partition], txn, value)
                )
        assert txn is not None
        return txn

    def end(self, txn: int, state: str) -> None:
        """Commit or abort a transaction; done again it changes nothing. Refused when it had ended the
        other way.
        """
        with self._at_once() as made:
            (was,) = made.execute("SELECT state FROM txns WHERE id = ?", (txn,)).fetchone()
            if was not in ("open", state):
                raise Refused(f"transaction {txn} is {was}")
            made.execute("UPDATE txns SET state = ? WHERE id = ?", (state, txn))

    def expire(self) -> None:
        """Abort every open transaction, as a broker does that has waited too long."""
        self._made.execute("UPDATE txns SET state = 'aborted' WHERE state = 'open'")

    @property
    def open_transactions(self) -> int:
        """How many transactions hide records."""
        return int(self._made.execute("SELECT COUNT(*) FROM txns WHERE state = 'open'").fetchone()[0])

    def committed(self) -> np.ndarray:
        """Return the numbers of what may be read, partition after partition, in the order of their
        offsets.
        """
        text = (
            "WITH stable AS (SELECT partition, MIN(at) AS until FROM records JOIN txns ON txn = id WHERE state = 'open' GROUP BY partition) "
            "SELECT value FROM records AS r JOIN txns AS t ON txn = id LEFT JOIN stable AS s ON s.partition = r.partition "
            "WHERE state = 'committed' AND (until IS NULL OR at < until) ORDER BY r.partition, at"
        )
        return np.array([row[0] for row in self._made.execute(text)], np.int64)

    def close(self) -> None:
        self._made.close()


def out_of_order(numbers: np.ndarray) -> int:
    """Return how many numbers come behind a higher one of their key."""
    keys = numbers % KEYS
    order = np.argsort(keys, kind="stable")
    falls = np.diff(numbers[order]) <= 0
    return int((falls & (np.diff(keys[order]) == 0)).sum())
