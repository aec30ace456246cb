"""A consumer that reads messages through the C library, a batch a call.

One client serves all partitions of a subtask. Each partition has a queue of its own, so that one split is
read without the messages of the others. No group is joined: the partitions are the job's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_int, c_int64, c_void_p

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.connectors.kafka.arrival_events import ArrivalEvents
from penstock.engine.connectors.kafka.broker_errors import ConnectionErrors, broker_error
from penstock.engine.connectors.kafka.fetched_messages import (
    BATCH_BYTES,
    HEADERS_TYPE,
    FetchedMessages,
    PartitionError,
    Wanted,
)
from penstock.engine.connectors.kafka.librdkafka import CONSUMER, Librdkafka, Message
from penstock.engine.kernels.kafka_messages import (
    copy_headers,
    copy_messages,
    destroy_messages,
    measure_headers,
    measure_messages,
)

# Messages taken off a queue at once.
TAKEN_MOST = 16_384
_ERROR_CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_int, ctypes.c_char_p, c_void_p)


class NativeConsumer:
    """The client (``rd_kafka_t``). ``properties`` are librdkafka's; ``arrived`` is called by a thread of its
    own when messages come to a partition that had none.
    """

    def __init__(
        self,
        library: Librdkafka,
        properties: dict[str, str],
        wanted: Wanted,
        arrived: Callable[[], None] | None = None,
    ) -> None:
        self.library, self.wanted = library, wanted
        self.errors = ConnectionErrors()
        # kept here: the library calls it for as long as the client is there
        self._callback = _ERROR_CALLBACK(self._on_error)
        self.client = library.client(CONSUMER, properties, self._callback)
        self._topics: dict[str, int] = {}
        self._partitions: list[NativePartition] = []
        self.destroy = library.address("rd_kafka_message_destroy")
        self.functions = np.array(
            [
                library.address("rd_kafka_message_timestamp") if wanted.timestamps else 0,
                library.address("rd_kafka_message_leader_epoch") if wanted.leader_epochs else 0,
            ],
            np.int64,
        )
        self.header_functions = np.array(
            [library.address("rd_kafka_message_headers"), library.address("rd_kafka_header_get_all")],
            np.int64,
        )
        self.events = None if arrived is None else ArrivalEvents(library, arrived)
        # shared by the partitions, which are read by one thread
        self.pointers = np.zeros(TAKEN_MOST, np.int64)

    @property
    def reports_arrivals(self) -> bool:
        return self.events is not None

    def open(self, topic: str, partition: int, offset: int) -> NativePartition:
        """Begin to read a partition. DAT-51xx when the library refuses."""
        if topic not in self._topics:
            handle = self.library.rd_kafka_topic_new(self.client, topic.encode(), None)
            if not handle:
                raise self.last_error(f"topic {topic}")
            self._topics[topic] = handle
        opened = NativePartition(self, self._topics[topic], topic, partition)
        self._partitions.append(opened)
        try:
            opened.begin(offset)
        except PenstockError:
            opened.close()
            raise
        return opened

    def outage(self) -> str | None:
        # serves the callback, too
        self.library.rd_kafka_poll(self.client, 0)
        if (refusal := self.errors.refusal) is not None:
            raise broker_error(*refusal, "brokers")
        return self.errors.take_outage()

    def last_error(self, where: str) -> PenstockError:
        """Return the error of the call that failed last in this thread."""
        return self._error(self.library.rd_kafka_last_error(), where)

    def _error(self, number: int, where: str) -> PenstockError:
        name = self.library.rd_kafka_err2name(number).decode()
        return broker_error(name, self.library.rd_kafka_err2str(number).decode(), where)

    def forget(self, partition: NativePartition) -> None:
        """Forget a partition that is closed."""
        if partition in self._partitions:
            self._partitions.remove(partition)

    def close(self) -> None:
        for partition in tuple(self._partitions):
            partition.close()
        for handle in self._topics.values():
            self.library.rd_kafka_topic_destroy(handle)
        self._topics.clear()
        if self.client:
            self.library.rd_kafka_destroy(self.client)
            self.client = 0
            if self.events is not None:
                self.events.close()

    def _on_error(self, _client: int, number: int, reason: bytes, _opaque: int) -> None:
        name = self.library.rd_kafka_err2name(number).decode()
        self.errors.note(name, (reason or b"").decode(errors="replace"))


class NativePartition:
    """One partition and its queue."""

    def __init__(self, consumer: NativeConsumer, handle: int, topic: str, partition: int) -> None:
        self._consumer, self._library, self._handle = consumer, consumer.library, handle
        self._topic, self._partition = topic, partition
        self._queue = self._library.rd_kafka_queue_new(consumer.client)
        if consumer.events is not None:
            consumer.events.watch(self._queue)
        # pointers to messages that were taken off the queue and not returned yet
        self._taken = np.zeros(0, np.int64)
        self._at = 0
        self._reading = False
        self._low, self._high = c_int64(-1), c_int64(-1)

    @property
    def _where(self) -> str:
        return f"topic {self._topic}, partition {self._partition}"

    def begin(self, offset: int) -> None:
        """Begin to fetch at an offset."""
        started = self._library.rd_kafka_consume_start_queue(
            self._handle, self._partition, offset, self._queue
        )
        if started != 0:
            raise self._consumer.last_error(self._where)
        self._reading = True

    def take(self, most: int) -> FetchedMessages | None:
        if self._at == len(self._taken) and not self._fetch(min(most, TAKEN_MOST)):
            return None
        sizes = np.zeros(3, np.int64)
        end = min(len(self._taken), self._at + most)
        count = measure_messages(self._taken, self._at, end, BATCH_BYTES, sizes)
        if count:
            self._consumer.errors.answered()
        made = self._columns(count, int(sizes[0]), int(sizes[1]))
        destroy_messages(self._taken, self._at, self._at + count, self._consumer.destroy)
        self._at += count
        # what stopped the count is an error, which comes after the messages before it
        error = self._next_error() if self._at < end and count < end and not self._is_row() else None
        return made if error is None else _with_error(made, error)

    def end_offset(self) -> int | None:
        found = self._library.rd_kafka_get_watermark_offsets(
            self._consumer.client,
            self._topic.encode(),
            self._partition,
            ctypes.byref(self._low),
            ctypes.byref(self._high),
        )
        return self._high.value if found == 0 and self._high.value >= 0 else None

    def restart(self, offset: int) -> None:
        self._stop()
        self.begin(offset)

    def close(self) -> None:
        if self._queue:
            self._stop()
            if self._consumer.events is not None:
                self._consumer.events.unwatch(self._queue)
            self._library.rd_kafka_queue_destroy(self._queue)
            self._queue = 0
            self._consumer.forget(self)

    def _stop(self) -> None:
        if self._reading:
            self._library.rd_kafka_consume_stop(self._handle, self._partition)
            self._reading = False
        # what is left on the queue is of the old offset
        while True:
            destroy_messages(self._taken, self._at, len(self._taken), self._consumer.destroy)
            self._at = len(self._taken)
            if not self._fetch(TAKEN_MOST):
                break

    def _fetch(self, most: int) -> bool:
        """Take messages off the queue, without waiting; return whether there were any."""
        pointers = self._consumer.pointers
        count = self._library.rd_kafka_consume_batch_queue(
            self._queue, 0, pointers.ctypes.data_as(ctypes.POINTER(c_void_p)), most
        )
        self._taken, self._at = pointers[: max(0, count)].copy(), 0
        return count > 0

    def _is_row(self) -> bool:
        return Message.from_address(int(self._taken[self._at])).err == 0

    def _next_error(self) -> PartitionError:
        """Return the error that comes next, and destroy its message."""
        address = int(self._taken[self._at])
        message = Message.from_address(address)
        name = self._library.rd_kafka_err2name(message.err).decode()
        text = self._library.rd_kafka_message_errstr(address) or b""
        error = PartitionError(name, text.decode(errors="replace"), message.offset)
        destroy_messages(self._taken, self._at, self._at + 1, self._consumer.destroy)
        self._at += 1
        return error

    def _columns(self, count: int, value_bytes: int, key_bytes: int) -> FetchedMessages:
        wanted = self._consumer.wanted
        key_bytes = key_bytes if wanted.keys else 0
        ends, key_ends = np.zeros(count + 1, np.int32), np.zeros(count + 1, np.int32)
        data, key_data = np.empty(value_bytes, np.uint8), np.empty(key_bytes, np.uint8)
        valid, key_valid = np.empty(count, np.uint8), np.empty(count, np.uint8)
        facts, scratch = np.empty(4 * count, np.int64), np.zeros(3, np.int64)
        at = self._at
        nulls = copy_messages(
            *(self._taken, at, count, self._consumer.functions, ends, data, valid),
            *(key_ends, key_data, key_valid, facts, scratch),
        )
        return FetchedMessages(
            binary_array(ends, data, valid, nulls >> 32),
            facts[:count],
            binary_array(key_ends, key_data, key_valid, nulls & 0xFFFFFFFF) if wanted.keys else None,
            facts[count : 2 * count] if wanted.timestamps else None,
            facts[2 * count : 3 * count] if wanted.timestamps else None,
            facts[3 * count :] if wanted.leader_epochs else None,
            self._headers(count, scratch) if wanted.headers else None,
            (self._epoch(at), self._epoch(at + count - 1)) if count else (-1, -1),
        )

    def _epoch(self, index: int) -> int:
        return int(self._library.rd_kafka_message_leader_epoch(int(self._taken[index])))

    def _headers(self, count: int, scratch: np.ndarray) -> pa.Array:
        sizes, functions = np.zeros(2, np.int64), self._consumer.header_functions
        found = measure_headers(self._taken, self._at, count, functions, sizes, scratch)
        ends, valid = np.zeros(count + 1, np.int32), np.zeros(found, np.uint8)
        name_ends, value_ends = np.zeros(found + 1, np.int32), np.zeros(found + 1, np.int32)
        names, values = np.empty(int(sizes[0]), np.uint8), np.empty(int(sizes[1]), np.uint8)
        nulls = copy_headers(
            *(self._taken, self._at, count, functions, ends),
            *(name_ends, names, value_ends, values, valid, scratch),
        )
        texts = binary_array(name_ends, names, valid, 0).view(pa.string())
        return pa.MapArray.from_arrays(
            array_of(ends), texts, binary_array(value_ends, values, valid, nulls), HEADERS_TYPE
        )


def _with_error(made: FetchedMessages, error: PartitionError) -> FetchedMessages:
    return FetchedMessages(
        *(made.values, made.offsets, made.keys, made.timestamps, made.timestamp_types),
        *(made.leader_epochs, made.headers, made.epochs, error),
    )


def binary_array(ends: np.ndarray, data: np.ndarray, valid: np.ndarray, nulls: int) -> pa.Array:
    """Return a BINARY array of numpy buffers; ``valid`` is a byte each, ``nulls`` how many are 0."""
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(
        pa.binary(), len(ends) - 1, [bits, pa.py_buffer(ends), pa.py_buffer(data)], nulls
    )
