"""Stdin as a table: lines of csv or JSON are rows as soon as they have arrived. It is read once."""

from __future__ import annotations

import codecs
import logging
import os
import select
from collections import deque
from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import to_arrow
from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.filesystem.listing import FileListing, FileSplit
from penstock.engine.connectors.filesystem.reader import FilesystemReader
from penstock.engine.connectors.filesystem.source import FilesystemSource
from penstock.engine.formats.csv import CsvReader, names_of
from penstock.engine.formats.decoded_batch import Decoded, FileReader, batch_of
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.json_documents import DocumentLines
from penstock.engine.formats.json_lines import json_lines_reader
from penstock.engine.formats.record_blocks import Block, RecordBlocks, record_ends

NAME = "stdin"
NEWS = logging.getLogger("penstock.files")
"""Messages about reading files and stdin."""
# bytes of one read; as much as a pipe holds
_READ_BYTES = 1 << 16
# a sample ends when nothing has come for so long: what `cat` or `tail` has to say at once is there by then
_SETTLED_S = 0.1
# a wait for the first lines that takes longer is reported
_PATIENCE_S = 3.0
# how often a read that waits looks whether its reader was closed
_LOOK_S = 0.2
# 4 MiB read ahead of the operator; behind that the pipe fills
_BLOCKS_AHEAD = 64


def _read_descriptor() -> bytes:
    return os.read(0, _READ_BYTES)


def _wait_for_descriptor(timeout_s: float | None) -> bool:
    return bool(select.select([0], [], [], timeout_s)[0])


def _is_terminal() -> bool:
    return os.isatty(0)


class StandardInput:
    """The bytes of stdin. ``sample`` looks at the first and leaves them; ``claim`` gives all to one reader.

    ``read`` returns what has arrived, nothing at the end; ``wait`` returns whether ``read`` would return now.
    """

    def __init__(
        self,
        read: Callable[[], bytes] = _read_descriptor,
        wait: Callable[[float | None], bool] = _wait_for_descriptor,
        is_terminal: Callable[[], bool] = _is_terminal,
    ) -> None:
        self._read, self._wait, self._is_terminal = read, wait, is_terminal
        self._first = bytearray()
        self._ended = False
        self._claimed = False

    def sample(self, most: int, lines: int) -> tuple[bytes, bool]:
        """Return the first bytes, and whether they are all. Waits for so many lines, then until nothing has
        come for a tenth of a second, or ``most`` bytes are there.
        """
        self._refuse()
        patience_s: float | None = _PATIENCE_S
        while not self._ended and len(self._first) < most:
            if self._first.count(b"\n") >= lines:
                if not self._wait(_SETTLED_S):
                    break
            # once: from then on it waits for as long as it takes
            elif not self._wait(patience_s):
                patience_s = None
                NEWS.info("waiting for the first lines of stdin, which name the columns")
                continue
            self._fetch()
        return bytes(self._first), self._ended

    def claim(self) -> None:
        """Become the one reader. DAT-4126 when there was one before."""
        self._refuse()
        self._claimed = True

    def next(self, closed: Callable[[], bool]) -> bytes:
        """Return the next bytes; nothing at the end, or once ``closed`` returns True."""
        if self._first:
            data = bytes(self._first)
            self._first.clear()
            return data
        while not self._ended and not closed():
            if self._wait(_LOOK_S):
                self._fetch()
                return self.next(closed)
        return b""

    def _fetch(self) -> None:
        data = self._read()
        self._ended = not data
        self._first += data

    def _refuse(self) -> None:
        if self._claimed:
            raise PenstockError(
                "DAT-4126",
                "stdin was read by an earlier query: its rows are gone",
                hint="write its rows into a table first: INSERT INTO t SELECT * FROM '-'",
                kind=Kind.USER,
            )
        if self._is_terminal():
            raise PenstockError(
                "DAT-4126",
                "stdin is a terminal, which has no rows",
                hint="pipe rows into penstock: tail -f log.csv | penstock -c \"SELECT * FROM read_csv('-')\"",
                kind=Kind.USER,
            )


# one a process, as stdin is
STDIN = StandardInput()


class StandardInputSource(FilesystemSource):
    """One split. Stdin cannot be read again, so a job resumes from no checkpoint that has read of it."""

    def splits(self) -> list[str]:
        return [NAME]

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: what was read is gone, and ``open`` says so."""

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        """Claim stdin. DAT-4114 for a position: the lines up to the end of that run are lost."""
        if position is not None:
            raise PenstockError(
                "DAT-4114",
                f"lines of stdin after line {position['row']:,} are lost: stdin cannot be read again",
                hint="begin anew without the job's state, or read a file instead",
                kind=Kind.EXTERNAL,
            )
        STDIN.claim()
        split = FileSplit(NAME, 0, 0)
        task = self._task(split)
        lines = ArrivedLines(task, self._format, STDIN, self._request.arrivals.notify)
        return StandardInputReader(lines, task.wanted, split, self._request)

    def discover_every_ms(self) -> int | None:
        return None


class StandardInputReader(FilesystemReader):
    """Returns the rows of lines that have arrived."""

    reports_arrivals = True
    """The thread that reads stdin reports them."""

    def __init__(
        self, lines: ArrivedLines, stored: tuple[Field, ...], split: FileSplit, request: ScanRequest
    ) -> None:
        listing = FileListing(request.table.options["path"], None)
        super().__init__(lines, stored, split, request, listing, {})
        self._lines = lines

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        # nothing decoded is left, and nothing has arrived
        if self._piece is None and not self.ended and not self._lines.ready():
            return None
        return super().poll(max_rows)


class ArrivedLines:
    """Decodes whole records as they arrive. ``ready`` before ``next`` says whether there is anything."""

    def __init__(
        self, task: FileTask, file_format: str, stdin: StandardInput, arrived: Callable[[], None]
    ) -> None:
        self._task, self._format, self._stdin = task, file_format, stdin
        self._closed = self._decoded_all = False
        self._decoder = codecs.getincrementaldecoder(task.dialect.encoding)()
        self._documents = DocumentLines() if task.documents else None
        self._arrived: deque[Block] = deque()
        self._reader: FileReader | None = None
        self._pump = Pump(self._blocks(), NAME, _BLOCKS_AHEAD, arrived)

    def ready(self) -> bool:
        """Return whether ``next`` has something to return: records, or the end."""
        if not self._arrived:
            self._arrived.extend(self._pump.take(_BLOCKS_AHEAD))
        return bool(self._arrived) or self._pump.ended

    def next(self) -> Decoded | None:
        """Return the records that have arrived, none if there are none yet; ``None`` at the end."""
        if not self.ready():
            wanted = self._task.wanted
            return Decoded(batch_of([pa.array([], to_arrow(f.type)) for f in wanted], wanted, 0), 0, 0)
        if self._reader is None:
            # ended without a line: there is no header to look for
            if not self._arrived:
                return None
            self._reader = self._opened()
        return self._reader.next()

    def take(self) -> Block | None:
        """Return the arrived records as one block; ``None`` at the end."""
        if not self._arrived:
            return None
        # many short blocks of a slow sender cost less when they are decoded together
        blocks = list(self._arrived)
        self._arrived.clear()
        return Block(b"".join(block.data for block in blocks), blocks[0].offset)

    def read(self, _most: int) -> bytes:
        """Return the next bytes of stdin in UTF-8; nothing at the end."""
        while not self._decoded_all:
            data = self._stdin.next(lambda: self._closed)
            self._decoded_all = not data
            text = self._decoder.decode(data, self._decoded_all)
            if text:
                return text.encode() if self._documents is None else self._documents.lines_of(text.encode())
        return b""

    def close(self) -> None:
        """Stop reading; a read that waits ends soon."""
        self._closed = True
        self._pump.close()

    def _blocks(self) -> Iterator[Block]:
        """Yield blocks of whole records. In the pump's thread, since each read may wait."""
        quote = self._task.dialect.quote.encode() if self._task.dialect.multiline else None
        # cut as soon as one record is whole
        blocks = RecordBlocks(self._task, 0, quote, 1, file=self)
        while (block := blocks.next()) is not None:
            yield block

    def _opened(self) -> FileReader:
        arrived = _Arrived(self)
        if self._format == "json":
            return json_lines_reader(self._task, None, arrived)
        names = None
        if self._task.dialect.header:
            quote = self._task.dialect.quote.encode() if self._task.dialect.multiline else None
            data = self._arrived[0].data
            names = names_of(data[: int(record_ends(data, quote)[0])], self._task)
        return CsvReader(self._task, None, arrived, names)


class _Arrived:
    """The blocks of arrived lines, as a reader of lines asks for them."""

    def __init__(self, lines: ArrivedLines) -> None:
        self._lines = lines

    def next(self) -> Block | None:
        return self._lines.take()

    def close(self) -> None:
        """Nothing: the lines are closed by their owner."""
