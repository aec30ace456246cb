"""A terminal on which a test types: a program behind a pty, and what it has written to the screen."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from tests.harness.patience import PATIENCE_S

COLUMNS, ROWS = 110, 32
# what is no text of the screen: colours, moves of the cursor, titles
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>()][0B]?|\r")
# a shell redraws its toolbar while a job runs
_REDRAWN_S = 2.0
_ASKS_FOR_CURSOR = "\x1b[6n"


class Terminal:
    """A program on a terminal. ``pause_s``: between two keys. It keeps all output with its times."""

    def __init__(
        self, command: list[str], directory: Path, environment: Mapping[str, str], pause_s: float = 0.0
    ) -> None:
        self._pause_s = pause_s
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # the program that reads the keys
        self.program = command[0]
        self._begun = time.monotonic()
        self._seen = ""
        self._forgotten = 0
        self.output: list[tuple[float, str]] = []
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(directory)
            os.execvpe(command[0], command, {**environment, "TERM": "xterm-256color"})
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        """Press the keys of a text; a line end is Enter."""
        for key in text.replace("\n", "\r"):
            os.write(self._terminal, key.encode())
            self.wait(self._pause_s)

    def paste(self, text: str) -> None:
        """Paste a text as terminals do, in brackets."""
        os.write(self._terminal, b"\x1b[200~" + text.encode() + b"\x1b[201~")

    def await_text(self, text: str) -> None:
        """Return once the program has written ``text`` since the last ``forget``."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.written:
            assert time.monotonic() < deadline, f"no {text!r} on the screen:\n{self.written}"
            self.wait(0.05)

    def settle(self, still_s: float = 0.5) -> str:
        """Wait until nothing was written for a while, or a shell only redraws its last line; return what was
        written since the last ``forget``.
        """
        before, deadline = -1, time.monotonic() + _REDRAWN_S
        while before != len(self._seen) and time.monotonic() < deadline:
            before = len(self._seen)
            self.wait(still_s)
        return self.written

    def forget(self) -> None:
        """What comes from now on is ``written``."""
        self._forgotten = len(self._seen)

    @property
    def written(self) -> str:
        """The text since the last ``forget``, without colours and moves of the cursor."""
        return _CONTROL.sub("", self._seen[self._forgotten :])

    def wait(self, wait_s: float) -> None:
        """Read what is written for a time, and answer as a terminal does."""
        deadline = time.monotonic() + wait_s
        # select() refuses descriptors from 1024 on
        poller = select.poll()
        poller.register(self._terminal, select.POLLIN)
        while poller.poll(max(0.0, deadline - time.monotonic()) * 1e3):
            try:
                text = self._decoder.decode(os.read(self._terminal, 65536))
            # the program has ended
            except OSError:
                return
            self._seen += text
            # where is the cursor? as many lines down as were written, at most at the bottom
            if _ASKS_FOR_CURSOR in text:
                row = min(ROWS, 1 + self._seen.count("\n"))
                os.write(self._terminal, f"\x1b[{row};1R".encode())
            self.output.append((time.monotonic() - self._begun, text))

    def close(self) -> None:
        """End the program."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def write_recording(self, path: Path, title: str, idle_s: float) -> None:
        """Write what was seen as an asciicast of version 2, which asciinema plays. Pauses longer than
        ``idle_s`` are cut to it.
        """
        header = {
            "version": 2,
            "width": COLUMNS,
            "height": ROWS,
            "title": title,
            "env": {"TERM": "xterm-256color", "SHELL": "/bin/bash"},
        }
        lines, at, before = [json.dumps(header)], 0.0, 0.0
        for moment, text in self.output:
            at += min(moment - before, idle_s)
            before = moment
            lines.append(json.dumps([round(at, 2), "o", text], ensure_ascii=False))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
