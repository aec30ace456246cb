"""The sink of one topic: rows are published as they come, at least once."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pyarrow as pa

from penstock.catalog.connectors.message_formats import emits_message_changes, value_format
from penstock.catalog.connectors.mqtt import topics_of
from penstock.catalog.connectors.registry import option
from penstock.engine.api.sink import DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.api.threads import EngineThread
from penstock.engine.changelog.row_kinds import change_rows, with_op_column, without_op_column
from penstock.engine.connectors.mqtt.client import MqttConnection
from penstock.engine.formats.messages.registry import serializer

# messages that are published before the broker's answers are waited for: with each answer the library looks
# at all of them
_UNANSWERED = 200


class MqttSink(DirectSink):
    """Publishes rows, and returns once the broker has answered for them, which it does not for ``qos`` 0.

    After a failure rows since the last checkpoint are published again: a broker stores no checkpoint.
    """

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a topic has a table"
        table = self._table = request.table
        self._request = request
        self._topic = topics_of(dict(table.options))[0]
        self._qos, self._retain = int(str(option(table, "qos"))), bool(option(table, "sink.retain"))
        self._changes = emits_message_changes(table.options)
        self._serializer = serializer(value_format(table.options), table.physical_fields, self._topic)
        self._names = [field.name for field in table.physical_fields]
        named = table.options.get("client-id")
        # a writer has a session of its own, beside that of a reader of the same table
        client_id = f"penstock-{uuid4().hex[:14]}" if named is None else f"{named}-sink-{request.subtask}"
        self._connection: MqttConnection | None = None
        self._client_id = client_id
        self._refused: str | None = None

    def recover(self, pending: list[Any]) -> None:
        """Connect. DAT-6001 and DAT-6002."""
        self._connected()

    def _connected(self) -> MqttConnection:
        if self._connection is None:
            made = MqttConnection(self._table, self._client_id, keeps=False)
            made.client.on_publish = self._answered
            made.connect()
            # the library connects again by itself, and sends again what was not answered
            EngineThread(target=made.client.loop_forever, name=f"mqtt {self._topic}").start()
            self._connection = made
        return self._connection

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        values = self._values(batch)
        for first in range(0, len(values), _UNANSWERED):
            self._publish(values.slice(first, _UNANSWERED).to_pylist())
        self._request.metrics.count("rows_committed", len(values))

    def _values(self, batch: Batch) -> pa.Array:
        if not self._changes:
            rows = pa.RecordBatch.from_arrays(batch.rows.columns, names=self._names)
            return self._serializer.serialize(Batch(rows))
        rows = with_op_column(*change_rows(batch, self._request.upsert_key))
        return self._serializer.serialize(without_op_column(rows, self._names))

    def _publish(self, values: list[bytes]) -> None:
        connection = self._connected()
        sent = [connection.client.publish(self._topic, value, self._qos, self._retain) for value in values]
        for message in sent:
            try:
                message.wait_for_publish(connection.timeout_s)
                published = message.is_published()
            except RuntimeError:
                # the connection is away
                published = False
            if not published:
                raise connection.unanswered("it did not answer for a message")
        if self._refused is not None:
            raise connection.refused(f"topic {self._topic}: {self._refused}")

    def _answered(self, _client: Any, _data: Any, _number: int, reason: Any, _properties: Any) -> None:
        # version 5 has answers that refuse a message; the library counts it as published all the same
        if reason.is_failure:
            self._refused = str(reason)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
