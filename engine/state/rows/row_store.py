"""RowStore: weighted rows in append-only Arrow chunks, addressed by row ids that do not change. FrozenRows
are its rows at a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.key_groups import groups_of_hashes
from penstock.engine.api.row_pieces import LIMITS, TooLarge, cut, joined, row_sizes, widest_row
from penstock.engine.kernels.partition import counting_sort
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.rows.chunk_concat import concat_chunks
from penstock.engine.storage.spill_files import SpilledRows, SpillFiles

# Ids reserved in an empty store.
_FIRST_IDS = 64
# Smaller stores are not worth rewriting.
_COMPACT_FROM = 1024
# So many chunks of about one size become one.
_ALIKE = 4
# Rows rewritten at a time when a spilled store is compacted: never the whole state in memory.
_ROWS_AT_ONCE = 1 << 18
# Each row read from a file may map a page. After so many the pages are released.
_UNMAPPED_PAGES_MAX = 1 << 14


class RowStore(Mapped):
    """Rows of one schema. A row's id (dense small int64) is valid until its weight becomes 0. Then the row is
    removed, and a new row may reuse its id.

    Appending merges chunks, four of about one size to one, so there are few; none grows past a limit. A store
    rewrites its chunks without dead rows when more than half are dead. ``capacity`` bounds the ids: arrays by
    row id need that many elements. ``len()`` is the number of live rows, ``widest`` the bytes of the largest
    row there was. Spilled chunks precede the others and are not merged until they are compacted.
    ``numbered``: rows remember in which order they arrived.
    """

    MAPPED = ("_positions", "_weights", "_arrived")

    def __init__(
        self, schema: pa.Schema, changes: SlotChanges | None = None, *, numbered: bool = False
    ) -> None:
        self.schema = schema
        self.changes = SlotChanges() if changes is None else changes
        self.numbered = numbered
        self._clear()

    def _clear(self) -> None:
        # Chunks in files come first in the order of positions, chunks in memory after them.
        self._spilled = SpilledRows()
        self._files: SpillFiles | None = None
        self._unmapped = 0
        self._chunks = [_no_rows(self.schema)]
        # Rows in all chunks, dead ones among them: the next position.
        self._rows = 0
        self._live = 0
        self.widest = 0
        self._allocated = 0
        # A stack of freed ids, of which the first ``_free_ids`` count: its array is longer.
        self._free = np.zeros(0, np.int64)
        self._free_ids = 0
        # By row id: the row's position in the concatenation of all chunks, its weight (0: free), when it
        # arrived.
        self._positions = np.zeros(_FIRST_IDS, np.int64)
        self._weights = np.zeros(_FIRST_IDS, np.int64)
        self._arrived = np.zeros(_FIRST_IDS if self.numbered else 0, np.int64)
        self.next_arrival = 0

    def __len__(self) -> int:
        return self._live

    @property
    def capacity(self) -> int:
        """The bound of the ids; appending may raise it."""
        return self._weights.size

    def append(
        self, rows: pa.RecordBatch, weights: np.ndarray | None = None, arrived: np.ndarray | None = None
    ) -> np.ndarray:
        """Add rows of non-zero weight (None: all +1); return their ids, int64. ``arrived``: their numbers
        (None: they arrive now, one by one).
        """
        ids = self._take_ids(rows.num_rows)
        self._positions[ids] = np.arange(self._rows, self._rows + rows.num_rows)
        self._weights[ids] = 1 if weights is None else weights
        # Restored rows bring their numbers; those that come later are numbered behind all of them.
        if self.numbered and ids.size:
            arrived = self.next_arrival + np.arange(ids.size) if arrived is None else arrived
            self._arrived[ids] = arrived
            self.next_arrival = max(self.next_arrival, int(arrived.max()) + 1)
        self.changes.mark(ids, self.capacity)
        self._rows += rows.num_rows
        self._live += rows.num_rows
        if rows.num_rows:
            self.widest = max(self.widest, widest_row(rows))
            self._chunks.append(rows)
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
            size = max(self._allocated, 2 * self.capacity)
            self._positions, self._weights = grown(self._positions, size), grown(self._weights, size)
            if self.numbered:
                self._arrived = grown(self._arrived, size)
        return np.concatenate([reused, fresh])

    def _merge_chunks(self) -> None:
        """Merge the last chunks once there are so many of about one size. A row is copied only a few times,
        and there are few chunks.
        """
        while True:
            first = len(self._chunks)
            # the last chunks of at most twice the size of the newest count as about one size
            bound = 2 * self._chunks[-1].num_rows
            while first > 0 and self._chunks[first - 1].num_rows <= bound:
                first -= 1
            if len(self._chunks) - first < _ALIKE:
                return
            # Never beyond the limit of a chunk: 32-bit offsets of text would overflow.
            merged = joined(self._chunks[first:], LIMITS.chunk_bytes, concat_chunks)
            self._chunks[first:] = merged
            if len(merged) > 1:  # the large ones stay as they are, what comes behind them is merged by itself
                return

    def arrived(self, ids: np.ndarray) -> np.ndarray | None:
        """Return the numbers of rows in the order they arrived, int64; None where that does not count."""
        return self._arrived[ids] if self.numbered else None

    def weights(self, ids: np.ndarray) -> np.ndarray:
        """Return the weights of live rows, int64."""
        return self._weights[ids]

    def add_weights(self, ids: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """Add to the weights of live rows (an id may be named more than once); return the ids of the rows
        removed.
        """
        # ``add.at`` and not ``+=``: of an id named twice both changes count.
        np.add.at(self._weights, ids, changes)
        self.changes.mark(ids, self.capacity)
        gone = np.unique(ids[self._weights[ids] == 0])
        self._release(gone)
        return gone

    def drop(self, ids: np.ndarray) -> None:
        """Forget distinct live rows whatever their weights."""
        self._weights[ids] = 0
        self.changes.mark(ids, self.capacity)
        self._release(ids)

    def _release(self, gone: np.ndarray) -> None:
        first, self._free_ids = self._free_ids, self._free_ids + gone.size
        if self._free_ids > self._free.size:
            # twice as long: a list made anew at each release would cost as much as all that was ever released
            self._free = grown(self._free, max(self._free_ids, 2 * self._free.size))
        # Reversed, as ``_take_ids`` reverses too: ids are reused in the order of ``gone``.
        self._free[first : self._free_ids] = gone[::-1]
        self._live -= gone.size
        # an empty store starts again at id 0
        if self._live == 0:
            self._clear()
        # more than half of the stored rows are dead
        elif self._rows > _COMPACT_FROM and self._live * 2 < self._rows:
            self._compact()

    def _compact(self) -> None:
        # ``len(positions) > live``: dead rows are between live ones until here.
        ids = self.live_ids()
        # ids in the order of their rows: compaction keeps the order and changes positions only
        by_position = np.full(self._rows, -1)
        by_position[self._positions[ids]] = ids
        live = by_position[by_position >= 0]
        # In memory: copied chunk by chunk.
        if self._files is None:
            self._chunks = [self.take(live[first:last]) for first, last in self.chunks(live)]
        # On disk: read and written in pieces; the old files are released with their mappings.
        else:
            spilled = SpilledRows()
            for first, last in self._cut(live, _ROWS_AT_ONCE, LIMITS.chunk_bytes):
                spilled.add(self._files.write([self.take(live[first:last])], self.schema))
            self._spilled, self._chunks = spilled, [_no_rows(self.schema)]
        self._positions[live] = np.arange(live.size)
        self._rows = live.size

    def live_ids(self) -> np.ndarray:
        """Return the ids of all live rows, ascending."""
        return np.flatnonzero(self._weights[: self._allocated])

    def sizes(self, ids: np.ndarray) -> np.ndarray:
        """Return about how many bytes the rows of live ids are."""
        return _sizes(self._all_chunks(), self._positions[ids])

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

    def take(self, ids: np.ndarray, columns: list[int] | None = None) -> pa.RecordBatch:
        """Return the rows of live ids, in that order, as often as named; ``columns``: only those at these
        positions. Raises ``TooLarge``.
        """
        # Reading a mapped file fills memory with its pages, which the budget does not count.
        if self._files is not None:
            self._unmapped += ids.size
            if self._unmapped > _UNMAPPED_PAGES_MAX:
                self._unmapped = 0
                self._spilled.evict_pages()
        # First the bound that costs nothing, then the exact size.
        if (
            ids.size * self.widest > LIMITS.array_bytes
            and (size := int(self.sizes(ids).sum())) > LIMITS.array_bytes
        ):
            raise TooLarge(size)
        return _gather(self._all_chunks(), self._positions[ids], columns)

    def _all_chunks(self) -> list[pa.RecordBatch]:
        return [*self._spilled.batches, *self._chunks]

    def spillable_bytes(self) -> int:
        """Return the bytes of the chunks and large arrays in memory."""
        return super().spillable_bytes() + sum(chunk.nbytes for chunk in self._chunks)

    def spill(self, files: SpillFiles) -> None:
        """Write the chunks in memory to disk, the small ones of them as one, and move large arrays there."""
        super().spill(files)
        sizes = [chunk.num_rows for chunk in self._chunks]
        # Chunks from the first one with less than a quarter of all rows are small: they become one file.
        large = next((i for i, rows in enumerate(sizes) if rows * _ALIKE < sum(sizes)), len(sizes))
        chunks = self._chunks[:large] + joined(self._chunks[large:], LIMITS.chunk_bytes)
        self._spilled.add(files.write([chunk for chunk in chunks if chunk.num_rows], self.schema))
        self._files, self._chunks = files, [_no_rows(self.schema)]

    def frozen(self, ids: np.ndarray) -> FrozenRows:
        """Return these rows as they are now, whatever becomes of the store; chunks are shared."""
        return FrozenRows(self._all_chunks(), self._positions[ids], self.widest)

    def live_among(self, ids: np.ndarray) -> np.ndarray:
        """Return the ids that name live rows now."""
        # An id beyond was assigned before the store became empty and started again.
        ids = ids[ids < self._allocated]
        return ids[self._weights[ids] != 0]

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
        columns = [array_of(groups[order]), array_of(self._weights[ids[order]]), *rows.columns]
        return pa.table(columns, names=["key_group", "weight", *[f"c{i}" for i in range(len(self.schema))]])

    def restore(self, part: pa.Table) -> tuple[np.ndarray, pa.RecordBatch]:
        """Add the rows of a snapshot; return their ids and the rows, for the owner to index them."""
        part = part.combine_chunks()
        batches = pa.Table.from_arrays(part.columns[2:], schema=self.schema).combine_chunks().to_batches()
        rows = batches[0] if batches else _no_rows(self.schema)
        return self.append(rows, numbers_of(part.column("weight"))), rows


class FrozenRows:
    """Rows of a store as they were."""

    # The caller's arrays are copies or never change: ``_positions[ids]`` is a new array.
    def __init__(self, chunks: Sequence[pa.RecordBatch], positions: np.ndarray, widest: int) -> None:
        self._chunks, self._positions, self._widest = chunks, positions, widest

    def columns(self, columns: list[int]) -> pa.Table:
        """Return some columns of all rows."""
        whole = np.arange(self._positions.size)
        return pa.Table.from_batches([rows for *_, rows in self.pieces(whole, columns)])

    def pieces(
        self, wanted_rows: np.ndarray, columns: list[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray, pa.RecordBatch]]:
        """Yield the rows numbered ``wanted_rows``, in that order: where a piece begins, its numbers, its
        rows. There is at least one piece.
        """
        chunks = self._chunks if columns is None else [chunk.select(columns) for chunk in self._chunks]
        wanted = self._positions[wanted_rows]
        # Even if every row were the widest, one batch could hold them.
        small = wanted.size * self._widest <= LIMITS.batch_bytes
        for first, last in (
            [(0, wanted.size)] if small else cut(_sizes(chunks, wanted), wanted.size, LIMITS.batch_bytes)
        ):
            yield first, wanted_rows[first:last], _gather(chunks, wanted[first:last], None)


def _gather(
    whole: Sequence[pa.RecordBatch], positions: np.ndarray, columns: list[int] | None
) -> pa.RecordBatch:
    """Return the rows at positions in the concatenation of chunks."""
    chunks = whole if columns is None else [chunk.select(columns) for chunk in whole]
    # One chunk: no need to put rows back into order.
    if len(chunks) == 1:
        return chunks[0].take(array_of(positions))
    pieces, order = [], [np.zeros(0, np.int64)]
    for chunk, piece_order, inside in _by_chunk(chunks, positions):
        pieces.append(chunk.take(array_of(inside)))
        order.append(piece_order)
    gathered = pa.concat_batches(pieces) if pieces else chunks[0].slice(0, 0)
    if len(pieces) == 1:
        return gathered
    # Rows come chunk by chunk; ``back`` is the position of each wanted row among them.
    back = np.empty(positions.size, np.int64)
    back[np.concatenate(order)] = np.arange(positions.size)
    return gathered.take(array_of(back))


def _sizes(chunks: Sequence[pa.RecordBatch], positions: np.ndarray) -> np.ndarray:
    """Return about how many bytes the rows at positions in the concatenation of chunks are."""
    sizes = np.zeros(positions.size, np.int64)
    for chunk, order, inside_rows in _by_chunk(chunks, positions):
        sizes[order] = row_sizes(chunk, inside_rows)
    return sizes


def _by_chunk(
    chunks: Sequence[pa.RecordBatch], positions: np.ndarray
) -> Iterator[tuple[pa.RecordBatch, np.ndarray, np.ndarray]]:
    """Yield each chunk that some positions of the concatenation fall in: the chunk, which positions those
    are, and their positions in it.
    """
    # The chunk of a position is the last one that starts at or before it; a counting sort groups positions by
    # chunk.
    starts = np.cumsum([0] + [chunk.num_rows for chunk in chunks])
    order, offsets = counting_sort(np.searchsorted(starts, positions, side="right") - 1, len(chunks))
    for i, chunk in enumerate(chunks):
        if offsets[i] < offsets[i + 1]:
            inside = order[offsets[i] : offsets[i + 1]]
            yield chunk, inside, positions[inside] - starts[i]


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)
