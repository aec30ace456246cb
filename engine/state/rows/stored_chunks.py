"""StoredChunks: record batches end to end. Rows are gathered by position, from all chunks in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge, row_sizes
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.index import gather as kernel
from penstock.engine.kernels.partition import counting_sort

_FIRST_CHUNKS = 8
# What is noted of each column of a chunk: addresses of its values (text: of its bytes), of its first offset
# and of its validity bitmap (0: no NULLs), and the number of its first bit.
_DATA, _OFFSETS, _VALIDITY, _BIT, _NOTED = 0, 1, 2, 3, 4
# Entries of the guide for each chunk.
_GUIDES = 16
# Bytes of values that a kernel copies.
_WIDTHS = (1, 2, 4, 8, 16)


class StoredChunks:
    """Chunks of one schema. A position counts through all of them.

    ``one_pass``: kernels gather every column, so many chunks cost no more than one. Nested columns are
    gathered chunk by chunk. Chunks never change; ``frozen`` shares them. The first ``in_files`` of them are
    in mapped files.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.batches: list[pa.RecordBatch] = []
        self.in_files = 0
        # By column, asked for with each batch: its type, whether a kernel gathers it, and whether a chunk
        # has, or had, a NULL in it.
        self._types = schema.types
        self._copied = [_kernel_copies(kind) for kind in self._types]
        self._nulls = [False] * len(self._types)
        self.one_pass = all(self._copied)
        # By chunk: its first position, and behind the last the number of all rows.
        self._starts = np.zeros(_FIRST_CHUNKS + 1, np.int64)
        self._bytes = np.zeros(_FIRST_CHUNKS, np.int64)
        self._noted = np.zeros((len(schema), _NOTED, _FIRST_CHUNKS), np.int64)
        # Where to begin the search for the chunk of a position; made anew when the chunks change.
        self._guided: tuple[np.ndarray, int] | None = None

    def __len__(self) -> int:
        return len(self.batches)

    @property
    def num_rows(self) -> int:
        """The rows of all chunks."""
        return int(self._starts[len(self.batches)])

    @property
    def resident_bytes(self) -> int:
        """The bytes of the chunks in memory."""
        return int(self.nbytes(self.in_files).sum())

    def nbytes(self, first: int) -> np.ndarray:
        """Return the bytes of each chunk from number ``first`` on."""
        return self._bytes[first : len(self.batches)]

    def append(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Add chunks behind the others; those without rows are left out."""
        for batch in batches:
            if batch.num_rows:
                self._append(batch)

    def _append(self, batch: pa.RecordBatch) -> None:
        number = len(self.batches)
        self._guided = None
        if number == self._noted.shape[2]:
            self._starts = np.concatenate([self._starts, np.zeros(number, np.int64)])
            self._bytes = np.concatenate([self._bytes, np.zeros(number, np.int64)])
            self._noted = np.concatenate([self._noted, np.zeros_like(self._noted)], axis=2)
        for i, array in enumerate(batch.columns):
            if self._copied[i]:
                addresses = self._noted[i, :, number] = _addresses(array)
                self._nulls[i] = self._nulls[i] or addresses[_VALIDITY] != 0
        self.batches.append(batch)
        self._bytes[number] = batch.nbytes
        self._starts[number + 1] = self._starts[number] + batch.num_rows

    def replace(self, first: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Put chunks in the place of those from number ``first`` on."""
        del self.batches[first:]
        self._guided = None
        self.append(batches)

    def frozen(self) -> StoredChunks:
        """Return the chunks as they are now, whatever becomes of these."""
        twin = StoredChunks(self.schema)
        twin.batches = list(self.batches)
        count = len(self.batches)
        twin._starts = self._starts[: count + 1].copy()
        twin._bytes = self._bytes[:count].copy()
        twin._noted = self._noted[:, :, :count].copy()
        twin._nulls = list(self._nulls)
        return twin

    def take(self, positions: np.ndarray, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return the rows at positions, in that order, as often as named; ``columns``: only those. Raises
        ``TooLarge``.
        """
        chosen = range(len(self.schema)) if columns is None else columns
        schema = self.schema if columns is None else pa.schema([self.schema.field(i) for i in columns])
        if not self.batches:
            assert not positions.size
            return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)
        places = self.places(positions)
        if self.one_pass:
            return self.take_places(places, columns)
        gathered = [self._gather(i, places) if self._copied[i] else None for i in chosen]
        nested = [i for i, column in zip(chosen, gathered, strict=True) if column is None]
        by_chunk = iter(self._by_chunk(nested, positions) if nested else [])
        arrays = [next(by_chunk) if column is None else column for column in gathered]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def take_places(self, places: np.ndarray, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return the rows at ``places`` of chunks whose columns are all gathered in one pass. Raises
        ``TooLarge``.
        """
        chosen = range(len(self.schema)) if columns is None else columns
        arrays = [self._gather(i, places) for i in chosen]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([self.schema.field(i) for i in chosen]))

    def word_addresses(self, columns: Sequence[int]) -> np.ndarray | None:
        """Return the address of the first word of each chunk, a row for each column of words; None where one
        of them has, or had, a NULL.
        """
        if any(self._nulls[i] for i in columns):
            return None
        return np.ascontiguousarray(self._noted[list(columns), _DATA, : len(self.batches)])

    def sizes(self, positions: np.ndarray) -> np.ndarray:
        """Return about how many bytes the rows at positions are."""
        sizes = np.zeros(positions.size, np.int64)
        if not self.batches:
            return sizes
        places, nested = self.places(positions), []
        for i, kind in enumerate(self._types):
            if col.is_bytes(kind):
                kernel.add_text_sizes(places, self._noted[i, _OFFSETS], sizes)
            elif self._copied[i]:
                sizes += -(-kind.bit_width // 8)
            else:
                nested.append(i)
        if nested:
            for chunk, order, inside in self._parts(positions):
                sizes[order] += row_sizes(self.batches[chunk].select(nested), inside)
        return sizes

    def places(self, positions: np.ndarray) -> np.ndarray:
        """Return the places of rows, by which kernels read them."""
        # Kernels read memory by address: a position that is none must not reach them.
        if positions.size and not 0 <= positions.min() <= positions.max() < self.num_rows:
            raise IndexError(f"a position is not below {self.num_rows}")
        places = np.empty(positions.size, np.int64)
        guide, shift = self._guide()
        kernel.find_places(positions, self._starts[: len(self.batches) + 1], guide, shift, places)
        return places

    def _guide(self) -> tuple[np.ndarray, int]:
        """Return the chunk of every position that is a multiple of a power of two, and that power."""
        if self._guided is None:
            count = len(self.batches)
            # Some entries a chunk: then most of them are right, wherever in their stretch a row is.
            shift = max(0, (self.num_rows // (_GUIDES * count)).bit_length() - 1)
            stretches = np.arange((self.num_rows >> shift) + 1) << shift
            chunks = np.searchsorted(self._starts[1:count], stretches, side="right")
            self._guided = chunks.astype(np.int64), shift
        return self._guided

    def _gather(self, column: int, places: np.ndarray) -> pa.Array:
        kind, noted = self._types[column], self._noted[column]
        data, valid = noted[_DATA], col.NO_BYTES
        if self._nulls[column]:
            valid = np.empty(places.size, np.uint8)
            kernel.gather_bits(places, noted[_VALIDITY], noted[_BIT], valid)
            # the chunks with NULLs may not be among those of these rows
            valid = col.NO_BYTES if valid.all() else valid
        if col.is_bytes(kind):
            buffers = _texts(places, noted[_OFFSETS], data)
        elif pa.types.is_boolean(kind):
            truths = np.empty(places.size, np.uint8)
            kernel.gather_bits(places, data, noted[_BIT], truths)
            buffers = [np.packbits(truths, bitorder="little")]
        else:
            width = kind.bit_width // 8
            buffers = [np.empty(places.size * width, np.uint8)]
            kernel.gather_values(places, data, width, buffers[0])
        return pa.Array.from_buffers(kind, places.size, [col.bitmap(valid), *map(pa.py_buffer, buffers)])

    def _by_chunk(self, columns: list[int], positions: np.ndarray) -> list[pa.Array]:
        """Return columns at positions, taken from each chunk and put back into order."""
        if len(self.batches) == 1:
            return list(self.batches[0].select(columns).take(array_of(positions)).columns)
        pieces, orders = [], [np.zeros(0, np.int64)]
        for chunk, order, inside in self._parts(positions):
            pieces.append(self.batches[chunk].select(columns).take(array_of(inside)))
            orders.append(order)
        gathered = pa.concat_batches(pieces) if pieces else self.batches[0].select(columns).slice(0, 0)
        if len(pieces) > 1:
            # Rows come chunk by chunk; ``back`` is the position of each wanted row among them.
            back = np.empty(positions.size, np.int64)
            back[np.concatenate(orders)] = np.arange(positions.size)
            gathered = gathered.take(array_of(back))
        return list(gathered.columns)

    def _parts(self, positions: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield each chunk that some positions fall in: its number, which positions those are, and their
        positions in it.
        """
        # The chunk of a position is the last one that starts at or before it; a counting sort groups them.
        starts = self._starts[: len(self.batches)]
        order, offsets = counting_sort(np.searchsorted(starts, positions, side="right") - 1, starts.size)
        for chunk in np.flatnonzero(np.diff(offsets)).tolist():
            inside = order[offsets[chunk] : offsets[chunk + 1]]
            yield chunk, inside, positions[inside] - starts[chunk]


def _kernel_copies(kind: pa.DataType) -> bool:
    """Return whether a kernel gathers values of a type: text, numbers, times and truth values."""
    if col.is_bytes(kind) or pa.types.is_boolean(kind):
        return True
    fixed = pa.types.is_primitive(kind) or pa.types.is_decimal128(kind)
    return fixed and kind.bit_width // 8 in _WIDTHS


def _addresses(array: pa.Array) -> tuple[int, int, int, int]:
    """Return what is noted of a column that a kernel gathers."""
    kind, first = array.type, array.offset
    valid, values, *rest = array.buffers()
    # files have a bitmap for each column that may be NULL, mostly with all bits set
    validity = 0 if valid is None or array.null_count == 0 else valid.address
    if col.is_bytes(kind):
        octets = rest[0]
        # texts that are all empty may have no bytes
        return 0 if octets is None else octets.address, values.address + 4 * first, validity, first
    # bits are counted from the first one of the buffer, other values from the array's own first
    skipped = 0 if pa.types.is_boolean(kind) else first * (kind.bit_width // 8)
    return values.address + skipped, 0, validity, first


def _texts(places: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> list[np.ndarray]:
    starts, ends = np.empty(places.size, np.int64), np.empty(places.size, np.int64)
    size = kernel.measure_texts(places, offsets, data, starts, ends)
    if size > LIMITS.array_bytes:
        raise TooLarge(size)
    bounds, out = np.empty(places.size + 1, np.int32), np.empty(size, np.uint8)
    kernel.gather_texts(starts, ends, bounds, out)
    return [bounds, out]
