"""Scripts: statements of a text in order, their results printed, and ``${name}`` replaced.

A variable is replaced inside quotes only, so its value can only be part of a string or a name.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.catalog.errors import Kind, PenstockError, SourceText, Span
from penstock.catalog.name_suggestions import did_you_mean, did_you_mean_file
from penstock.repl.launch.job_waiter import JobFailed, JobWaiter
from penstock.repl.launch.parser import (
    EXIT_DIFFERENT,
    EXIT_INTERRUPTED,
    EXIT_JOB,
    EXIT_OK,
    EXIT_QUERY,
    EXIT_TIMEOUT,
    EXIT_USAGE,
)
from penstock.repl.launch.script_parts import MetaCommand, script_parts
from penstock.repl.output.messages import Messages
from penstock.repl.output.printer import Printer

if TYPE_CHECKING:
    from penstock.client.remote.remote_session import RemoteSession
    from penstock.client.results.result import Result
    from penstock.client.session import Session
    from penstock.client.statements.dispatch import LocatedStatement
    from penstock.engine.job.job import Job


UNREADABLE = "CLI-6131"
DIFFERENT = "VER-7002"


# Runs or explains a statement with the values of its ``?``.
Action = Callable[["LocatedStatement", Sequence[Any]], None]


class MetaCommands(Protocol):
    """The meta commands that a script may have."""

    def check(self, command: MetaCommand) -> None:
        """Raise when there is no such command."""

    def run(self, command: MetaCommand) -> bool:
        """Run a command; return False when it leaves the script."""


class ScriptRunner:
    """Runs the statements of texts in one session and prints their results. ``commands``: without them a
    meta command is a syntax error.
    """

    def __init__(
        self,
        session: Session | RemoteSession,
        printer: Printer,
        messages: Messages,
        *,
        variables: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.session = session
        self.printer = printer
        # SET 'result-mode' in a script changes how the results after it are printed
        printer.settings = session.settings
        self.messages = messages
        self.shown: Callable[[Result], None] = printer.show
        self.after: Callable[[Result], None] | None = None
        self.commands: MetaCommands | None = None
        self.last_statement = ""
        self._action: Action = self._run
        self._variables = variables or {}
        self._timeout_s = timeout_s
        self._timed_out = False
        self.abandoned = False
        self._unfinished: list[tuple[str, bool]] = []
        self._timer: threading.Timer | None = None
        self._current: Result | None = None

    def run_file(self, name: str) -> int:
        """Run a script file (``-`` is stdin) and return the exit code."""
        try:
            text = read_script(name)
        except PenstockError as error:
            self.messages.error(error)
            return EXIT_USAGE if error.code == UNREADABLE else EXIT_QUERY
        return self.run_text(text, None if name == "-" else name)

    def run_text(self, text: str, file: str | None = None) -> int:
        """Run the statements of a text and return the exit code."""
        return self.each_statement(text, file, self._run)

    def each_statement(self, text: str, file: str | None, run: Action) -> int:
        """Parse a text and call ``run`` with each statement, in order, until one fails. Return the exit
        code.
        """
        try:
            self._start_clock()
            self._action = run
            self.run_parts(text, file)
            # the timer has cancelled the statement, which ends without an error of its own
            if self._timed_out:
                return self._report_timeout()
            # a file was saved meanwhile: the statements behind would be of the old text
            if self.abandoned:
                return EXIT_INTERRUPTED
        # before PenstockError: the exit code of a failed job differs from that of a wrong statement
        except JobFailed as failed:
            self.messages.error(failed.error)
            return EXIT_JOB
        except PenstockError as error:
            if self._timed_out:
                return self._report_timeout()
            # the error of a statement that was cancelled
            if self.abandoned:
                return EXIT_INTERRUPTED
            self.messages.error(error)
            return EXIT_DIFFERENT if error.code == DIFFERENT else EXIT_QUERY
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        return EXIT_OK

    def run_parts(self, text: str, file: str | None = None) -> bool:
        """Run the statements and meta commands of a text in order. Return False when a command leaves it, or
        when the run was ended from another thread. Raises the first error.
        """
        text = substitute(text, self._variables, file)
        if self.commands is None:
            parts: Sequence[LocatedStatement | MetaCommand] = self.session.parse(text, file)
        else:
            parts = script_parts(self.session.parse, text, file)
            # before the first one runs: a wrong name is found as early as wrong syntax
            for command in parts:
                if isinstance(command, MetaCommand):
                    self.commands.check(command)
        for part in parts:
            if not isinstance(part, MetaCommand):
                self.run_statement(part)
            elif self.commands is not None and not self.commands.run(part):
                return False
            if self._timed_out or self.abandoned:
                return False
        return True

    def run_statement(self, statement: LocatedStatement, params: Sequence[Any] = ()) -> None:
        """Run, or explain, one statement and print its result; ``params`` are the values of its ``?``."""
        self.last_statement = statement.text
        self._action(statement, params)

    def wait_for_jobs(self, waiter: JobWaiter) -> int:
        """Wait for the end of all jobs that were started, and return the exit code."""
        try:
            code = waiter.wait_for_all()
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        if self.abandoned:
            return EXIT_INTERRUPTED
        # a cancelled job would be reported as a failed one
        return self._report_timeout() if self._timed_out else code

    def _start_clock(self) -> None:
        """Start the one timer for all texts and their jobs; when it expires, everything is cancelled."""
        if self._timeout_s and self._timer is None:
            self._timer = threading.Timer(self._timeout_s, self._expire)
            # a script that ends earlier does not wait for its timer
            self._timer.daemon = True
            self._timer.start()

    def explain_file(self, name: str) -> int:
        """Print the plans of a file's queries and inserts. Its other statements are executed, because the
        plans need them.
        """
        try:
            return self.each_statement(read_script(name), None if name == "-" else name, self._explain)
        except PenstockError as error:
            self.messages.error(error)
            return EXIT_USAGE if error.code == UNREADABLE else EXIT_QUERY

    def _explain(self, statement: LocatedStatement, params: Sequence[Any] = ()) -> None:
        self.printer.show(self.session.explain(statement))

    def _run(self, statement: LocatedStatement, params: Sequence[Any] = ()) -> None:
        try:
            with self.printer.awaiting_result():
                result = self.session.run(statement, params)
        except JobFailed as failed:
            statement.locate(failed.error)
            raise
        # _expire and abandon, in other threads, cancel it
        self._current = result
        self.shown(result)
        # `penstock run` waits for the job of an INSERT here
        if self.after is not None:
            self.after(result)

    def _expire(self) -> None:
        # not before something takes too long
        from penstock.client.statements.explain_job import why_unfinished

        # asked before the jobs are cancelled: then they wait for nothing any more
        self._unfinished = [why_unfinished(job) for job in self._own_jobs() if not job.state.terminal]
        self._timed_out = True
        self._cancel()

    def abandon(self) -> None:
        """End what runs, from another thread: the text was saved anew. A statement or job may begin at this
        moment, so the caller repeats it until the run has ended.
        """
        self.abandoned = True
        self._cancel()

    def _cancel(self) -> None:
        if self._current is not None:
            self._current.cancel()
        for job in self._own_jobs():
            job.cancel()
        # an INSERT that a server has not finished
        if self.session.is_remote:
            self.session.cancel_running()  # type: ignore[union-attr]  # of a server

    def _own_jobs(self) -> list[Job]:
        """Return the jobs of this process: those of a server are of others too, and continue."""
        return [] if self.session.is_remote else self.session.jobs()  # type: ignore[return-value]

    def _report_timeout(self) -> int:
        # no job gives rows: a LIMIT would not end them, their watermark or input is what is missing
        waits = bool(self._unfinished) and not any(gives for _, gives in self._unfinished)
        hint = (
            "EXPLAIN WHY NO OUTPUT FOR JOB shows what a running job waits for"
            if waits
            else "raise --timeout, or add a LIMIT"
        )
        detail = "\n".join(why for why, _ in self._unfinished) or None
        message = f"gave up after {self._timeout_s:g} s"
        self.messages.error(
            PenstockError("CLI-6130", message, detail=detail, hint=hint, kind=Kind.EXTERNAL, sqlstate="57014")
        )
        return EXIT_TIMEOUT


def read_script(name: str) -> str:
    """Return the text of a script file or of stdin; CLI-6131 when it cannot be read, CLI-6132 when it is
    not UTF-8.
    """
    try:
        # bytes: an encoding error can then be located
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        path = Path(name)
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = did_you_mean_file(path.name, beside) or "paths are read from the current directory"
        reason = (error.strerror or str(error)).lower()
        raise PenstockError(
            UNREADABLE, f"cannot read {name}: {reason}", hint=hint, kind=Kind.EXTERNAL, sqlstate="58030"
        ) from error
    try:
        # editors on Windows begin a file with a byte order mark
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        source = SourceText(data.decode("utf-8", "replace"), None if name == "-" else name)
        # bytes to characters: the caret stands under the wrong byte
        place = len(data[: error.start].decode("utf-8", "replace"))
        message = f"{name} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}"
        raise PenstockError(
            "CLI-6132", message, span=Span(place, place + 1), source=source, sqlstate="22021"
        ) from error


# comments first, so that a quote in a comment opens no string
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def substitute(text: str, values: Mapping[str, str], file: str | None = None) -> str:
    """Return a script with its variables replaced; CLI-6110 for one that has no value, CLI-6111 for a
    value of several lines.
    """
    # most scripts have no variable
    if "${" not in text:
        return text

    def token(match: re.Match[str]) -> str:
        quote = match[0][0]
        # a comment stays as it is
        if quote not in "'\"`":
            return match[0]

        def value(variable: re.Match[str]) -> str:
            name = variable[1]
            start = match.start() + variable.start()
            where = {"span": Span(start, start + len(variable[0])), "source": SourceText(text, file)}
            if name not in values:
                hint = did_you_mean(name, values, others=True) or f"pass --var {name}=value"
                raise PenstockError("CLI-6110", f"variable {name} has no value", hint=hint, **where)  # type: ignore[arg-type]  # two named facts
            # positions of all later errors would move
            if "\n" in values[name]:
                raise PenstockError("CLI-6111", f"the value of variable {name} has several lines", **where)  # type: ignore[arg-type]
            # '' inside '..': a value cannot end the string it stands in, so it is never SQL
            return values[name].replace(quote, quote * 2)

        return _VARIABLE.sub(value, match[0])

    return _TOKEN.sub(token, text)
