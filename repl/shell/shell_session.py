"""The session, messages and printer of the shell, which load the engine."""

from __future__ import annotations

import argparse
import sys

from penstock.repl.launch.config import Config
from penstock.repl.launch.job_waiter import attach_waiter
from penstock.repl.launch.session_factory import messages_for, open_session, printer_for
from penstock.repl.output.pager import Pager


class ShellSession:
    """A session and its printer. Raises PenstockError when a configured setting is wrong."""

    def __init__(self, config: Config, arguments: argparse.Namespace) -> None:
        self.messages = messages_for(arguments)
        self.session = open_session(config, arguments)
        if not self.session.is_remote:
            # Spark takes seconds to start: it starts at CREATE TABLE, while the user types the query. A pipe
            # does not type.
            self.session.state.warms_backend = sys.stdin.isatty()  # type: ignore[union-attr]
        attach_waiter(self.session, self.messages)
        self.printer = printer_for(config, self.messages)
        # printer_for times results on a terminal only; a shell prints times with any stdout.
        self.printer.style.timing = config.timing
        # Pages need somebody who turns them: not for a pipe, nor for -c and -f.
        if sys.stdin.isatty():
            self.printer.pager = Pager()
        self.printer.style.pager = config.pager
        # result-mode is read at each result, so that SET has an effect at once.
        self.printer.settings = self.session.settings

    def close(self) -> None:
        """Close the output file and the session."""
        self.printer.send_to(None)
        self.session.close()
