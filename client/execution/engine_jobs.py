"""The jobs of an engine: their manager, their ids, the plan of each, and the wait for the end of one."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.execution.planned_query import SubmittedJob
from penstock.engine.job.job_state import JobState

if TYPE_CHECKING:
    from penstock.engine.api.locations import Location
    from penstock.engine.api.operator import Services
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_manager import JobManager


class EngineJobs:
    """The jobs that the sessions of an engine start, and their ids; the first job starts the job manager.
    Every method may be called from any thread.

    ``submitted``: the planned query of each job, by job id. ``reported``: ids of jobs whose end was reported.
    ``on_first_job``: called when the manager starts. ``told``: told what a store of state makes a job wait
    for. ``takes_new_ids``: a new job never finds the state of a former one, because other sessions start jobs
    too.
    """

    def __init__(
        self, services: Callable[[], Services], told: Callable[[str], None], *, takes_new_ids: bool = False
    ) -> None:
        self._told = told
        self._takes_new_ids = takes_new_ids
        self.submitted: dict[str, SubmittedJob] = {}
        self.reported: set[str] = set()
        self.on_first_job: Callable[[], None] = lambda: None
        self._services = services
        self._lock = threading.Lock()
        self._manager: JobManager | None = None
        self._sink_numbers = itertools.count(1)
        self._jobs_of_name: Counter[str] = Counter()

    @property
    def manager(self) -> JobManager:
        """The job manager of this process, started by the first job."""
        # two threads may start the first job at once
        with self._lock:
            if self._manager is None:
                # the runtime and its kernels: not before a job needs them
                from penstock.engine.job.job_manager import JobManager

                self._manager = JobManager(self._services())
                self._manager.told = self._told
                self.on_first_job()
            return self._manager

    def all(self) -> list[Job]:
        """Return the jobs in the order they were started."""
        return [] if self._manager is None else self._manager.jobs()

    def forget_ended(self, kept: int, views: Collection[str]) -> list[tuple[Job, SubmittedJob]]:
        """Forget all but the newest ``kept`` jobs that have ended, and return them. ``views``: ids of the
        jobs of materialized views, which are remembered.
        """
        manager = self.manager
        with self._lock:
            ended = [
                (job, submitted)
                for job in self.all()
                # not in submitted: it is submitted at this moment
                if job.wait(0)
                and (submitted := self.submitted.get(job.job_id)) is not None
                and job.job_id not in views
            ]
            forgotten = ended[: max(0, len(ended) - kept)]
            for job, _ in forgotten:
                manager.forget(job)
                self.submitted.pop(job.job_id, None)
                self.reported.discard(job.job_id)
        return forgotten

    def skip_id(self, name: str, job_id: str) -> None:
        """Never assign an id that a former process has assigned to a job of that name."""
        number = job_id.rpartition("-")[2]
        if number.isdecimal():
            with self._lock:
                self._jobs_of_name[name] = max(self._jobs_of_name[name], int(number))

    def next_sink_number(self) -> int:
        """Return a number no other collect sink of this engine has."""
        return next(self._sink_numbers)

    def assign_id(self, name: str, state_dir: Location) -> str:
        """Return the id under which a job of that name stores its state. It is the same in the next
        process that runs the same statements, unless the engine ``takes_new_ids``.
        """
        # it reads checkpoints: the engine is not loaded before a job starts
        from penstock.client.execution.recorded_jobs import job_id_of
        from penstock.engine.storage.locations import exists

        while True:
            with self._lock:
                # insert-into-t-1, insert-into-t-2: the second INSERT into t of this session
                self._jobs_of_name[name] += 1
                number = self._jobs_of_name[name]
            # without the lock: it asks the file system or a bucket
            job_id = job_id_of(state_dir, name, number)
            if not self._takes_new_ids or not exists(state_dir / job_id):
                return job_id

    def release_id(self, name: str, job_id: str) -> None:
        """Release the id of a job that was refused. The next job of that name needs it, to find the state
        that is there.
        """
        with self._lock:
            # only the last id assigned: a number between two others is not used again
            if job_id.endswith(f"-{self._jobs_of_name[name]}"):
                self._jobs_of_name[name] -= 1

    def close(self) -> None:
        """Close the job manager, if one was started."""
        if self._manager is not None:
            self._manager.close()


CANCEL_S = 10.0
"""How long a caller waits for a cancelled job to end."""


def wait_for_job(job: Job) -> str:
    """Wait for the end of a job and return a sentence about it. Ctrl-C cancels the job. Raises as
    ``check_end`` does.
    """
    try:
        job.wait(None)
    except KeyboardInterrupt:
        job.cancel()
        # its tasks write to files and sockets that the program may close next
        job.wait(CANCEL_S)
        raise
    check_end(job)
    return (
        f"job {job.job_id} had finished before: nothing was written"
        if job.finished_before
        else f"job {job.job_id} {job.state.lower()}"
    )


def check_end(job: Job) -> None:
    """Raise the error of a failed job; RUN-2903 when it was cancelled or stopped, because not all its rows
    are written.
    """
    # failed: the user sees the reason, not "cancelled"
    if job.error is not None:
        raise job.error
    if job.state is JobState.CANCELED or job.stopped:
        how = "stopped" if job.stopped else "cancelled"
        message = f"job {job.job_id} was {how} before all its rows were written"
        hint = "run the statement again; with a state directory it resumes from its last checkpoint"
        raise PenstockError("RUN-2903", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="57014")


def report_on_stderr(sentence: str) -> None:
    """Write a sentence to stderr; a program without one (``pythonw``) misses it."""
    if sys.stderr is not None:
        sys.stderr.write(f"penstock: {sentence}\n")
        sys.stderr.flush()
