"""Checks that a worker sees the directory a job stores its files in: the coordinator writes a probe file
there, and the worker reads it.
"""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.storage.local import make_private, open_private

_NAME = "probe"


def leave_probe(directory: Path) -> tuple[Path, str]:
    """Write a file into a directory, created if needed, and return its path and text."""
    make_private(directory)
    path, text = directory.absolute() / _NAME, secrets.token_hex(16)
    with open_private(path) as file:
        file.write(text.encode("ascii"))
    return path, text


def check_probe(path: Path, text: str) -> None:
    """Raise RUN-2922 unless the file is there with that text."""
    try:
        content = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        content = ""
    if content != text:
        raise PenstockError(
            "RUN-2922",
            f"the worker on {socket.gethostname()} does not see the job's directory {path.parent}",
            hint="SET 'execution.checkpointing.dir', and the path of a table that INSERT OVERWRITE replaces, "
            "to directories of a file system that all machines share",
            kind=Kind.USER,
            sqlstate="58030",
        )
