"""Reads files of lines block by block; a block that fails is taken apart to find its bad records."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from penstock.engine.formats.bad_records import separate
from penstock.engine.formats.decoded_batch import Decoded
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.record_blocks import Block, RecordBlocks, count_records


class LineParser(Protocol):
    """Turns bytes of whole lines into records, one a line, and records into rows."""

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        """Return the records of whole lines; ``None`` when one cannot be read."""

    def explain(self, raw: bytes) -> tuple[str | None, str]:
        """Return the column at fault and what is wrong with one bad line."""

    def rows_of(self, decoded: Decoded) -> Decoded:
        """Return decoded records as rows."""


class LineReader:
    """Reads one file of lines, or the lines that begin in a range of its bytes. ``quote``: within such
    characters a record goes on over lines.
    """

    def __init__(
        self, task: FileTask, anchor: dict[str, Any] | None, parser: LineParser, quote: bytes | None = None
    ) -> None:
        self._parser = parser
        self._quote = quote
        resumed = anchor if anchor and task.compression is None else {}
        begin: int | None = resumed.get("byte")
        self._ordinal: int = resumed.get("row", 0)
        self._resumed = begin is not None
        self._blocks = RecordBlocks(task, begin, quote)

    def next(self) -> Decoded | None:
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
        if records is not None and records.num_rows == count_records(block.data, self._quote):
            return Decoded(records, self._ordinal, records.num_rows)
        return separate(block, self._ordinal, self._quote, self._parser.parse, self._parser.explain)
