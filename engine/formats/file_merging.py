"""Files of one format merged into one: parquet and arrow by their batches, text by its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.formats.file_writers import (
    ROW_GROUP_ROWS,
    DurableFile,
    FileWriter,
    TextLines,
    WriteTask,
    WrittenFile,
    open_writer,
)

FORMATS = ("csv", "json", "parquet", "arrow")
"""Formats whose files can be merged."""
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class MergeTask:
    """How the files are written, merged or not: ``written`` names no file."""

    format: str
    written: WriteTask


def merge_files(task: MergeTask, sources: Sequence[Path], target: Path) -> WrittenFile:
    """Write one file with the rows of several in their order, flushed to the disk. Memory is bounded: a piece
    of a file is read at a time. Raises OSError, and DAT-4609 for a file that cannot be read.
    """
    written = replace(task.written, path=target)
    try:
        if task.format in ("parquet", "arrow"):
            return _merge_batches(task.format, written, sources)
        return _merge_text(task.format, written, sources)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise PenstockError(
            "DAT-4609",
            f"a staged file cannot be read, so files of {target.parent} cannot be merged",
            detail=str(error)[:200],
            hint="check the disk; a restart from an earlier checkpoint writes the files anew",
            kind=Kind.EXTERNAL,
            sqlstate="58030",
        ) from error


def _merge_batches(kind: str, written: WriteTask, sources: Sequence[Path]) -> WrittenFile:
    writer: FileWriter = open_writer(kind, written)
    try:
        for source in sources:
            for batch in _parquet(source) if kind == "parquet" else _arrow(source):
                # the types of the table, however the file's reader spells them
                writer.write(batch.cast(written.schema))
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    # a damaged page is noticed here, before its file is deleted
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches(ROW_GROUP_ROWS)


def _arrow(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as opened, pa.ipc.open_file(opened) as file:
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def _merge_text(kind: str, written: WriteTask, sources: Sequence[Path]) -> WrittenFile:
    # each file begins with the header; only the first one's stays. Planning lets no encoding in but UTF-8
    lines = TextLines(kind, written.dialect, written.in_payload)
    header = lines.header(written.schema.names).encode()
    out = DurableFile(written.path, written.codec)
    try:
        out.sink.write(header)
        for source in sources:
            for block in _body(source, written.codec, len(header)):
                out.sink.write(block)
        return out.finish()
    except BaseException:
        out.discard()
        raise


def _body(path: Path, codec: str | None, skip: int) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file behind its header."""
    # a codec in the name of the file is not looked at
    with pa.input_stream(str(path), compression=codec) as stream:
        stream.read(skip)
        while block := stream.read(_BLOCK_BYTES):
            yield block
