"""The card of object storage: a job with its state and its table in a bucket is killed, and superseded while it
is alive.

Each process runs in a working directory of its own: they share nothing but the bucket. With ``--kills`` it dies
at each step of the protocol, as worker processes a worker and the coordinator die in turn. Pass: the table holds
each row once, a second process without --take-over is refused, one with it ends the first, and the checkpoints
are intact. The server is moto's, over the wire; it is slow, so the rate is low.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from penstock.client.session import Session
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.storage.locations import folders_in, storage_at
from tests.fault_injection import hosted_job
from tests.fault_injection.hosted_cluster import Cluster
from tests.fault_injection.job_process import ROOT
from tests.fault_injection.verdict import Verdict
from tests.harness.object_stores import ObjectServer, environment_of, moto_server

SCRIPT = """
CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}',
  'number-of-rows' = '{rows}', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{last}');
CREATE TABLE counted (id BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{table}', 'format' = 'parquet');
INSERT INTO counted SELECT id, id * 2 FROM numbers;
"""
TARGETS = ("coordinator", "second", "take-over")
# those that a checkpoint, the table's commit and a restore in a bucket pass
STEPS = (
    "C5",
    "C7",
    "C8",
    "C9",
    "C10",
    "C11",
    "C12",
    "S1",
    "S3",
    "S4",
    "S5",
    "S6",
    "S7",
    "G1",
    "R1",
    "R2",
    "R2b",
)
RESTORING = ("R1", "R2", "R2b")
REFUSED, FENCED = "STA-3001", "STA-3002"
_END_S = 600.0


class BucketJob:
    """Processes of one job, each in a directory of its own."""

    def __init__(self, root: Path, server: ObjectServer, bucket: str, script: str, deployment: str) -> None:
        self._root, self._server, self._script, self._deployment = root, server, script, deployment
        self.state = ObjectUrl("s3", bucket, "jobs")
        self._number = 0
        self.process = self.start()

    def start(self, *words: str, failpoints: str = "") -> subprocess.Popen[str]:
        """Start another process of the job, in which failpoints are armed."""
        self._number += 1
        place = self._root / f"process-{self._number}"
        place.mkdir()
        (place / "job.sql").write_text(self._script, encoding="utf-8")
        command = [sys.executable, "-m", "penstock", "run", "--state", str(self.state)]
        settings = [f"deployment={self._deployment}", "execution.checkpointing.interval=500 ms"]
        for setting in (*settings, "parallelism.default=2"):
            command += ["--set", setting]
        return subprocess.Popen(
            [*command, *words, "job.sql"],
            cwd=place,
            env={
                **os.environ,
                **self._server.environment,
                "PYTHONPATH": str(ROOT),
                **({"PENSTOCK_TEST": "1", "PENSTOCK_FAILPOINTS": failpoints} if failpoints else {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self) -> None:
        """Kill the process and its workers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def start_if_killed(self) -> None:
        """Start another process where the last one was killed."""
        if self.process.poll() == -signal.SIGKILL:
            self.process = self.start()

    def kill_a_worker(self, random: Random) -> bool:
        """Kill one of the process's children; return False when it has none."""
        workers = [
            int(word)
            for path in Path(f"/proc/{self.process.pid}/task").glob("*/children")
            for word in path.read_text().split()
        ]
        for worker in random.sample(workers, min(1, len(workers))):
            os.kill(worker, signal.SIGKILL)
        return bool(workers)

    def checkpoint(self) -> int:
        """Return the number of the newest checkpoint, 0 before the first."""
        for place in folders_in(self.state):
            lines = CheckpointReader(storage_at(place)).lines()
            return max((line.checkpoint_id for line in lines), default=0)
        return 0

    def await_checkpoint(self) -> None:
        """Return when a checkpoint has been taken from now on, or the process has ended."""
        before, deadline_s = self.checkpoint(), time.monotonic() + _END_S
        while self.process.poll() is None and self.checkpoint() <= before:
            assert time.monotonic() < deadline_s, "no checkpoint is taken"
            time.sleep(0.05)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--faults", type=int, default=6, help="of each of three kinds in turn")
    parser.add_argument("--kills", type=int, default=0, help="kills instead, with the other faults between")
    parser.add_argument("--rows", type=int, default=130_000)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--deployment", default="embedded", choices=("embedded", "processes", "spark"))


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    if arguments.deployment == "spark":
        _on_spark(arguments, verdict)
        return
    server, random = moto_server(), Random(arguments.seed)
    bucket = server.bucket(f"faults-{arguments.deployment}")
    table = ObjectUrl("s3", bucket, "table")
    script = SCRIPT.format(rows=arguments.rows, last=arguments.rows - 1, rate=arguments.rate, table=table)
    faults = _faults(arguments, random)
    with environment_of(server.environment):
        job = BucketJob(arguments.directory, server, bucket, script, arguments.deployment)
        try:
            for number, fault in enumerate(faults):
                if _happens(job, fault, random, verdict):
                    verdict.faults.append(f"{number}: {fault}")
                    verdict.coverage[fault] += 1
                    verdict.coverage["kills"] += fault not in TARGETS[1:]
                if job.process.poll() not in (None, -signal.SIGKILL):
                    break
            job.start_if_killed()
            said, _ = job.process.communicate(timeout=_END_S)
            verdict.check(job.process.returncode == 0, f"the job has not ended well:\n{said[-2000:]}")
        finally:
            if job.process.poll() is None:
                job.kill()
        _judge(server, bucket, job.state, arguments.rows, verdict)
    if arguments.kills:
        verdict.least = {"kills": arguments.kills} | dict.fromkeys(set(faults), 1)
    else:
        # the last fault may come when the job has ended
        verdict.least = {target: arguments.faults // len(TARGETS) - 1 for target in TARGETS}


def _faults(arguments: argparse.Namespace, random: Random) -> list[str]:
    """Return what happens: kills, of which each tenth is followed by a second process and a take-over."""
    if not arguments.kills:
        return [TARGETS[number % len(TARGETS)] for number in range(arguments.faults)]
    kinds = STEPS if arguments.deployment == "embedded" else ("worker", TARGETS[0])
    orders = (random.sample(kinds, len(kinds)) for _ in range(-(-arguments.kills // len(kinds))))
    kills = [kind for order in orders for kind in order][: arguments.kills]
    return [
        fault
        for number, kill in enumerate(kills, 1)
        for fault in (kill, *(TARGETS[1:] if number % 10 == 0 else ()))
    ]


def _happens(job: BucketJob, fault: str, random: Random, verdict: Verdict) -> bool:
    """Let a fault happen while the job is at work; return False when the job had ended before it."""
    if fault in STEPS:
        return _dies_at(job, fault, random)
    job.start_if_killed()
    job.await_checkpoint()
    time.sleep(random.random() * 0.6)
    if job.process.poll() is not None:
        return False
    return job.kill_a_worker(random) if fault == "worker" else _strike(job, fault, verdict)


def _dies_at(job: BucketJob, step: str, random: Random) -> bool:
    """Start a process that dies at a step, in place of one that runs."""
    if job.process.poll() is None:
        job.kill()
    hit = 1 if step in RESTORING else random.randint(2, 4)
    job.process = job.start(failpoints=f"{step}=kill@{hit}")
    job.process.communicate(timeout=_END_S)
    return job.process.returncode == -signal.SIGKILL


def _strike(job: BucketJob, target: str, verdict: Verdict) -> bool:
    """Do a fault; return False when the job had ended before it came."""
    if target == "coordinator":
        job.kill()
        job.process = job.start()
        return True
    second = job.start(*(["--take-over"] if target == "take-over" else []))
    if target == "second":
        said, _ = second.communicate(timeout=_END_S)
        if job.process.poll() is not None:
            return False
        return verdict.check(REFUSED in said, f"a second process was not refused:\n{said[-1000:]}")
    said, _ = job.process.communicate(timeout=_END_S)
    if job.process.returncode == 0:
        job.process = second
        return False
    verdict.check(
        job.process.returncode != 0 and (FENCED in said or "STA-3504" in said or "taken over" in said),
        f"the first process does not say that it was superseded:\n{said[-1000:]}",
    )
    job.process = second
    return True


def _on_spark(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Run the job on executors that do not see the driver's files, and kill one of its workers."""
    server = moto_server()
    bucket, temporary = server.bucket("faults-spark"), arguments.directory / "temporary"
    temporary.mkdir()
    hidden = (temporary, arguments.directory / "state")
    hidden[1].mkdir()
    variables = {**server.environment, "TMPDIR": str(temporary)}
    state, table = f"s3://{bucket}/jobs", f"s3://{bucket}/table"
    tempfile.tempdir = None
    with environment_of(variables), Cluster(arguments.directory / "cluster", 2, hidden) as cluster:
        settings = {"spark.master": cluster.master, "execution.checkpointing.dir": state}
        session = Session({**hosted_job.SETTINGS, **settings})
        try:
            statements = SCRIPT.format(
                rows=arguments.rows, last=arguments.rows - 1, rate=arguments.rate, table=table
            )
            job = None
            for statement in filter(str.strip, statements.split(";")):
                job = session.execute(statement).job
            assert job is not None
            hosted_job.until(lambda: job.metrics().checkpoints_completed >= 3, job)
            assert job.processes is not None
            hosted_job.kill(next(worker.pid for worker in job.processes.processes() if worker.pid))()
            verdict.faults.append("worker")
            verdict.coverage["workers killed"] += 1
            job.wait(None)
            verdict.check(job.error is None, f"the job has not ended well: {job.error}")
        finally:
            session.close()
        _judge(server, bucket, ObjectUrl("s3", bucket, "jobs"), arguments.rows, verdict)
    tempfile.tempdir = None


def _judge(server: ObjectServer, bucket: str, state: ObjectUrl, rows: int, verdict: Verdict) -> None:
    client = server.client(bucket)
    keys = [found.key for found in client.below("table") if found.key.endswith(".parquet")]
    seen = Counter(i for key in keys for i in pq.read_table(io.BytesIO(client.get(key)[0]))["id"].to_pylist())
    lost, doubled = rows - len(seen), seen.total() - len(seen)
    verdict.check(not lost and not doubled, f"{lost} rows lost, {doubled} doubled")
    (place,) = folders_in(state)
    reader = CheckpointReader(storage_at(place))
    damaged = [error for line in reader.lines() if line.manifest for error in reader.damage(line.manifest)]
    verdict.check(not damaged, f"damaged: {damaged}")
    segments = [name for name in storage_at(place).list() if name.startswith("seg-")]
    verdict.figures |= {"rows": rows, "files of the table": len(keys), "segments left": len(segments)}
