"""Records that are too large for a topic: refused with their row, or left out where the table says so."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.sink import SinkRequest
from penstock.engine.connectors.kafka.producer_records import Records

# librdkafka's default of message.max.bytes
_DEFAULT_BYTES = 1_000_000
_SHOWN = 200


class RecordLimits:
    """The size that a producer sends at most, key and value together."""

    def __init__(self, request: SinkRequest, properties: dict[str, str]) -> None:
        assert request.table is not None, "a Kafka sink has a table"
        self._table, self._metrics = request.table, request.metrics
        self._bytes = int(properties.get("message.max.bytes", _DEFAULT_BYTES))
        self._policy = str(option(request.table, "on-error") or "fail").lower()

    def within(self, records: Records, rows: pa.RecordBatch) -> Records:
        """Return the records that can be sent. DAT-5153 names the first row that cannot; with 'on-error' =
        'skip' such rows are left out and counted.
        """
        sizes = records.sizes()
        if not len(sizes) or int(sizes.max()) <= self._bytes:
            return records
        large = sizes > self._bytes
        if self._policy == "skip":
            self._metrics.count("rows_refused", int(large.sum()))
            return records.take(np.flatnonzero(~large))
        first = int(np.flatnonzero(large)[0])
        raise PenstockError(
            "DAT-5153",
            f"table {self._table.name}: a record has {int(sizes[first]):,} bytes, and "
            f"{self._bytes:,} may be sent",
            detail=f"its row begins {_shown(rows, first)}",
            hint="raise 'properties.message.max.bytes' and the topic's max.message.bytes, or write "
            "'on-error' = 'skip'",
            kind=Kind.USER,
        )

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
