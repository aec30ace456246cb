"""The target of rows sent to an HTTP server. Requests of an epoch carry keys that are the same when they are
sent again.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.message_formats import emits_message_changes, value_format
from penstock.catalog.connectors.registry import option
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import without_op_column
from penstock.engine.connectors.http.http_client import HttpClient
from penstock.engine.formats.messages.registry import serializer

_JSON = ("json", "debezium-json", "maxwell-json", "canal-json", "ogg-json")
_TYPES = {"csv": "text/csv"} | dict.fromkeys(_JSON, "application/json")


class WebhookTarget:
    """Sends the rows of an epoch once its checkpoint is complete.

    A server stores no epoch, so after a crash the requests of the last one are sent again: at least once.
    Each has an ``Idempotency-Key`` that is the same then; a server that heeds it takes each row once.
    """

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a webhook has a table"
        table = request.table
        self._changes = emits_message_changes(table.options)
        self.form = StagedForm.CHANGES if self._changes else StagedForm.INSERTS
        self._format = value_format(table.options)
        self._serializer = serializer(self._format, table.physical_fields, f"{table.name}-value")
        self._client = HttpClient(table, request.metrics)
        self._method = str(option(table, "sink.method")).upper()
        self._body = str(option(table, "sink.body"))
        self._rows = 1 if self._body == "single" else int(str(option(table, "sink.request.max-rows")))
        self._names = [field.name for field in table.physical_fields]

    def fence(self, writers: list[EpochWriter]) -> None:
        """Nothing: a server knows no writers. A zombie's requests have the keys of ours."""

    def last_committed(self, writer: EpochWriter) -> int:
        return 0

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        number = 0
        for batch in rows:
            values = self._serializer.serialize(self._as_changes(batch))
            for first in range(0, len(values), self._rows):
                # the same rows are cut alike when they are sent again
                headers = {
                    "Content-Type": self._content_type,
                    "Idempotency-Key": f"{writer.name}-{epoch}-{number}",
                }
                body = request_body(values.slice(first, self._rows), self._body)
                self._client.request(self._method, headers, body).body()
                failpoint("S5")
                number += 1

    def _as_changes(self, batch: pa.RecordBatch) -> Batch:
        if self._changes:
            return without_op_column(batch, self._names)
        return Batch(pa.RecordBatch.from_arrays(batch.columns, names=self._names))

    @property
    def _content_type(self) -> str:
        if self._body == "lines":
            return "application/x-ndjson" if self._format.name != "csv" else "text/csv"
        return _TYPES.get(self._format.name, "application/octet-stream")

    def retire(self, writer: EpochWriter) -> None:
        """Nothing: the server has stored nothing of it."""

    def close(self) -> None:
        self._client.close()


def request_body(values: pa.Array, form: str) -> bytes:
    """Return the values of some rows as one body: ``array``, ``lines`` or ``single`` of one value."""
    if form == "single":
        return bytes(values[0].as_py())
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values.cast(pa.binary()))
    joined = bytes(pc.binary_join(whole, b"," if form == "array" else b"\n")[0].as_py())
    return b"[" + joined + b"]" if form == "array" else joined + b"\n"
