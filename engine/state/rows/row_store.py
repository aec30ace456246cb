"""RowStore: weighted rows in append-only Arrow chunks, addressed by row ids that do not change. FrozenRows
are its rows at a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.key_groups import groups_of_hashes
from penstock.engine.api.row_pieces import LIMITS, TooLarge, cut, in_halves, joined, widest_row
from penstock.engine.kernels.arrow_views import NO_WORDS
from penstock.engine.kernels.partition import counting_sort
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.frozen_arrays import FrozenArrays, FrozenViews
from penstock.engine.state.index.word_index import at_least, emptied, grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.rows.chunk_concat import concat_chunks
from penstock.engine.state.rows.stored_chunks import StoredChunks
from penstock.engine.state.state_snapshot import ARRIVED
from penstock.engine.storage.spill_files import SpilledRows, SpillFiles, pages_are_many

# Ids reserved in an empty store.
_FIRST_IDS = 64
# Smaller stores are not worth rewriting.
_COMPACT_FROM = 1024
# So many chunks of about one size become one.
_ALIKE = 4
# The most bytes of such a chunk: its rows are gathered as quickly from many chunks. Copying them again and
# again took a seventh of the time of a query that stores all its rows.
_MERGED_BYTES = 2 << 20
# Rows rewritten at a time when a spilled store is compacted, or hashed for a snapshot: never the whole state
# in memory.
_ROWS_AT_ONCE = 1 << 18
# Frozen numbers of rows, where the store has them: where rows are, and their weights.
_POSITION, _WEIGHT = "position", "weight"
# Each row read from a file may map a page. After so many it is looked whether the pages are too many.
_UNMAPPED_PAGES_MAX = 1 << 14


class RowStore(Mapped):
    """Rows of one schema. A row's id (dense small int64) is valid until its weight becomes 0. Then the row is
    removed, and a new row may reuse its id.

    Appending merges small chunks, four of about one size to one. Chunks with nested columns, which are read
    chunk by chunk, are merged up to a limit. A store rewrites its chunks without dead rows when more than
    half are dead. ``capacity`` bounds the ids: arrays by row id need that many elements. ``len()`` is the
    number of live rows, ``widest`` the bytes of the largest row there was. Spilled chunks precede the others
    and are not merged until they are compacted.
    ``numbered``: rows remember in which order they arrived. ``append_only``: rows of weight 1 are never
    removed, so that the store needs no arrays by row id. The first removal, or another weight, makes them.
    """

    MAPPED = ("_positions", "_weights", "_arrived")

    def __init__(
        self,
        schema: pa.Schema,
        changes: SlotChanges | None = None,
        *,
        numbered: bool = False,
        append_only: bool = False,
    ) -> None:
        self.schema = schema
        self.changes = SlotChanges() if changes is None else changes
        self.numbered = numbered
        self._append_only = append_only
        self._views = FrozenViews()
        self._clear()

    def _clear(self) -> None:
        # Chunks in files come first in the order of positions, chunks in memory after them.
        self._spilled = SpilledRows()
        self._chunks = StoredChunks(self.schema)
        self._files: SpillFiles | None = None
        self._unmapped = 0
        self._live = 0
        self.widest = 0
        self._allocated = 0
        # A stack of freed ids, of which the first ``_free_ids`` count: its array is longer.
        self._free = np.zeros(0, np.int64)
        self._free_ids = 0
        self._capacity = _FIRST_IDS
        # By row id: the row's position in the concatenation of all chunks, its weight (0: free), when it
        # arrived. Without the first, a row's position is its id; without the second, all weights are 1.
        kept = 0 if self._append_only else _FIRST_IDS
        self._positions, self._weights = np.zeros(kept, np.int64), np.zeros(kept, np.int64)
        self._arrived = np.zeros(_FIRST_IDS if self.numbered else 0, np.int64)
        self.next_arrival = 0

    def __len__(self) -> int:
        return self._live

    @property
    def capacity(self) -> int:
        """The bound of the ids; appending may raise it."""
        return self._capacity

    def append(
        self, rows: pa.RecordBatch, weights: np.ndarray | None = None, arrived: np.ndarray | None = None
    ) -> np.ndarray:
        """Add rows of non-zero weight (None: all +1); return their ids, int64. ``arrived``: their numbers
        (None: they arrive now, one by one).
        """
        ids = self._take_ids(rows.num_rows)
        # an id that was free at a barrier must stay so in its snapshot
        self.save(ids)
        if weights is not None and not self._weights.size and (weights != 1).any():
            self._keep_arrays()
        # The next positions: dead rows have theirs until the store is compacted.
        first = self._chunks.num_rows
        if self._positions.size:
            self._positions[ids] = np.arange(first, first + rows.num_rows)
        if self._weights.size:
            self._weights[ids] = 1 if weights is None else weights
        # Restored rows bring their numbers; those that come later are numbered behind all of them.
        if self.numbered and ids.size:
            arrived = self.next_arrival + np.arange(ids.size) if arrived is None else arrived
            self._arrived[ids] = arrived
            self.next_arrival = max(self.next_arrival, int(arrived.max()) + 1)
        self.changes.mark(ids, self.capacity)
        self._live += rows.num_rows
        if rows.num_rows:
            self.widest = max(self.widest, widest_row(rows))
            self._chunks.append([rows])
            self._merge_chunks()
        return ids

    def _take_ids(self, count: int) -> np.ndarray:
        left = max(0, self._free_ids - count)
        # freed ids first, so that arrays by row id stay small
        reused = self._free[left : self._free_ids][::-1]
        self._free_ids = left
        fresh = np.arange(self._allocated, self._allocated + count - reused.size)
        self._allocated += fresh.size
        if self._allocated > self.capacity:
            # Doubling: the cost of copying stays linear in the number of rows.
            size = self._capacity = max(self._allocated, 2 * self.capacity)
            if self._positions.size:
                self._positions, self._weights = grown(self._positions, size), grown(self._weights, size)
            if self.numbered:
                self._arrived = grown(self._arrived, size)
        return np.concatenate([reused, fresh]) if reused.size else fresh

    def _keep_arrays(self) -> None:
        """Make the arrays of positions and weights that an append-only store has done without."""
        if not self._positions.size:
            self._positions, self._weights = (grown(NO_WORDS, self.capacity) for _ in range(2))
            self._positions[: self._allocated] = np.arange(self._allocated)
            self._weights[: self._allocated] = 1

    def _at(self, ids: np.ndarray) -> np.ndarray:
        return self._positions[ids] if self._positions.size else ids

    def _merge_chunks(self) -> None:
        """Merge the last chunks once there are so many of about one size. A row is copied only a few times,
        and there are few chunks.
        """
        chunks = self._chunks
        # Never beyond the limit of a chunk: 32-bit offsets of text would overflow.
        most_bytes = min(_MERGED_BYTES, LIMITS.chunk_bytes) if chunks.one_pass else LIMITS.chunk_bytes
        while True:
            first, sizes = len(chunks), chunks.nbytes(0)
            # the last chunks of at most twice the size of the newest count as about one size
            bound = 2 * chunks.batches[-1].num_rows
            while (
                first > chunks.in_files
                and chunks.batches[first - 1].num_rows <= bound
                and 2 * sizes[first - 1] <= most_bytes
            ):
                first -= 1
            if len(chunks) - first < _ALIKE:
                return
            merged = joined(chunks.batches[first:], most_bytes, concat_chunks)
            chunks.replace(first, merged)
            if len(merged) > 1:  # the large ones stay as they are, what comes behind them is merged by itself
                return

    def arrived(self, ids: np.ndarray) -> np.ndarray | None:
        """Return the numbers of rows in the order they arrived, int64; None where that does not count."""
        return self._arrived[ids] if self.numbered else None

    def columns(self, columns: list[int], first: int) -> Iterator[list[pa.Array]]:
        """Yield columns, by position, of the rows of an append-only store from id ``first`` on, in pieces.
        Nothing is copied.
        """
        assert self._append_only
        for chunk in self._chunks.batches:
            for start in range(first, chunk.num_rows, _ROWS_AT_ONCE):
                yield [chunk.column(i).slice(start, _ROWS_AT_ONCE) for i in columns]
            first = max(0, first - chunk.num_rows)

    def weights(self, ids: np.ndarray) -> np.ndarray:
        """Return the weights of live rows, int64."""
        return self._weights[ids] if self._weights.size else np.ones(ids.size, np.int64)

    def add_weights(self, ids: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """Add to the weights of live rows (an id may be named more than once); return the ids of the rows
        removed.
        """
        self._keep_arrays()
        self.save(ids)
        # ``add.at`` and not ``+=``: of an id named twice both changes count.
        np.add.at(self._weights, ids, changes)
        self.changes.mark(ids, self.capacity)
        gone = np.unique(ids[self._weights[ids] == 0])
        self._release(gone)
        return gone

    def drop(self, ids: np.ndarray) -> None:
        """Forget distinct live rows whatever their weights."""
        self._keep_arrays()
        self.save(ids)
        self._weights[ids] = 0
        self.changes.mark(ids, self.capacity)
        self._release(ids)

    def _release(self, gone: np.ndarray) -> None:
        first, self._free_ids = self._free_ids, self._free_ids + gone.size
        self._free = at_least(self._free, self._free_ids)
        # Reversed, as ``_take_ids`` reverses too: ids are reused in the order of ``gone``.
        self._free[first : self._free_ids] = gone[::-1]
        self._live -= gone.size
        # an empty store starts again at id 0
        if self._live == 0:
            self._clear()
        # more than half of the stored rows are dead
        elif self._chunks.num_rows > max(_COMPACT_FROM, 2 * self._live):
            self._compact()

    def _compact(self) -> None:
        # ``len(positions) > live``: dead rows are between live ones until here.
        ids = self.live_ids()
        # ids in the order of their rows: compaction keeps the order and changes positions only
        by_position = np.full(self._chunks.num_rows, -1)
        by_position[self._positions[ids]] = ids
        live = by_position[by_position >= 0]
        # In memory: copied chunk by chunk.
        compacted = StoredChunks(self.schema)
        if self._files is None:
            for first, last in self.chunks(live):
                compacted.append([self.take(live[first:last])])
        # On disk: read and written in pieces; the old files are released with their mappings.
        else:
            spilled = SpilledRows()
            for first, last in self._cut(live, _ROWS_AT_ONCE, LIMITS.chunk_bytes):
                spilled.add(self._files.write([self.take(live[first:last])], self.schema))
            self._spilled = spilled
            compacted.append(spilled.batches)
            compacted.in_files = len(compacted)
        self._chunks = compacted
        # A new array: a snapshot may still read the positions in the chunks before.
        self._positions = emptied(self._positions, self.capacity)
        self._positions[live] = np.arange(live.size)

    def live_ids(self) -> np.ndarray:
        """Return the ids of all live rows, ascending."""
        if not self._weights.size:
            return np.arange(self._allocated)
        return np.flatnonzero(self._weights[: self._allocated])

    def sizes(self, ids: np.ndarray) -> np.ndarray:
        """Return about how many bytes the rows of live ids are."""
        return self._chunks.sizes(self._at(ids))

    def pieces(self, ids: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield the bounds of pieces of live ids whose rows may be emitted at once."""
        return self._cut(ids, LIMITS.piece_rows, LIMITS.piece_bytes)

    def chunks(self, ids: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield the bounds of pieces of live ids whose rows make a batch of some size each."""
        return self._cut(ids, ids.size, LIMITS.chunk_bytes)

    # Sizes are computed only where so many of the widest row might not fit.
    def _cut(self, ids: np.ndarray, most_rows: int, most_bytes: int) -> Iterator[tuple[int, int]]:
        return cut(
            self.sizes(ids) if ids.size * self.widest > most_bytes else np.zeros(ids.size, np.int64),
            most_rows,
            most_bytes,
        )

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Return where the rows of live ids are in memory, for kernels; valid until the store changes."""
        self._evict_pages(ids.size)
        return self._chunks.places(self._at(ids))

    def word_addresses(self, columns: list[int]) -> np.ndarray | None:
        """See ``StoredChunks.word_addresses``."""
        return self._chunks.word_addresses(columns)

    def take(
        self, ids: np.ndarray, columns: list[int] | None = None, places: np.ndarray | None = None
    ) -> pa.RecordBatch:
        """Return the rows of live ids, in that order, as often as named; ``columns``: only those at these
        positions. ``places``: those of the ids, where they are known. Raises ``TooLarge``.
        """
        self._evict_pages(ids.size)
        # First the bound that costs nothing, then the exact size.
        if (
            ids.size * self.widest > LIMITS.array_bytes
            and (size := int(self.sizes(ids).sum())) > LIMITS.array_bytes
        ):
            raise TooLarge(size)
        if places is not None and self._chunks.one_pass:
            return self._chunks.take_places(places, columns)
        return self._chunks.take(self._at(ids), columns)

    def _evict_pages(self, rows: int) -> None:
        """After so many rows were read, release the pages of mapped files where they fill much of the memory:
        the budget does not count them.
        """
        if self._files is not None:
            self._unmapped += rows
            if self._unmapped > _UNMAPPED_PAGES_MAX:
                self._unmapped = 0
                if pages_are_many(0):
                    self._spilled.evict_pages()

    def beside(
        self, ids: np.ndarray, rows: pa.RecordBatch, at: np.ndarray
    ) -> tuple[StoredChunks, np.ndarray]:
        """Return chunks with all stored rows and those of a batch. The second result has the positions in
        them: of the rows of live ids, then of the rows of the batch at ``at``. Nothing is copied.
        """
        self._evict_pages(ids.size)
        chunks = self._chunks.frozen() if ids.size else StoredChunks(self.schema)
        first = chunks.num_rows
        chunks.append([rows])
        return chunks, np.concatenate([self._at(ids), first + at])

    def spillable_bytes(self) -> int:
        """Return the bytes of the chunks and large arrays in memory."""
        return super().spillable_bytes() + self._chunks.resident_bytes

    def spill(self, files: SpillFiles) -> None:
        """Write the chunks in memory to disk, and move large arrays there."""
        super().spill(files)
        first = self._chunks.in_files
        chunks = self._chunks.batches[first:]
        # Nested columns are read chunk by chunk: the small chunks of them become one.
        if not self._chunks.one_pass:
            sizes = [chunk.num_rows for chunk in chunks]
            # Chunks from the first one with less than a quarter of all rows are small: they become one file.
            large = next((i for i, rows in enumerate(sizes) if rows * _ALIKE < sum(sizes)), len(sizes))
            chunks = chunks[:large] + joined(chunks[large:], LIMITS.chunk_bytes)
        self._spilled.add(files.write(chunks, self.schema))
        self._files = files
        self._chunks.replace(first, self._spilled.batches[first:])
        self._chunks.in_files = len(self._chunks)

    def save(self, ids: np.ndarray) -> None:
        """Save rows for the snapshots that are not copied yet. To be called before an owner changes what it
        stores beside them.
        """
        self._views.save(ids)

    def freeze(self, ids: np.ndarray | None, beside: Mapping[str, np.ndarray] | None = None) -> FrozenRows:
        """Return the rows as they are now, of ascending ``ids`` (``None``: all) those that are live. Chunks
        are shared, numbers by row id copied later.

        ``beside``: arrays by row id of the owner, who calls ``save`` before it writes to one of them.
        """
        arrays = {_WEIGHT: self._weights, _POSITION: self._positions} if self._positions.size else {}
        if self.numbered:
            arrays[ARRIVED] = self._arrived
        arrays |= beside or {}
        frozen = self._views.freeze(list(arrays.values()), self._allocated)
        return FrozenRows(self._chunks.frozen(), frozen, list(arrays), ids, self._allocated, self.widest)

    def snapshot(self, key_columns: Sequence[int], max_parallelism: int) -> pa.Table:
        """Return all live rows: key_group (of the columns at these positions; none: group 0), weight, then
        the row's columns as c0, c1, ...
        """
        ids = self.live_ids()
        rows = self.take(ids)
        groups = np.zeros(ids.size, np.uint16)
        if key_columns:
            groups = groups_of_hashes(stable_hash([rows.column(i) for i in key_columns]), max_parallelism)
        order, _ = counting_sort(groups.astype(np.int64), max_parallelism)
        rows = rows.take(array_of(order))
        columns = [array_of(groups[order]), array_of(self.weights(ids[order])), *rows.columns]
        return pa.table(columns, names=["key_group", "weight", *[f"c{i}" for i in range(len(self.schema))]])

    def restore(self, part: pa.Table) -> tuple[np.ndarray, pa.RecordBatch]:
        """Add the rows of a snapshot; return their ids and the rows, for the owner to index them."""
        part = part.combine_chunks()
        batches = pa.Table.from_arrays(part.columns[2:], schema=self.schema).combine_chunks().to_batches()
        rows = batches[0] if batches else self._chunks.take(np.zeros(0, np.int64))
        return self.append(rows, numbers_of(part.column("weight"))), rows


class FrozenRows:
    """Rows of a store as they were at a barrier, numbered from 0 in the order of their ids; numbers by row id
    by their names. Any one thread may read them, later.
    """

    def __init__(
        self,
        chunks: StoredChunks,
        frozen: FrozenArrays,
        names: Sequence[str],
        ids: np.ndarray | None,
        allocated: int,
        widest: int,
    ) -> None:
        self._chunks, self._frozen, self._names, self._widest = chunks, frozen, names, widest
        # An id beyond was assigned before the store became empty and started again.
        self._asked = ids if ids is None else ids[ids < allocated]
        self._allocated = allocated
        # of each name the numbers of all that is frozen, and the places of the live rows among them
        self._copied: tuple[dict[str, np.ndarray], np.ndarray] | None = None

    def _copies(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        if self._copied is None:
            copies = dict(zip(self._names, self._frozen.copies(self._asked), strict=True))
            count = self._allocated if self._asked is None else self._asked.size
            # an append-only store has no weights: all rows are live
            self._copied = copies, np.flatnonzero(copies[_WEIGHT]) if _WEIGHT in copies else np.arange(count)
        return self._copied

    def __len__(self) -> int:
        return self._copies()[1].size

    @property
    def ids(self) -> np.ndarray:
        """The ids of the rows, ascending."""
        _, live = self._copies()
        return live if self._asked is None else self._asked[live]

    def numbers(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return ARRIVED or what is beside the rows, by their numbers."""
        copies, live = self._copies()
        return copies[name][live[rows]]

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Return the weights of rows by their numbers."""
        return self.numbers(_WEIGHT, rows) if _WEIGHT in self._names else np.ones(rows.size, np.int64)

    def _positions(self, rows: np.ndarray) -> np.ndarray:
        return self.numbers(_POSITION, rows) if _POSITION in self._names else self.ids[rows]

    def take(self, ids: np.ndarray) -> pa.RecordBatch:
        """Return rows by id, where all are frozen of a store with arrays."""
        assert self._asked is None
        return self._chunks.take(self._copies()[0][_POSITION][ids])

    def groups(self, keys: list[int], max_parallelism: int) -> np.ndarray:
        """Return the key group of each row, of the columns at these positions; without any it is 0."""
        groups = np.zeros(len(self), np.uint16)
        for first in range(0, len(self) if keys else 0, _ROWS_AT_ONCE):
            some = np.arange(first, min(first + _ROWS_AT_ONCE, len(self)))
            pieces = in_halves(lambda rows: (rows, self._take(rows, keys)), some)
            for rows, batch in pieces:
                groups[rows] = groups_of_hashes(stable_hash(batch.columns), max_parallelism)
        return groups

    def _take(self, rows: np.ndarray, columns: list[int] | None = None) -> pa.RecordBatch:
        return self._chunks.take(self._positions(rows), columns)

    def pieces(self, wanted: np.ndarray) -> Iterator[tuple[int, np.ndarray, pa.RecordBatch]]:
        """Yield the rows numbered ``wanted``, in that order: where a piece begins, its numbers, its rows.
        There is at least one piece.
        """
        # Even if every row were the widest, one batch could hold them.
        small = wanted.size * self._widest <= LIMITS.batch_bytes
        for first, last in (
            [(0, wanted.size)]
            if small
            else cut(self._chunks.sizes(self._positions(wanted)), wanted.size, LIMITS.batch_bytes)
        ):
            yield first, wanted[first:last], self._take(wanted[first:last])
