"""Rows that a Kafka sink cannot write, because their record is too large or a value has no form: they fail
the job, or are left out, counted, and stored for ``<table>$errors``, as the table's ``on-error`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.epoch_target import DELETED
from penstock.engine.api.sink import SinkRequest
from penstock.engine.connectors.in_process.bad_records import BadRecords, RejectedRecord
from penstock.engine.connectors.kafka.producer_records import Records
from penstock.engine.formats.json_text import json_lines

# librdkafka's default of message.max.bytes
_DEFAULT_BYTES = 1_000_000
# librdkafka takes no lower limit
_LEAST_BYTES = 1_000
# of a request with one record, beside its key and value: 61 of the batch, at most 31 of the record
_REQUEST_BYTES = 100
_SHOWN = 200
# the class of SQLSTATE of errors that are about a value
_OF_VALUES = "22"


class RecordLimits:
    """What can be written: of a size that a producer sends, key and value together, and of values that the
    format has. ``begin``, ``accepted`` for each batch, ``publish`` once the records are there.
    """

    def __init__(
        self, request: SinkRequest, properties: dict[str, str], topic_bytes: int | None = None
    ) -> None:
        """``topic_bytes``: what the topic takes, where that is known."""
        assert request.table is not None, "a Kafka sink has a table"
        self._table, self._request = request.table, request
        self._bytes = int(properties.get("message.max.bytes", _DEFAULT_BYTES))
        self.properties = properties
        """Those of the producer: no request of it is larger than the topic takes."""
        if topic_bytes is not None and topic_bytes < self._bytes:
            self._bytes = topic_bytes - _REQUEST_BYTES
            self.properties = properties | {
                "message.max.bytes": str(max(topic_bytes, _LEAST_BYTES)),
                "batch.size": str(topic_bytes),
            }
        self._policy = str(option(request.table, "on-error") or "fail").lower()
        self._split, self._position = "", 0
        self._refused: list[RejectedRecord] = []

    def begin(self, split: str) -> None:
        """Begin what ``publish`` ends. Repeated, the same rows have the same ``split``: they are stored
        once.
        """
        self._split, self._position, self._refused = split, 0, []

    def accepted(
        self, encode: Callable[[pa.RecordBatch], Records], rows: pa.RecordBatch
    ) -> Iterator[Records]:
        """Yield the records of rows that can be written. DAT-5153 or the format's error for others, where the
        table does not leave them out.
        """
        try:
            records = encode(rows)
        except PenstockError as error:
            if self._policy == "fail" or not error.sqlstate.startswith(_OF_VALUES):
                raise
            if rows.num_rows == 1:
                self._refuse(rows, 0, error.message)
                self._position += 1
                return
            # one bad value fails all of them: it is found by halving
            half = rows.num_rows // 2
            yield from self.accepted(encode, rows.slice(0, half))
            yield from self.accepted(encode, rows.slice(half))
            return
        kept = self._small(records, rows)
        self._position += rows.num_rows
        if len(kept):
            yield kept

    def _small(self, records: Records, rows: pa.RecordBatch) -> Records:
        """Return the records that are small enough."""
        sizes = records.sizes()
        if not len(sizes) or int(sizes.max()) <= self._bytes:
            return records
        large = np.flatnonzero(sizes > self._bytes)
        if self._policy == "fail":
            raise self._too_large(rows, int(large[0]), int(sizes[large[0]]))
        for row in large:
            self._refuse(rows, int(row), self._too_large(rows, int(row), int(sizes[row])).message)
        return records.take(np.flatnonzero(sizes <= self._bytes))

    def _too_large(self, rows: pa.RecordBatch, row: int, size: int) -> PenstockError:
        return PenstockError(
            "DAT-5153",
            f"table {self._table.name}: a record has {size:,} bytes, and {self._bytes:,} may be sent",
            detail=f"its row begins {_shown(rows, row)}",
            hint="raise 'properties.message.max.bytes' and the topic's max.message.bytes, or write "
            "'on-error' = 'skip' or 'table'",
            kind=Kind.USER,
        )

    def _refuse(self, rows: pa.RecordBatch, row: int, reason: str) -> None:
        one = rows.slice(row, 1)
        # the mark of deletions is shown of deletions only: what is left is a row of the table
        if one.schema.names[0] == DELETED and not one.column(0)[0].as_py():
            one = one.select(one.schema.names[1:])
        raw = json_lines(one)[0].as_py().rstrip("\n") if self._policy == "table" else ""
        topic = self._table.options["topic"].strip()
        self._refused.append(RejectedRecord(raw, topic, self._split, self._position + row, None, reason))

    def publish(self) -> None:
        """The records are there: count the rows that are not, and store them for ``on-error`` = table."""
        refused, self._refused = self._refused, []
        if not refused:
            return
        self._request.metrics.count("rows_refused", len(refused))
        if self._policy == "table":
            self._request.services.get(BadRecords).add(self._table.name, refused)

    def too_large_for_topic(self, text: str) -> PenstockError:
        """Return the error of a record that the broker refuses for its size."""
        return PenstockError(
            "DAT-5153",
            f"table {self._table.name}: the topic takes no records of up to {self._bytes:,} bytes",
            detail=text,
            hint="raise the topic's max.message.bytes, or lower 'properties.message.max.bytes' so that the "
            "error names the row",
            kind=Kind.USER,
        )


def _shown(rows: pa.RecordBatch, position: int) -> str:
    """Return the beginning of a row as text; of long values only so much."""
    parts = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        value = str(column[position].as_py())
        parts.append(f"{name} = {value[:40]}{'..' if len(value) > 40 else ''}")
    return ", ".join(parts)[:_SHOWN]
