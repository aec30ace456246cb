"""Arrow IPC files and streams: record batches in order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.engine.formats.column_adapter import ColumnAdapter
from penstock.engine.formats.decoded_batch import Decoded
from penstock.engine.formats.file_task import FileTask, unreadable


class ArrowReader:
    """Reads one Arrow file (by batch number) or one Arrow stream (from its start)."""

    def __init__(self, task: FileTask, anchor: dict[str, Any] | None) -> None:
        self._task = task
        self._index = 0
        self._ordinal = 0
        self._source = task.open_seekable() if task.compression is None else task.open_stream()
        try:
            self._open(anchor)
            self._adapter = ColumnAdapter(task.path, self._schema, task.wanted)
        except (OSError, pa.ArrowInvalid) as error:
            self._source.close()
            raise unreadable(task.path, error) from error

    def _open(self, anchor: dict[str, Any] | None) -> None:
        self._file: pa.RecordBatchFileReader | None = None
        self._stream: pa.RecordBatchStreamReader | None = None
        # a file begins with this magic number and can be read at any batch; a stream has no footer
        if self._task.compression is None and self._source.read(6) == b"ARROW1":
            self._source.seek(0)
            self._file = pa.ipc.open_file(self._source)
            self._schema = self._file.schema
            if anchor:
                self._index, self._ordinal = anchor["batch"], anchor["row"]
            return
        # back to the start after the look at the magic number
        if self._task.compression is None:
            self._source.seek(0)
        self._stream = pa.ipc.open_stream(self._source)
        self._schema = self._stream.schema

    def next(self) -> Decoded | None:
        try:
            batch = self._read()
            if batch is not None:
                # a damaged file may decode into invalid arrays, which crash or mislead later kernels
                batch.validate(full=True)
        except (OSError, pa.ArrowInvalid) as error:
            raise unreadable(self._task.path, error) from error
        if batch is None:
            return None
        decoded = Decoded(self._adapter.adapt(batch), self._ordinal, batch.num_rows)
        decoded.anchor.update(batch=self._index, row=self._ordinal)
        self._index += 1
        self._ordinal += batch.num_rows
        return decoded

    def close(self) -> None:
        self._source.close()

    def _read(self) -> pa.RecordBatch | None:
        if self._file is not None:
            return self._file.get_batch(self._index) if self._index < self._file.num_record_batches else None
        assert self._stream is not None, "an Arrow reader has a file or a stream"
        return next(self._stream, None)
