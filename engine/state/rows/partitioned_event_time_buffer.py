"""TimedRows: rows by partition that are pending until the watermark, and passed rows that later rows still
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.operator import KeyGroups, TrackedState
from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.rows.row_store import RowStore
from penstock.engine.state.state_snapshot import ARRIVED, SLOT, WRITTEN, by_group, whole
from penstock.engine.state.time_to_live import LastWrites, restore_lives
from penstock.engine.state.watermark_state import KeyGroupWatermarkState

# The frozen numbers that say which partition a row is of.
_SLOT = "slot"


class TimedRows(TrackedState, Mapped):
    """Rows by id with their partition's slot (of ``keys``, which is shared) and their time. Pending rows are
    listed, passed ones linked to slots.

    ``passed_time``: the watermark up to which rows have passed, for the operator to declare. A restore sets
    it to the earliest of all parts. With unaligned barriers subtasks may differ in it, and rows in channel
    state arrive later.

    Snapshots have key_group, whether a row is pending, that time (older ones have no other record of it) and
    the columns. With ``writes`` they also have, by partition, when one of its rows last arrived or passed.
    ``numbered``: rows remember in which order they arrived.
    """

    MAPPED = ("_slots", "_times")

    def __init__(
        self,
        schema: pa.Schema,
        partition: Sequence[int],
        time_column: int,
        keys: KeyIndex,
        groups: KeyGroups,
        writes: LastWrites | None = None,
        *,
        numbered: bool = False,
    ) -> None:
        self.writes = writes
        self.schema = schema
        self._partition = list(partition)
        self._time_column = time_column
        self._keys = keys
        self._max_parallelism = groups.max_parallelism
        self.changes = SlotChanges()
        # Rows by id. A row is pending (in ``waiting``), or passed (in ``passed``, linked to its slot);
        # between ``due`` and ``keep`` or ``forget`` it is in neither.
        self.store = RowStore(schema, self.changes, numbered=numbered)
        self.passed = MultiIndex()
        self.waiting = np.zeros(0, np.int64)
        self.passed_time = KeyGroupWatermarkState(groups)
        # Nothing restored yet: the first restored part sets the watermark, the next ones lower it.
        self._fresh = True
        # By row id: slot of the partition and time in microseconds.
        self._slots, self._times = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.store)

    @property
    def passed_us(self) -> int:
        """The watermark up to which rows have passed."""
        return self.passed_time.us

    def slots(self, ids: np.ndarray) -> np.ndarray:
        """Return the slots of rows."""
        return self._slots[ids]

    def times(self, ids: np.ndarray) -> np.ndarray:
        """Return the times of rows, microseconds."""
        return self._times[ids]

    def _add(self, rows: pa.RecordBatch, arrived: np.ndarray | None = None) -> np.ndarray:
        slots = self._keys.lookup_or_insert([rows.column(key) for key in self._partition], rows.num_rows)
        ids = self.store.append(rows, arrived=arrived)
        if self.store.capacity > self._slots.size:
            self._slots, self._times = (
                grown(self._slots, self.store.capacity),
                grown(self._times, self.store.capacity),
            )
        self._slots[ids], self._times[ids] = slots, col.words(rows.column(self._time_column))
        return ids

    def hold(self, rows: pa.RecordBatch) -> None:
        """Add pending rows."""
        ids = self._add(rows)
        self.waiting = np.concatenate([self.waiting, ids])
        if self.writes is not None:
            self.writes.touch(self._slots[ids], self._keys.capacity)

    def link(self, rows: pa.RecordBatch) -> None:
        """Add passed rows, linked to their slots."""
        self.keep(self._add(rows))

    def due(self, watermark_us: int) -> np.ndarray:
        """Remove from the pending rows those with a time below the watermark, and return them. They are then
        passed, but linked to no slot.
        """
        ready = self._times[self.waiting] < watermark_us
        ids, self.waiting = self.waiting[ready], self.waiting[~ready]
        self.passed_time.us = watermark_us
        return ids

    def at_once(self, slots: np.ndarray, due: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield distinct slots, each with its due rows, in pieces. A piece may be read at once with the rows
        linked to its slots; the rows of one slot are not split.
        """
        # The common case: all of it is small enough to be read at once.
        earlier = int(self.passed.counts(slots).sum())
        if due.size <= LIMITS.piece_rows and (due.size + earlier) * self.store.widest <= LIMITS.chunk_bytes:
            yield slots, due
            return
        # Slots to positions in ``slots``, as an array: slots are small and dense.
        position = np.zeros(int(slots.max()) + 1, np.int64)
        position[slots] = np.arange(slots.size)
        of_due = position[self._slots[due]]
        rows = np.bincount(of_due, minlength=slots.size)
        positions, linked = self.passed.expand(slots)
        sizes = np.bincount(of_due, self.store.sizes(due), slots.size)
        sizes += np.bincount(positions, self.store.sizes(linked), slots.size)
        # one cost for two limits: rows, and bytes scaled so that a full chunk costs as much as a full piece
        costs = np.maximum(rows, (sizes * (LIMITS.piece_rows / LIMITS.chunk_bytes)).astype(np.int64))
        order, ends = np.argsort(of_due, kind="stable"), np.cumsum(rows)
        for first, last in cut(costs, slots.size, LIMITS.piece_rows):
            yield slots[first:last], due[order[ends[first] - rows[first] : ends[last - 1]]]

    def keep(self, ids: np.ndarray) -> None:
        """Link passed rows to their slots."""
        # Passing changes the row's ``waits`` column, so the snapshot writes it again.
        self.changes.mark(ids, self.store.capacity)
        self.passed.link(self._slots[ids], ids)

    def forget(self, linked: np.ndarray, fresh: np.ndarray) -> None:
        """Forget rows that are linked, and rows that have just passed and are not."""
        self.passed.unlink(linked)
        ids = np.concatenate([linked, fresh])
        if ids.size:
            self.store.drop(ids)

    def linked_ids(self) -> np.ndarray:
        # A mask by row id; a set difference would sort both sides.
        """Return the ids of all stored rows that have passed."""
        mask = np.zeros(self.store.capacity, np.bool_)
        mask[self.store.live_ids()] = True
        mask[self.waiting] = False
        return np.flatnonzero(mask)

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Rows are shared with their chunks, which never change; their numbers are copied later, by the
        thread that makes the tables. What changes before is saved.
        """
        names, beside = self._beside()
        if self.writes is not None:
            beside[_SLOT] = self._slots
        rows, partition, width = self.store.freeze(slots, beside), self._partition, len(self.schema)
        # never written to: it is replaced
        waiting, capacity, passed_us = self.waiting, self.store.capacity, self.passed_us
        written = None if self.writes is None else self.writes.freeze()

        def more(some: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
            """Yield the columns behind the row's own."""
            for name in names:
                yield name, rows.numbers(name, some)
            if written is not None:
                yield WRITTEN, written(None)(rows.numbers(_SLOT, some))

        def pieces() -> Iterator[pa.Table]:
            # By row id first: an array look-up for each row instead of a search.
            waits = np.zeros(capacity, np.bool_)
            waits[waiting] = True
            ids = rows.ids
            order, first = by_group(rows.groups(partition, self._max_parallelism), ids)
            # On disk: key_group, @slot (row id), waits, passed_us, c0 ..., then the subclass's own columns
            # and the optional ones.
            for start, some, batch in rows.pieces(order):
                beside = dict(more(some))
                columns = [
                    *(column.slice(start, some.size) for column in first),
                    array_of(waits[ids[some]]),
                    array_of(np.full(some.size, passed_us)),
                    *batch.columns,
                    *map(array_of, beside.values()),
                ]
                own = ["key_group", SLOT, "waits", "passed_us", *[f"c{i}" for i in range(width)]]
                yield pa.table(columns, names=[*own, *beside])

        return pieces

    def _beside(self) -> tuple[list[str], dict[str, np.ndarray]]:
        """Return the names of the columns behind the row's own in snapshots, and the arrays by row id among
        them that the store does not have; subclasses add theirs.
        """
        return [ARRIVED] if self.store.numbered else [], {}

    def restore(self, part: pa.Table) -> None:
        self._restored(part)

    def _restored(self, part: pa.Table) -> np.ndarray:
        """Add the rows of a snapshot; return their ids."""
        part = part.combine_chunks()
        batches = (
            # Behind key_group, waits and passed_us.
            pa.Table.from_arrays(part.columns[3 : 3 + len(self.schema)], schema=self.schema)
            .combine_chunks()
            .to_batches()
        )
        if not batches:
            return np.zeros(0, np.int64)
        ids = self._add(
            batches[0], numbers_of(part.column(ARRIVED)) if ARRIVED in part.column_names else None
        )
        waits = numbers_of(part.column("waits"))
        self.waiting = np.concatenate([self.waiting, ids[waits]])
        self.keep(ids[~waits])
        # The list state has it by key group; older checkpoints have only the column ``passed_us``.
        passed_us = self.passed_time.least_us(int(numbers_of(part.column("passed_us")).min()))
        # the earliest of all restored parts; the first one replaces the initial value
        self.passed_time.us = passed_us if self._fresh else min(self.passed_us, passed_us)
        self._fresh = False
        if self.writes is not None:
            restore_lives(self.writes, self._slots[ids], part, self._keys.capacity)
        return ids
