"""The card of hosting: a keyed window count on workers of Spark, killed, stopped and rescaled; every row
counts once, and nothing is left behind.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from penstock.client.session import Session
from penstock.engine.bounded.spark.class_data_archive import SWITCH, archive_file
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.jvm_launcher import spark_home
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.job.job import Job
from tests.fault_injection import hosted_job as hosted
from tests.fault_injection.hosted_cluster import Cluster
from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import PATIENCE_S

MASTER = "local-cluster[2,1,1024]"
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.minExecutors": "0",
}
LIMITS_S = {"Python worker killed": 1.0, "executor killed": 6.0, "worker stopped": 9.0}
PARTS = ("workers", "driver", "rescale", "standalone")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=2, help="how often each fault is tried in a run")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="outages over the limits fail the run: for a machine that has nothing else to do",
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    verdict.figures["limits_s"] = LIMITS_S
    if "workers" in arguments.parts:
        killed(arguments, verdict, MASTER, "local-cluster")
    if "driver" in arguments.parts:
        driver_killed(arguments, verdict)
    if "rescale" in arguments.parts:
        rescaled(arguments, verdict)
    if "standalone" in arguments.parts:
        with Cluster(arguments.directory / "cluster", workers=2) as cluster:
            killed(arguments, verdict, cluster.master, "standalone")


def session_on(master: str, **settings: str) -> Session:
    """Return a session whose jobs Spark hosts; a Spark that runs is ended first."""
    SESSIONS.close()
    return Session({**hosted.SETTINGS, "spark.master": master, **settings})


def killed(arguments: argparse.Namespace, verdict: Verdict, master: str, name: str) -> None:
    """Every fault of workers in one job, then its end, its answer, and what is left."""
    session = session_on(master)
    out = arguments.directory / f"{name}-out"
    try:
        job = hosted.started(session, out, arguments.rows, arguments.rate)
        for _ in range(arguments.rounds):
            pid = hosted.worker_pid(job)
            _measure(arguments, verdict, job, f"{name}: Python worker killed", hosted.kill(pid))
            pid = hosted.executor_of(hosted.worker_pid(job))
            _measure(arguments, verdict, job, f"{name}: executor killed", hosted.kill(pid))
            pid = hosted.worker_pid(job, 0)
            _measure(arguments, verdict, job, f"{name}: worker stopped", hosted.kill(pid, signal.SIGSTOP))
        pids = [hosted.worker_pid(job, place) for place in (0, 1)]
        _finish(job, out, arguments.rows, verdict, name)
        _nothing_left(session, verdict, name, pids, master)
    finally:
        session.close()
        SESSIONS.close()


def _measure(
    arguments: argparse.Namespace, verdict: Verdict, job: Job, what: str, fault: Callable[[], None]
) -> None:
    took = hosted.outage_s(job, fault)
    verdict.faults.append(what)
    verdict.coverage[what] += 1
    verdict.figures.setdefault(f"{what}, s", []).append(round(took, 2))
    limit = LIMITS_S[what.partition(": ")[2]]
    if arguments.strict:
        verdict.check(took <= limit, f"{what}: back after {took:.1f} s, not {limit} s")


def _finish(job: Job, out: Path, rows: int, verdict: Verdict, name: str) -> None:
    verdict.check(
        job.wait(hosted.PATIENCE_S), f"{name}: the job does not end: {job.state}, {job.last_failure}"
    )
    verdict.check(job.error is None, f"{name}: {job.error}")
    for sentence in hosted.wrong_counts(out, rows):
        verdict.check(False, f"{name}: {sentence}")


def _nothing_left(session: Session, verdict: Verdict, name: str, pids: list[int], master: str) -> None:
    """The cores are Spark's again within a moment, and no worker of ours is connected."""
    deadline = time.monotonic() + PATIENCE_S
    tracker = SESSIONS.new("UTC").sparkContext.statusTracker()
    while (
        tracker.getActiveJobsIds() or session.state.jobs.manager.worker_processes()
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    verdict.check(not tracker.getActiveJobsIds(), f"{name}: Spark jobs are left")
    verdict.check(not session.state.jobs.manager.worker_processes(), f"{name}: workers are left")
    sockets = [pid for pid in pids if Path(f"/proc/{pid}").exists() and _listens(pid)]
    verdict.check(not sockets, f"{name}: workers {sockets} still listen")
    verdict.coverage[f"{name}: looked for what is left"] += 1


def _listens(pid: int) -> bool:
    """Whether a process has a listening socket."""
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    table = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[3] == "0A" and line.split()[9] in inodes for line in table)


def driver_killed(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """The driver is killed: all is gone within two seconds, and the program started again goes on from the
    checkpoint.
    """
    root = arguments.directory / "driver"
    root.mkdir()
    sink, query = hosted.count_sql(root / "out")
    script = ";\n".join([hosted.numbers_sql(arguments.rows, arguments.rate), sink, query]) + ";\n"
    settings = tuple(
        f"{key}={value}"
        for key, value in hosted.SETTINGS.items()
        if "interval" not in key and "delay" not in key
    )
    job = JobProcess(
        root,
        script,
        "counts-1",
        "200 ms",
        (*settings, f"spark.master={MASTER}", "pipeline.name=counts", "table.dml-sync=true"),
    )
    try:
        job.start(parallelism=2, env=_without_writing())
        job.await_checkpoint()
        job.await_checkpoint()
        assert job.process is not None
        family = family_of(job.process.pid)
        job.kill()
        began = time.monotonic()
        while any(_lives(pid) for pid in family) and time.monotonic() < began + PATIENCE_S:
            time.sleep(0.02)
        took = time.monotonic() - began
        verdict.figures["driver killed: all gone, s"] = round(took, 2)
        verdict.check(
            took < (2.0 if arguments.strict else PATIENCE_S),
            f"after the driver, its processes took {took:.1f} s to go",
        )
        verdict.faults.append("driver killed")
        verdict.coverage["driver killed"] += 1
        before = job.newest
        job.start(parallelism=2)
        took = job.await_that(lambda: job.newest > before)
        verdict.figures["driver killed: from its restart to the next checkpoint, s"] = round(took, 2)
        verdict.check(job.wait() == 0, f"driver: the second run failed: {job.told[-500:]}")
        for sentence in hosted.wrong_counts(root / "out", arguments.rows):
            verdict.check(False, f"driver: {sentence}")
    finally:
        job.reap()


def _without_writing() -> dict[str, str]:
    """Return the environment in which no virtual machine stays to write its archive of classes, which
    takes half a minute, when its parent dies.
    """
    there = archive_file(find_java(), spark_home() / "jars").is_file()
    return {} if there else {SWITCH: "off"}


def family_of(pid: int) -> list[int]:
    """Return the processes below one: virtual machines, daemons, workers."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.splitlines())}
    below, grown = {pid}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return sorted(below - {pid})


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def rescaled(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """One worker, two, one again, on executors that Spark starts and lets go as they are needed."""
    session = session_on(
        MASTER,
        **DYNAMIC,
        **{
            "parallelism.default": "1",
            "execution.checkpointing.dir": str(arguments.directory / "rescale-state"),
        },
    )
    out = arguments.directory / "rescale-out"
    try:
        job = hosted.started(session, out, arguments.rows, arguments.rate)
        for then in (2, 1):
            began = time.monotonic()
            session.execute(f"ALTER JOB '{job.job_id}' SET PARALLELISM {then}")
            hosted.until(
                lambda then=then: (
                    len(job.processes.members()) == then
                    and all(each.deployed for each in job.processes.members())
                ),
                job,
            )
            verdict.figures.setdefault("rescaled 1 to 2 to 1, s", []).append(
                round(time.monotonic() - began, 2)
            )
            completed = job.metrics().checkpoints_completed
            hosted.until(lambda completed=completed: job.metrics().checkpoints_completed > completed + 2, job)
            verdict.coverage[f"rescaled to {then}"] += 1
        spark = SESSIONS.new("UTC").sparkContext
        verdict.check(
            len(spark.statusTracker().getActiveJobsIds()) == 1,
            "rescale: the job of the worker that was given back goes on",
        )
        _finish(job, out, arguments.rows, verdict, "rescale")
    finally:
        session.close()
        SESSIONS.close()
