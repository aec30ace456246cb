"""Rows of messages: values and keys are decoded, columns of metadata added, and the table's policy is applied
to what cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.message_formats import key_format, value_format
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.api.source import ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.bad_records import BadRecords, RejectedRecord
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, batch_of
from penstock.engine.formats.messages.registry import deserializer


@dataclass(frozen=True)
class MessageBatch:
    """Messages of one split, in their order. ``values`` and ``keys`` are BINARY; ``numbers`` are the ordinals
    of the messages in the split; ``metadata`` has the columns that ``MessageReader.metadata`` asks for.
    """

    values: pa.Array
    numbers: np.ndarray
    keys: pa.Array | None
    metadata: Mapping[str, pa.Array]


@dataclass(frozen=True)
class KeyColumns:
    """Columns of a table that are in keys. ``prefix``: what their names have before those in the key.
    ``only``: they are not in values. ``upserts``: a message without a value deletes the row of its key.
    """

    names: tuple[str, ...] = ()
    prefix: str = ""
    only: bool = False
    upserts: bool = False


class MessageReader:
    """Makes rows of the columns that a scan asks for. One for each split; ``source`` names it in messages,
    such as ``topic orders, partition 3``, and ``ordinal`` what its messages are numbered by.
    """

    def __init__(
        self, request: ScanRequest, split_id: str, source: str, ordinal: str, keys: KeyColumns
    ) -> None:
        self._request, self._split, self._source, self._ordinal = request, split_id, source, ordinal
        self._policy = option(request.table, "on-error")
        table = request.table
        self._facts = {column.name: column.key for column in table.metadata}
        self._fields = tuple(table.source_schema[index] for index in request.columns)
        stored = tuple(field for field in table.source_schema if field.name not in self._facts)
        in_key = set(keys.names)
        # a key's columns are read of the value where it has them, but a deletion has a key only
        of_key = in_key if keys.only or keys.upserts else set()
        self._upserts = keys.upserts
        wanted = [field for field in self._fields if field.name not in self._facts]
        self._value_fields = tuple(field for field in wanted if field.name not in of_key)
        self._key_fields = tuple(field for field in wanted if field.name in of_key)
        in_value = tuple(field for field in stored if not (keys.only and field.name in in_key))
        self._values = deserializer(
            value_format(table.options), self._value_fields, in_value, request.metrics
        )
        form = key_format(table.options)
        self._keys = None
        if form is not None and (self._key_fields or keys.upserts):
            declared = tuple(_unprefixed(f, keys.prefix) for f in stored if f.name in in_key)
            asked = tuple(_unprefixed(f, keys.prefix) for f in self._key_fields)
            self._keys = deserializer(form, asked, declared, request.metrics)
        self.metadata = frozenset(
            self._facts[field.name] for field in self._fields if field.name in self._facts
        )
        self.wants_keys = self._keys is not None or "key" in self.metadata

    def read(self, batch: MessageBatch) -> pa.RecordBatch | Batch:
        """Return the rows of messages. DAT-4201 for one that cannot be decoded, unless the table skips or
        keeps them.

        Changes have weights. Of an upsert table a row of weight +1 is the new row of its key. One of -1 says
        that the key is gone; its other columns are NULL.
        """
        value = self._values.deserialize(batch.values)
        rows = _ordinals(value)
        key, bad = None, list(value.bad)
        if self._keys is not None and batch.keys is not None:
            key = self._keys.deserialize(batch.keys)
            bad += key.bad
        if self._upserts:
            return self._upserted(batch, value, rows, key, bad)
        self._count_tombstones(batch.values, rows, value)
        kept = None
        if key is not None and key.bad:
            # a message whose key is bad has no row
            kept = ~np.isin(rows, [record.ordinal for record in key.bad])
        self._reject(bad, batch)
        columns = self._columns(batch, value, np.arange(len(rows)), rows, key)
        made = batch_of(columns, self._fields, len(rows))
        weights = value.weights
        if kept is not None:
            made, weights = made.filter(pa.array(kept)), None if weights is None else weights[kept]
        return made if weights is None else Batch(made, weights)

    def _upserted(
        self,
        batch: MessageBatch,
        value: Decoded,
        rows: np.ndarray,
        key: Decoded | None,
        bad: list[BadRecord],
    ) -> Batch:
        """Return one row for each message with a key: its new row, or that it is gone."""
        assert key is not None, "a table of upserts has a key format and is read with keys"
        gone = ~truths(batch.values.is_valid())
        keyless = ~truths(batch.keys.is_valid()) if batch.keys is not None else gone
        bad += [
            BadRecord(int(i), batch.values[int(i)].as_py() or b"", "the message has no key")
            for i in np.flatnonzero(keyless)
        ]
        self._reject(bad, batch)
        count = len(batch.values)
        place = np.full(count, -1, np.int64)
        place[rows] = np.arange(len(rows))
        place[gone] = -1
        wanted = gone | (place >= 0)
        wanted[[record.ordinal for record in bad]] = False
        messages = np.flatnonzero(wanted)
        columns = self._columns(batch, value, place[messages], messages, key)
        self._request.metrics.count("tombstones", int(np.count_nonzero(gone)))
        return Batch(
            batch_of(columns, self._fields, len(messages)), np.where(gone[messages], -1, 1).astype(np.int64)
        )

    def _columns(
        self,
        batch: MessageBatch,
        value: Decoded,
        places: np.ndarray,
        messages: np.ndarray,
        key: Decoded | None,
    ) -> list[pa.Array]:
        """Return the columns asked for. ``places``: rows of the decoded values, -1 for none; ``messages``:
        the message of each.
        """
        values = {field.name: value.rows.column(i) for i, field in enumerate(self._value_fields)}
        if (places < 0).any() or not _is_range(places, value.rows.num_rows):
            values = {name: column.take(array_of(places, places < 0)) for name, column in values.items()}
        keys = {}
        if key is not None:
            at = np.full(len(batch.values), -1, np.int64)
            at[_ordinals(key)] = np.arange(key.rows.num_rows)
            found = array_of(at[messages], at[messages] < 0)
            keys = {field.name: key.rows.column(i).take(found) for i, field in enumerate(self._key_fields)}
        everything = _is_range(messages, len(batch.values))
        facts = {
            name: fact if everything else fact.take(array_of(messages))
            for name, fact in batch.metadata.items()
        }
        columns = []
        for field in self._fields:
            if field.name in self._facts:
                columns.append(facts[self._facts[field.name]].cast(to_arrow(field.type)))
            else:
                columns.append(keys[field.name] if field.name in keys else values[field.name])
        return columns

    def _count_tombstones(self, values: pa.Array, rows: np.ndarray, value: Decoded) -> None:
        """Count messages without a value that are no rows."""
        if values.null_count:
            gone = np.flatnonzero(~truths(values.is_valid()))
            self._request.metrics.count("tombstones", int(np.count_nonzero(~np.isin(gone, rows))))

    def _reject(self, bad: list[BadRecord], batch: MessageBatch) -> None:
        # on-error: fail raises for the first message, skip counts, table counts and stores
        if not bad:
            return
        if self._policy == "fail":
            raise self._failure(min(bad, key=lambda record: record.ordinal), batch)
        first = {record.ordinal: record for record in reversed(bad)}
        self._request.metrics.count("bad_records", len(first))
        if self._policy == "table":
            rows = [
                RejectedRecord(
                    r.shown, self._source, self._split, int(batch.numbers[r.ordinal]), r.column, r.error
                )
                for r in first.values()
            ]
            self._request.services.get(BadRecords).add(self._request.table.name, rows)

    def _failure(self, record: BadRecord, batch: MessageBatch) -> PenstockError:
        column = f" column {record.column}:" if record.column else ""
        number = int(batch.numbers[record.ordinal])
        return PenstockError(
            "DAT-4201",
            f"{self._source}, {self._ordinal} {number}:{column} {record.error}",
            detail=f"message: {record.shown}",
            hint="correct the producer, or create the table with 'on-error' = 'skip' or 'table'",
            kind=Kind.EXTERNAL,
            sqlstate="22000",
        )


def _unprefixed(field: Field, prefix: str) -> Field:
    return Field(field.name.removeprefix(prefix), field.type, field.nullable)


def _ordinals(decoded: Decoded) -> np.ndarray:
    """Return the message of each decoded row."""
    if decoded.ordinals is not None:
        return np.asarray(decoded.ordinals)
    return np.arange(decoded.first, decoded.first + decoded.rows.num_rows)


def _is_range(places: np.ndarray, count: int) -> bool:
    """Whether places are all of 0 .. count - 1, in order."""
    return len(places) == count and bool((places == np.arange(count)).all())
