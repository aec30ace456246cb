"""The wait for jobs of scripts: progress and ends on stderr. The first signal stops, the second cancels."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.client.execution.engine_jobs import CANCEL_S, check_end
from penstock.engine.api.print_stream import READER_ENDED
from penstock.engine.api.slow_steps import SLOW_STEPS, SlowStep
from penstock.repl.launch.interrupts import is_postponed
from penstock.repl.launch.parser import EXIT_INTERRUPTED, EXIT_JOB, EXIT_OK
from penstock.repl.output.messages import Messages
from penstock.repl.output.progress import JobNotices

if TYPE_CHECKING:
    from penstock.client.remote.remote_session import RemoteSession
    from penstock.client.results.result import Result
    from penstock.client.session import Session
    from penstock.engine.job.job import Job

# how late an end or a signal may be seen; ten looks a second cost nothing
_POLL_S = 0.1
# a status line that changes more often cannot be read
_STATUS_S = 1.0
# a shorter step is not shown beside the run: it would round to 0.0 s
_SHOWN_S = 0.05


class JobFailed(Exception):
    """A job that had started has failed with ``error``."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(error.message)
        self.error = error


def attach_waiter(
    session: Session | RemoteSession, messages: Messages, *, verbose: bool = False
) -> JobWaiter:
    """Return a waiter that from now on waits for a session's jobs and reports their events."""
    # at a server: its jobs are not of this process, and continue without it
    if not session.is_remote:
        return _attach(session, messages, verbose)  # type: ignore[arg-type]  # of this process
    return JobWaiter(messages, list, set(), verbose=verbose, terminal=sys.stderr.isatty())


def _attach(session: Session, messages: Messages, verbose: bool) -> JobWaiter:
    state = session.state
    waiter = JobWaiter(
        messages, state.insert_jobs, state.jobs.reported, verbose=verbose, terminal=sys.stderr.isatty()
    )
    state.wait_for, state.report = waiter.wait, messages.note
    return waiter


class JobWaiter:
    """Follows the jobs of scripts: reports their state changes and their ends. The first signal stops them
    with a checkpoint, the second cancels them, the third kills.

    ``jobs`` returns those there are by now. A job that fails does not end the others: ``wait_for_all``
    returns the code of its failure. ``reported`` gets the ids of jobs whose end was reported.
    """

    def __init__(
        self,
        messages: Messages,
        jobs: Callable[[], list[Job]],
        reported: set[str],
        *,
        verbose: bool = False,
        terminal: bool = False,
    ) -> None:
        self._messages = messages
        self._jobs = jobs
        self._reported = reported
        self._verbose = verbose
        self._terminal = terminal
        self._waiting = False
        self._followed: dict[str, FollowedJob] = {}
        self._asked = 0
        self._next_status = 0.0
        self.interrupts = 0

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Handle Ctrl-C and SIGTERM inside the block."""
        # the former handlers are restored: a program may call this as a function
        before = {
            number: signal.signal(number, self.handle_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_signal(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal: count it while a job is waited for, else raise KeyboardInterrupt where no lock is
        left behind.
        """
        if not self._waiting and is_postponed(signum, frame):
            return
        # only counted: _poll acts on it, outside the handler
        self.interrupts += 1
        if not self._waiting:
            raise KeyboardInterrupt
        # the third signal: the default handlers kill the process from now on
        if self.interrupts > 2:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            raise KeyboardInterrupt

    def wait(self, job: Job) -> str:
        """Wait for the end of a job and sum it up, reporting all others meanwhile.

        Raises JobFailed when it fails, RUN-2903 when somebody stopped it, KeyboardInterrupt when a signal
        did.
        """
        followed = self._follow(job)
        # its end is this statement's result, so report_end prints nothing
        followed.awaited = True
        followed.report_start()
        try:
            self._watch_until(job)
        except KeyboardInterrupt:  # of a terminal whose signals nobody watches, or the third one
            # no signal handler of ours: nothing can stop it in order
            job.cancel()
            job.wait(CANCEL_S)
            self._messages.note(f"job {job.job_id}: {job.state.lower()}")
            raise
        if job.error is not None:
            _end_with_reader(job.error)
            raise JobFailed(job.error)
        text = followed.summary()
        # a stopped job has no error, but the script must not run its next statement
        if self.interrupts:
            self._messages.note(text)
            raise KeyboardInterrupt
        # somebody else stopped it: RUN-2903
        check_end(job)
        return text

    def wait_for_all(self) -> int:
        """Wait until all jobs have ended, and return the exit code: that of a failed one, of an interrupt,
        or 0.
        """
        # jobs may start while others are waited for
        while running := [job for job in self._jobs() if not job.wait(0)]:
            self._watch_until(running[0])
        # also the jobs that had ended before anybody waited
        self._report_ends()
        if self.interrupts:
            return EXIT_INTERRUPTED
        return EXIT_JOB if any(followed.failed for followed in self._followed.values()) else EXIT_OK

    def report_query(self, result: Result) -> None:
        """Sum up the job of a query whose rows have all been printed."""
        if result.job is not None and result.has_rows:
            # the last row comes a moment before the job's end, whose figures are wanted
            result.job.wait(_POLL_S)
            self._messages.note(summary(result.job, result.elapsed_s))

    def _watch_until(self, job: Job) -> None:
        self._waiting = True
        try:
            while not job.wait(_POLL_S):
                self._poll()
            self._poll()
        finally:
            self._waiting = False
            # the status line is cleared, so that the next output begins at the left
            if self._terminal:
                self._messages.status("")

    def _poll(self) -> None:
        """Report what is new of each job, stop them after a signal, redraw the status line."""
        running = [followed for followed in map(self._follow, self._jobs()) if not followed.over]
        for followed in running:
            followed.report_events()
        # once for each signal: 1 stops, 2 cancels
        if self.interrupts > self._asked:
            self._asked = self.interrupts
            for followed in running:
                followed.stop(self._asked)
        self._report_ends()
        if self._terminal and running and time.monotonic() >= self._next_status:
            self._next_status = time.monotonic() + _STATUS_S
            # one line for all jobs, cut at the width of the terminal
            text = " · ".join(followed.summary() for followed in running)
            self._messages.status(text[: shutil.get_terminal_size().columns - 1])

    def _report_ends(self) -> None:
        for job in self._jobs():
            if self._follow(job).report_end():
                self._reported.add(job.job_id)

    def _follow(self, job: Job) -> FollowedJob:
        # a job may be started again under the id of one that has ended
        if job.job_id not in self._followed or self._followed[job.job_id].job is not job:
            self._followed[job.job_id] = FollowedJob(job, self._messages, verbose=self._verbose)
        return self._followed[job.job_id]


class FollowedJob:
    """A job and what was reported of it. ``awaited``: a statement waits for it and reports its end itself.
    ``failed``: its end was a failure.
    """

    def __init__(self, job: Job, messages: Messages, *, verbose: bool) -> None:
        self.job = job
        self.awaited = False
        self.over = False
        self.failed = False
        self._messages = messages
        self._verbose = verbose
        self._notices = JobNotices(job, messages)
        self._started = time.monotonic()
        self._state = ""
        self._checkpoints = 0

    def report_start(self) -> None:
        """Report what its user should know at its start."""
        for text in (
            *self.job.start_notes,
            *(self.job.state_diff.changes if self.job.state_diff is not None else ()),
        ):
            self._messages.note(f"job {self.job.job_id}: {text}")

    def report_events(self) -> None:
        """Report what has happened since the last call."""
        job = self.job
        before, self._state = self._state, str(job.state)
        # restarts have notices of their own, with their reason; ends have a summary
        if self._state != before and not job.state.terminal and "RESTARTING" not in (self._state, before):
            self._messages.note(f"job {job.job_id}: {self._state.lower()}")
        self._notices.report()
        completed = job.metrics().checkpoints_completed
        # --verbose: a line a checkpoint
        if self._verbose and completed > self._checkpoints:
            self._checkpoints = completed
            self._messages.note(f"job {job.job_id}: checkpoint {completed}")

    def report_end(self) -> bool:
        """Report once that it has ended, and how; return whether this call did."""
        # reported before, or still running
        if self.over or not self.job.wait(0):
            return False
        self.over = True
        self.failed = self.job.error is not None
        if self.awaited:
            return False
        self._notices.report()
        if self.job.error is not None:
            _end_with_reader(self.job.error)
            self._messages.error(self.job.error)
        self._messages.note(self.summary())
        return True

    def stop(self, interrupts: int) -> None:
        """Stop the job at the first signal, cancel it at the second."""
        if interrupts == 1:
            self._messages.note(f"job {self.job.job_id}: stopping with a checkpoint (again to cancel)")
            self.job.stop()
        else:
            self._messages.note(f"job {self.job.job_id}: cancelling")
            self.job.cancel()

    def summary(self) -> str:
        """Return a line about the job."""
        if self.job.finished_before:
            return f"job {self.job.job_id}: had finished before, nothing was written"
        return summary(self.job, time.monotonic() - self._started)


def _end_with_reader(error: PenstockError) -> None:
    """Raise BrokenPipeError for a job that printed to a reader which has enough, as for a SELECT."""
    if error.code == READER_ENDED:
        raise BrokenPipeError from error


def summary(job: Job, elapsed_s: float) -> str:
    """Return one line about a job: rows, windows, late rows, checkpoints. The rate of rows is by the clock,
    without Spark's start and the compilation of kernels, and by the busiest slot's working time.
    """
    metrics = job.metrics()
    began_ms = SLOW_STEPS.now_ms() - elapsed_s * 1000
    stages = [(str(step), SLOW_STEPS.seconds(began_ms, step)) for step in SlowStep]
    # what happens once, at the first run, says nothing of the rate of the run itself
    run_s = elapsed_s - SLOW_STEPS.seconds(began_ms, *SlowStep)
    parts = [f"{name} {seconds:.1f} s" for name, seconds in stages if seconds >= _SHOWN_S]
    split = f" ({', '.join([*parts, f'the run itself {run_s:.1f} s'])})" if parts else ""
    # by the clock: what a user waited for; while busy: what the engine can do
    rate = metrics.rows_in / max(run_s, 1e-3)
    # a slot that compiles counts as busy; with several slots, not all of it was the busiest one's
    compiling_s = SLOW_STEPS.seconds(began_ms, SlowStep.KERNELS)
    busy_s = metrics.busy_s - compiling_s if metrics.busy_s > compiling_s else min(metrics.busy_s, run_s)
    busy_rate = metrics.rows_in / max(busy_s, 1e-3)
    figures = [
        f"{metrics.rows_in:,} rows in ({rate:,.0f} rows/s, {busy_rate:,.0f} rows/s while busy)",
        f"{metrics.rows_out:,} rows out",
        f"{metrics.windows_closed:,} windows closed",
        f"{metrics.late_rows:,} late rows",
        f"{metrics.checkpoints_completed:,} checkpoints",
    ]
    return f"job {job.job_id}: {str(job.state).lower()} after {elapsed_s:.1f} s{split}: {', '.join(figures)}"
