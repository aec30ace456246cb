"""The shell: read, run, print, repeat. Ctrl-C stops a result, and the session stays."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TextIO

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.config import Config
from penstock.repl.launch.interrupts import raised_between_locks
from penstock.repl.launch.parser import EXIT_OK, EXIT_QUERY, Parser
from penstock.repl.launch.script_parts import is_finished
from penstock.repl.shell.shell_context import ShellContext

BANNER = "penstock: continuous SQL. \\? for commands, \\h for SQL, \\q or Ctrl-D to leave."


class Shell:
    """Reads inputs by ``read`` and runs them until the user leaves."""

    def __init__(self, context: ShellContext, read: Callable[[str], str]) -> None:
        self.context = context
        self._read = read
        self._asked_to_stay = False

    def loop(self) -> int:
        """Read and run until the user leaves; return the exit code."""
        while True:
            try:
                # next_input: text that a command such as \e has prepared for editing
                text = self._read(self.context.next_input)
                self.context.next_input = ""
            except KeyboardInterrupt:
                # Ctrl-C at the prompt never ends a session with running jobs
                self.context.note("Ctrl-D or \\q leaves the shell")
                continue
            except EOFError:
                if self._may_leave():
                    return EXIT_OK
                continue
            try:
                # \q, quit or exit
                if not self.run(text):
                    return EXIT_OK
            except KeyboardInterrupt:
                # Ctrl-C while a result is shown stops that result only
                self.context.note("stopped")
            except PenstockError as error:
                self.context.report(error)

    def run(self, text: str) -> bool:
        """Run one input: a command or statements; return False when the user wants to leave."""
        stripped = text.strip()
        if not stripped:
            return True
        # what users of other shells type; no SQL statement begins so
        if stripped.rstrip("; \n").lower() in ("quit", "exit"):
            return False
        return self.context.run_statements(text)

    def _may_leave(self) -> bool:
        """Return whether the user may leave: the first time not while jobs run, which would stop."""
        # a job without state would lose its progress, so the first Ctrl-D only warns
        if not self._asked_to_stay and self.context.runs_jobs():
            self._asked_to_stay = True
            self.context.note(f"{self.context.status()} in this process and would stop: Ctrl-D again leaves")
            return False
        return True


def run_shell(arguments: argparse.Namespace, parser: Parser) -> int:
    """Open the shell and return its exit code."""
    from penstock.repl.launch.session_factory import configured, messages_for, refuse_url

    try:
        config = configured(arguments, parser)
    except PenstockError as error:
        # the configuration file is wrong: the shell does not open
        messages_for(arguments).error(error)
        return EXIT_QUERY
    if (refused := refuse_url(config, messages_for(arguments))) is not None:
        return refused
    shell = make_shell(config, arguments)
    with raised_between_locks(), shell.context.requests.answered():
        return _run_until_left(shell, arguments)


def _run_until_left(shell: Shell, arguments: argparse.Namespace) -> int:
    context = shell.context
    try:
        if sys.stdin.isatty():
            context.note(BANNER)
        # --init FILE: tables and settings before the first prompt
        for name in arguments.init or []:
            _run_init(context, name)
        return shell.loop()
    except PenstockError as error:
        context.report(error)
        return EXIT_QUERY
    finally:
        context.close()


def make_shell(config: Config, arguments: argparse.Namespace) -> Shell:
    """Return a shell that reads from the terminal by the line editor, or from a pipe line by line."""
    # the session is made later: the prompt appears before the engine is imported
    context = ShellContext(config, arguments)
    # a pipe: no line editor, no colors, no history
    if not sys.stdin.isatty():
        return Shell(context, PlainReader(sys.stdin, sys.stderr).read)
    from penstock.repl.meta_commands.query_file import names_of_queries
    from penstock.repl.meta_commands.registry import COMMAND_HELP
    from penstock.repl.shell.completion import SqlCompleter
    from penstock.repl.shell.editor import Editor

    # completion never waits for the session to load
    completer = SqlCompleter(
        lambda: context.session_if_loaded, COMMAND_HELP, lambda: names_of_queries(config.named_queries)
    )
    editor = Editor(config, completer, context.status, context.start_loading)
    context.explain_mode = lambda: editor.explain_mode
    # messages of jobs appear above the line that is being typed
    context.print_above = editor.print_above
    if editor.history_note:
        context.note(editor.history_note)
    return Shell(context, editor.read)


def _run_init(context: ShellContext, name: str) -> None:
    from penstock.repl.launch.script_runner import read_script

    context.run_statements(read_script(name), name)


class PlainReader:
    """Reads lines until they make a whole statement or command. The prompt goes to stderr, because stdout
    is data.
    """

    def __init__(self, source: TextIO, prompt_to: TextIO) -> None:
        self._source = source
        self._prompt_to = prompt_to

    def read(self, default: str = "") -> str:
        """Return the next statement or command; EOFError at the end of the input."""
        lines: list[str] = []
        self._prompt_to.write("penstock> ")
        self._prompt_to.flush()
        for line in self._source:
            lines.append(line)
            text = "".join(lines)
            if is_finished(text):
                return text
        # the input ended without a semicolon: the last statement runs all the same
        if "".join(lines).strip():
            return "".join(lines)
        raise EOFError
