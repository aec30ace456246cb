"""The print stream: where the print sink writes. It is a service of its own, so that a prompt starts without
the imports of the print sink.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


def to_stdout(text: str) -> None:
    """Write to what ``sys.stdout`` is at this moment, and flush it."""
    sys.stdout.write(text)
    sys.stdout.flush()


class PrintStream:
    """The service that prints lines. A shell passes a ``write`` that does not break its prompt."""

    def __init__(self, write: Callable[[str], object] = to_stdout) -> None:
        self.write = write
