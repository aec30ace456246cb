"""The job manager: it accepts job graphs and steps every job's master. It does so on one thread, which sleeps
until a message is posted or a timer is due.
"""

from __future__ import annotations

import itertools
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.catalog.connectors.registry import reload_ms
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.locations import ObjectUrl, parse_location
from penstock.engine.api.operator import BuildOperator, Services
from penstock.engine.api.threads import EngineThread
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.plan_identity import PlanIdentity, plan_identity
from penstock.engine.checkpoint.savepoints import start_from
from penstock.engine.checkpoint.store import CheckpointStore, Opened
from penstock.engine.job.job import Job
from penstock.engine.job.job_events import RescaleRequested
from penstock.engine.job.job_master import JobMaster, Posted
from penstock.engine.job.job_state import JobState
from penstock.engine.job.query_evolution import continued, fits_better
from penstock.engine.operators.factory import build_operator
from penstock.engine.storage.locations import storage_at
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.storage.storage import Storage, check_name, directory_name
from penstock.engine.task_manager.task_deployment import Deployer
from penstock.engine.task_manager.task_manager import IoThread, ThreadedWorkers
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import JobGraph

if TYPE_CHECKING:
    from penstock.engine.deploy.coordinator.job_workers import ProcessWorkers
    from penstock.engine.deploy.coordinator.process_runtime import ProcessRuntime
    from penstock.engine.deploy.coordinator.worker_handle import WorkerProcess

History = Callable[[], JobGraph]
Former = Callable[[], Iterator[JobGraph]]
# much shorter than the 30 s (LEASE_S) after which another process may take a silent lock over
RENEW_MS = 2_000.0
CLOSE_MS = 60_000.0


def draw_owner() -> str:
    """Return an owner id that no other job anywhere has."""
    return secrets.token_hex(8)


class JobManager:
    """Runs jobs in this process. ``build`` creates operators from specs; ``draw`` returns the owner id of a
    new job, under which its sinks stage.
    """

    def __init__(
        self,
        services: Services,
        clock: Clock | None = None,
        build: BuildOperator = build_operator,
        draw: Callable[[], str] = draw_owner,
    ) -> None:
        self._services = services
        self._clock = clock if clock is not None else SystemClock()
        self._build = build
        self._draw = draw
        # By id, the newest run of each; jobs that have ended stay until their id is used again.
        self._jobs: dict[str, Job] = {}
        # By job id: which state its plan has, so that a rescale is refused before it stops anything.
        self._fingerprints: dict[str, str] = {}
        # Masters that are stepped, and those that wait for their first step; only the jobs' thread moves
        # them.
        self._masters: list[JobMaster] = []
        self._starting: list[JobMaster] = []
        # Their locks are renewed while the job runs.
        self._stores: dict[JobMaster, CheckpointStore] = {}
        self._renew_at_ms = 0.0
        # ``_changed`` guards the wait; ``_woken`` says that a message came since the last step began.
        self._changed = threading.Condition()
        self._woken = False
        self._closed = False
        # told what a store of state makes a job wait for
        self.told: Callable[[str], None] | None = None
        # of jobs without a directory; sessions submit at the same time
        self._numbers = itertools.count(1)
        self._runtimes_lock = threading.Lock()
        self._io = IoThread("penstock-io")
        self._thread: threading.Thread | None = None
        # By kind of workers; created with the first job that needs them.
        self._runtimes: dict[object, ProcessRuntime] = {}

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC by the clock of the jobs."""
        return self._clock.wall_ms()

    def submit(
        self,
        graph: JobGraph,
        options: JobOptions,
        job_id: str | None = None,
        history: History | None = None,
        former: Former | None = None,
    ) -> Job:
        """Start a job, from its newest checkpoint when ``options.state_dir`` has one. A job recorded as
        finished is not run again.

        ``job_id`` names the job's directory in ``state_dir``. By default it is derived from the job's name,
        and is new each time without ``state_dir``. A job without checkpoints starts from
        ``options.savepoint`` if set. A job that has neither first runs the plan that ``history`` returns;
        ``graph`` then resumes after it. ``former`` yields the plans that older versions made of the query:
        one runs where more of the checkpoint fits it. Raises STA-3xxx when the state is in use, damaged, or
        another query's.
        """
        if self._closed:
            raise PenstockError("RUN-2901", "the engine has been closed", sqlstate="08003")
        # Everything that may refuse the job comes before any task is created.
        if isinstance(options.state_dir, ObjectUrl):
            _refuse_staged_inputs(graph, options.state_dir)
        job_id = self._job_id(job_id, options)
        plan = plan_identity(graph)
        store = self._store(options, job_id, keeps=history is not None)
        # Nothing stored: no checkpoint to restore, not finished, ids from 1.
        opened, diff, first, owner, former_plan = Opened(None, False, 1), None, None, self._draw(), None
        if store is not None:
            try:
                # before the lock: a state of another job must not even get a new epoch
                store.check_job_name(options.name)
                opened = store.open(take_over=options.take_over)
                if options.savepoint is not None:
                    # a directory with checkpoints ignores the savepoint
                    opened = start_from(options.savepoint, store, opened)
                if opened.latest is not None:
                    graph, plan, former_plan = _fitting(opened.latest, graph, plan, former)
                    latest, diff = continued(opened.latest, plan, allowed=options.ignore_unclaimed_state)
                    opened = replace(opened, latest=latest)
                    # a restart may read a checkpoint of the former query again: map it like the first one
                    store.view = lambda manifest: continued(manifest, plan, allowed=True)[0]
                elif history is not None and not opened.finished:
                    # neither a checkpoint nor a savepoint: load the history first
                    first = history()
                # The drawn id is used for new directories only; an existing one has its own.
                if not opened.finished:
                    owner = store.own(owner, options.name)
                # A job whose script is recorded can be run again by another process.
                if options.record is not None and not opened.finished:
                    store.record_job(replace(options.record, started_at_ms=self._clock.wall_ms()))
            # The directory stays locked until ``close``: on every failure it is released.
            except OSError as cause:
                store.close()
                message = f"the state of job {job_id} cannot be opened: {cause.strerror or cause}"
                raise PenstockError(
                    "STA-3052", message, kind=Kind.EXTERNAL, retriable=True, sqlstate="58030"
                ) from cause
            except BaseException:
                store.close()
                raise
        storage = None if store is None else store.storage
        job = Job(job_id, options.name, storage, self._clock.wall_ms())
        job.state_diff, job.former_plan = diff, former_plan
        try:
            return self._start(job, graph, options, plan, store, opened, first, owner)
        except PenstockError:  # it cannot run in the requested deployment
            if store is not None:
                store.close()
            raise

    def rescale(self, job: Job, graph: JobGraph) -> None:
        """Switch a job to ``graph``, its own plan at another parallelism. STA-3038 when it stores no
        checkpoints, STA-3039 for another plan.
        """
        if job.checkpoint_storage is None:
            hint = (
                "start jobs with --state DIR, or SET 'execution.checkpointing.interval', to be able to "
                "rescale them"
            )
            raise PenstockError(
                "STA-3038",
                f"job {job.job_id} has no checkpoints to resume from",
                hint=hint,
                sqlstate="55000",
            )
        # Checked by the fingerprint: it depends on operators with state, not on parallelism.
        plan = plan_identity(graph)
        if plan.fingerprint != self._fingerprints[job.job_id]:
            hint = "STOP JOB 'id' and start it again at the parallelism wanted"
            raise PenstockError(
                "STA-3039",
                f"job {job.job_id} has other state at that parallelism",
                hint=hint,
                sqlstate="55000",
            )
        job.rescale(RescaleRequested(graph, plan))

    def suspend(self, job: Job) -> None:
        """Stop a job with a last checkpoint because this process ends: its record says that another process
        resumes it. A job without a running task is cancelled, and its record says the same.
        """
        for store in tuple(self._stores.values()):
            if store.job_id == job.job_id:
                store.suspends = True
        # no task runs that could take a checkpoint
        if job.state is JobState.RESTARTING:
            job.cancel()
        else:
            job.stop()

    def forget(self, job: Job) -> None:
        """Forget a job that has ended; its handle stays with its owner."""
        if job.state.terminal and self._jobs.get(job.job_id) is job:
            self._jobs.pop(job.job_id, None)
            self._fingerprints.pop(job.job_id, None)

    def jobs(self) -> list[Job]:
        """Return all jobs submitted here, oldest first."""
        return list(self._jobs.values())

    def worker_processes(self) -> list[WorkerProcess]:
        """Return all worker processes, of whichever job."""
        return [worker for runtime in self._runtimes.values() for worker in runtime.pool.workers()]

    def close(self) -> None:
        """Cancel every job, wait until all have ended, and end the threads. A job that does not end within
        ``CLOSE_MS`` is abandoned.
        """
        # The jobs' thread ends once this is set and no master is left.
        self._closed = True
        for job in self.jobs():
            job.cancel()
        until_ms = self._clock.monotonic_ms() + CLOSE_MS
        if not all(job.wait(max(0.0, until_ms - self._clock.monotonic_ms()) / 1e3) for job in self.jobs()):
            # a task may be in a step that never ends
            return  # its threads end with the process
        # It may be asleep without a timer.
        self._wake()
        if self._thread is not None:
            self._thread.join()
        self._io.close()
        for runtime in self._runtimes.values():
            runtime.close()

    def _start(
        self,
        job: Job,
        graph: JobGraph,
        options: JobOptions,
        plan: PlanIdentity,
        store: CheckpointStore | None,
        opened: Opened,
        first: JobGraph | None,
        owner: str,
    ) -> Job:
        # Workers report to the master, which is built with them. No report comes before it has deployed.
        posts: list[JobMaster] = []
        live = None if first is None else RescaleRequested(graph, plan)

        def post(message: Posted) -> None:
            posts[0].post(message)

        workers, on_end = self._workers(job, graph, options, post)
        keeps, whose = store is not None, {"job_id": job.job_id, "owner": owner}
        deployer = Deployer(
            first or graph, options, self._services, self._clock, self._build, keep_snapshots=keeps, **whose
        )
        master = JobMaster(
            job.job_id, deployer, plan, workers, store, opened, live=live, wake=self._wake, on_end=on_end
        )
        posts.append(master)
        if store is not None:
            self._stores[master] = store
        job.attach(master)
        self._jobs[job.job_id] = job
        self._fingerprints[job.job_id] = plan.fingerprint
        # The master is stepped by the jobs' thread alone, from its start on.
        with self._changed:
            self._starting.append(master)
            if self._thread is None:
                self._thread = EngineThread(target=self._run, name="penstock-jobs")
                self._thread.start()
        self._wake()
        return job

    def _workers(
        self, job: Job, graph: JobGraph, options: JobOptions, post: Callable[[Any], None]
    ) -> tuple[ThreadedWorkers | ProcessWorkers, Callable[[], None]]:
        """Return the executor of a job's tasks, and the callback for the job's end."""
        if options.deployment == "embedded":
            return ThreadedWorkers(f"penstock-{job.job_id}", self._clock, post, self._io), job.ended
        runtime = self._process_runtime(options)
        # Workers in other processes write their parts into the same directory.
        state = None if job.checkpoint_storage is None else parse_location(str(job.checkpoint_storage))
        workers = runtime.workers(job.job_id, graph, options, state, post)
        job.processes = workers

        def on_end() -> None:
            runtime.ended(job.job_id, workers)
            job.ended()

        return workers, on_end

    def _process_runtime(self, options: JobOptions) -> ProcessRuntime:
        """Return the runtime for workers of a kind. Jobs on Spark with equal options share one."""
        kind = options.cluster if options.deployment == "spark" else options.deployment
        with self._runtimes_lock:
            if kind not in self._runtimes:
                # lazy: sockets and processes only once a job wants workers
                from penstock.engine.deploy.coordinator.process_runtime import ProcessRuntime

                self._runtimes[kind] = ProcessRuntime(self._clock, self._services, self._io, options)
            return self._runtimes[kind]

    def _store(self, options: JobOptions, job_id: str, *, keeps: bool) -> CheckpointStore | None:
        """Return the store of the job's checkpoints: its directory, else memory if it takes checkpoints
        (``keeps``: at least one), else None.

        Workers cannot reach this process's memory: for them it is a directory that is deleted with the
        session.
        """
        storage: Storage
        # A directory that outlives the process.
        if options.state_dir is not None:
            storage = storage_at(options.state_dir / job_id, self.told)
        elif options.checkpoint_interval_ms <= 0 and options.savepoint is None and not keeps:
            return None
        else:
            storage = (
                MemoryStorage()
                if options.deployment == "embedded"
                else storage_at(self._process_runtime(options).state_dir(job_id))
            )
        return CheckpointStore(
            storage, job_id, options.retained_checkpoints, fallback=options.restore_fallback
        )

    def _job_id(self, wanted: str | None, options: JobOptions) -> str:
        """Return the job id. With a state directory it is the same in every run; without, it is new."""
        job_id = check_name(wanted) if wanted else directory_name(options.name)
        # Without a directory the id is new in every run: time, process and a number.
        if not wanted and options.state_dir is None:
            job_id = f"{job_id}-{self._clock.wall_ms():x}-{os.getpid():x}-{next(self._numbers)}"
        # two masters of one id would share a directory of checkpoints
        if job_id in self._jobs and not self._jobs[job_id].state.terminal:
            raise PenstockError(
                "RUN-2902",
                f"job {job_id} is running already",
                hint="cancel it first, or give this one another name",
                sqlstate="55006",
            )
        # The former run of this id has ended: its handle stays with its owner.
        self._jobs.pop(job_id, None)
        return job_id

    def _wake(self) -> None:
        # Read without the lock: another thread has woken the jobs' thread already, and it has not begun its
        # step.
        if self._woken:
            return
        with self._changed:
            self._woken = True
            self._changed.notify()

    def _run(self) -> None:
        while not (self._closed and not self._masters and not self._starting):
            # Reset before the step: a message posted during the step sets it again, and the wait below is
            # skipped.
            self._woken = False
            due_ms = self._step_all()
            timeout_s = None if due_ms is None else max(0.0, due_ms - self._clock.monotonic_ms()) / 1e3
            with self._changed:
                # Checked under the lock, as ``_wake`` sets it under the lock: no wake-up is lost between
                # check and wait.
                if not self._woken and not (self._closed and not self._masters):
                    self._changed.wait(timeout_s)

    def _step_all(self) -> float | None:
        """Step every job's master; return when the next step is due."""
        while self._starting:
            master = self._starting.pop(0)
            self._masters.append(master)
            _guarded(master, master.start)
        due_ms = None
        # a step may end a master, which removes it from the list
        for master in tuple(self._masters):
            wanted_ms = _guarded(master, master.step)
            if master.state.terminal:
                self._masters.remove(master)
                # Its directory was closed by the master: nothing to renew.
                self._stores.pop(master, None)
            elif wanted_ms is not None and (due_ms is None or wanted_ms < due_ms):
                due_ms = wanted_ms
        return self._renew(due_ms)

    def _renew(self, due_ms: float | None) -> float | None:
        """Renew the locks of the jobs' directories every ``RENEW_MS``. A job that another process has taken
        over ends. Return the time of the next step.
        """
        if not self._stores:
            return due_ms
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._renew_at_ms:
            self._renew_at_ms = now_ms + RENEW_MS
            # Renewing raises STA-3002 after a take-over, which ends the job.
            for master, store in tuple(self._stores.items()):
                _guarded(master, store.renew)
        return self._renew_at_ms if due_ms is None else min(due_ms, self._renew_at_ms)


def _guarded(master: JobMaster, call: Callable[[], Any]) -> Any:
    """Call into a master. An error of its own ends its job, not the thread that all jobs share."""
    try:
        return call()
    except BaseException as cause:  # noqa: BLE001 - becomes the job's error
        master.abort(cause)
        return None


def _refuse_staged_inputs(graph: JobGraph, state: ObjectUrl) -> None:
    """Refuse inputs whose rows are staged in files beside the checkpoints, where there are no files:
    DAT-5513.
    """
    for chain in graph.chains:
        for spec in chain.operators:
            reloaded = isinstance(spec.node, LookupJoin) and reload_ms(spec.node.scan.table) is not None
            if isinstance(spec.node, BoundedInput) or reloaded:
                raise PenstockError(
                    "DAT-5513",
                    f"{spec.name} stages rows of a table that ends beside the checkpoints, which {state} "
                    "has no directory for",
                    hint="keep the state in a directory that all machines share, or read the table as a "
                    "stream with 'source.monitor-interval'",
                    sqlstate="0A000",
                )


def _fitting(
    latest: Manifest, graph: JobGraph, plan: PlanIdentity, former: Former | None
) -> tuple[JobGraph, PlanIdentity, int | None]:
    """Return the plan that a checkpoint fits: a former one only where more of the checkpoint fits it. The
    last value is its number; None: it is none of them.
    """
    chosen = None
    if former is not None and latest.fingerprint != plan.fingerprint:
        for number, other in enumerate(former()):
            identity = plan_identity(other)
            if fits_better(latest, identity, plan):
                graph, plan, chosen = other, identity, number
    return graph, plan, chosen
