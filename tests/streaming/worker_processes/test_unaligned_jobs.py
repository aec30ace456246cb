"""Barriers that overtake rows between worker processes: what was in flight, on either side of a
connection, is restored at any parallelism.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from penstock.client.session import Session
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.deploy.coordinator.job_workers import ProcessWorkers
from penstock.engine.job.job import Job
from penstock.engine.task_manager.task_deployment import Deployment
from tests.harness.patience import PATIENCE_S, await_that

ROWS = 200_000
# Long enough for the sources to be blocked on a machine whose one core ten programs share: only then are rows
# left that have not been sent. After a checkpoint with such rows the test goes on at once.
SLOW_S = 0.5
KEYS = 40
SETTINGS = {
    "deployment": "processes",
    "parallelism.default": "2",
    "pipeline.max-parallelism": "12",
    "bounded.backend": "duckdb",
    "table.dml-sync": "false",
    "optimizer.split-aggregates": "false",
    "execution.batch.max-rows": "500",
    "execution.checkpointing.interval": "50 ms",
    "execution.checkpointing.min-pause": "500 ms",
    "execution.checkpointing.unaligned.enabled": "true",
    "restart-strategy.delay": "50 ms",
    "python.modules": "of_slow_workers",
}
MODULE = """
import os, time
import penstock

@penstock.udf(["BIGINT"], "BIGINT")
def slowly(sums):
    if os.path.exists({flag!r}):
        time.sleep({slow_s})
    return sums
"""
TABLES = """
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'splits' = '3', 'rows-per-second' = '0',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{rows}');
CREATE TABLE sums (k BIGINT, c BIGINT, s BIGINT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'debezium-json');
CREATE FUNCTION slowly AS 'of_slow_workers.slowly';
"""
INSERT = f"INSERT INTO sums SELECT n % {KEYS}, COUNT(*), slowly(SUM(n)) FROM numbers GROUP BY n % {KEYS}"


def in_flight(manifest: Manifest) -> int:
    return sum(task.channel_state_rows for task in manifest.tasks)


def unsent(manifest: Manifest) -> int:
    """Return how many rows of a checkpoint had not left the process that made them."""
    return sum(
        group.rows
        for task in manifest.tasks
        for part in task.keyed
        if part.state.startswith("@output")
        for group in part.groups
    )


def without_unsent(manifest: Manifest) -> Manifest:
    """The planted bug."""
    tasks = (
        replace(task, keyed=tuple(part for part in task.keyed if not part.state.startswith("@output")))
        for task in manifest.tasks
    )
    return replace(manifest, tasks=tuple(tasks))


class Noted:
    """The checkpoints published, and those that deployments start from, of which ``change`` may make
    others.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        change: Callable[[Manifest], Manifest] = lambda manifest: manifest,
    ) -> None:
        self.published: list[Manifest] = []
        self.restored: list[Manifest] = []
        self._wanted = self._held = False
        publish, deploy = CheckpointStore.publish, ProcessWorkers.deploy

        def noted_publish(store: CheckpointStore, manifest: Manifest) -> Manifest:
            if self._held:
                raise OSError("no checkpoint after the one that was waited for")
            self.published.append(publish(store, manifest))
            self._held = self._wanted and in_flight(manifest) > unsent(manifest) > 0
            return self.published[-1]

        def noted_deploy(workers: ProcessWorkers, deployment: Deployment) -> object:
            self._wanted = self._held = False
            if deployment.restore is not None:
                self.restored.append(deployment.restore.manifest)
                deployment = replace(
                    deployment,
                    restore=replace(deployment.restore, manifest=change(deployment.restore.manifest)),
                )
            return deploy(workers, deployment)

        monkeypatch.setattr(CheckpointStore, "publish", noted_publish)
        monkeypatch.setattr(ProcessWorkers, "deploy", noted_deploy)

    def await_unsent(self, job: Job) -> None:
        """Wait for a checkpoint with rows in flight on both sides of a connection, which stays the last
        one of this deployment.
        """
        self._wanted = True
        until(lambda: self._held, job)


def until(reached: Callable[[], bool], job: Job) -> None:
    await_that(reached, lambda: f"what was waited for of {job.state}, {job.last_failure}, {job.metrics()}")


def started(session: Session) -> Job:
    job = session.execute(INSERT).job
    assert job is not None
    assert job.processes is not None
    return job


def written(out: Path) -> Counter[tuple[int, int, int]]:
    """Return what the changes in a directory add up to."""
    left: Counter[tuple[int, int, int]] = Counter()
    for path in sorted(path for path in out.glob("*") if path.is_file()):
        for line in path.read_text(encoding="utf-8").splitlines():
            change = json.loads(line)
            for side, weight in (("before", -1), ("after", 1)):
                if change.get(side):
                    left[change[side]["k"], change[side]["c"], change[side]["s"]] += weight
    return Counter({row: weight for row, weight in left.items() if weight})


def expected() -> Counter[tuple[int, int, int]]:
    query = (
        f"SELECT n % {KEYS}, count(*), sum(n)::BIGINT FROM range(1, {ROWS + 1}) AS numbers(n) GROUP BY ALL"
    )
    return Counter(duckdb.connect().sql(query).fetchall())


def opened(directory: Path, parallelism: int) -> Session:
    session = Session(
        {
            **SETTINGS,
            "execution.checkpointing.dir": str(directory / "state"),
            "parallelism.default": str(parallelism),
        }
    )
    for statement in session.parse(TABLES.format(rows=ROWS, out=directory / "out")):
        session.run(statement)
    return session


def moved(directory: Path, noted: Noted, parallelism: int, *, killed: bool) -> Counter[tuple[int, int, int]]:
    """Behind slow tasks kill a worker of two, if so wished, then the job, and let it finish on others;
    return what it has written.
    """
    flag = directory / "slow"
    flag.touch()
    (directory / "of_slow_workers.py").write_text(
        MODULE.format(flag=str(flag), slow_s=SLOW_S), encoding="utf-8"
    )
    session = opened(directory, 2)
    try:
        job = started(session)
        noted.await_unsent(job)
        if killed:
            os.kill(job.processes.processes()[1].pid or 0, signal.SIGKILL)
            until(lambda: len(noted.restored) == 1, job)
            noted.await_unsent(job)
            assert (job.metrics().restarts, job.metrics().workers_lost) == (1, 1)
        job.cancel()
        assert job.wait(PATIENCE_S)
    finally:
        session.close()
    flag.unlink()
    session = opened(directory, parallelism)
    try:
        job = started(session)
        assert job.wait(PATIENCE_S)
        assert job.error is None
        assert job.metrics().restarts == 0
        return written(directory / "out")
    finally:
        session.close()


def test_rows_in_flight_between_workers_survive_a_kill_and_another_parallelism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    noted = Noted(monkeypatch)
    assert moved(tmp_path, noted, 3, killed=True) == expected()
    assert len(noted.restored) == 2
    for manifest in noted.restored:
        assert in_flight(manifest) > unsent(manifest) > 0
        assert {operator.parallelism for operator in manifest.operators} == {2}


@pytest.mark.at_length
def test_rows_that_had_not_left_a_worker_forgotten_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    noted = Noted(monkeypatch, without_unsent)
    counted = sum(count for _, count, _ in moved(tmp_path, noted, 1, killed=False))
    assert counted == ROWS - unsent(noted.restored[0]) < ROWS
