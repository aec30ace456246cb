"""The words that reach a server: ``--host`` of many commands, and the commands about one job. Imports nothing
but the standard library.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from penstock.repl.launch.parser import Parser

# what each command does, as its help says it
JOB_COMMANDS = {
    "stop": "Stop a job with a last checkpoint; --drain closes its windows first.",
    "cancel": "Cancel a job now; what it has not committed is dropped.",
    "savepoint": "Take a savepoint of a job, from which another can start; the job continues.",
    "rescale": "Run a job at another parallelism, with its state.",
    "logs": "Print the events of a job: its failures, restarts, failed checkpoints and warnings.",
    "explain": "Print the plan of a running job with its figures.",
}


def add_server(parser: Parser) -> None:
    """Add the option that names a server."""
    parser.add_argument("-H", "--host", metavar="HOST", help="a server: host:port or URL ($PENSTOCK_URL)")


def job_command_parser(name: str, add_output: Callable[[Parser], None]) -> Parser:
    """Return the parser of ``penstock stop``, ``cancel`` and the others that are about one job."""
    parser = Parser(
        prog=f"penstock {name}",
        description=JOB_COMMANDS[name],
        epilog=f"examples:\n  penstock {name} insert-into-t-1{_EXAMPLE.get(name, '')} -H 127.0.0.1:8815\n"
        f"  penstock {name} insert-into-t-1{_EXAMPLE.get(name, '')} --state out/state\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("job", metavar="JOB", help="its id, or the name of the last job that has it")
    if name == "rescale":
        parser.add_argument("to", metavar="N", type=int, help="subtasks of each operator")
    if name == "savepoint":
        parser.add_argument("--stop", action="store_true", help="the job ends with it")
        parser.add_argument("--to", metavar="DIR", help="where the server writes it; else its setting")
    if name in ("stop", "savepoint"):
        parser.add_argument("--drain", action="store_true", help="end the sources first; every window closes")
    parser.add_argument("--state", metavar="DIR", help="the --state of a penstock run on this machine")
    add_server(parser)
    add_output(parser)
    parser.set_defaults(settings=[], parallelism=None, catalog=None)
    return parser


_EXAMPLE = {"rescale": " 4", "savepoint": " --to out/savepoints"}


def job_command_parsers(add_output: Callable[[Parser], None]) -> dict[str, Callable[[], Parser]]:
    """Return the parser of each command about one job."""
    return {name: partial(job_command_parser, name, add_output) for name in JOB_COMMANDS}
