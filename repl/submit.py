"""``penstock run``: scripts whose jobs are waited for, with progress on stderr, graceful stops, and state that outlives the process."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import PenstockError
from repl.arguments import EXIT_INTERRUPTED, EXIT_OK, EXIT_QUERY, Parser, key_values
from repl.config import Config
from repl.errors_out import Messages
from repl.job_news import JobNews
from repl.scripts import JobFailed, ScriptRunner, read_script
from repl.setup import configured, messages_for, open_session, printer_for, refusal_code
from repl.variables import substitute

if TYPE_CHECKING:
    from client.results import Result
    from client.session import Session
    from engine.job import Job

_POLL_S = 0.1
_STATUS_S = 1.0


def run_files(arguments: argparse.Namespace, parser: Parser) -> int:
    """Run, check or explain script files and return the exit code."""
    messages = messages_for(arguments)
    variables = key_values(arguments.var, "--var", parser)
    state_dir = Path(arguments.state) if arguments.state else None
    try:
        config = configured(arguments, parser)
        defaults = {"table.dml-sync": "true"}
        if state_dir is not None:
            defaults["execution.checkpointing.interval"] = "1 s"
        if arguments.allow_changed_query:
            defaults["execution.state-recovery.ignore-unclaimed-state"] = "true"
        session = open_session(Config(settings={**defaults, **config.settings}), arguments, state_dir=state_dir)
    except PenstockError as error:
        messages.error(error)
        return refusal_code(error)
    try:
        runner = ScriptRunner(session, printer_for(config, messages), messages, variables=variables, timeout_s=arguments.timeout)
        if arguments.check:
            return check_files(session, arguments.files, variables, messages)
        waiter = JobWaiter(messages, verbose=arguments.verbose, terminal=sys.stderr.isatty())
        session.wait_for = waiter.wait
        session.drop_foreign_state = arguments.force
        session.take_over = arguments.take_over
        runner.after = waiter.tell_of_query
        with waiter.watching_signals():
            return _run_each(runner, waiter, arguments)
    finally:
        session.close()


def _run_each(runner: ScriptRunner, waiter: JobWaiter, arguments: argparse.Namespace) -> int:
    for name in arguments.files:
        code = runner.explain_file(name) if arguments.explain else runner.run_file(name)
        if code:
            return code
        if waiter.interrupts:
            return EXIT_INTERRUPTED
    return EXIT_OK


def check_files(session: Session, files: list[str], variables: dict[str, str], messages: Messages) -> int:
    """Parse and bind every statement without running it; print every error and return the exit code."""
    from client.checking import check_script

    errors: list[PenstockError] = []
    for name in files:
        file = None if name == "-" else name
        try:
            errors += check_script(session, substitute(read_script(name), variables, file), file)
        except PenstockError as error:
            errors.append(error)
    for found in errors:
        messages.error(found)
    if not errors:
        messages.note(f"{', '.join(files)}: no errors")
    return EXIT_QUERY if errors else EXIT_OK


class JobWaiter:
    """Waits for a job: tells its state changes and its end; the first signal stops it with a checkpoint, the second cancels it, the third kills."""

    def __init__(self, messages: Messages, *, verbose: bool = False, terminal: bool = False) -> None:
        self._messages = messages
        self._verbose = verbose
        self._terminal = terminal
        self._waiting = False
        self.interrupts = 0

    @contextmanager
    def watching_signals(self) -> Iterator[None]:
        """Take Ctrl-C and SIGTERM for a while."""
        before = {number: signal.signal(number, self.interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def interrupted(self, signum: int, frame: object) -> None:
        """Take a signal: while a job runs it is counted, else it is a KeyboardInterrupt."""
        self.interrupts += 1
        if not self._waiting:
            raise KeyboardInterrupt
        if self.interrupts > 2:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            raise KeyboardInterrupt

    def wait(self, job: Job) -> str:
        """Wait for the end of a job and sum it up. Raises JobFailed when it fails and KeyboardInterrupt when it was stopped by a signal."""
        started = time.monotonic()
        for told in (*job.told_at_start, *(job.state_diff.changes if job.state_diff is not None else ())):
            self._messages.note(f"job {job.job_id}: {told}")
        self._waiting = True
        try:
            self._follow(job, started)
        finally:
            self._waiting = False
        if self._terminal:
            self._messages.status("")
        if job.error is not None:
            raise JobFailed(job.error)
        told = summary(job, time.monotonic() - started)
        if self.interrupts:
            self._messages.note(told)
            raise KeyboardInterrupt
        return told

    def tell_of_query(self, result: Result) -> None:
        """Sum up the job of a query whose rows have all been printed."""
        if result.job is not None and result.has_rows:
            result.job.wait(_POLL_S)
            self._messages.note(summary(result.job, result.elapsed_s))

    def _follow(self, job: Job, started: float) -> None:
        state, checkpoints, asked, next_status, news = "", 0, 0, started + _STATUS_S, JobNews(job, self._messages)
        while True:
            ended = job.wait(_POLL_S)
            before, state = state, str(job.state)
            if state != before and not job.state.terminal and "RESTARTING" not in (state, before):
                self._messages.note(f"job {job.job_id}: {state.lower()}")
            news.tell()
            metrics = job.metrics()
            if self._verbose and metrics.checkpoints_completed > checkpoints:
                checkpoints = metrics.checkpoints_completed
                self._messages.note(f"job {job.job_id}: checkpoint {checkpoints}")
            if self.interrupts > asked:
                asked = self.interrupts
                self._stop(job, asked)
            if ended:
                return
            if self._terminal and time.monotonic() >= next_status:
                next_status = time.monotonic() + _STATUS_S
                text = summary(job, time.monotonic() - started)
                self._messages.status(text[: shutil.get_terminal_size().columns - 1])

    def _stop(self, job: Job, interrupts: int) -> None:
        if interrupts == 1:
            self._messages.note(f"job {job.job_id}: stopping with a checkpoint (again to cancel)")
            job.stop()
        else:
            self._messages.note(f"job {job.job_id}: cancelling")
            job.cancel()


def summary(job: Job, elapsed_s: float) -> str:
    """Return one line about a job: rows, their rate by the clock and by the time the busiest slot worked, windows, late rows, checkpoints."""
    from client.job_statements import rows_out

    metrics = job.metrics()
    rate = metrics.rows_in / max(elapsed_s, 1e-3)
    busy_rate = metrics.rows_in / max(metrics.busy_s, 1e-3)
    parts = [
        f"{metrics.rows_in:,} rows in ({rate:,.0f} rows/s, {busy_rate:,.0f} rows/s while busy)",
        f"{rows_out(metrics):,} rows out",
        f"{metrics.windows_closed:,} windows closed",
        f"{metrics.late_rows:,} late rows",
        f"{metrics.checkpoints_completed:,} checkpoints",
    ]
    return f"job {job.job_id}: {str(job.state).lower()} after {elapsed_s:.1f} s: {', '.join(parts)}"
