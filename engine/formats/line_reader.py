"""Reads files of lines block by block. A block that fails is split to find its bad records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, empty_columns
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.record_blocks import Block, RecordBlocks, count_records, record_ends

Parse = Callable[[bytes], pa.RecordBatch | None]
Explain = Callable[[bytes], tuple[str | None, str]]

# Blocks whose rows are narrow are joined until they make so many bytes or rows: each batch has costs of its
# own in every operator. A block of 2 MB that has 11,000 rows of three numbers is 270 kB of them.
_JOINED_BYTES, _JOINED_ROWS = 1 << 20, 65_536
# at most so many blocks: their bytes are read before the first of their rows is emitted
_JOINED_BLOCKS = 8


@dataclass(frozen=True)
class _Records:
    """The non-blank records of a block: start and end offsets."""

    data: bytes
    starts: np.ndarray
    ends: np.ndarray

    def piece(self, low: int, high: int) -> bytes:
        """Return the bytes of records low .. high; blank records between are harmless to the parsers."""
        return self.data[self.starts[low] : self.ends[high - 1]]


def _records(data: bytes, quote: bytes | None) -> _Records:
    ends = record_ends(data, quote)
    starts = np.concatenate(([0], ends[:-1]))
    view = np.frombuffer(data, np.uint8)
    lengths = ends - starts
    # LF or CR LF and nothing else
    blank = (lengths <= 2) & (view[starts] <= 0x0D) & ((view[starts] == 0x0A) | (view[starts] == 0x0D))
    return _Records(data, starts[~blank], ends[~blank])


def separate(block: Block, first: int, quote: bytes | None, parse: Parse, explain: Explain) -> Decoded:
    """Return the good rows and the bad records of a block that failed to parse as a whole.

    ``parse`` returns the rows of a piece, or ``None`` when part of it cannot be read or a row count cannot be
    trusted. ``explain`` returns the column at fault and the error of one bad record. ``first`` is the ordinal
    of the block's first record.
    """
    records = _records(block.data, quote)
    pieces: list[pa.RecordBatch] = []
    ordinals: list[np.ndarray] = []
    bad: list[BadRecord] = []
    # bisection: halve a piece that fails until single bad records remain
    todo = [(0, len(records.starts))] if len(records.starts) else []
    while todo:
        low, high = todo.pop()
        rows = parse(records.piece(low, high))
        if rows is not None and rows.num_rows == high - low:
            pieces.append(rows)
            ordinals.append(np.arange(first + low, first + high))
        elif high - low == 1:
            raw = records.piece(low, high)
            column, error = explain(raw)
            bad.append(
                BadRecord(
                    first + low, raw.rstrip(b"\r\n"), error, column, block.offset + int(records.starts[low])
                )
            )
        else:
            middle = (low + high) // 2
            # a stack: the lower half is next, so rows stay in order
            todo += [(middle, high), (low, middle)]
    # when every record was bad: no rows, but the right columns
    empty = parse(b"")
    assert empty is not None, "a parser reads no bytes as no rows"
    rows = pa.concat_batches(pieces) if pieces else empty
    good_ordinals = np.concatenate(ordinals) if ordinals else np.zeros(0, np.int64)
    return Decoded(rows, first, len(records.starts), good_ordinals, bad)


class LineParser(Protocol):
    """Turns bytes of whole lines into records, one a line, and records into rows."""

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        """Return the records of whole lines; ``None`` when one cannot be read."""

    def explain(self, raw: bytes) -> tuple[str | None, str]:
        """Return the column at fault and the error of one bad line."""

    def rows_of(self, decoded: Decoded) -> Decoded:
        """Return decoded records as rows."""


class Blocks(Protocol):
    """Blocks of whole records, in order."""

    def next(self) -> Block | None:
        """Return the next block; ``None`` at the end."""

    def close(self) -> None:
        """Release what they are read from."""


class LineReader:
    """Reads one file of lines, or the lines that begin in a range of its bytes. ``quote``: inside these
    characters a record may span lines.
    """

    def __init__(
        self,
        task: FileTask,
        anchor: dict[str, Any] | None,
        parser: LineParser,
        quote: bytes | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        self._parser = parser
        self._quote = quote
        # a compressed file cannot be read from the middle: it is read again from its start
        resumed = anchor if anchor and task.is_plain else {}
        begin: int | None = resumed.get("byte")
        self._ordinal: int = resumed.get("row", 0)
        self._resumed = begin is not None
        self._blocks = blocks or RecordBlocks(task, begin, quote)
        # Blocks to join: one at first, since a query may need no more. Blocks that arrive one by one are not
        # waited for; those of a file are there.
        self._at_once = 1
        self._most_at_once = _JOINED_BLOCKS if isinstance(self._blocks, RecordBlocks) else 1
        self._most_rows = min(task.batch_rows, _JOINED_ROWS)
        # read behind the last piece, and not part of it: a block with bad records, or an error
        self._behind: Decoded | None = None
        self._failure: PenstockError | None = None

    def next(self) -> Decoded | None:
        first, self._behind = self._behind or self._next_decoded(), None
        if first is None:
            return None
        pieces = [first]
        while len(pieces) < self._at_once and self._is_narrow(pieces):
            following = self._ahead()
            if following is None:
                break
            if not _is_plain(following):
                self._behind = following
                break
            pieces.append(following)
        self._at_once = min(2 * self._at_once, self._most_at_once)
        return _joined(pieces)

    def _is_narrow(self, pieces: list[Decoded]) -> bool:
        rows = sum(piece.rows.num_rows for piece in pieces)
        return (
            _is_plain(pieces[0])
            # no more than the limit when the next block has as many rows as the first
            and rows + pieces[0].rows.num_rows <= self._most_rows
            and sum(piece.rows.nbytes for piece in pieces) < _JOINED_BYTES
        )

    def _ahead(self) -> Decoded | None:
        """Return the next block. An error is raised by the next call: rows before it are emitted first."""
        try:
            return self._next_decoded()
        except PenstockError as error:
            self._failure = error
            return None

    def _next_decoded(self) -> Decoded | None:
        if self._failure is not None:
            raise self._failure
        block = self._next_block()
        if block is None:
            return None
        decoded = self._parser.rows_of(self._decode(block))
        decoded.anchor.update(byte=block.offset, row=self._ordinal)
        self._ordinal += decoded.records
        return decoded

    def _next_block(self) -> Block | None:
        return self._blocks.next()

    def close(self) -> None:
        self._blocks.close()

    def _decode(self, block: Block) -> Decoded:
        records = self._parser.parse(block.data)
        # Arrow skips blank lines: with some of them its row numbers cannot be trusted
        if records is not None and records.num_rows == count_records(block.data, self._quote):
            return Decoded(records, self._ordinal, records.num_rows)
        return separate(block, self._ordinal, self._quote, self._parser.parse, self._parser.explain)


def _is_plain(decoded: Decoded) -> bool:
    """Return whether rows follow one another without bad records or weights, so that blocks can be joined."""
    return decoded.ordinals is None and decoded.weights is None and not decoded.bad


def _joined(pieces: list[Decoded]) -> Decoded:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    records = sum(piece.records for piece in pieces)
    rows = (
        pa.concat_batches([piece.rows for piece in pieces])
        if first.rows.num_columns
        else empty_columns(records)
    )
    return Decoded(rows, first.first, records, anchor=first.anchor)
