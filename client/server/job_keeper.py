"""The jobs of a server beyond its process: resumed when it starts, suspended when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.client.execution.engine_jobs import CANCEL_S
from penstock.client.execution.engine_state import ENDED_JOBS
from penstock.client.execution.recorded_jobs import RecordedJob, recorded_jobs
from penstock.client.execution.session_settings import is_engine_setting
from penstock.client.session import Session
from penstock.engine.api.job_options import RUNNING, SUSPENDED
from penstock.engine.checkpoint.store import FINISHED
from penstock.engine.storage.locations import exists

if TYPE_CHECKING:
    from penstock.client.execution.engine_state import EngineState
    from penstock.engine.job.job import Job

# a last checkpoint of large state takes long; then the job is cancelled, and resumes from the one before
SUSPEND_S = 60.0


class JobKeeper:
    """Resumes the jobs of a state and suspends them. ``report`` takes what happens to each job."""

    def __init__(self, engine: EngineState, report: Callable[[str, dict[str, str]], None]) -> None:
        self._engine = engine
        self._report = report

    def resume_all(self) -> list[PenstockError]:
        """Resume every job that ran when the last server ended; return the errors of those that cannot. A
        job that a user stopped or cancelled, and one that failed, stays as it is.
        """
        state_dir, errors = self._engine.state_dir, []
        assert state_dir is not None
        # a state that is new
        if not exists(state_dir):
            return []
        all_recorded = recorded_jobs(state_dir)
        self._remove_finished(all_recorded)
        for recorded in all_recorded:
            self._engine.jobs.skip_id(recorded.record.name, recorded.job_id)
            if recorded.finished or recorded.record.status not in (RUNNING, SUSPENDED):
                continue
            try:
                self._resume(recorded)
            except PenstockError as error:
                errors.append(_unresumable(recorded, error))
        return errors

    def _remove_finished(self, all_recorded: list[RecordedJob]) -> None:
        """Remove the state of all but the newest jobs that have finished: no process resumes them."""
        # by the record as well as by the marker: a state that is half removed is not taken for a running one
        finished = [one for one in all_recorded if one.finished and one.record.status == FINISHED]
        for one in sorted(finished, key=lambda one: one.record.started_at_ms)[:-ENDED_JOBS]:
            self._engine.remove_state(one.job_id)

    def _resume(self, recorded: RecordedJob) -> None:
        """Run a job's statements in a session of their own, which the job outlives, with its settings."""
        own = {key: text for key, text in recorded.record.settings if not is_engine_setting(key)}
        session = Session(own, engine=self._engine)
        try:
            # whoever had the lease of the server is dead or fenced off, and so are its jobs
            session.state.take_over = True
            result = session.resume(recorded)
        finally:
            session.close()
        if result.job is not None:
            self._report("job resumed", {"job": result.job.job_id, "status": recorded.status.lower()})

    def suspend_all(self) -> None:
        """Stop the jobs of INSERT and of materialized views, each with a last checkpoint. The next server
        resumes those with state; of the others the rows so far are committed.
        """
        session = Session({}, engine=self._engine)
        jobs = [*session.state.insert_jobs(), *session.state.durable_view_jobs()]
        running = [job for job in jobs if not job.state.terminal]
        for job in running:
            self._engine.jobs.manager.suspend(job)
        # all were asked before the first wait, so the waits overlap
        until_s = time.monotonic() + SUSPEND_S
        for job in running:
            if not job.wait(max(0.0, until_s - time.monotonic())):
                job.cancel()
                job.wait(CANCEL_S)
        self._report_ends(running)

    def _report_ends(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            newest = job.metrics().last_checkpoint
            self._report(
                "job suspended" if self._engine.jobs.submitted[job.job_id].durable else "job stopped",
                {
                    "job": job.job_id,
                    "state": str(job.state).lower(),
                    "checkpoint": "none" if newest is None else str(newest.checkpoint_id),
                },
            )


def _unresumable(recorded: RecordedJob, error: PenstockError) -> PenstockError:
    return PenstockError(
        "CLI-6207",
        f"job {recorded.job_id} is not resumed: {error.code}: {error.message}",
        hint=error.hint or "mend what the error names and start the server again: its state is kept",
        sqlstate="55000",
    )
