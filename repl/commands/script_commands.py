"""The meta commands of scripts: what they need of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.repl.launch.config import Config
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.launch.script_runner import ScriptRunner
from penstock.repl.meta_commands.context import jobs_in_words
from penstock.repl.meta_commands.registry import check_command
from penstock.repl.output.printer import Printer

if TYPE_CHECKING:
    from penstock.catalog.errors import PenstockError
    from penstock.client.session import Session
    from penstock.client.statements.dispatch import LocatedStatement


class ScriptCommands:
    """Runs meta commands for a script runner."""

    def __init__(self, config: Config, runner: ScriptRunner) -> None:
        self.config = config
        # The first error ends a script, so no command sees one.
        self.last_error: PenstockError | None = None
        self.next_input = ""
        self.interactive = False
        self.included: list[str] = []
        self._runner = runner

    def check(self, command: MetaCommand) -> None:
        """Raise CLI-6140 when there is no such command."""
        check_command(command)

    def run(self, command: MetaCommand) -> bool:
        """Run a command; return False when it leaves the script."""
        # Most scripts have no command.
        from penstock.repl.meta_commands.dispatch import run_command

        return run_command(self, command)

    @property
    def session(self) -> Session:
        """The session of the script."""
        return self._runner.session  # type: ignore[return-value]  # or a server's: is_remote

    @property
    def printer(self) -> Printer:
        """The printer of results."""
        return self._runner.printer

    @property
    def last_statement(self) -> str:
        """The text of the statement that ran last."""
        return self._runner.last_statement

    @last_statement.setter
    def last_statement(self, text: str) -> None:
        self._runner.last_statement = text

    def run_statement(self, statement: LocatedStatement, params: Sequence[Any] = ()) -> None:
        """Run a statement, its ``?`` being ``params``, and print its result."""
        self._runner.run_statement(statement, params)

    def run_statements(self, text: str, file: str | None = None) -> bool:
        """Run the parts of a text; return False when one leaves."""
        return self._runner.run_parts(text, file)

    def status(self) -> str:
        """Return how many jobs run, in words."""
        return jobs_in_words(self.session)

    def note(self, text: str) -> None:
        """Print a note."""
        self._runner.messages.note(text)
