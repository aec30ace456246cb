"""The flags and the help of each command. Imports nothing but the standard library."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from penstock.repl.launch.job_arguments import add_server, job_command_parsers
from penstock.repl.launch.parser import COMMANDS, Parser
from penstock.repl.launch.serve_arguments import serve_parser
from penstock.repl.launch.user_arguments import user_parser

FORMATS = ("table", "csv", "tsv", "json", "jsonl", "markdown", "vertical", "arrow")

# argparse prints an epilog as it is: examples help more than the list of flags
_SHELL_EXAMPLES = """\
examples:
  penstock                                      open the shell
  penstock -c "SELECT 1 AS one"                 run a statement, print its rows
  penstock -f report.sql --csv > report.csv     run a script; notes and errors go to stderr
  echo "SHOW TABLES" | penstock -f -            read statements from stdin
  penstock run queries/flights.sql --state out  run a script whose jobs survive a restart
  penstock run job.sql --check                  parse and bind only, print every error

exit codes: 0 ok, 1 query error, 2 usage, 3 connection, 4 timeout, 5 job failed, 6 VERIFY found a difference,
            7 a test failed, 130 interrupted
"""
_RUN_EXAMPLES = """\
examples:
  penstock run queries/flights.sql
  penstock run job.sql --state out/state -p 2 --set execution.checkpointing.interval='5 s'
  penstock run job.sql --var day=2013-01-01     ${day} inside quotes in the file is replaced
  penstock run job.sql --explain                print the plans instead of running them

The first Ctrl-C takes a checkpoint and stops; the second cancels.
"""


_FMT_EXAMPLES = """\
examples:
  penstock fmt queries/*.sql          format the files in place
  penstock fmt queries                every .sql file below a directory
  penstock fmt --check queries        change nothing; exit code 1 when a file would change
  penstock fmt --diff job.sql         print what would change
  penstock fmt - < job.sql            from stdin to stdout, as editors want it
"""

_TEST_EXAMPLES = """\
examples:
  penstock test                       every *.test.sql and *_test.sql below this directory
  penstock test queries/flights.test.sql
  penstock test queries -k "late and not weekly"
  penstock test queries --junit out/sql.xml

exit codes: 0 all passed, 7 a test failed, 1 a file or a statement has an error, 2 no tests, 130 interrupted
"""

_RECOVER_EXAMPLES = """\
examples:
  penstock jobs --state out/state                       what is there, and which processes died
  penstock recover --state out/state                    run on all jobs left unfinished
  penstock recover --state out/state --job insert-into-f-1 --take-over
"""

_DOCTOR_EXAMPLES = """\
examples:
  penstock doctor                                   exit code 1 when something must be mended
  penstock doctor --json --state out/state
  penstock doctor --set bounded.backend=duckdb      without Spark
  penstock doctor --compile                         so that no query waits for it
"""

_SPARK_EXAMPLES = """\
examples:
  penstock --set spark.keep-alive='10 min' -f report.sql    the first starts Spark, the next ones find it running
  penstock spark status                                     what is kept alive, and who uses it
  penstock spark stop                                       end it now
"""

_CHECKPOINT_EXAMPLES = """\
examples:
  penstock checkpoint ls out/state                          checkpoints of all jobs
  penstock checkpoint show out/state --job insert-into-f-1  operators, states, positions of the current one
  penstock checkpoint verify out/state                      read every byte; exit code 1 when one is wrong
  penstock checkpoint diff out/state 41 42                  how the states grew
  penstock checkpoint export out/state --to exported        keyed states as Parquet
"""


def shell_parser() -> Parser:
    """Return the parser of ``penstock`` without a command."""
    parser = Parser(
        prog="penstock",
        description="Continuous SQL. Without -c or -f: the shell. Commands: init, run FILE.., serve, fmt FILE.., test, "
        "checkpoint, jobs, recover, doctor, explain-error CODE.., spark.",
        epilog=_SHELL_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # an abbreviation of today may be another flag's tomorrow
        allow_abbrev=False,
    )
    parser.add_argument(
        "url", nargs="?", metavar="URL", help="a server; without it the engine runs in this process"
    )
    add_server(parser)
    parser.add_argument(
        "-c",
        dest="commands",
        action="append",
        metavar="SQL",
        help="run statements or meta commands and leave (repeatable)",
    )
    parser.add_argument(
        "-f",
        dest="files",
        action="append",
        metavar="FILE",
        help="run a script and leave; - is stdin (repeatable)",
    )
    parser.add_argument("-i", dest="init", action="append", metavar="FILE", help="run a script first")
    parser.add_argument(
        "--interactive", action="store_true", help="open the shell even when stdin is no terminal"
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    _add_output(parser)
    _add_session(parser)
    return parser


def run_parser() -> Parser:
    """Return the parser of ``penstock run``."""
    parser = Parser(
        prog="penstock run",
        description="Run scripts: statements in order, jobs waited for, stop at the first error.",
        epilog=_RUN_EXAMPLES,
        # two columns more than the default: two lines less
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=26),
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="SQL scripts; - is stdin")
    parser.add_argument(
        "--var", action="append", default=[], metavar="N=V", help="value of ${N} in quotes (repeatable)"
    )
    parser.add_argument("--state", metavar="DIR", help="store checkpoints here and resume from the last one")
    parser.add_argument("--force", action="store_true", help="drop a state that is of another query")
    parser.add_argument(
        "--allow-changed-query",
        action="store_true",
        help="restore the unchanged operators of a changed query",
    )
    parser.add_argument(
        "--take-over", action="store_true", help="fence off another process that has the job's state"
    )
    parser.add_argument("--check", action="store_true", help="parse and bind only; print every error")
    parser.add_argument("--explain", action="store_true", help="print plans instead of running them")
    parser.add_argument("--watch", action="store_true", help="run again whenever a file is saved")
    parser.add_argument("--detach", action="store_true", help="with -H: start jobs, print their ids")
    add_server(parser)
    parser.add_argument(
        "--metrics-port", type=_port, metavar="N", help="answer http://127.0.0.1:N/metrics for Prometheus"
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="a line on stderr for each checkpoint and Spark query",
    )
    _add_output(parser)
    _add_session(parser)
    return parser


def init_parser() -> Parser:
    """Return the parser of ``penstock init``."""
    parser = Parser(
        prog="penstock init",
        description="Make a project that runs: a script, sample data and a README. Files that exist are never "
        "overwritten.",
        allow_abbrev=False,
    )
    parser.add_argument("directory", nargs="?", default=".", metavar="DIR", help="where; by default here")
    parser.add_argument("--json-errors", action="store_true", help="errors as one JSON object a line")
    return parser


def fmt_parser() -> Parser:
    """Return the parser of ``penstock fmt``."""
    parser = Parser(
        prog="penstock fmt",
        description="Format SQL scripts: one layout, keywords in capitals. Comments stay, and every statement "
        "stays the same statement.",
        epilog=_FMT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="scripts or directories; - is stdin")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 when a file would change"
    )
    parser.add_argument("--diff", action="store_true", help="write nothing; print what would change")
    parser.add_argument("--json-errors", action="store_true", help="errors as one JSON object a line")
    return parser


def test_parser() -> Parser:
    """Return the parser of ``penstock test``."""
    parser = Parser(
        prog="penstock test",
        description="Run unit tests of SQL scripts: input rows, then expected rows or changes.",
        epilog=_TEST_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="test files or directories; by default here")
    parser.add_argument(
        "-k", dest="keyword", metavar="WORDS", help="only tests with these words in their names"
    )
    parser.add_argument("-x", dest="first", action="store_true", help="stop at the first test that fails")
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML too")
    parser.add_argument("--json-errors", action="store_true", help="errors as one JSON object a line")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="K=V",
        help="set a setting (repeatable)",
    )
    return parser


def jobs_parser() -> Parser:
    """Return the parser of ``penstock jobs``."""
    parser = Parser(
        prog="penstock jobs",
        description="List the jobs of a state directory and how each ended, or those of a server.",
        allow_abbrev=False,
    )
    parser.add_argument("--state", metavar="DIR", help="the --state directory of penstock run")
    add_server(parser)
    _add_output(parser)
    _add_session(parser)
    return parser


def recover_parser() -> Parser:
    """Return the parser of ``penstock recover``."""
    parser = Parser(
        prog="penstock recover",
        description="Run on the jobs whose process died, from their newest checkpoints, to their end.",
        epilog=_RECOVER_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--state", metavar="DIR", required=True, help="the --state directory of penstock run")
    parser.add_argument(
        "--job", metavar="ID", help="only the job of this id, or those of this name, however they ended"
    )
    parser.add_argument(
        "--take-over", action="store_true", help="also jobs whose process is running: it is fenced off"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="a line on stderr for each checkpoint")
    _add_output(parser)
    _add_session(parser)
    return parser


def doctor_parser() -> Parser:
    """Return the parser of ``penstock doctor``."""
    parser = Parser(
        prog="penstock doctor",
        description="Say what Python, packages, Java and Spark there are, what can be written, and how to "
        "mend "
        "what is missing.",
        epilog=_DOCTOR_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--state", metavar="DIR", help="the directory of checkpoints")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile all kernels for this machine now (half a minute, once)",
    )
    _add_session(parser)
    parser.set_defaults(format=None, json_errors=False)
    return parser


def explain_error_parser() -> Parser:
    """Return the parser of ``penstock explain-error``."""
    parser = Parser(
        prog="penstock explain-error",
        description="Say what an error code means and what to do; without a code, list all of them.",
        allow_abbrev=False,
    )
    parser.add_argument("codes", nargs="*", metavar="CODE", help="a code such as SQL-1042")
    parser.add_argument("--json", action="store_true", help="codes, causes and cures as JSON")
    return parser


def spark_parser() -> Parser:
    """Return the parser of ``penstock spark``."""
    parser = Parser(
        prog="penstock spark",
        description="List the Sparks kept alive for this user (setting spark.keep-alive), or end them. "
        "Starts nothing.",
        epilog=_SPARK_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("action", choices=("status", "stop"), metavar="status|stop")
    parser.add_argument("--json", action="store_true", help="the states as JSON")
    return parser


def checkpoint_parser() -> Parser:
    """Return the parser of ``penstock checkpoint``."""
    parser = Parser(
        prog="penstock checkpoint",
        description="Look into checkpoints without running a job; nothing is changed.",
        epilog=_CHECKPOINT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "action", choices=("ls", "show", "verify", "diff", "export"), metavar="ls|show|verify|diff|export"
    )
    parser.add_argument("directory", metavar="DIR", help="a directory of --state, or of one job in it")
    parser.add_argument(
        "numbers",
        nargs="*",
        default=[],
        type=_count,
        metavar="N",
        help="checkpoints: one for show, verify and export, two for diff",
    )
    parser.add_argument("--job", metavar="JOB", help="the job, where the directory holds several")
    parser.add_argument("--to", metavar="DIR", help="where export writes")
    _add_output(parser)
    _add_session(parser)
    return parser


def checkpoint_arguments(parser: Parser, words: Sequence[str]) -> argparse.Namespace:
    """Parse the words of ``penstock checkpoint``: ``checkpoint`` is the one meant, ``first`` and
    ``second`` are the two of diff.
    """
    arguments = parser.parse_words(words)
    # the numbers of checkpoints: `diff 41 42`, `show 41`
    wanted = 2 if arguments.action == "diff" else 1
    if len(arguments.numbers) > wanted or (arguments.action == "diff" and len(arguments.numbers) < 2):
        parser.error(
            f"{arguments.action} takes {'two checkpoints' if wanted == 2 else 'at most one checkpoint'}"
        )
    # --to belongs to export, and export needs it
    if (arguments.to is None) is (arguments.action == "export"):
        parser.error("export takes --to DIR" if arguments.to is None else "--to goes with export")
    arguments.checkpoint = arguments.numbers[0] if len(arguments.numbers) == 1 else None
    arguments.first, arguments.second = (*arguments.numbers, None, None)[:2]
    return arguments


def command_first(words: Sequence[str]) -> list[str]:
    """Return the words with the command moved before its options, so that options may come before it.
    Words without a command behind options stay as they are.
    """
    # the command comes first already, or there is none
    if not words or not words[0].startswith("-"):
        return list(words)
    # penstock --set k=v run job.sql: the first command that has only options before it
    for place, word in enumerate(words):
        if word in COMMANDS:
            valued = shell_parser().valued_flags() | PARSERS.get(word, shell_parser)().valued_flags()
            if _only_options(words[:place], valued):
                return [word, *words[:place], *words[place + 1 :]]
    return list(words)


def _only_options(words: Sequence[str], valued: set[str]) -> bool:
    """Return whether words are flags and their values, none of which is still to come."""
    waits = False
    for word in words:
        if not waits and not word.startswith("-"):
            return False
        waits = not waits and word in valued
    return not waits


PARSERS: dict[str, Callable[[], Parser]] = {
    "serve": serve_parser,
    "init": init_parser,
    "run": run_parser,
    "fmt": fmt_parser,
    "test": test_parser,
    "checkpoint": checkpoint_parser,
    "jobs": jobs_parser,
    "recover": recover_parser,
    "doctor": doctor_parser,
    "explain-error": explain_error_parser,
    "spark": spark_parser,
    "user": user_parser,
    **job_command_parsers(lambda parser: _add_output(parser)),  # noqa: PLW0108  defined below
}


def _add_output(parser: Parser) -> None:
    # --csv is short for --format csv
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--format", choices=FORMATS, metavar="F", help="|".join(FORMATS))
    for name in ("csv", "json", "jsonl"):
        group.add_argument(
            f"--{name}", dest="format", action="store_const", const=name, help=argparse.SUPPRESS
        )
    parser.add_argument("--json-errors", action="store_true", help="errors as one JSON object a line")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="give up after S seconds (exit code 4)")


def _add_session(parser: Parser) -> None:
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="K=V",
        help="set a setting (repeatable)",
    )
    parser.add_argument("--catalog", metavar="DIR", help="store permanent tables and views here")
    parser.add_argument("-p", "--parallelism", type=_count, metavar="N", help="subtasks of each operator")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # also NaN, which is not less than 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def _port(text: str) -> int:
    # 9090 and 127.0.0.1:9090
    host, _, number = text.rpartition(":")
    if host not in ("", "127.0.0.1", "localhost"):
        raise argparse.ArgumentTypeError(
            f"metrics are served on 127.0.0.1 only, not on {host}: they have no password; put a "
            "proxy before them"
        )
    if not number.isdecimal() or not 0 < int(number) < 65_536:
        raise argparse.ArgumentTypeError(f"{text} is not a port from 1 to 65535")
    return int(number)


def key_values(pairs: list[str], flag: str, parser: Parser) -> dict[str, str]:
    """Return ``k=v`` words as a mapping; a word without ``=`` is a usage error."""
    values = {}
    for pair in pairs:
        # the value may hold further equals signs
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            parser.error(f"{flag} takes name=value, not {pair!r}: write {flag} {pair}=value")
        values[key.strip()] = value
    return values
