"""The print stream: where the print sink writes. It is a service of its own, so that a prompt starts without
the imports of the print sink.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from penstock.catalog.errors import Kind, PenstockError

READER_ENDED = "DAT-4633"


def to_stdout(text: str) -> None:
    """Write to what ``sys.stdout`` is at this moment, and flush it. DAT-4632 where nobody takes it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise unwritable_stdout(error) from error


def unwritable_stdout(error: OSError) -> PenstockError:
    """Return the error of a stdout that takes nothing more. A restart of the job would write to the same."""
    if isinstance(error, BrokenPipeError):
        return PenstockError(
            READER_ENDED, "the program that reads stdout has ended", kind=Kind.EXTERNAL, sqlstate="58030"
        )
    return PenstockError(
        "DAT-4632",
        f"stdout cannot be written: {error.strerror}",
        hint="free space where it is sent to, or send it elsewhere",
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )


class PrintStream:
    """The service that prints lines. A shell passes a ``write`` that does not break its prompt."""

    def __init__(self, write: Callable[[str], object] = to_stdout) -> None:
        self.write = write
