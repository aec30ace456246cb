"""Where printed rows go: a service of its own, so that a prompt starts without what the print sink needs."""

from __future__ import annotations

import sys
from collections.abc import Callable


def to_stdout(text: str) -> None:
    """Write to what is standard output now, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


class PrintStream:
    """The service that takes printed lines; a shell puts a way in that leaves its prompt whole."""

    def __init__(self, write: Callable[[str], object] = to_stdout) -> None:
        self.write = write
