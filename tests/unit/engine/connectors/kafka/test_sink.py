"""Tables over topics as sinks, by SQL: what a stock reader finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.epoch_sink import EpochSink
from penstock.engine.connectors.kafka.sink import KafkaSink, kafka_sink
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.unit.engine.connectors.kafka.kafka_sinks import declared, request, rows, there


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


@pytest.fixture
def db() -> Iterator[penstock.Connection]:
    with penstock.connect() as connection:
        yield connection


def create(
    db: penstock.Connection, topics: KafkaTopics, topic: str, columns: str, name: str = "t", **more: str
) -> None:
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": topics.bootstrap,
        "format": "json",
    } | {key.replace("__", "-").replace("_", "."): text for key, text in more.items()}
    texts = ", ".join(f"'{key}' = '{text}'" for key, text in options.items())
    db.execute(f"CREATE TABLE {name} ({columns}) WITH ({texts})")


def test_the_guarantee_follows_the_checkpoints_unless_the_table_has_one(topics: KafkaTopics) -> None:
    topic = topics.create()
    table = declared(topic, topics.bootstrap)
    least = declared(topic, topics.bootstrap, sink_delivery__guarantee="at-least-once")
    once = declared(topic, topics.bootstrap, sink_delivery__guarantee="exactly-once")
    for asked, kind in (
        (request(table), EpochSink),
        (request(table, resumes=False), KafkaSink),
        (request(least), KafkaSink),
        (request(once, resumes=False), EpochSink),
    ):
        sink = kafka_sink(asked)
        assert type(sink) is kind
        sink.close()


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_rows_are_records(db: penstock.Connection, topics: KafkaTopics, guarantee: str) -> None:
    topic = topics.create(partitions=3)
    create(
        db,
        topics,
        topic,
        "id INT, name STRING",
        key_format="json",
        key_fields="id",
        sink_delivery__guarantee=guarantee,
    )
    db.execute("INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'c')")
    assert sorted(there(topics, topic)) == [
        (b'{"id":1}', b'{"id":1,"name":"a"}'),
        (b'{"id":2}', b'{"id":2,"name":null}'),
        (b'{"id":3}', b'{"id":3,"name":"c"}'),
    ]


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_upserts_end_with_the_last_row_of_each_key(
    db: penstock.Connection, topics: KafkaTopics, guarantee: str
) -> None:
    topic = topics.create(partitions=2)
    create(
        db,
        topics,
        topic,
        "k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED",
        connector="upsert-kafka",
        key_format="json",
        sink_delivery__guarantee=guarantee,
    )
    db.execute("SET 'execution.batch.max-rows' = '1'")
    values = ", ".join(f"({n % 5})" for n in range(40))
    query = f"SELECT k, COUNT(*) AS n FROM (VALUES {values}) AS v (k) GROUP BY k"
    db.execute(f"INSERT INTO t {query} HAVING COUNT(*) < 8 OR k > 2")
    last: dict[Any, Any] = {}
    for key, value in there(topics, topic):
        last[json.loads(key or b"0")["k"]] = None if value is None else json.loads(value)["n"]
    # groups 0, 1 and 2 have left the result
    assert {key: n for key, n in last.items() if n is not None} == {3: 8, 4: 8}


def test_changes_are_written_as_debezium_does(db: penstock.Connection, topics: KafkaTopics) -> None:
    topic = topics.create()
    create(db, topics, topic, "k INT, n BIGINT", format="debezium-json")
    db.execute("INSERT INTO t SELECT k, COUNT(*) FROM (VALUES (1), (2), (1)) AS v (k) GROUP BY k")
    counts: dict[tuple[int, int], int] = {}
    for _, value in there(topics, topic):
        change = json.loads(value or b"{}")
        row = change["after"] if change["op"] == "c" else change["before"]
        counts[row["k"], row["n"]] = counts.get((row["k"], row["n"]), 0) + (1 if change["op"] == "c" else -1)
    assert {row for row, count in counts.items() if count} == {(1, 2), (2, 1)}


def test_metadata_columns_are_written(db: penstock.Connection, topics: KafkaTopics) -> None:
    topic = topics.create(partitions=2)
    columns = (
        "id INT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', p INT METADATA FROM 'partition', "
        "h MAP<STRING, BYTES> METADATA FROM 'headers', o BIGINT METADATA FROM 'offset' VIRTUAL"
    )
    create(db, topics, topic, columns)
    db.execute(
        "INSERT INTO t VALUES (1, TO_TIMESTAMP_LTZ(1795000000000, 3), 1, MAP['a', CAST('x' AS BYTES)])"
    )
    (message,) = topics.read(topic)
    assert (message.value(), message.partition()) == (b'{"id":1}', 1)
    assert (message.timestamp()[1], message.headers()) == (1795000000000, [("a", b"x")])


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("id INT, o BIGINT METADATA FROM 'offset'", {}, r"SQL-1094.*'offset', which brokers assign"),
        ("id INT, h MAP<STRING, INT> METADATA FROM 'headers'", {}, "SQL-1306|SQL-1094"),
        ("id INT", {"topics": "a;b"}, r"SQL-1094.*it reads topics a, b"),
        ("id INT", {"connector": "upsert-kafka", "key_format": "json"}, r"SQL-1504.*PRIMARY KEY"),
    ],
)
def test_what_cannot_be_written_is_refused_at_planning(
    db: penstock.Connection, columns: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(penstock.Error, match=said):
        topic = options.pop("topics", "t")
        create(db, KafkaTopics("127.0.0.1:1"), topic, columns, **options)
        db.execute(f"INSERT INTO t VALUES (1{', NULL' if ',' in columns else ''})")


def test_a_query_that_updates_needs_a_table_that_takes_changes(db: penstock.Connection) -> None:
    create(db, KafkaTopics("127.0.0.1:1"), "t", "k INT, n BIGINT")
    with pytest.raises(penstock.Error, match="SQL-1310"):
        db.execute("INSERT INTO t SELECT k, COUNT(*) FROM (VALUES (1)) AS v (k) GROUP BY k")


def test_a_checkpoint_waits_for_delivery(topics: KafkaTopics) -> None:
    topic = topics.create()
    sink = kafka_sink(request(declared(topic, topics.bootstrap, properties_linger_ms="60000"), resumes=False))
    sink.write(Batch(rows(1, 2)))
    sink.write(Batch(rows()))
    assert there(topics, topic) == []
    assert sink.prepare(1) == []
    assert len(there(topics, topic)) == 2
    sink.write(Batch(rows(3)))
    sink.end()
    assert len(there(topics, topic)) == 3
    sink.close()


def test_changes_that_cancel_out_send_nothing(topics: KafkaTopics) -> None:
    topic = topics.create()
    table = declared(topic, topics.bootstrap, primary_key=("k",), key_format="json")
    sink = kafka_sink(request(table, resumes=False))
    sink.write(Batch(rows(1, 1), np.array([1, -1])))
    sink.prepare(1)
    sink.close()
    assert there(topics, topic) == []


def test_a_row_that_is_too_large_fails_or_is_skipped(topics: KafkaTopics) -> None:
    topic = topics.create()
    wide = rows(1, 2).set_column(1, "v", pa.array(["v", "x" * 2000]))
    options = {"properties_message_max_bytes": "1000"}
    sink = kafka_sink(request(declared(topic, topics.bootstrap, **options), resumes=False))
    with pytest.raises(PenstockError, match=r"DAT-5153"):
        sink.write(Batch(wide))
    sink.close()
    asked = request(declared(topic, topics.bootstrap, on__error="skip", **options), resumes=False)
    sink = kafka_sink(asked)
    sink.write(Batch(wide))
    sink.end()
    sink.close()
    assert len(there(topics, topic)) == 1
    assert (asked.metrics.counters["rows_refused"], asked.metrics.counters["records_sent"]) == (1, 1)


def test_a_job_that_keeps_checkpoints_commits_transactions(topics: KafkaTopics, tmp_path: Path) -> None:
    topic = topics.create(partitions=2)
    with penstock.connect(settings={"execution.checkpointing.dir": str(tmp_path)}) as db:
        create(db, topics, topic, "id BIGINT")
        db.execute("INSERT INTO t SELECT * FROM (VALUES (1), (2), (3)) AS v (id)")
    assert sorted(value for _, value in there(topics, topic)) == [b'{"id":%d}' % n for n in (1, 2, 3)]


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_refused_rows_are_a_table_and_can_be_written_again(
    db: penstock.Connection, topics: KafkaTopics, guarantee: str
) -> None:
    topic = topics.create()
    create(
        db,
        topics,
        topic,
        "k INT, v STRING",
        on__error="table",
        properties_message_max_bytes="1000",
        sink_delivery__guarantee=guarantee,
    )
    db.execute("INSERT INTO t SELECT k, REPEAT('x', k) FROM (VALUES (1), (2000), (3)) AS r (k)")
    assert len(there(topics, topic)) == 2
    ((raw, source, error),) = db.execute("SELECT raw, source, error FROM t$errors").fetchall()
    assert (json.loads(raw)["k"], source) == (2000, topic)
    assert "may be sent" in error
    db.execute(
        "INSERT INTO t SELECT r.k, LEFT(r.v, 10) FROM (SELECT from_json(raw, 'k INT, v STRING') AS r FROM t$errors)"
    )
    assert [json.loads(value or b"{}") for _, value in there(topics, topic)][-1] == {
        "k": 2000,
        "v": "x" * 10,
    }


def test_bad_messages_are_a_table_and_can_be_written_again(
    db: penstock.Connection, topics: KafkaTopics
) -> None:
    topic = topics.create()
    topics.produce(topic, [(None, b'{"k":1}'), (None, b"k=2"), (None, b'{"k":3}')])
    create(db, topics, topic, "k INT", on__error="table", scan_bounded_mode="latest-offset")
    assert db.execute("SELECT k FROM t").fetchall() == [(1,), (3,)]
    db.execute("INSERT INTO t SELECT CAST(SUBSTRING(raw, 3) AS INT) FROM t$errors")
    # the bad one is there still: it is known, and stored once
    assert db.execute("SELECT k FROM t").fetchall() == [(1,), (3,), (2,)]
    assert db.execute("SELECT raw, `position` FROM t$errors").fetchall() == [("k=2", 1)]
