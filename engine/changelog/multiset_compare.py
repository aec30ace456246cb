"""Comparison of two multisets of rows of any length: both are hash-partitioned to files and compared part
by part.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import joined
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import weights_of
from penstock.engine.kernels.partition import counting_sort
from penstock.engine.kernels.stable_hash import stable_hash

# files the rows are hash-partitioned to
PARTS = 64
# rows in memory before they are written to the files
BUFFERED_ROWS = 1 << 19
# the column of weights; the second side's are negative, so equal rows cancel out
_WEIGHT = "@weight"


class ComparedRows:
    """Partitions the rows of two sides by hash. Equal rows, and rows that differ in floating-point columns
    only, come to one part, whichever side they are of.

    Rows are in memory until there are ``buffered_rows`` of them; from then on each part is an Arrow file in
    ``directory``. Rows without exact columns are one part. ``counts``: by side, how many rows there are by
    their weights.
    """

    def __init__(self, schema: pa.Schema, directory: Path, buffered_rows: int = BUFFERED_ROWS) -> None:
        self._schema = schema
        self._directory = directory
        self._buffer_limit = buffered_rows
        self._stored = schema.append(pa.field(_WEIGHT, pa.int64()))
        # columns that two sides compute alike to the last bit; a float may differ and still be equal enough
        self._exact = [
            index
            for index, field in enumerate(schema)
            if not (pa.types.is_floating(field.type) or pa.types.is_nested(field.type))
        ]
        self._buffer: list[pa.RecordBatch] = []
        self._rows_in_buffer = 0
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self.counts = {1: 0, -1: 0}

    def take(self, batch: Batch, side: int) -> None:
        """Add rows of a side, 1 or -1, with their weights."""
        rows = pa.RecordBatch.from_arrays(batch.rows.columns, names=self._schema.names).cast(self._schema)
        weights = weights_of(batch)
        self.counts[side] += int(weights.sum())
        self._buffer.append(
            pa.RecordBatch.from_arrays(
                [*map(_canonical, rows.columns), array_of(weights * side)], schema=self._stored
            )
        )
        self._rows_in_buffer += batch.num_rows
        if self._rows_in_buffer >= self._buffer_limit:
            self._spill()

    def parts(self) -> Iterator[tuple[pa.Table, np.ndarray]]:
        """Yield the rows of each part with their weights, those of the second side negated."""
        # few rows: one part, never written to a file
        if not self._writers:
            yield self._split(pa.Table.from_batches(self._buffer, self._stored))
            return
        self._spill()
        for number, writer in sorted(self._writers.items()):
            writer.close()
            path = self._path(number)
            with pa.memory_map(str(path)) as source:
                yield self._split(pa.ipc.open_file(source).read_all())
            path.unlink()

    def close(self) -> None:
        """Close the files that are open."""
        for writer in self._writers.values():
            writer.close()

    def _split(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        return table.drop_columns([_WEIGHT]), table.column(_WEIGHT).to_numpy()

    def _path(self, number: int) -> Path:
        return self._directory / f"part-{number}.arrow"

    def _spill(self) -> None:
        """Write the buffered rows to the files of their parts."""
        if not self._buffer:
            return
        batches, self._buffer, self._rows_in_buffer = self._buffer, [], 0
        for rows in joined(batches):
            self._spill_rows(rows)

    def _spill_rows(self, rows: pa.RecordBatch) -> None:
        # equal rows go to one part, for their exact columns are equal
        hashed = (
            stable_hash([rows.column(exact_column) for exact_column in self._exact])
            if self._exact
            else np.zeros(rows.num_rows, np.uint64)
        )
        order, starts = counting_sort((hashed % np.uint64(PARTS)).astype(np.int64), PARTS)
        sorted_rows = rows.take(array_of(order))
        # parts that have a row here
        for number in np.flatnonzero(np.diff(starts)).tolist():
            if number not in self._writers:
                self._writers[number] = pa.ipc.new_file(str(self._path(number)), self._stored)
            self._writers[number].write_batch(
                sorted_rows.slice(starts[number], starts[number + 1] - starts[number])
            )


def _canonical(column: pa.Array) -> pa.Array:
    """Give all NaNs one form, and zero one sign."""
    if not pa.types.is_floating(column.type):
        return column
    # -0.0 + 0.0 is 0.0
    return pc.if_else(
        pc.is_nan(column), pa.scalar(float("nan"), column.type), pc.add(column, pa.scalar(0.0, column.type))
    )
