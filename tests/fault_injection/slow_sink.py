"""The card of unaligned checkpoints: behind a sink that takes a minute for what is queued they are done at
once, and nothing is lost or doubled.

Control: with aligned barriers no checkpoint is done as long as the queues drain.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Operator, Output, Services
from penstock.engine.api.restart_strategy import NoRestart
from penstock.engine.api.stream_elements import Batch
from penstock.engine.job.job import Job
from penstock.engine.job.job_manager import JobManager
from penstock.engine.job.job_state import JobState
from penstock.planner.logical.distribution import Partition
from penstock.planner.physical.operator_specs import Chain, ChainEdge, JobGraph, OperatorSpec
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import PATIENCE_S
from tests.harness.runtime import fakes
from tests.harness.runtime.fakes import (
    SCHEMA,
    Faults,
    Ledger,
    Ledgered,
    LedgerSink,
    Row,
    ledger_spec,
    numbers_spec,
)

BATCH_ROWS = 4
SPLITS = 4
CATCH_UP_S = 120.0
LOOK_S = 0.4
"""How long no row has to come for queues to be full."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--capacity", type=int, default=256, help="batches a channel holds")
    parser.add_argument("--sleep", type=float, default=0.12, help="seconds the sink takes for a batch")
    parser.add_argument("--checkpoints", type=int, default=10, help="unaligned ones to wait for in each run")
    parser.add_argument("--most", type=float, default=2.0, help="seconds 95 of 100 of them may take")
    parser.add_argument("--control", type=float, default=31.0, help="seconds in which no aligned one is done")


@dataclass
class Pace:
    """Seconds the sink takes for a batch, now, and whether it takes any."""

    seconds: float
    open: bool = False


class SlowSink(LedgerSink):
    """A two-phase sink that takes its time."""

    def ready(self) -> bool:
        return self._context.services.get(Pace).open

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        time.sleep(self._context.services.get(Pace).seconds)
        super().on_batch(batch, port, out)


@dataclass(frozen=True)
class Trial:
    """One job before and after it is killed."""

    name: str
    before: int
    after: int
    keys: int


TRIALS = (Trial("2 to 3", 2, 3, 40), Trial("3 to 2", 3, 2, 40), Trial("one hot key, 2 to 3", 2, 3, 1))


def build(spec: OperatorSpec, options: JobOptions) -> Operator:
    return SlowSink() if isinstance(spec.node, Ledgered) else fakes.build(spec, options)


def graph(splits: Sequence[Sequence[Row]], parallelism: int) -> JobGraph:
    """Rows by key from sources to slow sinks."""
    source = numbers_spec("src", "numbers", SCHEMA, tuple(map(tuple, splits)), BATCH_ROWS, True)
    sink = ledger_spec("sink", "ledger", SCHEMA)
    return JobGraph(
        (Chain(0, (source,), parallelism), Chain(1, (sink,), parallelism)),
        (ChainEdge(0, 1, 0, Partition((0,))),),
        16,
    )


def start(
    arguments: argparse.Namespace,
    ledger: Ledger,
    pace: Pace,
    plan: JobGraph,
    directory: Path,
    *,
    unaligned: bool,
) -> tuple[JobManager, Job]:
    manager = JobManager(Services(ledger, Faults(), pace), build=build)
    options = JobOptions(
        state_dir=directory,
        checkpoint_interval_ms=100 if unaligned else 2_000,  # an aligned one begins when the queues are full
        channel_capacity=arguments.capacity,
        # queued batches are not merged: the sink takes its time for each
        batch_max_rows=BATCH_ROWS,
        buffer_timeout_ms=0,
        restart=NoRestart(),
        unaligned=unaligned,
    )
    return manager, manager.submit(plan, options, "slow")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    rows_each = arguments.capacity * BATCH_ROWS * 4
    durations: list[float] = []
    for trial in TRIALS:
        splits = fakes.make_splits(SPLITS, rows_each, trial.keys)
        durations += _trial(arguments, verdict, trial, splits)
        verdict.coverage["killed behind full queues and restored at another parallelism"] += 1
    durations.sort()
    slow = durations[int(0.95 * (len(durations) - 1))] / 1e3
    verdict.figures["unaligned checkpoints"] = len(durations)
    verdict.figures["seconds, 95 of 100"] = round(slow, 3)
    verdict.check(slow <= arguments.most, f"an unaligned checkpoint takes {slow:.2f} s")
    verdict.figures["aligned checkpoints in the control"] = done = _control(arguments)
    verdict.check(
        done == 0, f"{done} aligned checkpoints were done in {arguments.control} s: the queues were not full"
    )
    verdict.least = {"checkpoints with rows in flight": len(TRIALS)}


def _trial(
    arguments: argparse.Namespace, verdict: Verdict, trial: Trial, splits: Sequence[Sequence[Row]]
) -> list[float]:
    """Take checkpoints behind full queues, kill, and go on at another parallelism with a sink that is
    quick.
    """
    ledger, pace = Ledger(), Pace(arguments.sleep)
    directory = arguments.directory / trial.name.replace(" ", "-").replace(",", "")
    manager, job = start(arguments, ledger, pace, graph(splits, trial.before), directory, unaligned=True)
    full = _filled(job, pace, 2 * arguments.capacity)
    _until(lambda: len(job.checkpoints) >= full + arguments.checkpoints or job.state.terminal, 120)
    taken = job.checkpoints[full:]
    job.cancel()
    manager.close()
    held = [checkpoint for checkpoint in taken if checkpoint.channel_state_rows]
    verdict.coverage["checkpoints with rows in flight"] += len(held)
    verdict.figures[f"most rows in flight, {trial.name}"] = max(
        (c.channel_state_rows for c in held), default=0
    )
    verdict.figures[f"most bytes in flight, {trial.name}"] = max(
        (c.channel_state_bytes for c in held), default=0
    )
    pace = Pace(0.0, True)
    manager, job = start(arguments, ledger, pace, graph(splits, trial.after), directory, unaligned=True)
    truth = Counter(row for split in splits for row in split)
    _until(
        lambda: sum(map(len, list(ledger.committed.values()))) >= truth.total() or job.state.terminal,
        CATCH_UP_S,
    )
    job.stop(drain=False)
    job.wait(PATIENCE_S)
    manager.close()
    verdict.check(job.state is JobState.FINISHED, f"{trial.name}: the job is {job.state}: {job.error}")
    rows = ledger.rows()
    verdict.check(
        rows == truth,
        f"{trial.name}: {(rows - truth).total()} rows too many, {(truth - rows).total()} missing",
    )
    return [checkpoint.duration_ms for checkpoint in held]


def _control(arguments: argparse.Namespace) -> int:
    """Return how many aligned checkpoints are done in time once the queues are full."""
    splits = fakes.make_splits(SPLITS, arguments.capacity * BATCH_ROWS * 4, 40)
    pace = Pace(arguments.sleep)
    manager, job = start(
        arguments, Ledger(), pace, graph(splits, 2), arguments.directory / "control", unaligned=False
    )
    full = _filled(job, pace, 2 * arguments.capacity)
    _until(lambda: False, arguments.control)
    done = len(job.checkpoints) - full
    job.cancel()
    manager.close()
    return done


def _filled(job: Job, pace: Pace, least: int) -> int:
    """Let the queues fill, with so many rows at ``least``, then open the sink; return how many checkpoints
    were done before.
    """
    given = -1
    while given < (given := job.metrics().rows_in) or given < least:
        time.sleep(LOOK_S)
    done = len(job.checkpoints)
    pace.open = True
    return done


def _until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not holds():
        time.sleep(0.02)
