"""How fast messages of Kafka come in: as Arrow columns and counted by key, beside the bare ``consume()`` of
confluent-kafka. CPU of this process, all threads of the client included; the broker is another process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

import penstock
from penstock.engine.connectors.kafka.fallback_consumer import FallbackConsumer
from penstock.engine.connectors.kafka.fetched_messages import KafkaConsumer, Wanted
from penstock.engine.connectors.kafka.librdkafka import load
from penstock.engine.connectors.kafka.native_consumer import NativeConsumer
from tests.harness.kafka_broker import KafkaTopics, shared_topics

PARTITIONS = 4
WANTED = Wanted(timestamps=True)
# about 137 bytes
VALUE = b'{"k":%d,"v":%d,"name":"customer number %d","note":"a note of the usual length, neither short nor long, beside numbers"}'


def written(topics: KafkaTopics, rows: int) -> str:
    """Return a topic with so many messages, lz4."""
    topic = topics.create(partitions=PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": topics.bootstrap,
            "linger.ms": 20,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for n in range(rows):
        while True:
            try:
                producer.produce(topic, VALUE % (n % 1000, n, n), partition=n % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(600)
    return topic


def properties(topics: KafkaTopics) -> dict[str, str]:
    """Return the same properties for every reader."""
    return {
        "bootstrap.servers": topics.bootstrap,
        "group.id": "bench",
        "enable.auto.commit": "false",
        "fetch.queue.backoff.ms": "5",
        "log_level": "0",
    }


def bare(topics: KafkaTopics, topic: str, rows: int, columns: bool) -> None:
    """Read by ``consume()``: values alone into Arrow, or offsets, partitions and timestamps too."""
    consumer = Consumer(properties(topics))
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    read = 0
    while read < rows:
        messages = consumer.consume(10_000, 1.0)
        pa.array([message.value() for message in messages], pa.binary())
        if columns:
            pa.array([message.offset() for message in messages], pa.int64())
            pa.array([message.partition() for message in messages], pa.int32())
            pa.array([message.timestamp()[1] for message in messages], pa.int64())
        read += len(messages)
    consumer.close()


def through(make: Callable[[], KafkaConsumer], topic: str, rows: int) -> None:
    """Read by one of our consumers, all columns of ``WANTED``."""
    consumer = make()
    partitions = [consumer.open(topic, number, 0) for number in range(PARTITIONS)]
    read = 0
    while read < rows:
        before = read
        for partition in partitions:
            fetched = partition.take(16_384)
            read += 0 if fetched is None else len(fetched)
        # the broker of the tests is slower than any reader: polls of empty queues would be measured
        if read - before < 10_000:
            time.sleep(0.1)
    consumer.close()


def counted(topics: KafkaTopics, topic: str, rows: int, columns: str, form: str, query: str) -> None:
    """Run a whole job that ends with the topic."""
    statement = (
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = '{form}', "
        f"'properties.bootstrap.servers' = '{topics.bootstrap}', 'scan.bounded.mode' = 'latest-offset')"
    )
    with penstock.connect() as connection:
        connection.execute(statement)
        found = connection.execute(query).fetchall()
    assert sum(int(row[1]) for row in found) == rows, found[:3]


def report(rows: int, runs: int) -> None:
    """Print million messages a second of CPU, the median and all runs; the peer first."""
    topics = shared_topics()
    topic = written(topics, rows)
    library = load()
    assert library is not None
    made = properties(topics)
    json_query = "SELECT k, COUNT(*) FROM t GROUP BY k"
    cases: dict[str, Callable[[], Any]] = {
        "confluent-kafka consume(), values": lambda: bare(topics, topic, rows, False),
        "confluent-kafka consume(), offset, partition, timestamp": lambda: bare(topics, topic, rows, True),
        "librdkafka by batches, offset and timestamp": lambda: through(
            lambda: NativeConsumer(library, made, WANTED), topic, rows
        ),
        "the fallback, offset and timestamp": lambda: through(
            lambda: FallbackConsumer(made, WANTED), topic, rows
        ),
        "a job: raw values, count by length": lambda: counted(
            topics, topic, rows, "v STRING", "raw", "SELECT CHAR_LENGTH(v), COUNT(*) FROM t GROUP BY 1"
        ),
        "a job: JSON, count by key": lambda: counted(topics, topic, rows, "k BIGINT", "json", json_query),
        "a job: JSON of 3 columns, count by key": lambda: counted(
            topics,
            topic,
            rows,
            "k BIGINT, v BIGINT, name STRING",
            "json",
            "SELECT k, COUNT(*), SUM(v), MAX(name) FROM t GROUP BY k",
        ),
    }
    print(f"{rows:,} messages of about 137 bytes, lz4, {PARTITIONS} partitions")
    for name, act in cases.items():
        figures = []
        for _ in range(runs):
            began_s = time.process_time()
            act()
            figures.append(rows / (time.process_time() - began_s) / 1e6)
        shown = ", ".join(f"{figure:.2f}" for figure in figures)
        print(f"{name:58} {statistics.median(figures):5.2f} M/s of CPU ({shown})", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.kafka", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    report(given.rows, given.runs)
