"""``penstock run``, ``-c``, ``-f`` and statements from a pipe: they run in order and stop at the first error.

``run`` also shows progress, stops gracefully and keeps state that outlives the process.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.engine.api.locations import parse_location
from penstock.repl.commands.script_commands import ScriptCommands
from penstock.repl.launch.arguments import key_values
from penstock.repl.launch.config import Config
from penstock.repl.launch.control import controllable
from penstock.repl.launch.job_waiter import JobWaiter, attach_waiter
from penstock.repl.launch.parser import EXIT_INTERRUPTED, EXIT_OK, EXIT_QUERY, EXIT_USAGE, Parser
from penstock.repl.launch.script_runner import ScriptRunner
from penstock.repl.launch.session_factory import (
    configured,
    in_process,
    messages_for,
    open_session,
    printer_for,
    refusal_code,
    refuse_url,
)
from penstock.repl.launch.status_requests import StatusRequests, report_status
from penstock.repl.output.messages import Messages

if TYPE_CHECKING:
    from penstock.client.remote.remote_session import RemoteSession
    from penstock.client.results.result import Result
    from penstock.client.session import Session
    from penstock.repl.output.printer import Printer


def run_files(
    arguments: argparse.Namespace,
    parser: Parser,
    *,
    following: Callable[[ScriptRunner], AbstractContextManager[object]] = nullcontext,
) -> int:
    """Run, check or explain script files and return the exit code. ``following`` is entered with the runner
    while they run.
    """
    messages = messages_for(arguments)
    variables = key_values(arguments.var, "--var", parser)
    try:
        state_dir = parse_location(arguments.state) if arguments.state else None
        config = configured(arguments, parser)
        defaults = {}
        # By default the interval is 0, which takes no checkpoints: --state asks for some.
        if state_dir is not None:
            defaults["execution.checkpointing.interval"] = "1 s"
        if arguments.allow_changed_query:
            defaults["execution.state-recovery.ignore-unclaimed-state"] = "true"
        # What the user sets overrules these defaults.
        # --check binds the tables of its files, also where they would run at a server
        url = None if arguments.check else config.url
        session = open_session(
            Config(url=url, settings={**defaults, **config.settings}), arguments, state_dir=state_dir
        )
    except PenstockError as error:
        messages.error(error)
        return refusal_code(error)
    if arguments.detach:
        return _detach(session, arguments, variables, printer_for(config, messages), messages)
    # No job is started: neither a waiter nor signal handlers.
    if arguments.check:
        with closing(session):
            return check_files(in_process(session), arguments.files, variables, messages)
    waiter = attach_waiter(session, messages, verbose=arguments.verbose)
    printer = printer_for(config, messages)
    with waiter.handling_signals(), closing(session), _status_on_request(session, printer, messages):
        runner = ScriptRunner(session, printer, messages, variables=variables, timeout_s=arguments.timeout)
        if not session.is_remote:
            # --force starts anew over the state of another query; --take-over fences off another process.
            state = in_process(session).state
            state.drop_foreign_state, state.take_over = arguments.force, arguments.take_over
        runner.after = waiter.report_query
        runner.commands = ScriptCommands(config, runner)
        # a bucket has no sockets, and a server's jobs are controlled there
        reached = (
            controllable(in_process(session), state_dir, messages, verbose=arguments.verbose)
            if isinstance(state_dir, Path) and not session.is_remote and not arguments.explain
            else nullcontext()
        )
        with reached, following(runner):
            return _run_each(runner, waiter, arguments)


def _detach(
    session: Session | RemoteSession,
    arguments: argparse.Namespace,
    variables: dict[str, str],
    printer: Printer,
    messages: Messages,
) -> int:
    """Start the jobs of files at a server, print the id of each on a line, and leave."""
    with closing(session):
        if not session.is_remote:
            message = "--detach leaves jobs at a server, and no server is named"
            hint = "add --host 127.0.0.1:8815; penstock serve starts a server"
            messages.error(PenstockError("CLI-6245", message, hint=hint, sqlstate="42601"))
            return EXIT_USAGE
        # no INSERT is waited for, also where its sources end
        session.settings.set("table.dml-sync", "false")
        runner = ScriptRunner(session, printer, messages, variables=variables, timeout_s=arguments.timeout)
        runner.shown = _print_job
        for name in arguments.files:
            if code := runner.run_file(name):
                return code
    return EXIT_OK


def _print_job(result: Result) -> None:
    # a result with rows would be read here, and nobody stays to read it
    if result.has_rows:
        result.close()
    elif result.job is not None:
        sys.stdout.write(f"{result.job.job_id}\n")


@contextmanager
def _status_on_request(
    session: Session | RemoteSession, printer: Printer, messages: Messages
) -> Iterator[None]:
    """Report what runs at SIGUSR1 and Ctrl-T."""
    requests = StatusRequests(lambda: report_status(printer, session.jobs(), messages.note))
    with requests.answered(), requests.key(sys.stdin) as printer.how_to_ask:
        yield


def _run_each(runner: ScriptRunner, waiter: JobWaiter, arguments: argparse.Namespace) -> int:
    for name in arguments.files:
        code = runner.explain_file(name) if arguments.explain else runner.run_file(name)
        if code:
            return code
        # Ctrl-C stopped a job gracefully, so its file ends without an error; the files after it do not run.
        if waiter.interrupts:
            return EXIT_INTERRUPTED
    return runner.wait_for_jobs(waiter)


def check_files(session: Session, files: list[str], variables: dict[str, str], messages: Messages) -> int:
    """Parse and bind every statement without running it; print every error and return the exit code."""
    from penstock.repl.commands.script_check import ScriptCheck

    check = ScriptCheck(session, variables)
    errors = [error for name in files for error in check.errors_of(name)]
    for found in errors:
        messages.error(found)
    if not errors:
        messages.note(f"{', '.join(files)}: no errors")
    return EXIT_QUERY if errors else EXIT_OK


def run_batch(arguments: argparse.Namespace, parser: Parser) -> int:
    """Run the statements of the command line in order and return the exit code."""
    messages = messages_for(arguments)
    try:
        config = configured(arguments, parser)
        # A first word that is no command was read as the URL of a server.
        if (refused := refuse_url(config, messages)) is not None:
            return refused
        session = open_session(config, arguments)
    except PenstockError as error:
        messages.error(error)
        return refusal_code(error)
    waiter = attach_waiter(session, messages)
    printer = printer_for(config, messages)
    with waiter.handling_signals(), closing(session), _status_on_request(session, printer, messages):
        runner = ScriptRunner(session, printer, messages, timeout_s=arguments.timeout)
        runner.commands = ScriptCommands(config, runner)
        # The first error ends the command: jobs of earlier statements are not awaited.
        return _run_all(runner, arguments) or runner.wait_for_jobs(waiter)


def _run_all(runner: ScriptRunner, arguments: argparse.Namespace) -> int:
    # All --init files, then all -c, then all -f, whatever their order in the command line.
    for name in arguments.init or []:
        if code := runner.run_file(name):
            return code
    for text in arguments.commands or []:
        if code := runner.run_text(text):
            return code
    # Neither -c nor -f: the statements come from stdin.
    files = arguments.files or ([] if arguments.commands else ["-"])
    for name in files:
        if code := runner.run_file(name):
            return code
    return EXIT_OK
