"""Rows to Kafka: ``python -m bench.kafka_sink [records|transactions|latency]``: all of them without a word.

The broker is the one of the tests, in a process of its own. Figures are processor time of the writing process, all
threads, so that a slow broker does not count. Latency is from one topic through a job to another one, measured by
the stock client.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

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
from tests.harness.kafka_mock import MockCluster

_QUIET = 100  # so often nothing has come: it is the end
ROWS, BATCH = 200_000, 10_000
# the mock keeps 5 MiB of a partition
MOCK_PARTITIONS = 8
SCHEMA = Schema((Field("k", BIGINT), Field("v", STRING)))
SCRIPT = """
CREATE TABLE i (sent BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', {broker}, 'scan.startup.mode' = 'earliest-offset', 'properties.fetch.wait.max.ms' = '10');
CREATE TABLE o (sent BIGINT) WITH ('connector' = 'kafka', 'topic' = '{sink}', {broker}, 'sink.delivery-guarantee' = '{guarantee}'{more});
INSERT INTO o SELECT sent FROM i;
"""


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


def latency(topics: KafkaTopics, rate: int, seconds: int) -> None:
    """One topic to another through ``penstock run``, at each guarantee; without transactions also at
    librdkafka's mock, which hands on what comes in as fast as it comes. Beside them the stock client alone: one
    topic without a job, and a process of the client that copies records from one topic to the other.
    """
    _bare(topics, (topics.create(), topics.create(), topics.create()), Load(rate, seconds, 20))
    for guarantee, interval in (("at-least-once", "10 s"), ("exactly-once", "100 ms")):
        _of_a_job(topics, (topics.create(), topics.create()), (guarantee, interval), Load(rate, seconds, 20))
    mock = MockCluster()
    for topic in ("one", "c", "d", "i", "o", "e", "f"):
        mock.create(topic, MOCK_PARTITIONS)
    say("the mock instead of the broker of the tests:")
    at_mock = KafkaTopics(mock.bootstrap)
    _bare(at_mock, ("one", "c", "d"), Load(rate, seconds, 5))
    _of_a_job(at_mock, ("i", "o"), ("at-least-once", "10 s"), Load(rate, seconds, 5))
    _of_a_job(at_mock, ("e", "f"), ("at-least-once", "10 s"), Load(rate, seconds, 1))
    mock.close()


@dataclass(frozen=True)
class Load:
    """Records a second, how long, and the linger of the producer that makes them; with 1 ms that of the job too."""

    rate: int
    seconds: int
    linger_ms: int


def _bare(topics: KafkaTopics, names: tuple[str, str, str], load: Load) -> None:
    """The stock client alone: what the broker, the client and the measuring itself take."""
    one, source, sink = names
    _say("no job, one topic", load, _measured(topics, one, one, load))
    words = [sys.executable, "-m", "bench.kafka_sink", "copy", topics.bootstrap, source, sink]
    copying = subprocess.Popen(words)
    try:
        times = _measured(topics, source, sink, load)
    finally:
        used_s = _killed(copying)
    _say("stock client", load, times, used_s)


def copy(bootstrap: str, source: str, sink: str) -> None:
    """Copy records as they come, by the stock client's own calls, until the process is killed."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "copy", "fetch.wait.max.ms": 10, "log_level": 0}
    )
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    partitions = consumer.list_topics(source, 30).topics[source].partitions
    consumer.assign([TopicPartition(source, partition, 0) for partition in partitions])
    while True:
        for message in _arrived(consumer):
            producer.produce(sink, message.value())
        producer.poll(0)


def _arrived(consumer: Any) -> list[Any]:
    """Return the messages that are there, of which the first is waited for; no time is spent on gathering."""
    first = consumer.poll(0.005)
    found = [] if first is None else [first, *consumer.consume(10_000, 0)]
    return [message for message in found if message.error() is None]


def _killed(process: subprocess.Popen[bytes]) -> float:
    """Kill a process and return the processor time it has used."""
    process.kill()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = -9
    return used.ru_utime + used.ru_stime


def _of_a_job(topics: KafkaTopics, names: tuple[str, str], how: tuple[str, str], load: Load) -> None:
    (source, sink), (guarantee, interval) = names, how
    more = ", 'properties.linger.ms' = '1'" if load.linger_ms == 1 else ""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        script = directory / "job.sql"
        broker = f"'properties.bootstrap.servers' = '{topics.bootstrap}', 'format' = 'json'"
        script.write_text(
            SCRIPT.format(source=source, sink=sink, broker=broker, guarantee=guarantee, more=more),
            encoding="utf-8",
        )
        words = ["run", str(script), "--state", str(directory / "state")]
        words += ["--set", f"execution.checkpointing.interval={interval}"]
        with (directory / "log").open("wb") as log:
            job = subprocess.Popen(
                [sys.executable, "-m", "penstock.repl.cli", *words], stdout=log, stderr=log
            )
        try:
            while b"running" not in (directory / "log").read_bytes() and job.poll() is None:
                time.sleep(0.05)
            times = _measured(topics, source, sink, load)
            assert times.size, (directory / "log").read_text()
        finally:
            used_s = _killed(job)
        _say(guarantee, load, times, used_s)


def _say(name: str, load: Load, times: np.ndarray, used_s: float | None = None) -> None:
    quantiles = ", ".join(f"p{q} {np.percentile(times, q):.1f} ms" for q in (50, 99))
    used = "" if used_s is None else f"; {used_s:.1f} s of processor time of its process, start included"
    say(
        f"{name:20} linger {load.linger_ms:2} ms, {load.rate:,} records/s: {quantiles} of {times.size:,} records{used}"
    )


def _measured(topics: KafkaTopics, source: str, sink: str, load: Load) -> np.ndarray:
    """Return the milliseconds of each record from its making until the stock client has it."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": topics.bootstrap, "group.id": sink, "fetch.wait.max.ms": 10, "log_level": 0}
    )
    partitions = consumer.list_topics(sink, 30).topics[sink].partitions
    consumer.assign([TopicPartition(sink, partition, 0) for partition in partitions])
    ended = threading.Event()
    # the job reads and writes before anything is measured
    topics.produce(source, [(None, b'{"sent":0}')])
    while not _arrived(consumer):
        pass

    # the broker of the tests gives one batch of a producer a fetch: with more of them a second the reader
    # falls behind, and its backlog is measured; its linger is a part of the latency
    producer = Producer({"bootstrap.servers": topics.bootstrap, "log_level": 0, "linger.ms": load.linger_ms})

    def produce() -> None:
        began, sent = time.time(), 0
        while (passed := time.time() - began) < load.seconds:
            for _ in range(int(passed * load.rate) - sent):
                producer.produce(source, b'{"sent":%d}' % int(time.time() * 1e6))
                sent += 1
            producer.poll(0.001)
        producer.flush(30)
        ended.set()

    thread = threading.Thread(target=produce)
    thread.start()
    # parsed afterwards: meanwhile it would keep the producer from Python's lock
    found: list[tuple[float, list[bytes]]] = []
    quiet = 0
    while not ended.is_set() or quiet < _QUIET:
        values = [message.value() for message in _arrived(consumer)]
        quiet = 0 if values else quiet + 1
        found.append((time.time() * 1e3, values))
    thread.join()
    consumer.close()
    return np.array(
        [now - json.loads(value)["sent"] / 1e3 for now, values in found for value in values], float
    )


def main() -> None:
    """Print the figures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.kafka_sink", description=__doc__)
    parser.add_argument("which", nargs="*", help="records, transactions, latency (all)")
    parser.add_argument("--rate", type=int, default=50_000, help="records a second of latency (50,000)")
    parser.add_argument("--seconds", type=int, default=10, help="how long latency is measured (10)")
    if sys.argv[1:2] == ["copy"]:
        copy(*sys.argv[2:])
    arguments = parser.parse_args()
    broker: KafkaBroker = new_broker()
    topics = KafkaTopics(broker.bootstrap)
    which = arguments.which or ["records", "transactions", "latency"]
    if "records" in which:
        records(topics)
    if "transactions" in which:
        transactions(topics)
    if "latency" in which:
        latency(topics, arguments.rate, arguments.seconds)


if __name__ == "__main__":
    main()
