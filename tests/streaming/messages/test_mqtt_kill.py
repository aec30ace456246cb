"""A job from a topic to files is killed and started again: the broker sends again what no checkpoint had."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fault_injection.job_process import JobProcess
from tests.harness.mqtt_broker import MqttProcess, mqtt_broker
from tests.harness.patience import await_that

pytestmark = pytest.mark.xdist_group("mqtt")
SCRIPT = """
SET 'pipeline.name' = 'copied';
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'mqtt', 'url' = '{url}', 'topic' = 'numbers/+', 'format' = 'json');
CREATE TABLE copied (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json');
INSERT INTO copied SELECT n FROM numbers;
"""


def _publish(broker: MqttProcess, numbers: Iterable[int]) -> None:
    broker.publish("numbers/a", *(b'{"n":%d}' % number for number in numbers))


def _found(path: Path) -> list[int]:
    lines = (line for file in path.glob("*.json*") for line in file.read_text().splitlines())
    return [json.loads(line)["n"] for line in lines]


def test_killed_with_messages_that_no_checkpoint_has(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with mqtt_broker(tmp_path / "mqtt") as broker:
        job = JobProcess(tmp_path, SCRIPT.format(url=broker.url, path=out), "copied-1", "100 ms")
        job.start()
        # a checkpoint has the session of the job
        job.await_checkpoint()
        _publish(broker, range(2_000))
        job.await_that(lambda: _found(out))
        job.await_that(lambda: _publish(broker, range(2_000, 4_000)) or True)
        assert job.kill()
        _publish(broker, range(4_000, 5_000))
        job.start()
        await_that(lambda: set(range(5_000)) <= set(_found(out)), lambda: job.told, 0.1)
        job.kill()
        # what came again is at most what was sent since the last checkpoint
        assert len(_found(out)) < 10_000
