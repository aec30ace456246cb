"""The shell: read, run, print, go on. A result stops on Ctrl-C; the session stays."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.arguments import EXIT_OK, EXIT_QUERY, Parser
from penstock.repl.launch.config import Config

if TYPE_CHECKING:
    from penstock.client.session import Session
    from penstock.repl.shell.shell_context import Room

BANNER = "penstock: continuous SQL. \\? for commands, \\h for SQL, \\q or Ctrl-D to leave."


class Shell:
    """What the commands of the shell work on. The room (session, printer) is furnished in the background
    while the user reads the prompt.
    """

    def __init__(self, config: Config, arguments: argparse.Namespace, read: Callable[[str], str]) -> None:
        self.config = config
        self.arguments = arguments
        self.last_error: PenstockError | None = None
        self.last_statement = ""
        self.next_input = ""
        self.explain_mode: Callable[[], bool] = lambda: False
        self.print_above: Callable[[str], None] | None = None
        self._read = read
        self._room: Room | None = None
        self._failure: PenstockError | None = None
        self._loader = threading.Thread(target=self._furnish, name="penstock-loader", daemon=True)
        self._asked_to_stay = False

    def start_loading(self) -> None:
        """Begin to load the engine; called when the first prompt is drawn."""
        if self._loader.ident is None:
            self._loader.start()

    def _furnish(self) -> None:
        from penstock.repl.shell.shell_context import Room

        try:
            room = Room(self.config, self.arguments)
            if self.print_above is not None:
                room.session.state.print_stream.write = self.print_above
            self._room = room
        except PenstockError as error:
            self._failure = error

    @property
    def room(self) -> Room:
        """The session and the printer; waits until they are loaded. Raises PenstockError when the
        configuration is wrong.
        """
        self.start_loading()
        self._loader.join()
        if self._failure is not None:
            raise self._failure
        assert self._room is not None
        return self._room

    @property
    def session_if_loaded(self) -> Session | None:
        """The session, or None while it is being loaded."""
        return self._room.session if self._room is not None else None

    def status(self) -> str:
        """Return the bottom bar's words: running jobs."""
        session = self.session_if_loaded
        running = 0 if session is None else sum(not job.state.terminal for job in session.jobs())
        return f"{running} job{'' if running == 1 else 's'} running" if running else ""

    def loop(self) -> int:
        """Read and run until the user leaves; return the exit code."""
        while True:
            try:
                text = self._read(self.next_input)
                self.next_input = ""
            except KeyboardInterrupt:
                self.say("Ctrl-D or \\q leaves the shell")
                continue
            except EOFError:
                if self._may_leave():
                    return EXIT_OK
                continue
            try:
                if not self.run(text):
                    return EXIT_OK
            except KeyboardInterrupt:
                self.say("stopped")
            except PenstockError as error:
                self.report(error)

    def run(self, text: str) -> bool:
        """Run one input: a command or statements; return False when the user wants to leave."""
        stripped = text.strip()
        if not stripped:
            return True
        if stripped.startswith("\\"):
            from penstock.repl.shell.backslash_commands import run_command

            return run_command(self, stripped)
        if stripped.rstrip("; \n").lower() in ("quit", "exit"):
            return False
        self.run_statements(text)
        return True

    def run_statements(self, text: str, file: str | None = None) -> None:
        """Run the statements of a text and print their results, stopping at the first error, which is
        raised.
        """
        room = self.room
        if file is None:
            self.last_statement = text.strip()
        for statement in room.session.parse(text, file):
            result = room.session.explain(statement) if self.explain_mode() else room.session.run(statement)
            room.printer.show(result)

    def report(self, error: PenstockError) -> None:
        """Print an error and keep it for ``\\errverbose``."""
        self.last_error = error
        if self._room is None:
            sys.stderr.write(error.render() + "\n")
        else:
            self._room.messages.error(error)

    def say(self, text: str) -> None:
        """Print a note."""
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Stop what runs in this process."""
        if self._room is not None:
            self._room.close()

    def _may_leave(self) -> bool:
        """Warn once when jobs would stop with this process."""
        if self.status() and not self._asked_to_stay:
            self._asked_to_stay = True
            self.say(f"{self.status()} in this process and would stop: Ctrl-D again leaves")
            return False
        return True


def run_shell(arguments: argparse.Namespace, parser: Parser) -> int:
    """Open the shell and return its exit code."""
    from penstock.repl.launch.session_factory import configured, messages_for, refuse_url

    try:
        config = configured(arguments, parser)
    except PenstockError as error:
        messages_for(arguments).error(error)
        return EXIT_QUERY
    if (refused := refuse_url(config, messages_for(arguments))) is not None:
        return refused
    shell = make_shell(config, arguments)
    try:
        if sys.stdin.isatty():
            shell.say(BANNER)
        for name in arguments.init or []:
            _run_init(shell, name)
        return shell.loop()
    except PenstockError as error:
        shell.report(error)
        return EXIT_QUERY
    finally:
        shell.close()


def make_shell(config: Config, arguments: argparse.Namespace) -> Shell:
    """Return a shell that reads from the terminal by the line editor, or from a pipe line by line."""
    if not sys.stdin.isatty():
        from penstock.repl.shell.plain_reader import PlainReader

        return Shell(config, arguments, PlainReader(sys.stdin, sys.stderr).read)
    from penstock.repl.shell.backslash_table import COMMAND_HELP
    from penstock.repl.shell.completion import SqlCompleter
    from penstock.repl.shell.editor import Editor

    shell = Shell(config, arguments, lambda default: editor.read(default))  # noqa: PLW0108  # the editor is made after it
    completer = SqlCompleter(lambda: shell.session_if_loaded, COMMAND_HELP)
    editor = Editor(config, completer, shell.status, shell.start_loading)
    shell.explain_mode = lambda: editor.explain_mode
    shell.print_above = editor.print_above
    if editor.history_note:
        shell.say(editor.history_note)
    return shell


def _run_init(shell: Shell, name: str) -> None:
    from penstock.repl.launch.script_runner import read_script

    shell.run_statements(read_script(name), name)
