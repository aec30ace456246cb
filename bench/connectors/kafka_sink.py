"""Rows to Kafka: ``python -m bench.connectors.kafka_sink [records|transactions|latency]``: all of them without a word.

The broker is the one of the tests, in a process of its own. Figures are processor time of the writing process, all
threads, so that a slow broker does not count. Latency is from one topic through a job to another one: see
``bench.connectors.kafka_latency``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from bench.connectors import kafka_latency
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.kafka.native_producer import NativeProducer
from penstock.engine.connectors.kafka.producer_records import Records
from penstock.engine.connectors.kafka.sink import KafkaSink
from penstock.engine.connectors.kafka.target import KafkaTarget
from tests.harness.kafka_broker import KafkaBroker, KafkaTopics, new_broker

ROWS, BATCH = 200_000, 10_000
SCHEMA = Schema((Field("k", BIGINT), Field("v", STRING)))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def processor_s(act: Callable[[], None]) -> tuple[float, float]:
    """Return the processor time of an act: all threads of this process, and the calling one."""
    began, own_began = time.process_time(), time.thread_time()
    act()
    return time.process_time() - began, time.thread_time() - own_began


def batches() -> list[pa.RecordBatch]:
    """Return rows whose JSON has about 130 bytes."""
    texts = pa.array([f"row {n} {'x' * 90}" for n in range(BATCH)])
    return [
        pa.record_batch({"k": pa.array(np.arange(start, start + BATCH)), "v": texts})
        for start in range(0, ROWS, BATCH)
    ]


def records(topics: KafkaTopics) -> None:
    """Values and keys that are there already: the way of each producer into librdkafka and to the broker."""
    from confluent_kafka import Producer

    values = pa.array([b'{"k":%d,"v":"%s"}' % (n, b"x" * 115) for n in range(ROWS)], pa.binary())
    keys = pa.array([b"%d" % (n % 1000) for n in range(ROWS)], pa.binary())
    properties = {"bootstrap.servers": topics.bootstrap, "compression.type": "lz4", "log_level": "0"}
    stamps = np.full(ROWS, 1_795_000_000_000)

    def native(with_timestamps: bool) -> None:
        producer = NativeProducer(topics.create(partitions=3), properties, "bench")
        for start in range(0, ROWS, BATCH):
            piece = Records(
                values.slice(start, BATCH),
                keys.slice(start, BATCH),
                None,
                stamps[start : start + BATCH] if with_timestamps else None,
            )
            producer.produce(piece)
        producer.flush()
        producer.close()

    def package() -> None:
        topic, producer = topics.create(partitions=3), Producer(properties)
        for start in range(0, ROWS, BATCH):
            pairs = zip(
                values.slice(start, BATCH).to_pylist(), keys.slice(start, BATCH).to_pylist(), strict=True
            )
            for value, key in pairs:
                while True:
                    try:
                        producer.produce(topic, value, key)
                        break
                    except BufferError:
                        producer.poll(0.05)
        producer.flush()

    for name, act in (
        ("produce() of the package, a call a record", package),
        ("whole batches", lambda: native(False)),
        ("records with timestamps", lambda: native(True)),
    ):
        act()
        seconds, own = min(processor_s(act) for _ in range(3))
        say(
            f"{name:45} {ROWS / seconds / 1e6:6.2f} M records/s of processor time, "
            f"{ROWS / own / 1e6:.2f} M of the calling thread"
        )


def request(topics: KafkaTopics) -> SinkRequest:
    options = {
        "connector": "kafka",
        "topic": topics.create(partitions=3),
        "properties.bootstrap.servers": topics.bootstrap,
        "properties.compression.type": "lz4",
        "format": "json",
    }
    table = CatalogTable("t", SCHEMA, SCHEMA, options)
    return SinkRequest(table, SCHEMA, None, "s1", "j", 0, 1, Services(), owner=str(time.time_ns()))


def transactions(topics: KafkaTopics) -> None:
    """Rows as JSON, written as they come, and in one transaction a batch."""
    rows = batches()
    wall: dict[str, float] = {}

    def direct() -> None:
        sink = KafkaSink(request(topics))
        began = time.perf_counter()
        for number, batch in enumerate(rows):
            sink.write(Batch(batch))
            sink.prepare(number)
        wall["direct"] = time.perf_counter() - began
        sink.close()

    def transactional() -> None:
        target, writer = KafkaTarget(request(topics)), EpochWriter("job", str(time.time_ns()), 0)
        target.fence([writer])
        began = time.perf_counter()
        for number, batch in enumerate(rows, 1):
            target.commit(writer, number, [batch])
        wall["transactional"] = time.perf_counter() - began
        target.close()

    for name, act in (("direct", direct), ("transactional", transactional)):
        act()
        seconds, _own = min(processor_s(act) for _ in range(3))
        each = wall[name] / len(rows) * 1000
        say(
            f"{name:15} {ROWS / seconds / 1e6:6.2f} M rows/s of processor time, "
            f"{each:.1f} ms a batch of {BATCH:,} rows until it is delivered"
        )


def main() -> None:
    """Print the figures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.connectors.kafka_sink", description=__doc__)
    parser.add_argument("which", nargs="*", help="records, transactions, latency (all)")
    kafka_latency.add_options(parser)
    arguments = parser.parse_args()
    which = arguments.which or ["records", "transactions", "latency"]
    if "latency" in which:
        kafka_latency.latency(arguments)
    if which == ["latency"]:
        return
    broker: KafkaBroker = new_broker()
    topics = KafkaTopics(broker.bootstrap)
    if "records" in which:
        records(topics)
    if "transactions" in which:
        transactions(topics)


if __name__ == "__main__":
    main()
