"""Messages of logical replication (pgoutput) as rows of a changelog. It does no input or output."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.connectors.postgres_cdc.columns import converted, gathered
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges
from penstock.engine.connectors.postgres_cdc.link import CopyMessages
from penstock.engine.kernels.pgoutput import (
    ABSENT,
    BEGIN,
    COMMIT,
    COMMIT_AT,
    DELETE,
    FACT_WORDS,
    INSERT,
    KEEPALIVE,
    KEY_ONLY,
    NULL,
    OPEN,
    RELATION,
    SAFE,
    TRANSACTION_WORDS,
    TRUNCATE,
    UPDATE,
    locate_values,
    scan_messages,
)

# a name of the server has at most 63 bytes, and a zero behind it
_NAME_BYTES = 64

EPOCH_US = 946_684_800_000_000
"""Microseconds from 1970 to 2000, where PostgreSQL's clock begins."""


@dataclass(frozen=True)
class ReplicatedTable:
    """What is known of the table: its id, its columns by name with the ids of their types."""

    name: str
    oid: int
    types: dict[str, int]


@dataclass(frozen=True)
class DecodedChanges:
    """Decoded changes in their order, one row each; an update is two.

    ``weights``: -1 takes a row back. ``commits`` and ``times``: of the row's transaction, its position and
    microseconds since 1970. ``updates``: whether a row is part of an update. ``whole``: so many rows are of
    transactions that are complete. ``answer``: the server asks for a status.
    """

    rows: pa.RecordBatch
    weights: np.ndarray
    commits: np.ndarray
    times: np.ndarray
    updates: np.ndarray
    whole: int
    complete: bool
    answer: bool


class ChangeDecoder:
    """Decodes the messages of one connection, in their order.

    ``fields`` are the columns that are returned, ``keys`` their positions that make the key.
    ``inserts_only``: refuse an update, since the row it replaces was never read.
    """

    def __init__(
        self,
        relation: ReplicatedTable,
        fields: tuple[Field, ...],
        keys: Sequence[int],
        ranges: KeyRanges,
        position: int,
        partial: Sequence[int] | None = None,
        *,
        inserts_only: bool = False,
    ) -> None:
        self._relation, self._fields, self._keys, self._ranges = relation, fields, keys, ranges
        self._inserts_only = inserts_only
        self._from = position
        # the commit of a transaction that was emitted in part, and how many of its changes
        self._skip = list(partial) if partial is not None else [0, 0]
        self._transaction = np.zeros(TRANSACTION_WORDS, np.int64)
        self._transaction[SAFE] = position
        # changes of the open transaction so far
        self._of_transaction = 0
        self._wanted: np.ndarray | None = None

    @property
    def safe(self) -> int:
        """The position up to which every commit was received completely."""
        return int(self._transaction[SAFE])

    @property
    def partial(self) -> list[int] | None:
        """The commit of the open transaction and how many of its changes were received."""
        if not self._transaction[OPEN] or not self._of_transaction:
            return None
        return [int(self._transaction[COMMIT_AT]), self._of_transaction]

    def decode(self, messages: CopyMessages) -> DecodedChanges:
        """Return the changes of messages that are complete. DAT-5405, DAT-5413, DAT-5414 for what cannot be
        followed.
        """
        count = messages.count
        tags, facts = np.zeros(count, np.uint8), np.zeros((count, FACT_WORDS), np.int64)
        scan_messages(messages.data, messages.ends, count, self._transaction, tags, facts)
        own = ((tags == INSERT) | (tags == UPDATE) | (tags == DELETE)) & (facts[:, 0] == self._relation.oid)
        pieces = []
        # the layout of rows may change in between
        layouts = np.flatnonzero(tags == RELATION)
        start = 0
        for place in (*layouts.tolist(), count):
            chosen = start + np.flatnonzero(own[start:place])
            if len(chosen):
                pieces.append(self._rows(messages.data, tags[chosen], facts[chosen]))
            if place < count:
                self._learn(messages.data, int(facts[place, 0]))
            start = place
        for place in np.flatnonzero(tags == TRUNCATE).tolist():
            self._refuse_truncate(messages.data, int(facts[place, 0]))
        self._count(tags, own)
        return self._joined(pieces, tags, facts)

    def _count(self, tags: np.ndarray, own: np.ndarray) -> None:
        begun = np.flatnonzero(tags == BEGIN)
        if len(begun):
            self._of_transaction = int(own[begun[-1] :].sum())
        else:
            self._of_transaction += int(own.sum())

    def _joined(self, pieces: list[DecodedChanges], tags: np.ndarray, facts: np.ndarray) -> DecodedChanges:
        rows = [piece.rows for piece in pieces]
        schema = Schema(self._fields).to_arrow()
        table = pa.Table.from_batches(rows, schema).combine_chunks().to_batches()
        empty = np.zeros(0, np.int64)
        weights, commits, times, updates = (
            np.concatenate([getattr(piece, name) for piece in pieces]) if pieces else empty
            for name in ("weights", "commits", "times", "updates")
        )
        committed = bool((tags == COMMIT).any())
        # the open transaction's rows are the last ones; another's cannot follow its commit
        open_at = self._transaction[COMMIT_AT] if self._transaction[OPEN] else -1
        whole = int((commits != open_at).sum())
        answer = bool((facts[tags == KEEPALIVE, 0] == 1).any())
        batch = table[0] if table else empty_rows(schema)
        return DecodedChanges(batch, weights, commits, times, updates, whole, committed, answer)

    def _rows(self, data: np.ndarray, tags: np.ndarray, facts: np.ndarray) -> DecodedChanges:
        """Decode changes of the table that have one layout."""
        keep = self._not_skipped(facts[:, 3])
        tags, facts = tags[keep], facts[keep]
        olds, news = facts[:, 1], facts[:, 2]
        if ((olds == KEY_ONLY) | ((tags != INSERT) & (olds == ABSENT))).any():
            raise needs_full_identity(self._relation.name)
        if self._inserts_only and (tags != INSERT).any():
            raise PenstockError(
                "DAT-5414",
                f"a row of table {self._relation.name} was updated or deleted that was not read before",
                hint="'scan.startup.mode' = 'latest-offset' is for tables that only grow: use 'initial'",
                kind=Kind.EXTERNAL,
            )
        places = np.stack([olds, news], 1).ravel()
        present = np.flatnonzero(places >= 0)
        change = present // 2
        # the new row of an update follows its old one
        updates = (tags == UPDATE)[change]
        follows = (updates & (present % 2 == 1)).astype(np.uint8)
        columns = self._columns(data, places[present], follows)
        rows = pa.RecordBatch.from_arrays(columns, schema=Schema(self._fields).to_arrow())
        weights = np.where(present % 2 == 1, 1, -1).astype(np.int64)
        commits, times = facts[change, 3], facts[change, 4] + EPOCH_US
        if len(commits) and int(commits.min()) < self._ranges.last:
            fields = [self._fields[index] for index in self._keys]
            counts = self._ranges.counts([rows.column(index) for index in self._keys], fields, commits)
            rows = rows.filter(array_of(counts))
            weights, commits, times, updates = (
                values[counts] for values in (weights, commits, times, updates)
            )
        return DecodedChanges(rows, weights, commits, times, updates, 0, complete=False, answer=False)

    def _not_skipped(self, commits: np.ndarray) -> np.ndarray:
        """Return which changes were not emitted before the restart."""
        keep = commits >= self._from
        if self._skip[1]:
            same = np.flatnonzero(commits == self._skip[0])[: self._skip[1]]
            keep[same] = False
            self._skip[1] -= len(same)
        return keep

    def _columns(self, data: np.ndarray, rows: np.ndarray, follows: np.ndarray) -> list[pa.Array]:
        if self._wanted is None:
            raise AssertionError("the server sends the layout of a table before its first row")
        shape = (len(self._fields), len(rows))
        starts, lengths = np.zeros(shape, np.int64), np.full(shape, NULL, np.int64)
        failed = locate_values(data, rows, follows, self._wanted, len(self._wanted), starts, lengths)
        if failed >= 0:
            raise needs_full_identity(self._relation.name)
        return [
            converted(gathered(data, starts[line], lengths[line]), field, self._relation.name)
            for line, field in enumerate(self._fields)
        ]

    def _learn(self, data: np.ndarray, at: int) -> None:
        """Read the layout of a table's rows. DAT-5413 when a column is gone or has another type."""
        if struct.unpack_from(">I", data.data, at + 1)[0] != self._relation.oid:
            return
        place = at + 5
        names = []
        for _ in range(2):
            place, _text = _text_at(data, place)
        full, count = chr(data[place]) == "f", struct.unpack_from(">H", data.data, place + 1)[0]
        place += 3
        for _ in range(count):
            place, name = _text_at(data, place + 1)
            names.append((name, struct.unpack_from(">I", data.data, place)[0]))
            place += 8
        if not full:
            raise needs_full_identity(self._relation.name)
        wanted = {field.name: line for line, field in enumerate(self._fields)}
        types = dict(names)
        for name in wanted:
            self._check(name, types)
        self._wanted = np.array([wanted.get(name, -1) for name, _ in names], np.int64)

    def _check(self, name: str, types: dict[str, int]) -> None:
        table = self._relation.name
        if name not in types:
            raise PenstockError(
                "DAT-5413",
                f"column {name} of table {table} is not in its changes: "
                "it was dropped, renamed or is generated",
                hint="drop the table here and create it without the column, then start the job anew",
                kind=Kind.EXTERNAL,
            )
        if types[name] != self._relation.types.get(name):
            raise PenstockError(
                "DAT-5413",
                f"column {name} of table {table} has changed its type",
                hint="drop the table here and create it with the new type, then start the job anew",
                kind=Kind.EXTERNAL,
            )

    def _refuse_truncate(self, data: np.ndarray, at: int) -> None:
        count = struct.unpack_from(">I", data.data, at + 1)[0]
        if self._relation.oid in struct.unpack_from(f">{count}I", data.data, at + 6):
            raise PenstockError(
                "DAT-5416",
                f"table {self._relation.name} was truncated, and the server does not say which rows it had",
                hint="drop the slot and start the job anew without its state; use DELETE instead of TRUNCATE",
                kind=Kind.EXTERNAL,
            )


def empty_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return no rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)


def _text_at(data: np.ndarray, at: int) -> tuple[int, str]:
    end = at + int(np.argmax(data[at : at + _NAME_BYTES] == 0))
    return end + 1, bytes(data[at:end]).decode()


def needs_full_identity(table: str) -> PenstockError:
    """Return the error of a table whose changes do not have the whole old row."""
    return PenstockError(
        "DAT-5405",
        f"the changes of table {table} do not have the rows they replace",
        hint=f"run there: ALTER TABLE {table} REPLICA IDENTITY FULL",
        kind=Kind.EXTERNAL,
        sqlstate="55000",
    )
