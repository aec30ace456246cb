"""Latency from topic to topic: ``python -m bench.connectors.kafka_sink latency``, or this module with ``--only WORD``.

A process makes records at a steady rate, another one is the job, and this one reads what the job has written,
by the stock client. Each record carries when it was made and when the query had it; brokers say when they had
it. So the time of a record is divided into stages, and a table says which of them the slowest records spent.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from tests.harness.kafka_broker import KafkaTopics, new_broker
from tests.harness.kafka_long_poll import long_polls
from tests.harness.kafka_mock import MockCluster

_QUIET = 100  # so often nothing has come: it is the end
# the mock keeps 5 MiB of a partition
MOCK_PARTITIONS = 16
# the broker of the tests writes what it keeps into one file each second
KEPT_MS = 10_000
# the first record comes through a job that has just started
FIRST_S = 60.0
# a record before this time is not measured: what a process loads with its first rows is a start, no latency
WARM_UP_S = 2.0
SCRIPT = """
CREATE TABLE i (sent BIGINT, appended TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL) WITH ('connector' = 'kafka', 'topic' = '{source}', {broker}, 'scan.startup.mode' = 'earliest-offset', 'properties.fetch.wait.max.ms' = '10');
CREATE TABLE o (sent BIGINT, appended BIGINT, emitted BIGINT) WITH ('connector' = 'kafka', 'topic' = '{sink}', {broker}, 'sink.delivery-guarantee' = '{guarantee}'{more});
INSERT INTO o SELECT sent, unix_millis(appended), unix_micros(current_timestamp()) FROM i;
"""
STAGES = (
    "made, to the broker of the source topic",
    "broker, fetched and decoded, to the query",
    "query, encoded, sent, to the broker of the sink topic",
    "broker, to the stock client that reads it",
)


@dataclass(frozen=True)
class Load:
    """Records a second, how long, and the linger of the producer that makes them; with 1 ms that of the job too."""

    rate: int
    seconds: int
    linger_ms: int


@dataclass(frozen=True)
class Found:
    """Records that were read, in order. Milliseconds since 1970: ``stages`` has when each stage began and the
    last one ended, a column each; only the first and the last of a record that no job has passed on.
    """

    stages: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """The milliseconds of each record."""
        return self.stages[:, -1] - self.stages[:, 0]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextmanager
def _broker(*, waits: bool) -> Iterator[KafkaTopics]:
    """Start a broker of the tests. ``waits``: its fetches wait for records, as those of Kafka do."""
    broker = new_broker()
    try:
        if not waits:
            yield KafkaTopics(broker.bootstrap)
            return
        with long_polls(broker.port) as bootstrap:
            yield KafkaTopics(bootstrap)
    finally:
        broker.kill()


def latency(arguments: argparse.Namespace) -> None:
    """One topic to another through ``penstock run``, at each guarantee; without transactions also at
    librdkafka's mock, which hands on what comes in as fast as it comes. Beside them the stock client alone: one
    topic without a job, and a process of the client that copies records from one topic to the other.

    Each case has a broker of its own, which writes all that it has into one file each second.
    """
    load, waits = Load(arguments.rate, arguments.seconds, arguments.linger), not arguments.busy

    def wanted(name: str) -> bool:
        return not arguments.only or any(word in name for word in arguments.only)

    if wanted("no job"):
        with _broker(waits=waits) as topics:
            one = _topic(topics)
            _say("no job, one topic", load, _measured(topics, one, one, load))
    if wanted("stock client"):
        with _broker(waits=waits) as topics:
            _copied(topics, (_topic(topics), _topic(topics)), load)
    guarantees = [("at-least-once", 10_000), *(("exactly-once", each_ms) for each_ms in arguments.intervals)]
    for guarantee, interval_ms in guarantees:
        if wanted(guarantee):
            with _broker(waits=waits) as topics:
                _of_a_job(topics, (_topic(topics), _topic(topics)), (guarantee, interval_ms), load)
    if wanted("mock"):
        _at_mock(load)


def _at_mock(load: Load) -> None:
    mock = MockCluster()
    for topic in ("one", "c", "d", "i", "o"):
        mock.create(topic, MOCK_PARTITIONS)
    say("the mock instead of the broker of the tests; it does not say when it had a record:")
    topics = KafkaTopics(mock.bootstrap)
    # with a linger of 1 ms there are more batches than the mock hands on: one of a partition a fetch
    _say("no job, one topic", load, _measured(topics, "one", "one", load))
    _copied(topics, ("c", "d"), load)
    _of_a_job(topics, ("i", "o"), ("at-least-once", 10_000), load)
    mock.close()


def _topic(topics: KafkaTopics) -> str:
    """Create a topic whose records have the broker's time, and are there for a short while."""
    return topics.create(message_timestamp_type="LogAppendTime", retention_ms=str(KEPT_MS))


@contextmanager
def _process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a part of this module in a process, until it is killed."""
    process = subprocess.Popen([sys.executable, "-m", "bench.connectors.kafka_latency", *words])
    try:
        yield process
    finally:
        if process.returncode is None:
            _killed(process)


def _killed(process: subprocess.Popen[bytes]) -> float:
    """Kill a process and return the processor time it has used."""
    process.kill()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = -9
    return used.ru_utime + used.ru_stime


def _copied(topics: KafkaTopics, names: tuple[str, str], load: Load) -> None:
    with _process("copy", topics.bootstrap, *names) as copying:
        found = _measured(topics, *names, load)
        _say("stock client", load, found, _killed(copying))


def copy(bootstrap: str, source: str, sink: str) -> None:
    """Copy records as they come, by the stock client's own calls, until the process is killed."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "copy", "fetch.wait.max.ms": 10, "log_level": 0}
    )
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "compression.type": "lz4"})
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


def generate(bootstrap: str, topic: str, rate: int, seconds: float, linger_ms: int) -> None:
    """Make records at a rate, in a process of its own: no lock of Python's is shared with the reader then."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": linger_ms, "compression.type": "lz4"}
    )
    began, sent = time.time(), 0
    while (passed := time.time() - began) < seconds:
        for _ in range(int(passed * rate) - sent):
            producer.produce(topic, b'{"sent":%d}' % int(time.time() * 1e6))
            sent += 1
        producer.poll(0.001)
    producer.flush(30)


def _of_a_job(topics: KafkaTopics, names: tuple[str, str], how: tuple[str, int], load: Load) -> None:
    (source, sink), (guarantee, interval_ms) = names, how
    more = ", 'properties.linger.ms' = '1'" if load.linger_ms == 1 else ""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        script = directory / "job.sql"
        broker = f"'properties.bootstrap.servers' = '{topics.bootstrap}', 'format' = 'json', 'properties.compression.type' = 'lz4'"
        script.write_text(
            SCRIPT.format(source=source, sink=sink, broker=broker, guarantee=guarantee, more=more),
            encoding="utf-8",
        )
        words = ["run", str(script), "--state", str(directory / "state")]
        words += ["--set", f"execution.checkpointing.interval={interval_ms} ms"]
        with (directory / "log").open("wb") as log:
            job = subprocess.Popen(
                [sys.executable, "-m", "penstock.repl.cli", *words], stdout=log, stderr=log
            )
        try:
            while b"running" not in (directory / "log").read_bytes() and job.poll() is None:
                time.sleep(0.05)
            found = _measured(topics, source, sink, load)
            assert len(found.stages), (directory / "log").read_text()
        finally:
            used_s = _killed(job)
        name = guarantee if guarantee == "at-least-once" else f"{guarantee}, {interval_ms:,} ms"
        _say(name, load, found, used_s)
        _say_stages(found)


def _say(name: str, load: Load, found: Found, used_s: float | None = None) -> None:
    times = found.whole
    quantiles = ", ".join(f"p{q} {np.percentile(times, q):.1f}" for q in (50, 99, 99.9, 100))
    used = "" if used_s is None else f"; {used_s:.1f} s of processor time of its process, start included"
    say(
        f"{name:24} linger {load.linger_ms:2} ms, {load.rate:,} records/s: {quantiles} ms of {times.size:,} "
        f"records{used}"
    )


def _say_stages(found: Found) -> None:
    """Print each stage: of all records, and how long the slowest hundredth of them spent there."""
    spent = np.diff(found.stages, axis=1)
    slowest = spent[found.whole >= np.percentile(found.whole, 99)]
    say(f"    {'stage, ms':54} {'p50':>6} {'p99':>6} {'mean of the slowest 1 %':>24}")
    for place, name in enumerate(STAGES):
        p50, p99 = np.percentile(spent[:, place], (50, 99))
        say(f"    {name:54} {p50:6.1f} {p99:6.1f} {slowest[:, place].mean():24.1f}")
    # when it was: a pause of the job is one time, an overload is all of them
    began = found.stages[:, 0] - found.stages[0, 0]
    seconds = [
        f"{np.percentile(found.whole[began // 1e3 == second], 99):.0f}" for second in np.unique(began // 1e3)
    ]
    say(f"    p99 of each second: {', '.join(seconds)}")


def _measured(topics: KafkaTopics, source: str, sink: str, load: Load) -> Found:
    """Return when the stages of each record began, and when the stock client had it."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": topics.bootstrap, "group.id": sink, "fetch.wait.max.ms": 10, "log_level": 0}
    )
    partitions = consumer.list_topics(sink, 30).topics[sink].partitions
    consumer.assign([TopicPartition(sink, partition, 0) for partition in partitions])
    # the job reads and writes before anything is measured
    topics.produce(source, [(None, b'{"sent":0}')])
    began = time.monotonic()
    while not _arrived(consumer):
        assert time.monotonic() < began + FIRST_S, f"no record has come to {sink}"
    # parsed afterwards: a reader that parses falls behind
    found: list[tuple[float, list[Any]]] = []
    quiet = 0
    # a collection looks at all messages that were kept, for 0.3 s at the end
    gc.disable()
    made = [topics.bootstrap, source, str(load.rate), str(load.seconds + WARM_UP_S), str(load.linger_ms)]
    with _process("generate", *made) as generating:
        while generating.poll() is None or quiet < _QUIET:
            messages = _arrived(consumer)
            quiet = 0 if messages else quiet + 1
            found.append((time.time() * 1e3, messages))
    gc.enable()
    consumer.close()
    return _parsed(found)


def _parsed(found: list[tuple[float, list[Any]]]) -> Found:
    messages = [message for _, taken in found for message in taken]
    read = np.repeat([now for now, _ in found], [len(taken) for _, taken in found])
    lines = pa.py_buffer(b"\n".join(message.value() for message in messages))
    rows = pa.json.read_json(pa.BufferReader(lines))
    sent = rows["sent"].to_numpy() / 1e3
    columns = [sent, read]
    if "emitted" in rows.column_names:
        written = np.array([message.timestamp()[1] for message in messages], float)
        columns = [sent, rows["appended"].to_numpy(), rows["emitted"].to_numpy() / 1e3, written, read]
    stages = np.column_stack(columns)
    return Found(stages[sent >= sent[sent > 0].min() + WARM_UP_S * 1e3])


def main() -> None:
    """Print the figures, or be one of the processes that make them."""
    if sys.argv[1:2] == ["copy"]:
        copy(*sys.argv[2:])
    if sys.argv[1:2] == ["generate"]:
        bootstrap, topic, rate, seconds, linger_ms = sys.argv[2:]
        generate(bootstrap, topic, int(rate), float(seconds), int(linger_ms))
        return
    parser = argparse.ArgumentParser(prog="python -m bench.connectors.kafka_latency", description=__doc__)
    add_options(parser)
    latency(parser.parse_args())


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``latency``."""
    parser.add_argument("--rate", type=int, default=50_000, help="records a second of latency (50,000)")
    parser.add_argument("--seconds", type=int, default=10, help="how long latency is measured (10)")
    parser.add_argument("--linger", type=int, default=5, help="of the producer of records, in ms (5)")
    parser.add_argument(
        "--intervals",
        type=int,
        nargs="+",
        default=[100],
        help="of checkpoints, in ms, for exactly-once (100)",
    )
    parser.add_argument(
        "--busy", action="store_true", help="the broker of the tests as it is: its fetches do not wait"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="cases of latency with one of these words"
    )


if __name__ == "__main__":
    main()
