"""Text files in blocks of whole records: where a block may be cut, ranges of bytes, decompression, the
byte order mark.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.formats.file_task import FileTask, may_pass, unreadable

# read at a time; a block is as much, cut at its last line end
BLOCK_BYTES = 1 << 21
MAX_RECORD_BYTES = 64 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole records as bytes, and the byte offset of the first in the (decompressed) file. Every record
    but perhaps the last ends in a line end.
    """

    data: bytes
    offset: int


class ByteStream(Protocol):
    """Bytes that are read once, forward."""

    def read(self, most: int) -> bytes:
        """Return the next bytes; nothing at the end."""

    def close(self) -> None:
        """Release the stream."""


class RecordBlocks:
    """Reads a file as blocks of whole records.

    A range has the records that begin in it. ``quote`` (one byte) is set when quoted values may contain line
    ends: a line end inside quotes then does not end a record.
    """

    def __init__(
        self,
        task: FileTask,
        begin: int | None = None,
        quote: bytes | None = None,
        block_bytes: int = BLOCK_BYTES,
        *,
        file: ByteStream | None = None,
    ) -> None:
        self._task = task
        self._quote = quote
        self._block_bytes = block_bytes
        # bytes after the last cut, the start of the next block
        self._remainder = b""
        self._ended = False
        self._offset = begin if begin is not None else task.start
        if file is None:
            opened = task.open_seekable() if task.is_plain else task.open_stream()
            # a range starts one byte early: _skip_line then skips nothing if a record begins exactly there
            if task.is_plain and self._offset:
                opened.seek(self._offset - (begin is None))
            file = opened
        self._file: ByteStream = file
        if begin is None and task.start:
            self._skip_line()
        elif self._offset == 0:
            self._skip_bom()

    def next(self) -> Block | None:
        """Return the next block, or ``None`` when the file or the range has ended."""
        data, self._remainder = self._remainder, b""
        while not self._ended:
            # enough bytes: cut after the last whole record, if one ends here
            cut = self._cut(data) if len(data) >= self._block_bytes else 0
            self._check_length(data.find(b"\n") if cut else len(data))
            if cut:
                return self._make_block(data[:cut], data[cut:])
            more = self._read()
            self._ended = not more
            cut = (
                # without quotes a line end always ends a record, so the cut is found before joining
                more.rfind(b"\n") + 1
                if self._quote is None and len(data) + len(more) >= self._block_bytes
                else 0
            )
            if cut:  # a block is put together once, not joined and then cut
                self._check_length(len(data) + more.find(b"\n") if len(data) >= self._block_bytes else 0)
                return self._make_block(b"".join((data, memoryview(more)[:cut])), more[cut:])
            data += more
        return self._make_block(data, b"") if data else None

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _check_length(self, record_bytes: int) -> None:
        """Refuse a block whose first record is too long; the other records lie within one block."""
        if record_bytes > MAX_RECORD_BYTES:
            message = f"{self._task.path}: a record is longer than {MAX_RECORD_BYTES >> 20} MB"
            raise PenstockError(
                "DAT-4207", message, hint="are its line ends and quotes right?", kind=Kind.EXTERNAL
            )

    def _make_block(self, data: bytes, remainder: bytes) -> Block | None:
        """Return a block, cut at the end of the range; the bytes after it remain for the next range."""
        block = Block(data, self._offset)
        end = self._task.end
        # the range ends in this block
        if end is not None and self._offset + len(data) >= end:
            # the range's last record begins before its end and may end after it
            cut = data.find(b"\n", max(0, end - 1 - self._offset)) + 1
            self._ended, remainder = True, b""
            # the block begins after the range: its records belong to the next range
            if self._offset >= end:
                return None
            block = Block(data[:cut] if cut else data, self._offset)
        self._offset += len(block.data)
        self._remainder = remainder
        return block

    def _read(self) -> bytes:
        try:
            return self._file.read(self._block_bytes)
        except UnicodeError as error:
            raise self._task.undecodable(error) from error
        except (OSError, pa.ArrowInvalid) as error:
            # a disk or a connection; anything else is bad compressed data
            if self._task.compression is None or may_pass(error):
                raise unreadable(self._task.path, error) from error
            message = f"{self._task.path} is not valid {self._task.compression} data, or is cut off"
            hint = "copy the file again; where it is not compressed, write 'compression' = 'none'"
            raise PenstockError(
                "DAT-4106", message, detail=str(error)[:200], hint=hint, kind=Kind.EXTERNAL
            ) from error

    def _skip_line(self) -> None:
        """Skip the record that began before the range."""
        self._offset -= 1
        while True:
            more = self._read()
            cut = more.find(b"\n") + 1
            self._offset += cut or len(more)
            if cut or not more:
                self._remainder, self._ended = more[cut:], not more
                break
        # one record is longer than the whole range: no record begins in it
        if self._task.end is not None and self._offset >= self._task.end:
            self._remainder, self._ended = b"", True

    def _skip_bom(self) -> None:
        head = self._read()
        self._ended = not head
        self._remainder = head.removeprefix(_BOM)
        # byte offsets count the mark
        self._offset = len(head) - len(self._remainder)

    def _cut(self, data: bytes) -> int:
        """Return the length of the whole records at the start of the bytes; 0 when no record ends here."""
        # 0 when there is no line end
        cut = data.rfind(b"\n") + 1
        if self._quote is None:
            return cut
        # an odd number of quotes before the cut: it is inside quotes, so go back a line at a time
        odd = data.count(self._quote, 0, cut) % 2
        while cut and odd:
            before = data.rfind(b"\n", 0, cut - 1) + 1
            odd = (odd + data.count(self._quote, before, cut)) % 2
            cut = before
        return cut


def record_ends(data: bytes, quote: bytes | None) -> np.ndarray:
    """Return the end offset (after the line end) of each record of a block; blank records are still in."""
    view = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(view == 0x0A)
    if quote is not None and quote in data:
        quotes = np.flatnonzero(view == quote[0])
        # a line end after an odd number of quotes is inside a value
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    ends = ends + 1
    # the last record of a file may lack its line end
    return ends if len(ends) and ends[-1] == len(data) else np.append(ends, len(data))


def count_records(data: bytes, quote: bytes | None) -> int:
    """Return how many records a block holds, blank ones included."""
    if quote is not None and quote in data:
        return len(record_ends(data, quote))
    return data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
