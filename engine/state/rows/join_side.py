"""JoinSide: the stored rows of one side of a join, found by join key, each with the weight of its matches.

It does four things at once, because all of them are arrays by row id that change together:

```
key columns --keys--> key slot --links--> row ids --store--> columns, weight     rows by key
all columns --_identity--> identity slot --_id_of--> row id (back: _identity_of)  a retraction finds its row
row id --matches--> weight of the other side's rows that match                   outer joins: is it unmatched?
row id or key slot --writes--> when last written                                 state TTL
```

A side that is never retracted has no identity; ``matches`` is filled only where the join asks for it. With
``copy_of`` every subtask stores all rows. This affects snapshots alone: each subtask writes the key groups it
owns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.operator import KeyGroups, PendingOutput, TrackedState
from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import AppendOnlyMultiIndex, MultiIndex
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.rows.row_store import RowStore
from penstock.engine.state.state_snapshot import ARRIVED, BEHIND, SLOT, WRITTEN, by_group, whole
from penstock.engine.state.time_to_live import LastWrites, written_column

# The frozen numbers that say which key slot a row is listed in, one more than it.
_OWNER = "owner"
# Rows added to the lists of their keys in a step: some milliseconds.
_LINKED_PER_STEP = 1 << 18


class JoinSide(TrackedState, Mapped):
    """Rows with weights and match counts. ``keys``, key columns to slots, is shared by both sides of the
    join.

    ``retracting``: rows may be retracted, so equal rows are one row with their weights added. ``counts``:
    keep ``matches``. ``writes``: rows expire some time after they were last written, and snapshots have a
    column for it. With ``by_key`` all rows of a key expire together, after the last write of any of them.
    ``append_only``: rows are neither retracted nor removed, and each takes less memory. ``numbered``:
    rows remember their order of arrival. ``lates``, of a side that is never retracted: rows remember the
    watermark they were behind.
    """

    MAPPED = ("matches", "_behind")

    def __init__(
        self,
        schema: pa.Schema,
        key_columns: Sequence[int],
        keys: KeyIndex,
        max_parallelism: int,
        *,
        retracting: bool,
        counts: bool,
        writes: LastWrites | None = None,
        by_key: bool = False,
        numbered: bool = False,
        lates: bool = False,
        append_only: bool = False,
    ) -> None:
        self.schema = schema
        self.key_columns = list(key_columns)
        self.retracting = retracting
        self.counts = counts
        self._numbered = numbered
        self._append_only = append_only
        self._lates = lates
        self._keys = keys
        self._max_parallelism = max_parallelism
        self._own: KeyGroups | None = None
        self.changes = SlotChanges()
        self.writes, self._by_key = writes, by_key
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self.changes.mark_all()
        self.store = RowStore(
            self.schema, self.changes, numbered=self._numbered, append_only=self._append_only
        )
        self.links: MultiIndex | AppendOnlyMultiIndex = (
            AppendOnlyMultiIndex() if self._append_only else MultiIndex()
        )
        # By row id, like ``_behind`` and ``_identity_of``. An index of the other has one more than it names,
        # and 0 for none: new memory is zero and needs no filling.
        self.matches = np.zeros(self.store.capacity, np.int64)
        self._behind = np.zeros(0, np.int64)
        # While no row has a weight other than 1, the join need not multiply weights.
        self.all_ones = True
        self._identity = KeyIndex(self.schema.types) if self.retracting else None
        if self.writes is not None:
            self.writes.clear()
        self._id_of = np.zeros(0 if self._identity is None else self._identity.capacity, np.int64)
        self._identity_of = np.zeros(self.store.capacity, np.int64)

    def __len__(self) -> int:
        return len(self.store)

    def copy_of(self, own: KeyGroups) -> None:
        """Hold all rows in every subtask: snapshots have those of ``own`` only, all of them are restored."""
        self._own = own

    def consolidated(self, batch: Batch, *, keep: bool) -> Batch:
        """Return a batch with equal rows made one and their weights added, rows of weight 0 gone; ``keep``
        when the rows will be stored.
        """
        if not self.retracting or batch.weights is None:
            return batch
        # Rows that will be stored are inserted into the side's own index, where ``change`` looks them up
        # again.
        index = self._identity if keep and self._identity is not None else KeyIndex(self.schema.types)
        slots = index.lookup_or_insert(batch.rows.columns, batch.num_rows)
        # Sums of weights by distinct row; ``first`` is where each occurs first.
        _, first, inverse = np.unique(slots, return_index=True, return_inverse=True)
        net = np.zeros(first.size, np.int64)
        np.add.at(net, inverse, batch.weights)
        if index is self._identity:
            # rows that cancel in the batch were inserted into the index, but will not be stored
            self._release_unstored(np.unique(slots))
        # No two rows were equal and none cancels: the batch is its own sum.
        if first.size == batch.num_rows and net.all():
            return batch
        # In order of first occurrence, not of slots: results do not depend on how the index numbers rows.
        order = np.argsort(first, kind="stable")
        chosen = order[net[order] != 0]
        summed = batch.take(first[chosen])
        return Batch(summed.rows, net[chosen], summed.behind, summed.origin)

    def _release_unstored(self, slots: np.ndarray) -> None:
        """Release identity slots that no stored row has."""
        assert self._identity is not None
        self._fit()
        self._identity.remove(slots[self._id_of[slots] == 0])

    def change(
        self, batch: Batch, slots: np.ndarray, matched: np.ndarray, arrived: np.ndarray | None = None
    ) -> np.ndarray:
        """Store a consolidated batch of rows in their key slots (``matched``: each row's match count); return
        the key slots that became empty.

        ``arrived``: their numbers in the order of arrival, of a side that is never retracted; None: the one
        they have.
        """
        if batch.weights is not None:
            self.all_ones = False
        # With a TTL by key every row of a batch renews its whole key, retractions too.
        if self.writes is not None and self._by_key:
            self.writes.touch(slots, self._keys.capacity)
        # Insert-only: rows need no identity, equal ones are stored side by side.
        if self._identity is None:
            ids = self.store.append(batch.rows, batch.weights, arrived)
            self._index(ids, batch.rows, slots, matched)
            self._written(ids)
            self._note_behind(ids, batch.behind)
            return np.zeros(0, np.int64)
        return self._merge(batch, slots, matched, arrived)

    @property
    def indexes_later(self) -> bool:
        """Whether rows may be stored by ``append_unindexed``: an append-only side has no other index."""
        return self._append_only and bool(self.key_columns)

    def append_unindexed(self, batch: Batch) -> None:
        """Store rows that nothing has matched. They are not found by their key before ``build_index``."""
        if batch.weights is not None:
            self.all_ones = False
        self.store.append(batch.rows, batch.weights)
        self._fit()

    def build_index(self) -> PendingOutput:
        """Make the rows that are stored but not indexed found by their key, in steps. Many at once take much
        less time than batch by batch.
        """
        first = len(self.links)
        slots = yield from self._keys.insert_all(list(self.store.columns(self.key_columns, first)))
        for start in range(0, slots.size, _LINKED_PER_STEP):
            some = slots[start : start + _LINKED_PER_STEP]
            self.links.link(some, np.arange(first + start, first + start + some.size))
            yield

    def _note_behind(self, ids: np.ndarray, behind: np.ndarray | None) -> None:
        """Note the watermarks rows are behind. Before the first late row there is no array: most jobs pay
        nothing.
        """
        # On-time rows need no entry as long as no array exists.
        if not self._lates or (behind is None and not self._behind.size):
            return
        # rows stored before the first late row were all on time
        known = self._behind.size
        if known < self.store.capacity:
            self._behind = grown(self._behind, self.store.capacity)
            self._behind[known:] = MIN_WATERMARK_US
        self._behind[ids] = MIN_WATERMARK_US if behind is None else behind

    def behind(self, ids: np.ndarray) -> np.ndarray | None:
        """Return the watermark that each row was behind when it arrived. Rows on time have
        ``MIN_WATERMARK_US``; None when all are on time.
        """
        return self._behind[ids] if self._behind.size else None

    def _written(self, ids: np.ndarray) -> None:
        if self.writes is not None and not self._by_key:
            self.writes.touch(ids, self.store.capacity)

    def due(self, now_ms: int) -> np.ndarray:
        """Return what has expired by the clock: row ids, or key slots with ``by_key``. The caller removes
        it.
        """
        if self.writes is None:
            return np.zeros(0, np.int64)
        return self.writes.due(now_ms, self._keys.live_slots if self._by_key else self.store.live_ids)

    def ids_of(self, batch: Batch) -> np.ndarray:
        """Return the ids of stored rows that can be retracted, -1 for others."""
        if self._identity is None:
            return np.full(batch.num_rows, -1)
        self._fit()
        identities = self._identity.lookup(batch.rows.columns, batch.num_rows)
        return np.where(identities >= 0, self._id_of[np.maximum(identities, 0)] - 1, -1)

    def without_absent(self, batch: Batch) -> tuple[Batch, int]:
        # A row that is not stored has identity -1: index 0 is read instead, and the result is masked.
        """Return a consolidated batch without retractions of rows that are not stored, and how many these
        were.
        """
        # Without negative weights nothing can be absent.
        if batch.weights is None or (batch.weights > 0).all():
            return batch, 0
        ids = self.ids_of(batch)
        stored_weights = np.where(ids >= 0, self.store.weights(np.maximum(ids, 0)), 0)
        # a retraction takes at most what is stored
        weights = np.where(
            batch.weights < 0, np.maximum(batch.weights, -np.maximum(stored_weights, 0)), batch.weights
        )
        absent = int((weights - batch.weights).sum())
        if not absent:
            return batch, 0
        # Rows whose retraction was wholly absent have weight 0 now.
        left = np.flatnonzero(weights)
        rows_left = batch.take(left)
        return Batch(rows_left.rows, weights[left], rows_left.behind, rows_left.origin), absent

    def _merge(
        self, batch: Batch, slots: np.ndarray, matched: np.ndarray, arrived: np.ndarray | None
    ) -> np.ndarray:
        assert self._identity is not None
        batch, slots, matched = self._one_each(batch, slots, matched)
        identities = self._identity.lookup_or_insert(batch.rows.columns, batch.num_rows)
        self._fit()
        weights = np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights
        # Rows that are stored change their weight; new ones are appended.
        ids = self._id_of[identities] - 1
        known, new = np.flatnonzero(ids >= 0), np.flatnonzero(ids < 0)
        rows = batch.rows.take(array_of(new))
        fresh = self.store.append(rows, weights[new], None if arrived is None else arrived[new])
        self._index(fresh, rows, slots[new], matched[new])
        self._id_of[identities[new]] = fresh + 1
        # Both directions are set together: ``_forget`` relies on the pair.
        self._identity_of[fresh] = identities[new] + 1
        self._written(np.concatenate([fresh, ids[known]]))
        if not known.size:
            return np.zeros(0, np.int64)
        self.all_ones = False
        return self._forget(self.store.add_weights(ids[known], weights[known]))

    def _forget(self, gone: np.ndarray) -> np.ndarray:
        """Remove rows from the indexes that the store no longer has. Return the key slots that became
        empty.
        """
        if self._identity is not None:
            identities = self._identity_of[gone] - 1
            self._identity.remove(identities)
            # the identity has no stored row, the row has no identity
            self._id_of[identities] = self._identity_of[gone] = 0
        assert isinstance(self.links, MultiIndex)
        return self.links.unlink(gone)

    def remove(self, ids: np.ndarray) -> np.ndarray:
        """Remove distinct rows whatever their weight; return the key slots that became empty."""
        if not ids.size:
            return np.zeros(0, np.int64)
        self.store.drop(ids)
        return self._forget(ids)

    def _one_each(
        self, batch: Batch, slots: np.ndarray, matched: np.ndarray
    ) -> tuple[Batch, np.ndarray, np.ndarray]:
        """Insert-only batches of a retracting side may repeat a row: make it one row of a greater weight."""
        if batch.weights is not None:
            return batch, slots, matched
        assert self._identity is not None
        identities = self._identity.lookup_or_insert(batch.rows.columns, batch.num_rows)
        _, first, counts = np.unique(identities, return_index=True, return_counts=True)
        if first.size == batch.num_rows:
            return batch, slots, matched
        self.all_ones = False
        order = np.argsort(first)  # they stay in the order they arrived
        # each distinct row is at the position of its first copy, with their number as its weight
        first, counts = first[order], counts[order]
        return Batch(batch.take(first).rows, counts.astype(np.int64)), slots[first], matched[first]

    def _index(self, ids: np.ndarray, rows: pa.RecordBatch, slots: np.ndarray, matched: np.ndarray) -> None:
        self._fit()
        self.links.link(slots, ids)
        if self.counts:
            # only a side whose rows are emitted alone, by whether they match, has match counts
            self.matches[ids] = matched

    def _fit(self) -> None:
        """Grow the arrays by row id and by identity slot to the capacity of their index."""
        capacity = self.store.capacity
        if self.counts and self.matches.size < capacity:
            self.matches = grown(self.matches, capacity)
        if self._identity is None:
            return
        if self._identity_of.size < capacity:
            self._identity_of = grown(self._identity_of, capacity)
        if self._id_of.size < self._identity.capacity:
            self._id_of = grown(self._id_of, self._identity.capacity)

    def at_once(self, slots: np.ndarray) -> Iterator[np.ndarray]:
        """Yield distinct key slots in pieces whose rows fit one Arrow array; the rows of one slot are not
        split.
        """
        counts = self.links.counts(slots)
        # the common case: even if every row were the widest one seen, all would fit
        if int(counts.sum()) * self.store.widest <= LIMITS.chunk_bytes:
            yield slots
            return
        positions, ids = self.links.expand(slots)
        sizes = np.bincount(positions, self.store.sizes(ids), slots.size).astype(np.int64)
        for first, last in cut(sizes, slots.size, LIMITS.chunk_bytes):
            yield slots[first:last]

    def match(self, ids: np.ndarray, changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Change the match counts of distinct rows; return them as they were and as they are."""
        self.store.save(ids)
        before = self.matches[ids]
        after = self.matches[ids] = before + changes
        self.changes.mark(ids, self.store.capacity)
        return before, after

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Rows are shared with their chunks, which never change; their numbers are copied later, by the
        thread that makes the tables. What changes before is saved.
        """
        beside = {"matches": self.matches} if self.counts else {}
        # The column is written even when all rows are on time, so that parts of one state agree in their
        # columns.
        if self._behind.size:
            beside[BEHIND] = self._behind
        if self.writes is not None and self._by_key:
            assert isinstance(self.links, MultiIndex)
            beside[_OWNER] = self.links.owners_by_id
        rows = self.store.freeze(slots, beside)
        written = None if self.writes is None else self.writes.freeze()
        keys, own, lates, counts = self.key_columns, self._own, self._lates, self.counts
        on_time, numbered = not self._behind.size, self._numbered
        names = ["key_group", SLOT, "weight", "matches", *[f"c{i}" for i in range(len(self.schema))]]

        def more(some: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
            """Yield the optional columns of rows, in the order of OPTIONAL."""
            if numbered:
                yield ARRIVED, rows.numbers(ARRIVED, some)
            if lates:
                yield (
                    BEHIND,
                    np.full(some.size, MIN_WATERMARK_US) if on_time else rows.numbers(BEHIND, some),
                )
            if written is not None:
                of = rows.numbers(_OWNER, some) - 1 if _OWNER in beside else rows.ids[some]
                yield WRITTEN, written(None)(of)

        # Called by the writer's thread: it uses only what is frozen above, never the side itself.
        def pieces() -> Iterator[pa.Table]:
            groups = rows.groups(keys, self._max_parallelism)
            # A side that every subtask stores whole writes only its own key groups, or each row would be
            # stored once per subtask.
            mine = (
                np.arange(len(rows))
                if own is None
                else np.flatnonzero((groups >= own.start) & (groups < own.end))
            )
            order, first = by_group(groups[mine], rows.ids[mine])
            # On disk: key_group, @slot (row id), weight, matches, c0 ..., then the optional columns.
            for first_row, some, batch in rows.pieces(mine[order]):
                marks = [column.slice(first_row, some.size) for column in first]
                matches = rows.numbers("matches", some) if counts else np.zeros(some.size, np.int64)
                weights = rows.weights(some)
                piece = pa.table([*marks, array_of(weights), array_of(matches), *batch.columns], names=names)
                for name, values in more(some):
                    piece = piece.append_column(name, array_of(values))
                yield piece

        return pieces

    def restore(self, part: pa.Table) -> None:
        part = part.combine_chunks()
        batches = (
            pa.Table.from_arrays(part.columns[3 : 3 + len(self.schema)], schema=self.schema)
            .combine_chunks()
            .to_batches()
        )
        if not batches:
            return
        weights = numbers_of(part.column("weight"))
        slots = self._keys.lookup_or_insert(
            [batches[0].column(key) for key in self.key_columns], batches[0].num_rows
        )
        # Old checkpoints lack the optional columns: a row is on time then, and rows arrive in stored order.
        behind = numbers_of(part.column(BEHIND)) if BEHIND in part.column_names else None
        batch = Batch(batches[0], None if (weights == 1).all() else weights, behind)
        arrived = numbers_of(part.column(ARRIVED)) if ARRIVED in part.column_names else None
        if self.writes is None:
            self.change(batch, slots, numbers_of(part.column("matches")), arrived)
            return
        # The store assigns the ids: those that are live now and were not before are this part's.
        before = self.store.live_ids()
        self.change(batch, slots, numbers_of(part.column("matches")), arrived)
        written = written_column(part)
        if written is not None and self._by_key:
            self.writes.restore(slots, written, self._keys.capacity)
        elif written is not None:
            self.writes.restore(np.setdiff1d(self.store.live_ids(), before), written, self.store.capacity)
