"""Rows of a table as records: the columns of keys and values by their formats, and METADATA columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.kafka import UPSERT_KAFKA, key_fields
from penstock.catalog.connectors.kafka_sink import PARTITIONER
from penstock.catalog.connectors.message_formats import emits_message_changes, key_format, value_format
from penstock.catalog.connectors.registry import option
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.arrow_numpy import numbers_of, texts, truths
from penstock.engine.api.epoch_target import StagedForm
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import INSERT, OPS, UPDATE_AFTER
from penstock.engine.connectors.kafka.producer_records import ANY_PARTITION, Records
from penstock.engine.formats.messages.registry import serializer


class RecordEncoder:
    """Encodes the rows of one subtask. ``partitions``: of the topic."""

    def __init__(self, table: CatalogTable, subtask: int, partitions: int) -> None:
        fields = table.physical_fields
        self._topic = table.options["topic"].strip()
        metadata = {column.name: column.key for column in table.metadata if not column.virtual}
        # the position of each METADATA column, by its key
        self._metadata = {metadata[f.name]: i for i, f in enumerate(fields) if f.name in metadata}
        self.form = staged_form(table)
        keyed = {name.lower() for name in key_fields(table)}
        self._key = [i for i, field in enumerate(fields) if field.name.lower() in keyed]
        prefix = str(option(table, "key.fields-prefix") or "")
        self._key_fields = tuple(_without(prefix, fields[i]) for i in self._key)
        in_values = str(option(table, "value.fields-include")).lower() == "all"
        self._value = [
            i
            for i, field in enumerate(fields)
            if field.name not in metadata and (in_values or i not in self._key)
        ]
        self._value_fields = tuple(fields[i] for i in self._value)
        form, keys = value_format(table.options), key_format(table.options)
        self._values = serializer(form, self._value_fields, f"{self._topic}-value")
        self._keys = None if keys is None else serializer(keys, self._key_fields, f"{self._topic}-key")
        self._partitioner = str(option(table, PARTITIONER)).lower()
        self._subtask, self._partitions, self._next = subtask, partitions, subtask

    def records(self, rows: pa.RecordBatch) -> Records:
        """Return a record for each row. ``rows`` are in the encoder's ``form``."""
        weights, columns = None, rows.columns
        if self.form is StagedForm.CHANGES:
            added = pc.is_in(rows.column(0), texts([OPS[INSERT], OPS[UPDATE_AFTER]]))
            weights = np.where(truths(added), 1, -1)
        if self.form is not StagedForm.INSERTS:
            columns = columns[1:]
        values = self._values.serialize(_batch(columns, self._value, self._value_fields, weights))
        if self.form is StagedForm.UPSERTS:
            # a tombstone: compaction forgets the key
            values = pc.if_else(rows.column(0), pa.nulls(len(values), pa.binary()), values)
        keys = None
        if self._keys is not None:
            keys = self._keys.serialize(_batch(columns, self._key, self._key_fields, None))
        return Records(
            values,
            keys,
            self._partition_numbers(columns, len(values)),
            self._timestamps(columns),
            self._headers(columns),
        )

    def _partition_numbers(self, columns: list[pa.Array], count: int) -> np.ndarray | None:
        position = self._metadata.get("partition")
        if position is not None:
            return numbers_of(columns[position].fill_null(ANY_PARTITION)).astype(np.int32)
        if self._partitioner == "fixed":
            return np.full(count, self._subtask % self._partitions, np.int32)
        if self._partitioner == "round-robin":
            made = (np.arange(self._next, self._next + count) % self._partitions).astype(np.int32)
            self._next = (self._next + count) % self._partitions
            return made
        return None

    def _timestamps(self, columns: list[pa.Array]) -> np.ndarray | None:
        position = self._metadata.get("timestamp")
        if position is None:
            return None
        kind = columns[position].type
        milliseconds = columns[position].cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
        return numbers_of(milliseconds.fill_null(0)).astype(np.int64)

    def _headers(self, columns: list[pa.Array]) -> pa.Array | None:
        position = self._metadata.get("headers")
        if position is None:
            return None
        return columns[position].cast(pa.map_(pa.string(), pa.binary()))


def staged_form(table: CatalogTable) -> StagedForm:
    """Return the form of the rows that a table is written from."""
    if table.connector == UPSERT_KAFKA:
        return StagedForm.UPSERTS
    return StagedForm.CHANGES if emits_message_changes(table.options) else StagedForm.INSERTS


def _without(prefix: str, field: Field) -> Field:
    return Field(field.name.removeprefix(prefix), field.type, field.nullable)


def _batch(
    columns: list[pa.Array], chosen: list[int], fields: tuple[Field, ...], weights: np.ndarray | None
) -> Batch:
    arrays = [columns[i] for i in chosen]
    rows = pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])
    return Batch(rows, weights)


def pieces_of(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield rows in pieces of about ``LIMITS.piece_bytes``, so that a piece as text fits into one array."""
    each = max(1, rows.num_rows * LIMITS.piece_bytes // max(rows.nbytes, 1))
    for start in range(0, rows.num_rows, each):
        yield rows.slice(start, each)
