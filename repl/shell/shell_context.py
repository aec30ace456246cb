"""The state of a shell, for its loop and its meta commands: the session, the last statement, the last
error.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.config import Config
from penstock.repl.launch.script_parts import MetaCommand, script_parts
from penstock.repl.launch.status_requests import NOTHING_RUNS, StatusRequests, report_status
from penstock.repl.meta_commands.context import jobs_in_words
from penstock.repl.meta_commands.registry import check_command

if TYPE_CHECKING:
    from penstock.client.session import Session
    from penstock.client.statements.dispatch import LocatedStatement
    from penstock.repl.output.printer import Printer
    from penstock.repl.shell.shell_session import ShellSession


_ENDING_S = 0.3
"""How long a job may take to end after its last row."""


class ShellContext:
    """The state of a shell. The session and the printer load in the background while the user reads the
    first prompt.

    ``next_input``: text the next prompt starts with. ``explain_mode``: whether queries are explained instead
    of run. ``print_above``: prints rows of a job above the prompt, or by its second
    argument.
    """

    def __init__(self, config: Config, arguments: argparse.Namespace) -> None:
        self.config = config
        self.last_error: PenstockError | None = None
        self.last_statement = ""
        self.next_input = ""
        self.interactive = True
        self.included: list[str] = []
        self.explain_mode: Callable[[], bool] = lambda: False
        self.print_above: Callable[..., None] | None = None
        self.requests = StatusRequests(self.report_status)
        self._arguments = arguments
        self._loaded: ShellSession | None = None
        self._failure: PenstockError | None = None
        # A daemon: a user who leaves at the first prompt does not wait for the imports.
        self._loader = threading.Thread(target=self._load, name="penstock-loader", daemon=True)

    def start_loading(self) -> None:
        """Begin to load the engine; called when the first prompt is drawn."""
        # A thread starts once; it has an ident from then on.
        if self._loader.ident is None:
            self._loader.start()

    def _load(self) -> None:
        # imports the engine: not in the thread that draws the prompt
        from penstock.repl.shell.shell_session import ShellSession

        try:
            loaded = ShellSession(self.config, self._arguments)
            # A print table must not write into the line that is being typed.
            if self.print_above is not None and not loaded.session.is_remote:
                loaded.session.state.print_stream.write = self.print_above  # type: ignore[union-attr]
                # Spark may be started while the user types.
                loaded.messages.note_above_prompt(self.print_above)
            # The last step: the prompt's thread reads this field without a lock, and sees all or nothing.
            self._loaded = loaded
        except PenstockError as error:
            # Raised in the thread of the prompt, at the first use of the session.
            self._failure = error

    def _wait_loaded(self) -> ShellSession:
        """Wait for the session and the printer. Raises PenstockError when the configuration is wrong."""
        self.start_loading()
        self._loader.join()
        if self._failure is not None:
            raise self._failure
        assert self._loaded is not None
        return self._loaded

    @property
    def session(self) -> Session:
        """The session; waits until it is loaded."""
        return self._wait_loaded().session  # type: ignore[return-value]  # or a server's: is_remote

    @property
    def printer(self) -> Printer:
        """The printer; waits until it is loaded."""
        return self._wait_loaded().printer

    @property
    def session_if_loaded(self) -> Session | None:
        """The session, or None while it is being loaded."""
        return self._loaded.session if self._loaded is not None else None  # type: ignore[return-value]

    def run_statement(self, statement: LocatedStatement, params: Sequence[Any] = ()) -> None:
        """Run a statement, or explain it in explain mode, and print its result."""
        session, printer = self.session, self.printer
        # \e and \watch repeat what the user typed, not a script that \i ran.
        if statement.source.file is None:
            self.last_statement = statement.text
        # not at the prompt, whose editor has its own keys
        with self.requests.key(sys.stdin) as printer.how_to_ask:
            with printer.awaiting_result():
                result = session.explain(statement) if self.explain_mode() else session.run(statement, params)
            printer.show(result)

    def run_statements(self, text: str, file: str | None = None) -> bool:
        """Run the parts of a text and print their results, stopping at the first error, which is raised;
        return False when one leaves.
        """
        parts = script_parts(self._parse, text, file)
        # Before the first one runs: a wrong name is found as early as wrong syntax.
        for command in parts:
            if isinstance(command, MetaCommand):
                check_command(command)
        for part in parts:
            if not isinstance(part, MetaCommand):
                self.run_statement(part)
            else:
                # not before a command is typed
                from penstock.repl.meta_commands.dispatch import run_command

                if not run_command(self, part):
                    return False
        return True

    def _parse(self, text: str, file: str | None) -> list[LocatedStatement]:
        # The session is waited for here, and not by a text of commands such as \x alone.
        return self.session.parse(text, file)

    def report_status(self) -> None:
        """Report what runs, above the prompt while there is one."""
        loaded = self._loaded
        write = self.note if loaded is None else loaded.messages.note
        if loaded is None:
            self._above_prompt(NOTHING_RUNS, write)
        else:
            report_status(loaded.printer, loaded.session.jobs(), lambda text: self._above_prompt(text, write))

    def _above_prompt(self, text: str, write: Callable[[str], None]) -> None:
        # a pipe has no prompt that must stay whole
        if self.print_above is None:
            write(text)
        else:
            self.print_above(text, write)

    def status(self) -> str:
        """Return the bottom bar's words: running jobs."""
        return jobs_in_words(self.session_if_loaded)

    def runs_jobs(self) -> bool:
        """Return whether jobs of this process run. One whose rows have just been shown is waited for: it ends
        within milliseconds.
        """
        session = self.session_if_loaded
        jobs = [] if session is None or session.is_remote else session.jobs()
        return any(not job.wait(_ENDING_S) for job in jobs)

    def report(self, error: PenstockError) -> None:
        """Print an error and store it for ``\\errverbose``."""
        self.last_error = error
        # There are no messages yet: the session is not loaded, or its configuration is wrong.
        if self._loaded is None:
            sys.stderr.write(error.render() + "\n")
        else:
            self._loaded.messages.error(error)

    def note(self, text: str) -> None:
        """Print a note."""
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Stop what runs in this process."""
        if self._loaded is not None:
            self._loaded.close()
