"""How fast messages of Kafka come in: as Arrow columns and counted by key, beside the bare ``consume()`` of
confluent-kafka. CPU of the reading process, all threads of the client included.

Each case has a process of its own: its first run, warm runs and peak memory. The broker is another process:
librdkafka's mock, which sends as fast as anybody reads, or with ``--broker noida`` the one of the tests.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

import penstock
from penstock.catalog.connectors.message_formats import value_format
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.kafka.fallback_consumer import FallbackConsumer
from penstock.engine.connectors.kafka.fetched_messages import KafkaConsumer, Wanted
from penstock.engine.connectors.kafka.librdkafka import load
from penstock.engine.connectors.kafka.native_consumer import NativeConsumer
from penstock.engine.connectors.kafka.native_producer import NativeProducer
from penstock.engine.connectors.kafka.producer_records import Records
from penstock.engine.formats.messages.registry import serializer
from tests.harness.kafka_broker import KafkaTopics, new_broker

PIECE = 100_000
WANTED = Wanted(timestamps=True)
NAME = "customer number %d"
NOTE = "a note of the usual length, neither short nor long, beside numbers"
# about 137 bytes
VALUE = b'{"k":%d,"v":%d,"name":"customer number %d","note":"a note of the usual length, neither short nor long, beside numbers"}'
AVRO = json.dumps(
    {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "k", "type": "long"},
            {"name": "v", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "note", "type": "string"},
        ],
    }
)
_FIELDS = tuple(
    Field(name, kind, nullable=False)
    for name, kind in (("k", BIGINT), ("v", BIGINT), ("name", STRING), ("note", STRING))
)
# the mock keeps 5 MiB of a partition: so many messages, lz4, surely fit
MOCK_ROWS = 100_000


def json_values(start: int, count: int) -> pa.Array:
    """Return messages as JSON."""
    return pa.array([VALUE % (n % 1000, n, n) for n in range(start, start + count)], pa.binary())


def avro_values(start: int, count: int) -> pa.Array:
    """Return the same rows as Avro."""
    numbers = np.arange(start, start + count)
    rows = pa.record_batch(
        {
            "k": pa.array(numbers % 1000),
            "v": pa.array(numbers),
            "name": pa.array([NAME % n for n in numbers]),
            "note": pa.array([NOTE] * count),
        }
    )
    form = value_format({"format": "avro", "avro.schema": AVRO})
    return serializer(form, _FIELDS, "bench").serialize(Batch(rows))


def write(
    bootstrap: str, topic: str, rows: int, partitions: int, values: Callable[[int, int], pa.Array]
) -> None:
    """Write so many messages, lz4, evenly."""
    properties = {
        "bootstrap.servers": bootstrap,
        "linger.ms": "20",
        "compression.type": "lz4",
        "log_level": "0",
    }
    producer = NativeProducer(topic, properties, "bench")
    made: pa.Array | None = None
    for start in range(0, rows, PIECE):
        count = min(PIECE, rows - start)
        # what is in them does not matter to a reader: a million different ones are enough
        if made is None or start < 1_000_000 or count < PIECE:
            made = values(start, count)
        producer.produce(Records(made, None, (np.arange(count) % partitions).astype(np.int32)))
    producer.flush()
    producer.close()


def properties(bootstrap: str) -> dict[str, str]:
    """Return the same properties for every reader."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "enable.auto.commit": "false",
        "fetch.queue.backoff.ms": "5",
        "log_level": "0",
    }


class Case:
    """What is measured, in a process of its own."""

    def __init__(self, bootstrap: str, topics: dict[str, str], rows: int, partitions: int) -> None:
        self._bootstrap, self._topics, self._rows = bootstrap, topics, rows
        self._partitions = partitions

    def run(self, name: str) -> None:
        """Run a case of ``CASES`` once."""
        kind, *words = CASES[name]
        {"bare": self._bare, "consumer": self._through, "job": self._count}[kind](*words)

    def _bare(self, columns: str) -> None:
        """Read by ``consume()``: values alone into Arrow, or offsets, partitions and timestamps too."""
        consumer = Consumer(properties(self._bootstrap))
        consumer.assign([TopicPartition(self._topics["json"], n, 0) for n in range(self._partitions)])
        read = 0
        while read < self._rows:
            messages = consumer.consume(10_000, 1.0)
            pa.array([message.value() for message in messages], pa.binary())
            if columns == "all":
                pa.array([message.offset() for message in messages], pa.int64())
                pa.array([message.partition() for message in messages], pa.int32())
                pa.array([message.timestamp()[1] for message in messages], pa.int64())
            read += len(messages)
        consumer.close()

    def _through(self, which: str) -> None:
        """Read by one of our consumers, all columns of ``WANTED``."""
        consumer: KafkaConsumer
        if which == "native":
            library = load()
            assert library is not None
            consumer = NativeConsumer(library, properties(self._bootstrap), WANTED)
        else:
            consumer = FallbackConsumer(properties(self._bootstrap), WANTED)
        partitions = [consumer.open(self._topics["json"], n, 0) for n in range(self._partitions)]
        read = 0
        while read < self._rows:
            before = read
            for partition in partitions:
                fetched = partition.take(16_384)
                read += 0 if fetched is None else len(fetched)
            # polls of empty queues are not what is measured
            if read - before < 10_000:
                time.sleep(0.02)
        consumer.close()

    def _count(self, columns: str, form: str, query: str) -> None:
        """Run a whole job that ends with the topic."""
        topic = self._topics["avro" if form.startswith("avro") else "json"]
        schema = f", 'avro.schema' = '{AVRO}'" if form == "avro" else ""
        statement = (
            f"CREATE TABLE t ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = '{form}', "
            f"'properties.bootstrap.servers' = '{self._bootstrap}', 'scan.bounded.mode' = 'latest-offset'{schema})"
        )
        with penstock.connect() as connection:
            connection.execute(statement)
            found = connection.execute(query).fetchall()
        assert sum(int(row[1]) for row in found) == self._rows, found[:3]


BY_KEY = "SELECT k, COUNT(*) FROM t GROUP BY k"
THREE = "SELECT k, COUNT(*), SUM(v), MAX(name) FROM t GROUP BY k"
CASES: dict[str, tuple[str, ...]] = {
    "consume() of confluent-kafka, values": ("bare", "values"),
    "consume(), offset, partition, timestamp": ("bare", "all"),
    "librdkafka by batches, offset, timestamp": ("consumer", "native"),
    "the fallback, offset and timestamp": ("consumer", "fallback"),
    "a job: raw values, count by length": (
        "job",
        "v STRING",
        "raw",
        "SELECT CHAR_LENGTH(v), COUNT(*) FROM t GROUP BY 1",
    ),
    "a job: JSON, count by key": ("job", "k BIGINT", "json", BY_KEY),
    "a job: JSON of 3 columns, by key": ("job", "k BIGINT, v BIGINT, name STRING", "json", THREE),
    "a job: Avro, count by key": ("job", "k BIGINT", "avro", BY_KEY),
    "a job: Avro of 3 columns, by key": ("job", "k BIGINT, v BIGINT, name STRING", "avro", THREE),
}


def measure(name: str, case: Case, rows: int, runs: int) -> dict[str, object]:
    """Return million messages a second of CPU of the first run and of warm ones, and peak memory."""
    rates: list[float] = []
    walls: list[float] = []
    for _ in range(runs + 1):
        began_s, began_wall_s = time.process_time(), time.perf_counter()
        case.run(name)
        rates.append(rows / (time.process_time() - began_s) / 1e6)
        walls.append(rows / (time.perf_counter() - began_wall_s) / 1e6)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"first": rates[0], "warm": rates[1:], "wall": statistics.median(walls[1:]), "peak_mb": peak_mb}


@contextmanager
def mock(topics: Iterable[str], partitions: int) -> Iterator[str]:
    """Start librdkafka's mock broker with these topics in a process; its address is what this yields."""
    words = [
        sys.executable,
        "-m",
        "bench.connectors.kafka",
        "--serve",
        *topics,
        "--partitions",
        str(partitions),
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def serve(topics: list[str], partitions: int) -> None:
    """Be the mock broker until standard input ends."""
    from tests.harness.kafka_mock import MockCluster

    cluster = MockCluster()
    for topic in topics:
        cluster.create(topic, partitions)
    sys.stdout.write(cluster.bootstrap + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    cluster.close()


def report(arguments: argparse.Namespace) -> None:
    """Write the topics and print a line for each case."""
    wanted = [name for name in CASES if not arguments.only or any(word in name for word in arguments.only)]
    forms = {"json": json_values, "avro": avro_values}
    used = {name: values for name, values in forms.items() if name == "json" or "Avro" in " ".join(wanted)}
    rows = arguments.rows
    if arguments.broker == "noida":
        broker = new_broker()
        topics = KafkaTopics(broker.bootstrap)
        _run(
            arguments, wanted, broker.bootstrap, {name: topics.create(partitions=4) for name in used}, 4, used
        )
        return
    partitions = max(4, -(-rows // MOCK_ROWS))
    with mock(used, partitions) as bootstrap:
        _run(arguments, wanted, bootstrap, {name: name for name in used}, partitions, used)


def _run(
    arguments: argparse.Namespace,
    wanted: list[str],
    bootstrap: str,
    topics: dict[str, str],
    partitions: int,
    forms: dict[str, Callable[[int, int], pa.Array]],
) -> None:
    for form, topic in topics.items():
        write(bootstrap, topic, arguments.rows, partitions, forms[form])
    print(
        f"{arguments.rows:,} messages of about 137 bytes, lz4, {partitions} partitions, broker: {arguments.broker}"
    )
    print(f"{'M messages/s of CPU':42} {'warm':>6} {'first':>6} {'wall':>6} {'peak MB':>8}")
    # one after the other, and again: what else the machine does meets all cases
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in wanted}
    for _ in range(arguments.rounds):
        for name in wanted:
            words = [sys.executable, "-m", "bench.connectors.kafka", "--case", name, "--bootstrap", bootstrap]
            words += ["--topics", json.dumps(topics), "--partitions", str(partitions)]
            words += ["--rows", str(arguments.rows), "--runs", str(arguments.runs)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    for name, rounds in found.items():
        warm = [figure for made in rounds for figure in made["warm"]]
        first, wall, peak_mb = (
            statistics.median(made[figure] for made in rounds) for figure in ("first", "wall", "peak_mb")
        )
        shown = ", ".join(f"{figure:.2f}" for figure in warm)
        print(
            f"{name:42} {statistics.median(warm):6.2f} {first:6.2f} {wall:6.2f} {peak_mb:8,.0f}   ({shown})",
            flush=True,
        )


def main() -> None:
    """Print the figures, or be one of the processes that make them."""
    parser = argparse.ArgumentParser(prog="python -m bench.connectors.kafka", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="warm runs (3)")
    parser.add_argument("--rounds", type=int, default=1, help="of all cases, one after the other (1)")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="cases with one of these words")
    parser.add_argument("--broker", choices=("mock", "noida"), default="mock")
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    for hidden in ("--case", "--bootstrap", "--topics"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--partitions", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.partitions)
    elif arguments.case:
        case = Case(arguments.bootstrap, json.loads(arguments.topics), arguments.rows, arguments.partitions)
        print(json.dumps(measure(arguments.case, case, arguments.rows, arguments.runs)))
    else:
        report(arguments)


if __name__ == "__main__":
    main()
