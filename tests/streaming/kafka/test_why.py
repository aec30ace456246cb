"""EXPLAIN WHY over topics: input rows by topic, partition and offset; of a materialized view those that its job
has read, not those that came later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.client.session import Session
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.harness.patience import PATIENCE_S, await_that

pytestmark = pytest.mark.xdist_group("kafka")
TABLE = """CREATE TABLE {name} (k STRING, v BIGINT) WITH ('connector' = 'kafka', 'topic' = '{topic}',
    'properties.bootstrap.servers' = '{bootstrap}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset'{more})"""
ENDS = ", 'scan.bounded.mode' = 'latest-offset'"


def send(topics: KafkaTopics, topic: str, partition: int, rows: list[tuple[str, int]]) -> None:
    topics.produce(topic, [(None, json.dumps({"k": k, "v": v}).encode()) for k, v in rows], partition)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    checkpoints = {"execution.checkpointing.interval": "50 ms", "execution.checkpointing.dir": str(tmp_path)}
    made = Session({"bounded.backend": "duckdb", **checkpoints})
    yield made
    made.close()


def rows(session: Session, query: str) -> list[tuple[Any, ...]]:
    found = session.execute(query).final_rows(PATIENCE_S)
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_positions_are_topic_partition_and_offset(session: Session) -> None:
    topics = shared_topics()
    topic = topics.create(partitions=2)
    send(topics, topic, 0, [("a", 1), ("b", 2), ("a", 3)])
    send(topics, topic, 1, [("b", 4), ("a", 5)])
    session.execute(TABLE.format(name="t", topic=topic, bootstrap=topics.bootstrap, more=ENDS))
    query = "SELECT k, SUM(v) AS s FROM t WHERE v <> 3 GROUP BY k"
    found = rows(session, f"EXPLAIN WHY ROW (k = 'a') FOR {query}")
    assert [(source, position, weight) for source, position, weight, _ in found] == [
        ("t", f"topic {topic}, partition 0, offset 0", 1),
        ("t", f"topic {topic}, partition 1, offset 1", 1),
    ]
    assert [json.loads(row[3]) for row in found] == [{"k": "a", "v": 1}, {"k": "a", "v": 5}]
    dropped = session.execute(f"EXPLAIN WHY NOT ROW (k = 'c') FOR {query}")
    assert "no row" in str(dropped.note) and "t" in str(dropped.note)


def test_a_view_is_traced_over_the_messages_it_has_read(session: Session) -> None:
    topics = shared_topics()
    topic = topics.create(partitions=2)
    send(topics, topic, 0, [("a", 1), ("b", 2)])
    send(topics, topic, 1, [("a", 5)])
    session.execute(TABLE.format(name="t", topic=topic, bootstrap=topics.bootstrap, more=""))
    session.execute("CREATE MATERIALIZED VIEW sums AS SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k")
    await_that(lambda: rows(session, "SELECT * FROM sums") == [("a", 2, 6), ("b", 1, 2)], "the sums")
    (job,) = [job for job in session.execute("SHOW JOBS").final_rows().to_pylist() if "sums" in str(job)]
    session.execute(f"STOP JOB '{next(iter(job.values()))}'")
    # after the last checkpoint of the job
    send(topics, topic, 0, [("a", 100)])
    send(topics, topic, 1, [("c", 200)])
    found = rows(session, "EXPLAIN WHY ROW (k = 'a') OF VIEW sums")
    assert [json.loads(row[3])["v"] for row in found] == [1, 5]
    missing = session.execute("EXPLAIN WHY NOT ROW (k = 'c') OF VIEW sums")
    assert "not read" in str(missing.note)
