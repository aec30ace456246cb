"""A producer of librdkafka: whole batches of records by one call, and transactions."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from itertools import chain, repeat
from typing import Any

import numpy as np

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.api.threads import EngineThread
from penstock.engine.connectors.kafka.broker_errors import (
    ALL_DOWN,
    ConnectionErrors,
    broker_error,
    may_pass,
    refuses_connection,
    unreachable,
)
from penstock.engine.connectors.kafka.librdkafka import PRODUCER, Librdkafka, Message, load
from penstock.engine.connectors.kafka.producer_records import Records

NEWS = logging.getLogger("penstock.kafka")
FIRST_MS = 5_000
"""A broker that does not answer within so long is told of, and waited for."""
REQUEST_MS = 30_000
"""How long a question to the brokers may take, and so each call that decides about a transaction."""
OFFSET_MS = 15_000
"""How long brokers may take to make an offset a part of a transaction."""
ABORT_MS = 10_000
"""How long an abort may take: a new producer aborts, too."""
_GRACE_MS = 2_000
FAILURES_KEPT = 20
_PAUSE_MS = 200
# Nothing ends a wait for deliveries: those that succeed are not reported. A fast broker takes 1 or 2 ms.
_WAITS_MS = (1, 1, 1, 1, 2, 2, 5, 5, 20)

# flags of rd_kafka_produce_batch: payloads are copied; each message has its partition
_COPY, _PARTITION = 2, 8
_UNKNOWN_OFFSET = -1001
_FENCED = frozenset(("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"))
_DELIVERY = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Message), c_void_p)
_ERROR = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)


class _TopicPartition(Structure):
    """``rd_kafka_topic_partition_t``."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_void_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("err", c_int),
        ("private", c_void_p),
    )


class _TopicMetadata(Structure):
    """``rd_kafka_metadata_topic_t``."""

    _fields_ = (("topic", c_char_p), ("partition_cnt", c_int), ("partitions", c_void_p), ("err", c_int))


class _Metadata(Structure):
    """``rd_kafka_metadata_t``."""

    _fields_ = (
        ("broker_cnt", c_int),
        ("brokers", c_void_p),
        ("topic_cnt", c_int),
        ("topics", POINTER(_TopicMetadata)),
    )


_FUNCTIONS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("rd_kafka_conf_set_dr_msg_cb", None, (c_void_p, _DELIVERY)),
    ("rd_kafka_produce_batch", c_int, (c_void_p, c_int32, c_int, c_void_p, c_int)),
    ("rd_kafka_flush", c_int, (c_void_p, c_int)),
    ("rd_kafka_outq_len", c_int, (c_void_p,)),
    ("rd_kafka_fatal_error", c_int, (c_void_p, c_char_p, c_size_t)),
    ("rd_kafka_metadata", c_int, (c_void_p, c_int, c_void_p, POINTER(POINTER(_Metadata)), c_int)),
    ("rd_kafka_metadata_destroy", None, (POINTER(_Metadata),)),
    ("rd_kafka_init_transactions", c_void_p, (c_void_p, c_int)),
    ("rd_kafka_begin_transaction", c_void_p, (c_void_p,)),
    ("rd_kafka_send_offsets_to_transaction", c_void_p, (c_void_p, c_void_p, c_void_p, c_int)),
    ("rd_kafka_commit_transaction", c_void_p, (c_void_p, c_int)),
    ("rd_kafka_abort_transaction", c_void_p, (c_void_p, c_int)),
    ("rd_kafka_error_name", c_char_p, (c_void_p,)),
    ("rd_kafka_error_string", c_char_p, (c_void_p,)),
    ("rd_kafka_error_is_fatal", c_int, (c_void_p,)),
    ("rd_kafka_error_is_retriable", c_int, (c_void_p,)),
    ("rd_kafka_error_destroy", None, (c_void_p,)),
    ("rd_kafka_mem_malloc", c_void_p, (c_void_p, c_size_t)),
    ("rd_kafka_topic_partition_list_new", c_void_p, (c_int,)),
    ("rd_kafka_topic_partition_list_destroy", None, (c_void_p,)),
    (
        "rd_kafka_topic_partition_list_add",
        POINTER(_TopicPartition),
        (c_void_p, c_char_p, c_int32),
    ),
    ("rd_kafka_consumer_group_metadata_new", c_void_p, (c_char_p,)),
    ("rd_kafka_consumer_group_metadata_destroy", None, (c_void_p,)),
    ("rd_kafka_committed", c_int, (c_void_p, c_void_p, c_int)),
)


@dataclass(frozen=True)
class KafkaFailure:
    """What librdkafka answered: the name and the text of the error. ``fatal``: the client is of no use any
    more.
    """

    name: str
    text: str
    fatal: bool = False
    retriable: bool = False

    @property
    def is_fenced(self) -> bool:
        """Whether the brokers refuse this producer, because a later one has its transactional id or because
        its transaction took too long.
        """
        return self.name in _FENCED


class KafkaFailed(Exception):
    """A call of librdkafka that failed."""

    def __init__(self, failure: KafkaFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def library() -> Librdkafka:
    """Return librdkafka with the functions of producers. DAT-5150 where the package has no library of its
    own; DAT-5100 without the package.
    """
    loaded = load()
    if loaded is None:
        raise PenstockError(
            "DAT-5150",
            "the library librdkafka is not in the installed package confluent-kafka",
            hint="install its wheel: pip install --force-reinstall --only-binary :all: confluent-kafka",
            kind=Kind.USER,
        )
    loaded.bind(_FUNCTIONS)
    return loaded


class NativeProducer:
    """A producer for one topic. One thread calls it at a time.

    ``where``: of what messages speak, such as "table orders". Records that are not delivered are reported by
    ``flush``.
    """

    def __init__(
        self, topic: str, properties: dict[str, str], where: str, clock: Clock | None = None
    ) -> None:
        self._library, self._clock = library(), clock or SystemClock()
        self._topic_name, self._where = topic, where
        self._bootstrap = properties["bootstrap.servers"]
        self._refusal: KafkaFailure | None = None
        self._failures: list[KafkaFailure] = []
        self._failed = 0
        self._outages = 0
        self._errors = ConnectionErrors()
        # kept here: librdkafka calls them as long as the client is there
        self._delivery, self._error = _DELIVERY(self._on_delivery), _ERROR(self._on_error)
        wanted = {
            # what is delivered is not reported: most records cost no callback
            "delivery.report.only.error": "true",
            # the queue is bounded by produce()
            "queue.buffering.max.messages": "0",
            "queue.buffering.max.kbytes": "2147483647",
        }
        self._client = self._library.client(
            PRODUCER, wanted | properties, self._error, configure=self._configure
        )
        self._topic = self._library.rd_kafka_topic_new(self._client, topic.encode(), None)
        # so many records may wait when further ones come: as many as the last chunk could have had
        self._queue_limit = 0
        self._hangs = False

    def _configure(self, conf: int) -> None:
        self._library.rd_kafka_conf_set_dr_msg_cb(conf, self._delivery)

    def _on_delivery(self, _client: int, message: Any, _opaque: int) -> None:
        if message.contents.err:
            self._failed += 1
            if len(self._failures) < FAILURES_KEPT:
                self._failures.append(self._failure_of(message.contents.err))

    def _on_error(self, _client: int, number: int, reason: bytes, _opaque: int) -> None:
        name = self._library.rd_kafka_err2name(number).decode()
        text = (reason or b"").decode(errors="replace")
        self._errors.note(name, text)
        if name == ALL_DOWN:
            self._outages += 1
        elif refuses_connection(name, text):
            self._refusal = KafkaFailure("_SSL" if may_pass(name) else name, text)

    @property
    def outages(self) -> int:
        """How often no broker was left."""
        # serves the callback
        self._library.rd_kafka_poll(self._client, 0)
        return self._outages

    def _failure_of(self, code: int) -> KafkaFailure:
        lib = self._library
        return KafkaFailure(lib.rd_kafka_err2name(code).decode(), lib.rd_kafka_err2str(code).decode())

    def partitions(self) -> int:
        """Return how many partitions the topic has. DAT-5103 when there is no such topic, DAT-5102 when no
        broker answers, DAT-5105 when all refuse the connection.
        """
        found = POINTER(_Metadata)()
        lib, first_ms = self._library, min(FIRST_MS, REQUEST_MS)
        for wait_ms in (first_ms, REQUEST_MS - first_ms):
            code = lib.rd_kafka_metadata(self._client, 0, self._topic, ctypes.byref(found), wait_ms)
            lib.rd_kafka_poll(self._client, 0)
            if not code:
                break
            failure = self._refusal or self._failure_of(code)
            if wait_ms != first_ms or not may_pass(failure.name):
                raise self.error(failure)
            NEWS.warning("no broker of %s answers; waiting up to %g s", self._bootstrap, REQUEST_MS / 1000)
        try:
            topic = found.contents.topics[0]
            if topic.err:
                raise self.error(self._failure_of(topic.err))
            return int(topic.partition_cnt)
        finally:
            lib.rd_kafka_metadata_destroy(found)

    def produce(self, records: Records) -> None:
        """Take records over: they are copied, and are sent by threads of librdkafka. It waits while many
        records are not delivered yet.
        """
        for start, stop in records.chunks():
            piece = Records(
                records.values.slice(start, stop - start),
                None if records.keys is None else records.keys.slice(start, stop - start),
                None if records.partitions is None else records.partitions[start:stop],
                None if records.timestamps is None else records.timestamps[start:stop],
                None if records.headers is None else records.headers.slice(start, stop - start),
            )
            # about two chunks wait in librdkafka at most: a slow broker slows the query
            self._await(self._may_send)
            self._queue_limit = piece.records_of_a_chunk()
            self._enqueue(piece)

    def _may_send(self, wait_ms: int) -> bool:
        if self._library.rd_kafka_outq_len(self._client) > self._queue_limit:
            self._library.rd_kafka_poll(self._client, wait_ms)
        return bool(self._library.rd_kafka_outq_len(self._client) <= self._queue_limit)

    def _is_flushed(self, wait_ms: int) -> bool:
        return bool(self._library.rd_kafka_flush(self._client, wait_ms) == 0)

    def _enqueue(self, piece: Records) -> None:
        if not piece.are_plain:
            from penstock.engine.connectors.kafka.record_headers import enqueue_each

            self._check(enqueue_each(self._library, self._client, self._topic, piece))
            return
        messages = piece.messages()
        has_partition = messages["partition"] >= 0
        # one call for those whose partition is known, one for those whose partition is chosen
        for chosen, flags in ((~has_partition, _COPY), (has_partition, _COPY | _PARTITION)):
            part = np.ascontiguousarray(messages[chosen])
            if len(part):
                self._library.rd_kafka_produce_batch(self._topic, -1, flags, part.ctypes.data, len(part))
                self._check(part["err"])

    def _check(self, codes: np.ndarray) -> None:
        """Raise the first error of records that librdkafka did not take."""
        refused = np.flatnonzero(codes)
        if len(refused):
            raise KafkaFailed(self._fatal() or self._failure_of(int(codes[refused[0]])))

    def flush(self) -> None:
        """Wait until all records are delivered. Raises KafkaFailed when some are not, and never will be."""
        self._await(self._is_flushed)
        self._errors.answered()

    def _await(self, reached: Callable[[int], bool]) -> None:
        """Wait until ``reached`` is true, which waits itself for so many milliseconds at most."""
        # records that are not delivered in time fail: it ends
        for wait_ms in chain(_WAITS_MS, repeat(_WAITS_MS[-1])):
            if reached(wait_ms):
                break
            self._library.rd_kafka_poll(self._client, 0)
            self._raise_failures()
            # nothing is delivered by waiting for a broker that refuses us
            if (refusal := self._errors.refusal) is not None:
                raise KafkaFailed(KafkaFailure(*refusal))
        self._library.rd_kafka_poll(self._client, 0)
        self._raise_failures()

    def _raise_failures(self) -> None:
        if self._failed:
            failure, self._failures, self._failed = self._failures[0], [], 0
            # after a fatal error all records fail because they are purged: that error is raised
            raise KafkaFailed(self._fatal() or failure)

    def _fatal(self) -> KafkaFailure | None:
        text = ctypes.create_string_buffer(512)
        code = self._library.rd_kafka_fatal_error(self._client, text, len(text))
        if not code:
            return None
        name = self._library.rd_kafka_err2name(code).decode()
        return KafkaFailure(name, text.value.decode(errors="replace"), fatal=True)

    def forget_failures(self) -> None:
        """Forget records that failed: their transaction is aborted."""
        self._failures, self._failed = [], 0

    def init_transactions(self) -> None:
        """Fence off earlier producers of the transactional id, and wait for the end of their transaction."""
        self._call(lambda ms: self._library.rd_kafka_init_transactions(self._client, ms), REQUEST_MS)

    def begin(self) -> None:
        """Begin a transaction."""
        self._call(lambda _: self._library.rd_kafka_begin_transaction(self._client), 0)

    def send_offset(self, group: str, offset: int, metadata: str) -> None:
        """Make an offset of partition 0 a part of the transaction.

        librdkafka may never return from this call (its issue 5511: the broker of the group is dropped from
        the list of brokers). Then it raises after ``OFFSET_MS`` all the same, and the client is of no use any
        more.
        """
        answers: list[KafkaFailed | None] = []

        def send() -> None:
            try:
                self._send_offset(group, offset, metadata)
            except KafkaFailed as failed:
                answers.append(failed)
            else:
                answers.append(None)

        thread = EngineThread(send, "kafka offset")
        thread.start()
        thread.join((OFFSET_MS + _GRACE_MS) / 1000)
        if not answers:
            self._hangs = True
            text = "librdkafka does not return from rd_kafka_send_offsets_to_transaction"
            raise KafkaFailed(KafkaFailure("_TIMED_OUT", text, retriable=True))
        if answers[0] is not None:
            raise answers[0]

    def _send_offset(self, group: str, offset: int, metadata: str) -> None:
        lib = self._library
        offsets = lib.rd_kafka_topic_partition_list_new(1)
        member = lib.rd_kafka_consumer_group_metadata_new(group.encode())
        try:
            entry = lib.rd_kafka_topic_partition_list_add(offsets, self._topic_name.encode(), 0).contents
            entry.offset, text = offset, metadata.encode()
            # the list frees it: it must be memory of librdkafka
            entry.metadata = lib.rd_kafka_mem_malloc(None, len(text))
            entry.metadata_size = len(text)
            ctypes.memmove(entry.metadata, text, len(text))
            self._call(
                lambda _: lib.rd_kafka_send_offsets_to_transaction(self._client, offsets, member, OFFSET_MS),
                0,
            )
        finally:
            lib.rd_kafka_topic_partition_list_destroy(offsets)
            lib.rd_kafka_consumer_group_metadata_destroy(member)

    def commit(self) -> None:
        """Commit the transaction."""
        self._call(lambda ms: self._library.rd_kafka_commit_transaction(self._client, ms), REQUEST_MS)

    def abort(self) -> None:
        """Abort the transaction."""
        self._call(lambda ms: self._library.rd_kafka_abort_transaction(self._client, ms), ABORT_MS)
        self.forget_failures()

    def cause(self) -> KafkaFailure | None:
        """Return why the transaction must be aborted, ``None`` when it need not. Its records only say that
        they were dropped.
        """
        try:
            # refused in every state but the one between two transactions, with the reason of the state
            self.begin()
        except KafkaFailed as failed:
            return None if failed.failure.name == "_STATE" else failed.failure
        return None

    def _call(self, function: Callable[[int], int | None], within_ms: int) -> None:
        """Call what takes a time-out and returns ``rd_kafka_error_t``, again while it may pass and there is
        time. Raises KafkaFailed.
        """
        # a call that timed out may be resumed by the same call: brokers that restart are waited for
        lib, ends_ms = self._library, self._clock.monotonic_ms() + within_ms
        while (error := function(max(1, int(ends_ms - self._clock.monotonic_ms())))) is not None:
            failure = KafkaFailure(
                lib.rd_kafka_error_name(error).decode(),
                lib.rd_kafka_error_string(error).decode(errors="replace"),
                bool(lib.rd_kafka_error_is_fatal(error)),
                bool(lib.rd_kafka_error_is_retriable(error)),
            )
            lib.rd_kafka_error_destroy(error)
            if not failure.retriable or self._clock.monotonic_ms() + _PAUSE_MS >= ends_ms:
                raise KafkaFailed(failure)
            lib.rd_kafka_poll(self._client, _PAUSE_MS)

    def error(self, failure: KafkaFailure) -> PenstockError:
        """Return the error of a failure for people."""
        if may_pass(failure.name) or failure.name == "_MSG_TIMED_OUT":
            return unreachable(self._bootstrap, REQUEST_MS / 1000, failure.text)
        error = broker_error(failure.name, failure.text, f"{self._where}, topic {self._topic_name}")
        # a new producer has new sequence numbers: the job restarts with one
        error.retriable = error.retriable or (failure.fatal and error.code == "DAT-5107")
        return error

    def close(self) -> None:
        """Close it; records that are not delivered are dropped. A transaction stays open until its time-out,
        or until the next producer begins.
        """
        # a client that hangs would never be destroyed: it stays until the process ends
        if self._client and not self._hangs:
            self._library.rd_kafka_topic_destroy(self._topic)
            self._library.rd_kafka_destroy(self._client)
        self._client = 0


def committed_offset(topic: str, properties: dict[str, str]) -> tuple[int | None, KafkaFailure | None]:
    """Return the offset that a group (``group.id``) has committed for partition 0, ``None`` for none; or why
    it is not known.
    """
    from penstock.engine.connectors.kafka.librdkafka import CONSUMER

    lib = library()
    client = lib.client(CONSUMER, properties | {"enable.auto.commit": "false"})
    offsets = lib.rd_kafka_topic_partition_list_new(1)
    try:
        entry = lib.rd_kafka_topic_partition_list_add(offsets, topic.encode(), 0)
        code = lib.rd_kafka_committed(client, offsets, REQUEST_MS) or entry.contents.err
        if code:
            name, text = lib.rd_kafka_err2name(code).decode(), lib.rd_kafka_err2str(code).decode()
            return None, KafkaFailure(name, text)
        offset = int(entry.contents.offset)
        return (None if offset == _UNKNOWN_OFFSET else offset), None
    finally:
        lib.rd_kafka_topic_partition_list_destroy(offsets)
        lib.rd_kafka_destroy(client)
