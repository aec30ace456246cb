"""A job from a topic to a topic and to upserts in three acts: row by row; with checkpoints; killed in the middle of a
transaction and resumed with another parallelism. The stock client of Kafka reads what is committed.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import penstock
from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.kafka_job import JOB, CopiedTopics
from tests.harness.kafka_broker import KafkaTopics, shared_topics

pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


def settings(directory: Path, batch: int) -> dict[str, str]:
    return {
        "table.dml-sync": "true",
        "execution.batch.max-rows": str(batch),
        "execution.checkpointing.dir": str(directory),
        "execution.checkpointing.interval": "20 ms",
    }


def test_with_checkpoints(topics: KafkaTopics, tmp_path: Path) -> None:
    copied = CopiedTopics(topics, 1_000)
    with penstock.connect(settings=settings(tmp_path, 50)) as db:
        db.executescript(copied.script())
    copied.check_all()
    assert copied.wrong == []


def test_one_row_at_a_time(topics: KafkaTopics, tmp_path: Path) -> None:
    copied = CopiedTopics(topics, 100, partitions=1)
    with penstock.connect(settings=settings(tmp_path, 1)) as db:
        db.executescript(copied.script())
    copied.check_all()
    assert copied.wrong == []


def test_killed_in_a_transaction_and_rescaled(topics: KafkaTopics, tmp_path: Path) -> None:
    copied = CopiedTopics(topics, 1_000)
    job = JobProcess(tmp_path, copied.script(rate=1_000), JOB, "50 ms")
    try:
        for parallelism, step in ((1, "K2"), (3, "")):
            job.failpoints = f"{step}=kill@2" if step else ""
            job.start(parallelism=parallelism)
            assert job.wait() == (-signal.SIGKILL if step else 0), job.told
            copied.read()
    finally:
        job.reap()
    copied.check_all()
    assert copied.wrong == []
