"""The shell on a terminal: keys go in by a pty, and what the screen shows comes out."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from tests.harness.patience import PATIENCE_S

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


class Terminal:
    """A shell on a terminal of 12 lines."""

    def __init__(self, environ):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.repl.cli", "--set", "bounded.backend=duckdb"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environ,
            start_new_session=True,
            # the terminal of the shell: a Ctrl-C that is typed is its signal
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._ours = ours
        self.shown = ""

    def type(self, keys):
        os.write(self._ours, keys.encode())

    def wait_for(self, text):
        """Read until a text is shown; return what was shown before it since the last wait."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.shown!r}"
            if select.select([self._ours], [], [], 0.2)[0]:
                piece = os.read(self._ours, 65_536).decode("utf-8", "replace")
                # prompt-toolkit asks where the cursor is
                if "\x1b[6n" in piece:
                    self.type("\x1b[1;1R")
                self.shown += ESCAPES.sub("", piece)
        seen, _, self.shown = self.shown.partition(text)
        return seen

    def enter(self, keys):
        """Type at the next prompt: before it the terminal would take Enter for Ctrl-J."""
        self.wait_for("penstock>")
        self.type(keys)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        os.close(self._ours)


@pytest.fixture
def terminal(tmp_path):
    opened = Terminal(
        {
            **os.environ,
            "TERM": "xterm",
            "NO_COLOR": "1",
            "HOME": str(tmp_path),
            "PENSTOCK_CONFIG": "/nonexistent",
            "PENSTOCK_HISTORY": str(tmp_path / "history"),
            "PENSTOCK_NAMED_QUERIES": str(tmp_path / "named.toml"),
            "PAGER": f"sh -c 'cat > {tmp_path}/paged; echo was-paged'",
        }
    )
    yield opened
    opened.close()


def test_keys_on_a_terminal(terminal, tmp_path):
    # Ctrl-C on text drops it without advice; on an empty line it says how to leave
    terminal.enter("SELECT dropped\x03")
    terminal.enter("SELECT 40 + 2 AS answer;\r")
    shown = terminal.wait_for("1 row in")
    assert "42" in shown
    assert "leaves the shell" not in shown
    terminal.enter("\x03")
    terminal.wait_for("leaves the shell")
    # a result that does not fit goes to the pager
    terminal.enter("SELECT n FROM range(30) AS t(n)\r\\g\r")
    assert "was-paged" in terminal.wait_for("30 rows in")
    assert (tmp_path / "paged").read_text().count("\n") > 30
    terminal.enter("\\pset pager off\r")
    terminal.wait_for("pager off\n")
    terminal.enter("\\last\r")
    assert "was-paged" not in terminal.wait_for(" 29\n")
    terminal.enter("\\q\r")
    assert terminal.process.wait(PATIENCE_S) == 0
