"""The session, messages and printer of the shell, which load the engine."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TextIO

from penstock.repl.launch.config import Config
from penstock.repl.launch.job_waiter import attach_waiter
from penstock.repl.launch.session_factory import messages_for, open_session, printer_for


class ShellSession:
    """A session and its printer. Raises PenstockError when a configured setting is wrong."""

    def __init__(self, config: Config, arguments: argparse.Namespace) -> None:
        self.messages = messages_for(arguments)
        self.session = open_session(config, arguments)
        # Spark takes seconds to start: it starts at CREATE TABLE, while the user types the query. A pipe does
        # not type.
        self.session.state.warms_backend = sys.stdin.isatty()
        attach_waiter(self.session, self.messages)
        self.printer = printer_for(config, self.messages)
        # printer_for times results on a terminal only; a shell prints times with any stdout.
        self.printer.style.timing = config.timing
        # result-mode is read at each result, so that SET has an effect at once.
        self.printer.settings = self.session.settings
        self._file: TextIO | None = None
        look = self.printer.style.look
        # What \o FILE changes and \o restores.
        self._screen = (self.printer.style.terminal, look.color, look.width)

    def send_output_to(self, path: str | None) -> None:
        """Print rows into a file from now on, or on the screen again."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if path is not None:
            self._file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115, PTH123  # closed by the next \o or the shell's end
        self.printer.out = self._file or sys.stdout
        style = self.printer.style
        # Rows in a file have no colors, are not cut, and are not redrawn.
        style.terminal, color, width = (False, False, None) if self._file else self._screen
        style.look = replace(style.look, color=color, width=width)

    def close(self) -> None:
        """Close the output file and the session."""
        self.send_output_to(None)
        self.session.close()
