"""``penstock stop | cancel | savepoint | rescale | logs | explain JOB``: one statement at a server, or at the
process of a ``penstock run`` on this machine.
"""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.client.results.result import Result, rows_result
from penstock.repl.launch.control import running_process_url
from penstock.repl.launch.parser import EXIT_OK, EXIT_QUERY, EXIT_USAGE, Parser
from penstock.repl.launch.session_factory import (
    configured,
    messages_for,
    open_session,
    printer_for,
    refusal_code,
)

_EVENT = "event "
"""How the facts of DESCRIBE JOB begin that are events."""


def run_job_command(name: str, arguments: argparse.Namespace, parser: Parser) -> int:
    """Run the statement of a command and return the exit code."""
    messages = messages_for(arguments)
    if name == "savepoint" and arguments.drain and not arguments.stop:
        messages.error(_drains(arguments.job))
        return EXIT_USAGE
    try:
        config = configured(arguments, parser)
        if arguments.state is not None:
            config = replace(config, url=running_process_url(arguments.state))
        if config.url is None:
            hint = f"penstock {name} {arguments.job} --state DIR, or --host 127.0.0.1:8815"
            message = f"penstock {name} is about a job that runs elsewhere, and nothing says where"
            messages.error(PenstockError("CLI-6245", message, hint=hint, sqlstate="42601"))
            return EXIT_USAGE
        session = open_session(config, arguments)
    except PenstockError as error:
        messages.error(error)
        return refusal_code(error)
    with closing(session):
        try:
            result = session.execute(statement_of(name, arguments))
            printer_for(config, messages).show(_events(result) if name == "logs" else result)
        except PenstockError as error:
            messages.error(error)
            return EXIT_QUERY
    return EXIT_OK


def statement_of(name: str, arguments: argparse.Namespace) -> str:
    """Return the statement of a command."""
    job = _text(arguments.job)
    match name:
        case "savepoint" if not arguments.stop:
            return f"CREATE SAVEPOINT OF JOB {job}" + (f" TO {_text(arguments.to)}" if arguments.to else "")
        case "stop" | "savepoint":
            target = getattr(arguments, "to", None)
            savepoint = " WITH SAVEPOINT" if name == "savepoint" else ""
            path = f" {_text(target)}" if target else ""
            return f"STOP JOB {job}{savepoint}{path}{' WITH DRAIN' if arguments.drain else ''}"
        case "cancel":
            return f"CANCEL JOB {job}"
        case "rescale":
            return f"ALTER JOB {job} SET PARALLELISM {arguments.to}"
        case "logs":
            return f"DESCRIBE JOB {job}"
    return f"EXPLAIN ANALYZE JOB {job}"


def _events(result: Result) -> Result:
    """Return the events among the facts of a job, as rows of time and event."""
    facts = result.final_rows().to_pydict()
    pairs = list(zip(*facts.values(), strict=True))
    # a job has some dozens of facts
    found = [(fact.removeprefix(_EVENT), text) for fact, text in pairs if fact.startswith(_EVENT)]
    columns = {"time": [time for time, _ in found], "event": [text for _, text in found]}
    rows = rows_result(pa.table({name: pa.array(each, pa.string()) for name, each in columns.items()}))
    # nothing but a header would look like a fault
    return rows if found else replace(rows, note="the job has had no failure, restart or warning")


def _text(word: str) -> str:
    doubled = word.replace("'", "''")
    return f"'{doubled}'"


def _drains(job: str) -> PenstockError:
    """Return the error of --drain without --stop: sources that have ended cannot go on."""
    return PenstockError(
        "CLI-6245",
        "--drain ends the sources of a job, so the job cannot continue",
        hint=f"penstock savepoint {job} --stop --drain",
        sqlstate="42601",
    )
