"""VARIANT over a broker: read from topics, a key of state, written to topics; a savepoint at another
parallelism; EXPLAIN WHY.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.client.session import Session
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.harness.patience import PATIENCE_S, await_that

pytestmark = pytest.mark.xdist_group("kafka")
BROKER = "'properties.bootstrap.servers' = '{bootstrap}'"
DOCS = f"""CREATE TABLE docs (k BIGINT, v VARIANT) WITH ('connector' = 'kafka', 'topic' = '{{docs}}',
    'format' = 'json', {BROKER}, 'scan.startup.mode' = 'earliest-offset'{{more}})"""
# the key is a VARIANT as well
COUNTS = f"""CREATE TABLE counts (v VARIANT, n BIGINT, w ARRAY<VARIANT>, PRIMARY KEY (v) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = '{{counts}}', 'key.format' = 'json', 'value.format' = 'json', {BROKER})"""
INSERT = "INSERT INTO counts SELECT v, COUNT(*), ARRAY[v, v:a] FROM docs GROUP BY v"
VALUES = ['{"b": 1.0, "a": [1]}', '{"a":[1.00],"b":1}', '"x"', "null", "7", "7.0"]


def send(topics: KafkaTopics, topic: str, values: list[str]) -> None:
    for partition in range(2):
        mine = [(k, value) for k, value in enumerate(values) if k % 2 == partition]
        topics.produce(
            topic, [(None, f'{{"k": {k}, "v": {value}}}'.encode()) for k, value in mine], partition
        )


def opened(directory: Path, tables: list[str], **settings: str) -> Session:
    checkpoints = {"execution.checkpointing.interval": "50 ms", "execution.checkpointing.dir": str(directory)}
    made = Session({**checkpoints, "table.dml-sync": "false", **settings})
    for table in tables:
        made.execute(table)
    return made


def written(topics: KafkaTopics, topic: str) -> dict[str, Any]:
    """Return the last value of each key."""
    return {record.key().decode(): json.loads(record.value()) for record in topics.read(topic)}


@pytest.mark.at_length
def test_a_key_of_state_goes_on_from_a_savepoint(tmp_path: Path) -> None:
    topics = shared_topics()
    names = {"docs": topics.create(partitions=2), "counts": topics.create(partitions=2)}
    tables = [table.format(bootstrap=topics.bootstrap, more="", **names) for table in (DOCS, COUNTS)]
    send(topics, names["docs"], VALUES)
    first = opened(tmp_path / "one", tables)
    job = first.execute(INSERT).job
    once = {
        '{"v":{"a":[1],"b":1}}': (2, [{"a": [1], "b": 1}, [1]]),
        '{"v":"x"}': (1, ["x", None]),
        '{"v":null}': (1, [None, None]),
        '{"v":7}': (2, [7, None]),
    }

    def counted(times: int) -> bool:
        found = written(topics, names["counts"])
        return found.keys() == once.keys() and all(
            (found[key]["n"], found[key]["w"]) == (times * n, w) for key, (n, w) in once.items()
        )

    await_that(lambda: counted(1), "the counts")
    [saved] = (
        first.execute(f"STOP JOB '{job.job_id}' WITH SAVEPOINT '{tmp_path}/kept'").final_rows()[0].to_pylist()
    )
    first.close()
    send(topics, names["docs"], VALUES)
    settings = {"execution.state-recovery.path": saved, "parallelism.default": "2"}
    second = opened(tmp_path / "two", tables, **settings)
    second.execute(INSERT)
    await_that(lambda: counted(2), "the counts of both runs")
    second.close()
    third = opened(tmp_path / "three", tables)
    third.execute("CREATE MATERIALIZED VIEW seen AS SELECT v, n FROM counts")
    texts = {json.dumps(json.loads(key)["v"], separators=(",", ":")): 2 * n for key, (n, _) in once.items()}

    def seen() -> dict[str, int]:
        columns = third.execute("SELECT v, n FROM seen").final_rows(PATIENCE_S).columns
        return dict(zip(*(column.to_pylist() for column in columns), strict=True))

    await_that(lambda: seen() == texts, "the view")
    third.close()


def test_why_a_row_of_a_variant_is_there(tmp_path: Path) -> None:
    topics = shared_topics()
    topic = topics.create(partitions=2)
    send(topics, topic, VALUES)
    table = DOCS.format(
        docs=topic, bootstrap=topics.bootstrap, more=", 'scan.bounded.mode' = 'latest-offset'"
    )
    session = opened(tmp_path, [table])
    query = "SELECT v, COUNT(*) AS n FROM docs GROUP BY v"
    found = session.execute(f"EXPLAIN WHY ROW (v:b::INT = 1) FOR {query}").final_rows(PATIENCE_S)
    rows = [json.loads(text) for text in found.columns[3].to_pylist()]
    assert [row["k"] for row in rows] == [0, 1]
    assert [row["v"] for row in rows] == [{"a": [1], "b": 1}] * 2
    session.close()
