"""The writers of Kafka tables: exactly once by transactions, or at least once as rows come."""

from __future__ import annotations

import pyarrow as pa

from penstock.catalog.connectors.kafka_sink import AT_LEAST_ONCE, DELIVERY_GUARANTEE, EXACTLY_ONCE
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.epoch_target import DELETED, StagedForm
from penstock.engine.api.sink import Committable, DirectSink, SinkRequest, SinkWriter, writer_name
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import DELETE, UPDATE_BEFORE, change_rows, keyed_rows, with_op_column
from penstock.engine.connectors.epoch_sink import EpochSink
from penstock.engine.connectors.kafka.native_producer import KafkaFailed, NativeProducer
from penstock.engine.connectors.kafka.record_encoder import RecordEncoder, pieces_of, staged_form
from penstock.engine.connectors.kafka.record_limits import RecordLimits
from penstock.engine.connectors.kafka.target import KafkaTarget, producer_properties
from penstock.engine.connectors.kafka.topic_limit import topic_limit


def kafka_sink(request: SinkRequest) -> SinkWriter:
    """Return the writer of one subtask: exactly once where the table says so, or says nothing and the job
    keeps checkpoints.
    """
    assert request.table is not None, "a Kafka sink has a table"
    chosen = option(request.table, DELIVERY_GUARANTEE)
    guarantee = str(chosen).lower() if chosen else EXACTLY_ONCE if request.resumes else AT_LEAST_ONCE
    if guarantee == EXACTLY_ONCE:
        return EpochSink(request, KafkaTarget(request))
    return KafkaSink(request)


class KafkaSink(DirectSink):
    """Sends rows as they come. A checkpoint waits until all rows before it are delivered, so after a restart
    rows are there at least once.
    """

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a Kafka sink has a table"
        self._request = request
        self._form = staged_form(request.table)
        properties = producer_properties(request.table)
        self._limits = RecordLimits(request, properties, topic_limit(request.table))
        self._producer = NativeProducer(
            request.table.options["topic"].strip(), self._limits.properties, f"table {request.table.name}"
        )
        self._encoder: RecordEncoder | None = None
        self._name = f"{writer_name(request.owner, request.operator_id)}-{request.subtask}"
        self._begin(request.origin.checkpoint_id if request.origin is not None else 0)

    def _begin(self, checkpoint_id: int) -> None:
        self._limits.begin(f"{self._name}, after checkpoint {checkpoint_id}")

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        assert self._request.table is not None
        try:
            if self._encoder is None:
                self._encoder = RecordEncoder(
                    self._request.table, self._request.subtask, self._producer.partitions()
                )
            for rows in pieces_of(self._in_form(batch)):
                for records in self._limits.accepted(self._encoder.records, rows):
                    self._producer.produce(records)
                    self._request.metrics.count("records_sent", len(records))
        except KafkaFailed as failed:
            raise self._error(failed) from None

    def _in_form(self, batch: Batch) -> pa.RecordBatch:
        if self._form is StagedForm.INSERTS:
            return batch.rows
        schema = pa.schema([pa.field(DELETED, pa.bool_()), *batch.rows.schema])
        if self._request.upserts:
            rows, gone = keyed_rows(batch, self._request.upsert_key, upserts=True)
            return pa.RecordBatch.from_arrays([array_of(gone), *rows.columns], schema=schema)
        rows, ops = change_rows(batch, self._request.upsert_key)
        if self._form is StagedForm.CHANGES:
            return with_op_column(rows, ops)
        # an update is one record: the row before it needs no tombstone
        kept = array_of(ops != UPDATE_BEFORE)
        deleted = array_of(ops == DELETE)
        return pa.RecordBatch.from_arrays([deleted, *rows.columns], schema=schema).filter(kept)

    def _error(self, failed: KafkaFailed) -> PenstockError:
        if failed.failure.name == "MSG_SIZE_TOO_LARGE":
            return self._limits.too_large_for_topic(failed.failure.text)
        return self._producer.error(failed.failure)

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        self._flush()
        self._begin(checkpoint_id)
        return []

    def end(self) -> None:
        self._flush()

    def _flush(self) -> None:
        try:
            self._producer.flush()
        except KafkaFailed as failed:
            raise self._error(failed) from None
        self._limits.publish()

    def close(self) -> None:
        self._producer.close()
