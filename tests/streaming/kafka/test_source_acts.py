"""Queries over topics in three acts, with DuckDB's answer over what the stock client reads; and a process
that is killed again and again, whose files hold each message once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.harness.patience import await_that
from tests.harness.source_gate import gated
from tests.streaming.three_acts.acts import Folded, Script, run_and_stop, run_to_end
from tests.streaming.three_acts.oracle import ROOT

pytestmark = pytest.mark.xdist_group("kafka")
PARTITIONS, ROWS = 3, 2000
TABLE = """CREATE TABLE e (k BIGINT, v BIGINT, ts TIMESTAMP(3), `partition` INT METADATA VIRTUAL,
    WATERMARK FOR ts AS ts - INTERVAL '5' SECONDS)
    WITH ('connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
"""
QUERIES = {
    "groups": (
        "SELECT k, COUNT(*), SUM(v), MAX(`partition`) FROM e GROUP BY k",
        "SELECT k, COUNT(*), SUM(v)::BIGINT, MAX(p) FROM e GROUP BY k",
    ),
    "windows": (
        """SELECT k, window_end, COUNT(*), SUM(v) FROM TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECONDS)
        GROUP BY k, window_start, window_end""",
        """SELECT k, time_bucket(INTERVAL '10 seconds', ts::TIMESTAMP) + INTERVAL '10 seconds', COUNT(*), SUM(v)::BIGINT
        FROM e GROUP BY k, 2""",
    ),
}


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


def time_of(ms: int) -> str:
    return str(datetime(2024, 1, 1) + timedelta(milliseconds=ms))


@pytest.fixture(scope="module")
def topic(topics: KafkaTopics) -> str:
    made = topics.create(partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        rows = (
            {
                "k": None if n % 17 == 3 else n * n % 7,
                "v": n * 31 % 101 - 50,
                "ts": time_of(n * 40 + n * 13 % 3000),
            }
            for n in range(ROWS)
        )
        # every 50th message has no value
        topics.produce(
            made,
            [(None, None if n % 50 == 7 else json.dumps(r).encode()) for n, r in enumerate(rows)],
            partition,
        )
    return made


@pytest.fixture(scope="module")
def told(topics: KafkaTopics, topic: str) -> pa.Table:
    rows = [
        json.loads(message.value()) | {"p": message.partition()}
        for message in topics.read(topic)
        if message.value() is not None
    ]
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("name", QUERIES)
def test_three_acts(topics: KafkaTopics, topic: str, told: pa.Table, name: str, tmp_path: Path) -> None:
    query, oracle = QUERIES[name]
    connection = duckdb.connect()
    connection.register("e", told)
    expected = Counter(connection.execute(oracle).fetchall())
    text = TABLE.format(topic=topic, bootstrap=topics.bootstrap) + query + ";"
    settings = {"execution.batch.max-rows": "200"}
    for state_dir, acts in ((None, (2,)), (tmp_path / "state", (1, 3, 2))):
        script, folded = Script("kafka", settings, text), Folded()
        for number, parallelism in enumerate(acts):
            if number < len(acts) - 1:
                # the gate: however slow the test is, the job does not end before it is stopped
                with gated(1500):
                    run_and_stop(*script.submit(parallelism, state_dir, 20), folded, 1000)
            else:
                run_to_end(*script.submit(parallelism, state_dir, 20), folded)
        script.close()
        assert folded.rows == expected


STREAM = """CREATE TABLE e (a BIGINT, p INT METADATA FROM 'partition' VIRTUAL, o BIGINT METADATA FROM 'offset' VIRTUAL)
    WITH ('connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'properties.group.id' = '{topic}');
CREATE TABLE copies (a BIGINT, p INT, o BIGINT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet');
INSERT INTO copies SELECT * FROM e;
"""


def committed(out: Path) -> list[tuple[Any, ...]]:
    """Return the rows of all files that are visible."""
    files = [path for path in out.rglob("*.parquet") if not path.name.startswith((".", "_"))]
    return [row for path in files for row in zip(*pq.read_table(path).to_pydict().values(), strict=True)]


def test_a_process_that_is_killed_loses_no_message_and_repeats_none(
    topics: KafkaTopics, tmp_path: Path
) -> None:
    topic, out = topics.create(partitions=2), tmp_path / "out"
    out.mkdir()
    script = tmp_path / "copy.sql"
    script.write_text(STREAM.format(topic=topic, bootstrap=topics.bootstrap, out=out), encoding="utf-8")
    written = 0
    for run in range(2):
        words = ["run", str(script), "--state", str(tmp_path / "state"), "-p", str(1 + run % 2)]
        for setting in ("execution.checkpointing.interval=50 ms", "execution.batch.max-rows=50"):
            words += ["--set", setting]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PENSTOCK_CONFIG": "/nonexistent"}
        with (tmp_path / f"told{run}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "penstock.repl.cli", *words], env=environment, stdout=log, stderr=log
            )
        try:
            before = len(committed(out))
            for partition in (0, 1):
                topics.produce(
                    topic, [(None, b'{"a":%d}' % n) for n in range(written, written + 300)], partition
                )
            written += 300
            target = 2 * written if run == 1 else before + 1
            await_that(
                lambda target=target, process=process: (
                    len(committed(out)) >= target or process.poll() is not None
                ),
                "committed rows",
            )
            assert process.poll() is None, (tmp_path / f"told{run}").read_text()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    rows = committed(out)
    assert Counter((p, o, a) for a, p, o in rows) == Counter(
        (p, n, n) for p in (0, 1) for n in range(written)
    )


UPSERTS = """CREATE TABLE u (v BIGINT, k BIGINT, g BIGINT, PRIMARY KEY (k) NOT ENFORCED)
    WITH ('connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
    'key.format' = 'json', 'value.format' = 'json', 'scan.bounded.mode' = 'latest-offset');
"""
OF_UPSERTS = {
    "rows": ("SELECT k, v FROM u", "SELECT k, v FROM u"),
    "groups": (
        "SELECT g, COUNT(*), SUM(v) FROM u WHERE v > 40 GROUP BY g",
        "SELECT g, COUNT(*), SUM(v)::BIGINT FROM u WHERE v > 40 GROUP BY g",
    ),
}


@pytest.fixture(scope="module")
def upserts(topics: KafkaTopics) -> str:
    """Keys of 0 .. 299 come again and again, over three partitions; each seventh message deletes its key."""
    made = topics.create(partitions=PARTITIONS)
    records: list[tuple[bytes, bytes | None]] = []
    for n in range(ROWS):
        k = n * n % 300
        value = json.dumps({"k": k, "v": n % 101, "g": n % 5}).encode()
        records.append((b'{"k":%d}' % k, None if n % 7 == 3 else value))
    topics.produce(made, records)
    return made


@pytest.mark.parametrize("name", OF_UPSERTS)
def test_upserts_in_three_acts(topics: KafkaTopics, upserts: str, name: str, tmp_path: Path) -> None:
    last = {message.key(): message.value() for message in topics.read(upserts)}
    connection = duckdb.connect()
    connection.register("u", pa.Table.from_pylist([json.loads(v) for v in last.values() if v is not None]))
    query, oracle = OF_UPSERTS[name]
    expected = Counter(connection.execute(oracle).fetchall())
    text = UPSERTS.format(topic=upserts, bootstrap=topics.bootstrap) + query + ";"
    for state_dir, acts in ((None, (2,)), (tmp_path / "state", (1, 3, 2))):
        script, folded = Script("kafka", {"execution.batch.max-rows": "100"}, text), Folded()
        for number, parallelism in enumerate(acts):
            if number < len(acts) - 1:
                with gated(700):
                    run_and_stop(*script.submit(parallelism, state_dir, 20), folded, 500)
            else:
                run_to_end(*script.submit(parallelism, state_dir, 20), folded)
        script.close()
        assert folded.rows == expected
