"""Jobs on real threads, end to end."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Operator
from penstock.engine.api.restart_strategy import FixedDelay
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.job.job_manager import JobManager
from penstock.engine.job.job_state import JobState
from penstock.engine.task.operator_chain import OperatorChain
from penstock.engine.task_manager.task_manager import Slot, ThreadedWorkers
from penstock.planner.logical.distribution import Partition
from penstock.planner.physical.operator_specs import OperatorSpec
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.runtime.fakes import (
    Faults,
    Ledger,
    build,
    expected,
    make_splits,
    services,
    window_job,
)

SPLITS = make_splits(4, 60, 5)
RETRY = FixedDelay(attempts=5, delay=1.0)


def run(graph, options, ledger, faults=None, timeout_s=20.0):
    manager = JobManager(services(ledger, faults), SystemClock(), build)
    job = manager.submit(graph, options)
    ended = job.wait(timeout_s)
    metrics = job.metrics()
    manager.close()
    assert ended, job.state
    return job, metrics


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_finite_job_commits_everything_at_its_end(parallelism: int) -> None:
    ledger = Ledger()
    job, metrics = run(window_job(SPLITS, parallelism=parallelism), JobOptions(), ledger)
    assert job.state is JobState.FINISHED
    assert ledger.rows() == expected(SPLITS, 10)
    assert not ledger.staged
    assert metrics.rows_in == 240
    assert metrics.late_rows == 0
    assert metrics.windows_closed == len(expected(SPLITS, 10))


def test_unequal_parallelism_and_zero_buffer_timeout() -> None:
    ledger = Ledger()
    run(
        window_job(SPLITS, parallelism=3, sources=2, sink_edge=Partition((0,))),
        JobOptions(buffer_timeout_ms=0, channel_capacity=1),
        ledger,
    )
    assert ledger.rows() == expected(SPLITS, 10)


@pytest.mark.parametrize("name", ["numbers", "pass", "window sum", "ledger"])
def test_failure_restarts_from_the_last_checkpoint(name: str, tmp_path: Path) -> None:
    ledger, faults = Ledger(), Faults({name: 20})
    options = JobOptions(state_dir=tmp_path, checkpoint_interval_ms=1, restart=RETRY, buffer_timeout_ms=0)
    job, metrics = run(window_job(SPLITS), options, ledger, faults)
    assert job.state is JobState.FINISHED, job.error
    assert metrics.restarts == 1
    assert ledger.rows() == expected(SPLITS, 10)


def test_failure_without_state_restarts_from_scratch_while_nothing_is_committed() -> None:
    ledger, faults = Ledger(), Faults({"window sum": 10})
    job, _ = run(window_job(SPLITS), JobOptions(restart=RETRY), ledger, faults)
    assert job.state is JobState.FINISHED
    assert ledger.rows() == expected(SPLITS, 10)


def test_user_errors_fail_at_once() -> None:
    faults = Faults({"window sum": 3}, PenstockError("RUN-2001", "bad row"))
    job, metrics = run(window_job(SPLITS), JobOptions(restart=RETRY), Ledger(), faults)
    assert job.state is JobState.FAILED
    assert metrics.restarts == 0
    assert job.error is not None
    assert (job.error.code, job.error.operator) == ("RUN-2001", "window sum")


FENCED_OFF = PenstockError("STA-3504", "a later attempt writes", kind=Kind.EXTERNAL)


class TakenOver(Faults):
    """Before the failure another process begins to write for the job of a directory."""

    directory: Path

    def check(self, name: str) -> None:
        if self.after_batches.get(name) == 0:
            (self.directory / "epoch-99").touch()
        super().check(name)


def test_a_job_that_an_earlier_attempt_has_fenced_off_restarts(tmp_path: Path) -> None:
    ledger, faults = Ledger(), Faults({"ledger": 20}, FENCED_OFF)
    options = JobOptions(state_dir=tmp_path, checkpoint_interval_ms=1, restart=RETRY, buffer_timeout_ms=0)
    job, metrics = run(window_job(SPLITS), options, ledger, faults)
    assert (job.state, metrics.restarts) == (JobState.FINISHED, 1), job.error
    assert ledger.rows() == expected(SPLITS, 10)


@pytest.mark.parametrize(
    ("error", "code"), [(FENCED_OFF, "STA-3504"), (ConnectionError("injected"), "STA-3002")]
)
def test_a_job_that_another_process_has_begins_no_attempt_that_would_fence_it_off(
    error: Exception, code: str, tmp_path: Path
) -> None:
    made = TakenOver({"numbers": 5}, error)
    made.directory = tmp_path / "job"
    options = JobOptions(state_dir=tmp_path, restart=RETRY, buffer_timeout_ms=0)
    opened: list[int] = []

    def counted(spec: Any, given: JobOptions) -> Operator:
        opened.append(1)
        return build(spec, given)

    graph = window_job(SPLITS)
    manager = JobManager(services(Ledger(), made), SystemClock(), counted)
    job = manager.submit(graph, options)
    assert job.wait(PATIENCE_S)
    manager.close()
    assert job.state is JobState.FAILED and job.error is not None and job.error.code == code
    # the operators of one deployment: none was made again
    assert len(opened) == sum(len(chain.operators) * chain.parallelism for chain in graph.chains)


def test_two_jobs_that_fence_each_other_off_do_not_go_on_for_ever(tmp_path: Path) -> None:
    class Always(Faults):
        def check(self, name: str) -> None:
            if name == "ledger":
                raise PenstockError("STA-3504", "a later attempt writes", kind=Kind.EXTERNAL)

    options = JobOptions(state_dir=tmp_path, restart=FixedDelay(attempts=100, delay=1.0), buffer_timeout_ms=0)
    job, metrics = run(window_job(SPLITS), options, Ledger(), Always())
    assert (job.state, metrics.restarts) == (JobState.FAILED, 3)
    assert job.error is not None and job.error.code == "STA-3504"


@pytest.mark.parametrize(
    "error",
    [
        TypeError("offset overflow"),
        ValueError("repeats may not contain negative values"),
        IndexError("list index out of range"),
        AssertionError(),
        MemoryError(),
        RuntimeError("no luck"),
        PenstockError("INT-9001", "no such node", kind=Kind.INTERNAL),
        PenstockError("DAT-4107", "the file has changed", kind=Kind.EXTERNAL),
        PenstockError("RUN-2001", "bad row"),
    ],
    ids=lambda error: getattr(error, "code", type(error).__name__),
)
@pytest.mark.parametrize("kept", [False, True])
def test_what_would_happen_again_fails_at_once(error: Exception, kept: bool, tmp_path: Path) -> None:
    options = JobOptions(
        restart=FixedDelay(attempts=10, delay=60_000.0), state_dir=tmp_path if kept else None
    )
    job, metrics = run(window_job(SPLITS), options, Ledger(), Faults({"window sum": 3}, error))
    assert (job.state, metrics.restarts) == (JobState.FAILED, 0)
    assert job.error is not None
    assert job.error.detail is None, "told of restarts where there were none"


@pytest.mark.parametrize(
    "error", [MemoryError(), np.zeros, pa.allocate_buffer], ids=["python", "numpy", "arrow"]
)
def test_an_operator_without_memory_is_named_with_what_was_asked_for(error: Any) -> None:
    if not isinstance(error, Exception):
        with pytest.raises(MemoryError) as caught:
            error(1 << 50)
        error = caught.value
    job, metrics = run(
        window_job(SPLITS), JobOptions(restart=RETRY), Ledger(), Faults({"window sum": 3}, error)
    )
    assert (job.state, metrics.restarts) == (JobState.FAILED, 0)
    assert job.error is not None
    assert (job.error.code, job.error.operator) == ("RUN-2024", "window sum")
    assert "window sum: there is not enough memory to hold its rows" in job.error.message
    assert ("asked for at once" in job.error.message) == bool(str(error))


@pytest.mark.parametrize("what", ["snapshot", "write"])
def test_a_checkpoint_without_memory_ends_the_job_and_says_so(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Any:
        raise MemoryError("malloc of size 12345 failed")

    if what == "snapshot":
        monkeypatch.setattr(OperatorChain, "_snapshot", full)
    else:
        monkeypatch.setattr(CheckpointStore, "write_task", full)
    options = JobOptions(state_dir=tmp_path, checkpoint_interval_ms=1, restart=RETRY)
    job, metrics = run(window_job(SPLITS, endless=True), options, Ledger())
    assert (job.state, metrics.restarts) == (JobState.FAILED, 0)
    assert job.error is not None and job.error.code == "RUN-2024"
    doing = "copy its state for a checkpoint" if what == "snapshot" else "write or read the job's state"
    assert f"there is not enough memory to {doing}: 12,345 bytes were asked for at once" in job.error.message


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("peer"),
        TimeoutError("late"),
        OSError(28, "No space left on device"),
        PenstockError("RUN-2910", "worker 1 is lost", kind=Kind.EXTERNAL, retriable=True),
    ],
    ids=lambda error: getattr(error, "code", type(error).__name__),
)
def test_what_may_pass_is_tried_again(error: Exception, tmp_path: Path) -> None:
    ledger = Ledger()
    job, metrics = run(
        window_job(SPLITS),
        JobOptions(restart=RETRY, state_dir=tmp_path),
        ledger,
        Faults({"window sum": 3}, error),
    )
    assert (job.state, metrics.restarts) == (JobState.FINISHED, 1)
    assert ledger.rows() == expected(SPLITS, 10)


def test_exceptions_become_errors_that_name_the_operator() -> None:
    job, _ = run(window_job(SPLITS), JobOptions(), Ledger(), Faults({"pass": 3}))
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error.code == "RUN-2900"
    assert "pass failed: ConnectionError: injected" in job.error.message


@pytest.mark.parametrize("kept", [False, True])
def test_a_job_that_cannot_be_deployed_is_given_up(kept: bool, tmp_path: Path) -> None:
    def broken(spec: OperatorSpec, options: JobOptions) -> Operator:
        raise OSError("no such kernel")

    manager = JobManager(services(Ledger(), Faults()), SystemClock(), broken)
    job = manager.submit(window_job(SPLITS), JobOptions(restart=RETRY, state_dir=tmp_path if kept else None))
    ended = job.wait(PATIENCE_S)
    manager.close()
    assert ended, f"it is {job.state} for ever"
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert "no such kernel" in job.error.message
    assert "given up after 5 restarts" in str(job.error.detail)


def test_a_job_that_gets_no_threads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Slot.start

    def meagre(self: Slot, tasks, on_released) -> None:
        if self._thread.name.endswith("-1"):
            raise RuntimeError("can't start new thread")
        start(self, tasks, on_released)

    monkeypatch.setattr(Slot, "start", meagre)
    job, _ = run(window_job(SPLITS, parallelism=2), JobOptions(restart=RETRY), Ledger())
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert "can't start new thread" in job.error.message


def test_the_figures_of_a_job_that_ends_before_it_is_known_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short job's rows are with the client before the thread that started its tasks has gone on."""
    start, rows_read = ThreadedWorkers.start, threading.Event()

    def start_and_wait(self: ThreadedWorkers) -> None:
        start(self)
        assert rows_read.wait(PATIENCE_S)

    monkeypatch.setattr(ThreadedWorkers, "start", start_and_wait)
    manager = JobManager(services(Ledger()), SystemClock(), build)
    job = manager.submit(window_job(SPLITS), JobOptions())
    try:
        await_that(lambda: job.metrics().rows_in == 240)
    finally:
        rows_read.set()
        manager.close()


def test_finished_job_is_not_run_again(tmp_path: Path) -> None:
    ledger = Ledger()
    options = JobOptions(state_dir=tmp_path, checkpoint_interval_ms=5)
    run(window_job(SPLITS), options, ledger)
    before = dict(ledger.committed)
    job, metrics = run(window_job(SPLITS), options, ledger)
    assert job.state is JobState.FINISHED
    assert ledger.committed == before
    assert metrics.rows_in == 0


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 3), (3, 1)])
def test_stop_and_go_on_at_another_parallelism(first: int, second: int, tmp_path: Path) -> None:
    ledger = Ledger()
    options = JobOptions(
        state_dir=tmp_path, checkpoint_interval_ms=2, channel_capacity=1, buffer_timeout_ms=0
    )
    splits = make_splits(4, 100, 5)
    manager = JobManager(services(ledger), SystemClock(), build)
    job = manager.submit(window_job(splits, parallelism=first, batch_rows=1, endless=True), options)
    await_that(
        lambda: job.metrics().checkpoints_completed >= 2 or job.state.terminal, "two checkpoints", 0.001
    )
    job.stop()
    assert job.wait(PATIENCE_S)
    manager.close()
    assert job.state is JobState.FINISHED
    assert sum(ledger.rows().values()) < len(expected(splits, 10))
    run(window_job(splits, parallelism=second, batch_rows=50), options, ledger)
    assert ledger.rows() == expected(splits, 10)


def test_cancel_of_an_endless_job_and_idle_threads() -> None:
    others = set(threading.enumerate())  # of tests before this one
    manager = JobManager(services(), SystemClock(), build)
    job = manager.submit(window_job(SPLITS, endless=True), JobOptions())
    await_that(lambda: job.metrics().rows_in >= 240, "all rows")
    time.sleep(0.1)
    before, cpu = time.monotonic(), time.process_time()
    time.sleep(0.3)
    assert (time.process_time() - cpu) / (time.monotonic() - before) < 0.2
    job.cancel()
    assert job.wait(PATIENCE_S)
    assert job.state is JobState.CANCELED
    manager.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("penstock") and t not in others]


def test_one_state_directory_has_one_job(tmp_path: Path) -> None:
    options = JobOptions(state_dir=tmp_path, checkpoint_interval_ms=5)
    manager, other = (JobManager(services(), SystemClock(), build) for _ in range(2))
    job = manager.submit(window_job(SPLITS, endless=True), options)
    with pytest.raises(PenstockError) as again:
        manager.submit(window_job(SPLITS, endless=True), options)
    assert again.value.code == "RUN-2902"
    with pytest.raises(PenstockError) as locked:
        other.submit(window_job(SPLITS, endless=True), options)
    assert locked.value.code == "STA-3001"
    job.cancel()
    assert job.wait(PATIENCE_S)
    manager.close()
    other.close()


def test_another_query_is_refused(tmp_path: Path) -> None:
    options = JobOptions(state_dir=tmp_path, checkpoint_interval_ms=5)
    run(window_job(SPLITS), options, Ledger())
    graph = window_job(SPLITS)
    chains = list(graph.chains)
    spec = chains[1].operators[0]
    chains[1] = type(chains[1])(1, (replace(spec, operator_id="other", name="other sum"),), 2)
    manager = JobManager(services(), SystemClock(), build)
    with pytest.raises(PenstockError) as refused:
        manager.submit(type(graph)(tuple(chains), graph.edges, graph.max_parallelism), options)
    assert refused.value.code == "STA-3007"
    assert "window sum [sum]" in (refused.value.detail or "")
    assert "other sum [other]" in (refused.value.detail or "")
    with pytest.raises(PenstockError) as groups:
        manager.submit(window_job(SPLITS, max_parallelism=32), options)
    assert groups.value.code == "STA-3008"
    manager.close()


def test_old_checkpoints_are_deleted(tmp_path: Path) -> None:
    options = JobOptions(
        state_dir=tmp_path, checkpoint_interval_ms=1, channel_capacity=1, buffer_timeout_ms=0
    )
    run(window_job(make_splits(4, 300, 5), batch_rows=1), options, Ledger())
    names = [p.name for p in (tmp_path / "job").iterdir()]
    assert len([n for n in names if n.endswith(".manifest.json")]) == 2
    assert len([n for n in names if n.startswith("seg-")]) <= 12
    assert not [n for n in names if n.endswith(".tmp")]
