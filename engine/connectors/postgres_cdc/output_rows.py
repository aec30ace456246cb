"""Rows of a table and its changes as the job asked for them. They are weighted rows, or each change as a
row of its own with its metadata.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.connector import UNCHANGED
from penstock.catalog.connectors.postgres_cdc import APPEND_ONLY
from penstock.catalog.connectors.registry import option
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.arrow_numpy import array_of, texts
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import DELETE, INSERT, OPS, UPDATE_AFTER, UPDATE_BEFORE
from penstock.engine.connectors.postgres_cdc.pgoutput import DecodedChanges, empty_rows
from penstock.engine.formats.decoded_batch import empty_columns


class OutputRows:
    """Makes the requested columns of what was read. ``columns``: positions of the table's source schema that
    are wanted; ``physical``: those of them that the server sends, in the order they are read.
    """

    def __init__(self, table: CatalogTable, columns: tuple[int, ...], physical: tuple[int, ...]) -> None:
        self._table, self._columns = table, columns
        self._append_only = bool(option(table, APPEND_ONLY))
        self._schema = table.source_schema.select(columns).to_arrow()
        self._physical = {index: place for place, index in enumerate(physical)}
        self._metadata = {table.source_schema.index_of(column.name): column.key for column in table.metadata}

    def snapshot(self, rows: pa.RecordBatch, position: int) -> pa.RecordBatch | Batch:
        """Return rows that were read from the table itself, in the state at a position of the log."""
        count = rows.num_rows
        return self._made(rows, np.full(count, INSERT), np.full(count, position), None, None)

    def changes(self, changes: DecodedChanges) -> Batch:
        """Return changes; their rows stay in their order."""
        added = changes.weights > 0
        ops = np.where(
            added,
            np.where(changes.updates, UPDATE_AFTER, INSERT),
            np.where(changes.updates, UPDATE_BEFORE, DELETE),
        )
        rows = self._made(changes.rows, ops, changes.commits, changes.times, changes.unchanged)
        return Batch(rows, None if self._append_only else changes.weights)

    def nothing(self) -> Batch:
        """Return no rows."""
        return Batch(empty_rows(self._schema) if self._columns else empty_columns(0))

    def together(self, batches: list[Batch]) -> Batch | None:
        """Return batches as one, ``None`` when there is none."""
        if len(batches) < 2:
            return batches[0] if batches else None
        rows = (
            pa.Table.from_batches([batch.rows for batch in batches]).combine_chunks().to_batches()[0]
            if self._columns
            else empty_columns(sum(batch.num_rows for batch in batches))
        )
        weights = [batch.weights for batch in batches if batch.weights is not None]
        return Batch(rows, np.concatenate(weights) if weights else None)

    def _made(
        self,
        rows: pa.RecordBatch,
        ops: np.ndarray,
        positions: np.ndarray,
        times: np.ndarray | None,
        unchanged: np.ndarray | None,
    ) -> pa.RecordBatch:
        if not self._columns:
            return empty_columns(rows.num_rows)
        arrays = [
            rows.column(self._physical[index])
            if index in self._physical
            else self._marks(len(ops), unchanged)
            if self._metadata[index] == UNCHANGED
            else self._filled(self._metadata[index], ops, positions, times)
            for index in self._columns
        ]
        cast = [array.cast(kind) for array, kind in zip(arrays, self._schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=self._schema)

    def _marks(self, count: int, unchanged: np.ndarray | None) -> pa.Array:
        """Return for each row a bit for each column of the source schema whose value is not in the row, the
        first column's is the lowest; NULL for a row that has all its values.
        """
        lacks = np.zeros(count, np.bool_) if unchanged is None else np.asarray(unchanged.any(1))
        if unchanged is None or not lacks.any():
            return pa.nulls(count, pa.binary())
        bits = np.zeros((int(lacks.sum()), len(self._table.source_schema)), np.bool_)
        for index, line in self._physical.items():
            bits[:, index] = unchanged[lacks, line]
        packed = np.packbits(bits, axis=1, bitorder="little")
        offsets = np.append(0, np.cumsum(lacks * packed.shape[1])).astype(np.int32)
        buffers = [array_of(lacks).buffers()[1], pa.py_buffer(offsets), pa.py_buffer(packed.tobytes())]
        return pa.Array.from_buffers(pa.binary(), count, buffers)

    def _filled(self, key: str, ops: np.ndarray, positions: np.ndarray, times: np.ndarray | None) -> pa.Array:
        """Return a metadata column. Rows of the table itself have no time."""
        if key == "op":
            return pc.take(texts(list(OPS)), array_of(ops.astype(np.int64)))
        if key == "lsn":
            return array_of(positions.astype(np.int64))
        if key == "op_ts":
            kind = pa.timestamp("us", "UTC")
            return pa.nulls(len(ops), kind) if times is None else array_of(times).cast(kind)
        return pa.repeat(str(option(self._table, key.replace("_", "-"))), len(ops))
