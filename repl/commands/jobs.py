"""``penstock jobs`` and ``penstock recover``: the jobs of a state directory, and running on those whose
process died.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.client.execution.recorded_jobs import RecordedJob, recorded_jobs
from penstock.engine.api.locations import parse_location
from penstock.repl.launch.config import Config
from penstock.repl.launch.job_waiter import JobWaiter
from penstock.repl.launch.parser import EXIT_INTERRUPTED, EXIT_JOB, EXIT_OK, EXIT_QUERY, EXIT_USAGE, Parser
from penstock.repl.launch.session_factory import (
    configured,
    in_process,
    messages_for,
    open_session,
    printer_for,
    refusal_code,
)
from penstock.repl.output.messages import Messages

if TYPE_CHECKING:
    from penstock.engine.job.job import Job

COLUMNS = ("job", "name", "status", "epoch", "started", "statement")


def list_jobs(arguments: argparse.Namespace, parser: Parser) -> int:
    """Print one row per job of the directory and return the exit code."""
    messages = messages_for(arguments)
    try:
        config = configured(arguments, parser)
        if arguments.state is None:
            return _list_jobs_of_server(config, arguments, messages)
        printer = printer_for(config, messages)
        rows = [_row(job) for job in recorded_jobs(parse_location(arguments.state))]
    except PenstockError as error:
        messages.error(error)
        return refusal_code(error)
    # Of no rows zip makes no columns: each is empty then.
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    types = [pa.int64() if name == "epoch" else pa.string() for name in COLUMNS]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    printer.table(
        pa.table(arrays, names=list(COLUMNS)), ["BIGINT" if name == "epoch" else "STRING" for name in COLUMNS]
    )
    return EXIT_OK


def _list_jobs_of_server(config: Config, arguments: argparse.Namespace, messages: Messages) -> int:
    """Print the jobs of a server. Raises PenstockError when it does not answer."""
    if config.url is None:
        message = "penstock jobs lists a directory or a server, and none is named"
        hint = "penstock jobs --state DIR, or penstock jobs --host 127.0.0.1:8815"
        messages.error(PenstockError("CLI-6245", message, hint=hint, sqlstate="42601"))
        return EXIT_USAGE
    with closing(open_session(config, arguments)) as session:
        printer_for(config, messages).show(session.execute("SHOW JOBS"))
    return EXIT_OK


def recover_jobs(arguments: argparse.Namespace, parser: Parser) -> int:
    """Run on every job whose process died, from its newest checkpoint; return the exit code of the worst
    end.
    """
    messages = messages_for(arguments)
    try:
        config = configured(arguments, parser)
        jobs = _select(recorded_jobs(parse_location(arguments.state)), arguments)
    except PenstockError as error:
        messages.error(error)
        return EXIT_QUERY
    # Nothing to recover is no failure.
    if not jobs:
        messages.note(f"no job in {arguments.state} was left unfinished by a process that died")
        return EXIT_OK
    # The waiter reads this list while jobs are added: a signal stops those that run by then.
    running: list[Job] = []
    waiter = JobWaiter(messages, lambda: running, set(), verbose=arguments.verbose)
    # Signals are handled before the first job starts; sessions are closed last, since a job needs its own.
    with ExitStack() as sessions, waiter.handling_signals():
        try:
            started = _resume_all(jobs, config, arguments, running, messages, sessions)
            # The failure of a job that ran comes before that of one that could not start.
            return waiter.wait_for_all() or started
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED


def _resume_all(
    jobs: list[RecordedJob],
    config: Config,
    arguments: argparse.Namespace,
    running: list[Job],
    messages: Messages,
    sessions: ExitStack,
) -> int:
    """Start all jobs there are and add them to ``running``; return the exit code of one that could not be."""
    code = EXIT_OK
    for job in jobs:
        try:
            # A session a job: resume fills in the settings of its record, which no other job may see.
            settings = Config(settings=dict(config.settings))
            session = in_process(open_session(settings, arguments, state_dir=parse_location(arguments.state)))
            sessions.callback(session.close)
            # The session has no waiter: resume returns once the job runs, and one waiter follows all.
            session.state.take_over, session.state.report = arguments.take_over, messages.note
            result = session.resume(job)
        except PenstockError as error:
            messages.error(error)
            # A job that cannot resume does not stop the others.
            code = EXIT_JOB
            continue
        # An id begins with the name as a directory can have it: the name is added where it differs.
        named = "" if job.job_id.startswith(f"{job.record.name}-") else f" ({job.record.name})"
        messages.note(
            f"job {job.job_id}{named}: taken over from epoch {job.record.epoch}, {job.status.lower()}"
        )
        if result.job is not None:
            running.append(result.job)
    return code


def _select(jobs: list[RecordedJob], arguments: argparse.Namespace) -> list[RecordedJob]:
    """Return the jobs to run on: those left unfinished, or the one of an id, or those of a name, however
    they ended.
    """
    # DIED: the process is gone. RUNNING: --take-over fences off the process that still has the state.
    if arguments.job is None:
        return [
            job for job in jobs if job.status == "DIED" or (arguments.take_over and job.status == "RUNNING")
        ]
    # An id is of one job; only a word that is no id is a name, which several jobs may have.
    named = [job for job in jobs if job.job_id == arguments.job] or [
        job for job in jobs if job.record.name == arguments.job
    ]
    if not named:
        hint = (
            did_you_mean(arguments.job, [job.job_id for job in jobs], others=True)
            or "penstock jobs --state DIR lists them"
        )
        raise PenstockError(
            "CLI-6030", f"there is no job '{arguments.job}' in {arguments.state}", hint=hint, sqlstate="42704"
        )
    return named


def _row(job: RecordedJob) -> tuple[str, str, str, int, str, str]:
    record = job.record
    started = f"{datetime.fromtimestamp(record.started_at_ms / 1e3, UTC):%Y-%m-%d %H:%M:%S}"
    statement = (
        "(not stored: the statements contain secrets)"
        if record.withheld
        else " ".join(record.statement.split())[:80]
    )
    return (job.job_id, record.name, job.status, record.epoch, started, statement)
