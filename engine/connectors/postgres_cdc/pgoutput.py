"""Messages of logical replication (pgoutput) as rows of a changelog. It does no input or output."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.engine.api.arrow_numpy import array_of, is_true
from penstock.engine.connectors.postgres_cdc.columns import converted, gathered
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges
from penstock.engine.connectors.postgres_cdc.layouts import (
    ColumnType,
    ReplicatedTable,
    SentColumn,
    match_layout,
)
from penstock.engine.connectors.postgres_cdc.link import CopyMessages
from penstock.engine.kernels.pgoutput import (
    ABSENT,
    BEGIN,
    COMMIT,
    COMMIT_AT,
    DELETE,
    FACT_WORDS,
    IN_KEY,
    INSERT,
    KEEPALIVE,
    KEY_ROW,
    MAY_LACK,
    NULL,
    OPEN,
    RELATION,
    SAFE,
    TRANSACTION_WORDS,
    TRUNCATE,
    UNCHANGED,
    UPDATE,
    locate_values,
    scan_messages,
)

# a name of the server has at most 63 bytes, and a zero behind it
_NAME_BYTES = 64

EPOCH_US = 946_684_800_000_000
"""Microseconds from 1970 to 2000, where PostgreSQL's clock begins."""


@dataclass(frozen=True)
class DecodedChanges:
    """Decoded changes in their order, one row each; an update is two.

    ``weights``: -1 takes a row back. ``commits`` and ``times``: of the row's transaction, its position and
    microseconds since 1970. ``updates``: whether a row is part of an update. ``unchanged``, a column for each
    field: which values are those of the key's row before, and so not here. ``whole``: so many rows are of
    transactions that are complete. ``answer``: the server asks for a status. ``notices``: what has changed of
    the table itself.
    """

    rows: pa.RecordBatch
    weights: np.ndarray
    commits: np.ndarray
    times: np.ndarray
    updates: np.ndarray
    unchanged: np.ndarray
    whole: int = 0
    complete: bool = False
    answer: bool = False
    notices: tuple[str, ...] = ()


class ChangeDecoder:
    """Decodes the messages of one connection, in their order.

    ``fields`` are the columns that are returned, ``keys`` their positions that make the key. ``upserts``: an
    update is its new row, and a deletion has only a key; whoever reads them knows the rows they replace.
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
        upserts: bool = False,
        inserts_only: bool = False,
    ) -> None:
        self._relation, self._fields, self._keys, self._ranges = relation, fields, keys, ranges
        self._upserts, self._inserts_only = upserts, inserts_only
        # which values an update may leave out
        self._known = np.full(len(fields), MAY_LACK if upserts else 0, np.uint8)
        self._known[list(keys)] = IN_KEY
        self._notices: list[str] = []
        self._from = position
        # the commit of a transaction that was emitted in part, and how many of its changes
        self._skip = list(partial) if partial is not None else [0, 0]
        self._transaction = np.zeros(TRANSACTION_WORDS, np.int64)
        self._transaction[SAFE] = position
        # changes of the open transaction so far
        self._of_transaction = 0
        self._lines: np.ndarray | None = None

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
        """Return the changes of messages that are complete. DAT-5405, DAT-5413, DAT-5414, DAT-5416, DAT-5418
        for what cannot be followed.
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
                self._learn(messages.data, int(facts[place, 0]), int(facts[place, 3]))
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
        none = np.zeros((0, len(self._fields)), np.bool_)
        unchanged = np.concatenate([none, *(piece.unchanged for piece in pieces)])
        # the open transaction's rows are the last ones; another's cannot follow its commit
        open_at = self._transaction[COMMIT_AT] if self._transaction[OPEN] else -1
        notices, self._notices = tuple(self._notices), []
        return DecodedChanges(
            table[0] if table else empty_rows(schema),
            weights,
            commits,
            times,
            updates,
            unchanged,
            int((commits != open_at).sum()),
            bool((tags == COMMIT).any()),
            bool((facts[tags == KEEPALIVE, 0] == 1).any()),
            notices,
        )

    def _rows(self, data: np.ndarray, tags: np.ndarray, facts: np.ndarray) -> DecodedChanges:
        """Decode changes of the table that have one layout."""
        keep = self._not_skipped(facts[:, 3])
        tags, facts = tags[keep], facts[keep]
        self._check_kinds(tags, facts)
        olds, news = facts[:, 1], facts[:, 2]
        places = np.stack([olds, news], 1).ravel()
        present = np.flatnonzero(places >= 0)
        change, is_new = present // 2, present % 2 == 1
        updates = (tags == UPDATE)[change]
        # the new row of an update follows its old one
        follows = np.where(updates & is_new, facts[change, 5], 0).astype(np.uint8)
        columns, unchanged = self._columns(data, places[present], follows)
        found = DecodedChanges(
            pa.RecordBatch.from_arrays(columns, schema=Schema(self._fields).to_arrow()),
            np.where(is_new, 1, -1).astype(np.int64),
            facts[change, 3],
            facts[change, 4] + EPOCH_US,
            updates,
            unchanged,
        )
        if self._upserts:
            found = self._upserted(found, follows)
        if len(found.commits) and int(found.commits.min()) < self._ranges.last:
            fields = [self._fields[index] for index in self._keys]
            keys = [found.rows.column(index) for index in self._keys]
            found = _chosen(found, self._ranges.counts(keys, fields, found.commits))
        return found

    def _check_kinds(self, tags: np.ndarray, facts: np.ndarray) -> None:
        lacks = (facts[:, 5] == KEY_ROW) | ((tags != INSERT) & (facts[:, 1] == ABSENT))
        if not self._upserts and lacks.any():
            raise needs_full_identity(self._relation.name)
        if self._inserts_only and (tags != INSERT).any():
            raise PenstockError(
                "DAT-5414",
                f"a row of table {self._relation.name} was updated or deleted that was not read before",
                hint="'scan.startup.mode' = 'latest-offset' is for tables that only grow: use 'initial'",
                kind=Kind.EXTERNAL,
            )

    def _upserted(self, found: DecodedChanges, follows: np.ndarray) -> DecodedChanges:
        """Leave out the old row of an update that keeps its key. DAT-5418 for a value that stays behind under
        the old key.
        """
        news = np.flatnonzero(follows)
        if not len(news):
            return found
        same = np.ones(len(news), np.bool_)
        for index in self._keys:
            column = found.rows.column(index)
            same &= is_true(pc.equal(column.take(array_of(news - 1)), column.take(array_of(news))))
        if found.unchanged[news[~same]].any():
            raise PenstockError(
                "DAT-5418",
                f"an update of table {self._relation.name} has changed a key and left a value alone that is "
                "stored out of line: the server does not send it",
                hint=f"run there: ALTER TABLE {self._relation.name} REPLICA IDENTITY FULL; then start the "
                "job anew without its state",
                kind=Kind.EXTERNAL,
                sqlstate="55000",
            )
        stays = np.ones(len(follows), np.bool_)
        stays[news[same] - 1] = False
        return _chosen(found, stays)

    def _not_skipped(self, commits: np.ndarray) -> np.ndarray:
        """Return which changes were not emitted before the restart."""
        keep = commits >= self._from
        if self._skip[1]:
            same = np.flatnonzero(commits == self._skip[0])[: self._skip[1]]
            keep[same] = False
            self._skip[1] -= len(same)
        return keep

    def _columns(
        self, data: np.ndarray, rows: np.ndarray, follows: np.ndarray
    ) -> tuple[list[pa.Array], np.ndarray]:
        """Return the columns of rows, and which of their values are nowhere."""
        if self._lines is None:
            raise AssertionError("the server sends the layout of a table before its first row")
        shape = (len(self._fields), len(rows))
        starts, lengths = np.zeros(shape, np.int64), np.full(shape, NULL, np.int64)
        width = len(self._lines)
        failed = locate_values(data, rows, follows, self._lines, self._known, width, starts, lengths)
        if failed >= 0:
            raise needs_full_identity(self._relation.name)
        columns = [
            converted(gathered(data, starts[line], lengths[line]), field, self._relation.name)
            for line, field in enumerate(self._fields)
        ]
        return columns, (lengths == UNCHANGED).T

    def _learn(self, data: np.ndarray, at: int, commit: int) -> None:
        """Read the layout of a table's rows. DAT-5405, DAT-5413."""
        if struct.unpack_from(">I", data.data, at + 1)[0] != self._relation.oid:
            return
        place = at + 5
        for _ in range(2):
            place, _text = _text_at(data, place)
        identity, count = chr(data[place]), struct.unpack_from(">H", data.data, place + 1)[0]
        place += 3
        sent = []
        for _ in range(count):
            in_key = bool(data[place] & 1)
            place, name = _text_at(data, place + 1)
            sent.append(SentColumn(name, ColumnType(*struct.unpack_from(">Ii", data.data, place)), in_key))
            place += 8
        self._check_identity(identity, sent)
        layout = match_layout(self._relation, self._fields, sent, commit)
        self._lines = layout.lines
        self._notices += layout.notices

    def _check_identity(self, identity: str, sent: list[SentColumn]) -> None:
        if identity == "f":
            return
        if not self._upserts:
            raise needs_full_identity(self._relation.name)
        key = {self._fields[index].name for index in self._keys}
        # without a key the server refuses updates and deletions
        if {one.name for one in sent if one.in_key} not in (set(), key):
            raise needs_key_identity(self._relation.name, sorted(key))

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


def _chosen(found: DecodedChanges, keep: np.ndarray) -> DecodedChanges:
    return DecodedChanges(
        found.rows.filter(array_of(keep)),
        found.weights[keep],
        found.commits[keep],
        found.times[keep],
        found.updates[keep],
        found.unchanged[keep],
    )


def _text_at(data: np.ndarray, at: int) -> tuple[int, str]:
    end = at + int(np.argmax(data[at : at + _NAME_BYTES] == 0))
    return end + 1, bytes(data[at:end]).decode()


def needs_full_identity(table: str) -> PenstockError:
    """Return the error of a table whose changes do not have the whole old row."""
    return PenstockError(
        "DAT-5405",
        f"the changes of table {table} do not have the rows they replace",
        hint="declare 'changelog-mode' = 'upsert' here, which stores the table's rows as state; or run "
        f"there: ALTER TABLE {table} REPLICA IDENTITY FULL",
        kind=Kind.EXTERNAL,
        sqlstate="55000",
    )


def needs_key_identity(table: str, key: list[str]) -> PenstockError:
    """Return the error of a table whose changes do not have the declared key."""
    return PenstockError(
        "DAT-5405",
        f"the changes of table {table} do not have the declared key ({', '.join(key)})",
        hint=f"run there: ALTER TABLE {table} REPLICA IDENTITY FULL",
        kind=Kind.EXTERNAL,
        sqlstate="55000",
    )
