"""The exactly-once target: an epoch is one transaction, which also commits the epoch's number as an offset of
the writer's own group.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from penstock.catalog.connectors.kafka_properties import PROPERTIES
from penstock.catalog.connectors.kafka_sink import ID_PREFIX, PRODUCER_PROPERTIES
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.sink import SinkRequest
from penstock.engine.connectors.kafka.client_properties import client_properties
from penstock.engine.connectors.kafka.native_producer import (
    KafkaFailed,
    KafkaFailure,
    NativeProducer,
    committed_offset,
)
from penstock.engine.connectors.kafka.record_encoder import RecordEncoder, pieces_of, staged_form
from penstock.engine.connectors.kafka.record_limits import RecordLimits
from penstock.engine.connectors.kafka.topic_limit import topic_limit

# librdkafka's own default of transaction.timeout.ms
_TRANSACTION_MS = 60_000
# Java's partitioner; records without a key go to any partition
_PARTITIONER = {"partitioner": "murmur2_random"}
# When no broker is left, librdkafka 2.11 forgets all of them and begins anew. A transaction that is open then
# hangs for ever in send_offsets_to_transaction, whatever its time-out, although the broker is there again.
_RECOVERY = {"metadata.recovery.strategy": "none"}
# what records say whose transaction was given up before they were sent
_DROPPED = frozenset(("_PURGE_QUEUE", "_PURGE_INFLIGHT"))
# what the same rows would be answered in every transaction
_LASTING = frozenset(
    (
        "INVALID_RECORD",
        "INVALID_MSG",
        "INVALID_TIMESTAMP",
        "INVALID_REQUIRED_ACKS",
        "INVALID_CONFIG",
        "POLICY_VIOLATION",
        "UNSUPPORTED_VERSION",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "_INVALID_ARG",
        "_UNSUPPORTED_FEATURE",
    )
)
# A broker that has come back may know the later part of a transaction only: it is begun again.
_FORGOTTEN = KafkaFailure("_ALL_BROKERS_DOWN", "no broker could be reached while a transaction was open")


def producer_properties(table: CatalogTable) -> dict[str, str]:
    """Return the properties of producers of a table."""
    # Java's delivery.timeout.ms; librdkafka's own is 5 minutes
    defaults = {"message.timeout.ms": "120000", "enable.idempotence": "true"}
    return _PARTITIONER | _RECOVERY | defaults | client_properties(table, *PRODUCER_PROPERTIES)


class KafkaTarget:
    """Commits epochs to a topic.

    A writer has a transactional id of its own, which a later attempt fences off. Its group has the same name,
    and nobody else may use it. No transaction is open between two epochs.
    """

    def __init__(self, request: SinkRequest, clock: Clock | None = None) -> None:
        assert request.table is not None, "a Kafka sink has a table"
        self._request, self._table = request, request.table
        self._clock = clock or SystemClock()
        self._topic = request.table.options["topic"].strip()
        self._where = f"table {request.table.name}"
        self._properties = producer_properties(request.table)
        self._transaction_ms = int(
            option(request.table, PROPERTIES + "transaction.timeout.ms") or _TRANSACTION_MS
        )
        # records fail no later than their transaction
        self._properties["message.timeout.ms"] = str(
            min(int(self._properties["message.timeout.ms"]), self._transaction_ms)
        )
        self._properties |= {"enable.idempotence": "true"}
        self._limits = RecordLimits(request, self._properties, topic_limit(request.table))
        self._properties = self._limits.properties
        self._producers: dict[EpochWriter, NativeProducer] = {}
        self._committed: dict[EpochWriter, int] = {}
        self._encoder: RecordEncoder | None = None
        self._broken: PenstockError | None = None
        self.form: StagedForm = staged_form(request.table)

    def _name(self, writer: EpochWriter) -> str:
        return f"{option(self._table, ID_PREFIX)}-{writer.name}"

    def fence(self, writers: list[EpochWriter]) -> None:
        for writer in writers:
            if writer in self._producers:
                continue
            properties = self._properties | {
                "transactional.id": self._name(writer),
                "transaction.timeout.ms": str(self._transaction_ms),
            }
            producer = NativeProducer(self._topic, properties, self._where)
            try:
                if self._encoder is None:
                    self._encoder = RecordEncoder(self._table, self._request.subtask, producer.partitions())
                producer.init_transactions()
            except KafkaFailed as failed:
                producer.close()
                raise self._error(producer, failed.failure) from None
            except PenstockError:
                producer.close()
                raise
            self._producers[writer] = producer

    def last_committed(self, writer: EpochWriter) -> int:
        if self._broken is not None:
            raise self._broken
        known = self._committed.get(writer)
        if known is None:
            # the offset of a transaction that is about to be committed is waited for
            properties = client_properties(self._table) | {
                "group.id": self._name(writer),
                "isolation.level": "read_committed",
            }
            offset, failure = committed_offset(self._topic, properties)
            if failure is not None:
                raise self._error(next(iter(self._producers.values())), failure)
            known = self._committed[writer] = offset or 0
        return known

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        if self._broken is not None:
            raise self._broken
        assert self._encoder is not None, "fence() comes first"
        if writer not in self._producers:
            # of a job that this one was copied from, and which has not committed: our checkpoint has them.
            # Two producers of one id could both commit the rows, so that job is fenced off if it runs.
            self.fence([writer])
            self._committed.pop(writer, None)
            if self.last_committed(writer) >= epoch:
                return
        producer, began_ms = self._producers[writer], self._clock.monotonic_ms()
        # until it is known that this epoch is committed, the brokers are asked
        self._committed.pop(writer, None)
        outages = producer.outages
        self._limits.begin(f"{writer.name}, epoch {epoch}")
        try:
            producer.begin()
            for batch in rows:
                for piece in pieces_of(batch):
                    for records in self._limits.accepted(self._encoder.records, piece):
                        producer.produce(records)
            producer.flush()
            failpoint("K1")
            producer.send_offset(self._name(writer), epoch, f"penstock epoch {epoch}")
            failpoint("K2")
            if producer.outages != outages:
                raise KafkaFailed(_FORGOTTEN)
            producer.commit()
        except KafkaFailed as failed:
            raise self._failed(producer, failed.failure, self._clock.monotonic_ms() - began_ms) from None
        except PenstockError as error:
            # the rows are refused: nothing of the epoch is written
            self._abort(producer)
            raise error
        failpoint("K3")
        # brokers that went away meanwhile may have said yes to a transaction they do not know: they are asked
        if producer.outages != outages and self.last_committed(writer) < epoch:
            raise self._unknown(self._error(producer, _FORGOTTEN))
        self._committed[writer] = epoch
        self._limits.publish()

    def _abort(self, producer: NativeProducer) -> KafkaFailure | None:
        try:
            producer.abort()
        except KafkaFailed as failed:
            return failed.failure
        return None

    def _failed(self, producer: NativeProducer, failure: KafkaFailure, took_ms: float) -> PenstockError:
        """Abort, and return the error of a transaction that failed."""
        if failure.name in _DROPPED:
            failure = producer.cause() or failure
        error = self._error(producer, failure)
        if error.code == "DAT-5105":
            # no broker lets us in any more, so none aborts either; a later start asks them what is committed
            self._broken = error
            return error
        if failure.is_fenced:
            # the broker answers the same when a transaction has been open for too long
            timed_out = took_ms >= self._transaction_ms
            self._broken = self._timed_out(took_ms) if timed_out else self._superseded()
            return self._broken
        # brokers that have restarted may not know the transaction: waiting for them again does not help
        is_lost = failure.fatal or failure.retriable
        aborted = None if is_lost else self._abort(producer)
        if is_lost or aborted is not None:
            # whether it is committed shows only a new producer, which fences this one off: the job restarts
            self._broken = self._unknown(error)
            return self._broken
        if failure is _FORGOTTEN:
            return self._unknown(error)
        # nothing is written; an answer without a sentence of its own is one about this transaction
        if error.code == "DAT-5107" and failure.name not in _LASTING:
            error.retriable = True
        return error

    def _error(self, producer: NativeProducer, failure: KafkaFailure) -> PenstockError:
        if failure.is_fenced:
            return self._superseded()
        if failure.name == "INVALID_TRANSACTION_TIMEOUT":
            return PenstockError(
                "DAT-5152",
                f"{self._where}: the broker permits no transactions of {self._transaction_ms:,} ms",
                detail=failure.text,
                hint="lower 'properties.transaction.timeout.ms', or raise the broker's "
                "transaction.max.timeout.ms",
                kind=Kind.USER,
            )
        if failure.name == "MSG_SIZE_TOO_LARGE":
            return self._limits.too_large_for_topic(failure.text)
        return producer.error(failure)

    def _superseded(self) -> PenstockError:
        message = f"job {self._request.job_id} is superseded: a later attempt writes to {self._where} now"
        hint = "another process has taken the job over, and continues it"
        return PenstockError("STA-3504", message, hint=hint, kind=Kind.EXTERNAL)

    def _timed_out(self, took_ms: float) -> PenstockError:
        return PenstockError(
            "DAT-5151",
            f"{self._where}: the brokers ended a transaction that was open for {took_ms / 1000:.0f} s",
            hint="the job restarts and commits its rows again; raise 'properties.transaction.timeout.ms' "
            "where brokers are slow",
            kind=Kind.EXTERNAL,
            retriable=True,
        )

    def _unknown(self, error: PenstockError) -> PenstockError:
        return PenstockError(
            "DAT-5151",
            f"{self._where}: a transaction failed: {error.message}",
            detail=error.detail,
            hint="the job restarts, asks the brokers, and commits its rows again unless they are there",
            kind=Kind.EXTERNAL,
            retriable=True,
        )

    def retire(self, writer: EpochWriter) -> None:
        """Nothing: brokers forget a group and a transactional id that are not used for a week."""

    def close(self) -> None:
        for producer in self._producers.values():
            producer.close()
        self._producers = {}
