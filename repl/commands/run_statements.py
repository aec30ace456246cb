"""``penstock -c``, ``-f`` and statements from a pipe: no prompt, stop at the first error, end when all
jobs have.
"""

from __future__ import annotations

import argparse
from contextlib import closing

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.arguments import EXIT_OK, Parser
from penstock.repl.launch.job_waiter import attach_waiter
from penstock.repl.launch.script_runner import ScriptRunner
from penstock.repl.launch.session_factory import (
    configured,
    messages_for,
    open_session,
    printer_for,
    refusal_code,
    refuse_url,
)


def run_batch(arguments: argparse.Namespace, parser: Parser) -> int:
    """Run the statements of the command line in order and return the exit code."""
    messages = messages_for(arguments)
    try:
        config = configured(arguments, parser)
        if (refused := refuse_url(config, messages)) is not None:
            return refused
        session = open_session(config, arguments)
    except PenstockError as error:
        messages.error(error)
        return refusal_code(error)
    waiter = attach_waiter(session, messages)
    with waiter.handling_signals(), closing(session):
        runner = ScriptRunner(session, printer_for(config, messages), messages, timeout_s=arguments.timeout)
        return _run_all(runner, arguments) or runner.wait_for_jobs(waiter)


def _run_all(runner: ScriptRunner, arguments: argparse.Namespace) -> int:
    for name in arguments.init or []:
        if code := runner.run_file(name):
            return code
    for text in arguments.commands or []:
        if code := runner.run_text(text):
            return code
    files = arguments.files or ([] if arguments.commands else ["-"])
    for name in files:
        if code := runner.run_file(name):
            return code
    return EXIT_OK
