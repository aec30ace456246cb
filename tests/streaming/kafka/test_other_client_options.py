"""A job resumes where only the way to its brokers has changed: other addresses, another group, another place
for new jobs to begin at. Each row is there once.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.kafka_broker import KafkaTopics, shared_topics
from tests.harness.patience import await_that

pytestmark = pytest.mark.xdist_group("kafka")
TABLE = (
    """CREATE TABLE {name} (k BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'format' = 'json', {options})"""
)


def resumed(state: Path, source: dict[str, str], sink: dict[str, str]) -> Session:
    session = Session(
        {
            "execution.checkpointing.dir": str(state),
            "execution.checkpointing.interval": "50 ms",
            "table.dml-sync": "false",
            "pipeline.name": "copies",
        }
    )
    try:
        for name, options in (("e", source), ("o", sink)):
            texts = ", ".join(f"'{key}' = '{text}'" for key, text in options.items())
            session.execute(TABLE.format(name=name, options=texts))
        session.execute("INSERT INTO o SELECT * FROM e")
    except PenstockError:
        session.close()
        raise
    return session


def test_each_row_is_written_once(tmp_path: Path) -> None:
    topics: KafkaTopics = shared_topics()
    read, written = topics.create(partitions=2), topics.create(partitions=1)

    def produce(first: int) -> None:
        for partition in range(2):
            rows = [{"k": number, "n": partition} for number in range(first, first + 50)]
            topics.produce(read, [(None, json.dumps(row).encode()) for row in rows], partition)

    def found() -> Counter[bytes | None]:
        return Counter(message.value() for message in topics.read(written))

    produce(1)
    brokers = {"properties.bootstrap.servers": topics.bootstrap}
    source, sink = {"topic": read, **brokers}, {"topic": written, **brokers}
    first = resumed(tmp_path, source, sink)
    await_that(lambda: len(found()) == 100)
    first.close()
    produce(101)
    others = {"properties.bootstrap.servers": f"{topics.bootstrap},127.0.0.1:1", "properties.client.id": "b"}
    source |= others | {"properties.group.id": f"of-{read}", "scan.startup.mode": "latest-offset"}
    second = resumed(tmp_path, source, sink | others | {"properties.linger.ms": "1"})
    await_that(lambda: len(found()) == 200)
    second.close()
    assert set(found().values()) == {1}
    with pytest.raises(PenstockError) as refused:
        resumed(tmp_path, source | {"properties.isolation.level": "read_uncommitted"}, sink)
    assert refused.value.code == "STA-3007"
