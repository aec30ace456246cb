"""Where rows go instead of the screen: a file, or the input of a command."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TextIO, cast

from penstock.catalog.errors import Kind, PenstockError


class RowTarget:
    """A file, or the input of a command (``| command``), opened for rows. CLI-6131 when the file cannot be
    written.
    """

    def __init__(self, target: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.out: TextIO
        if target.startswith("|"):
            # The user's own command line, which may be a pipeline of several programs.
            self._process = subprocess.Popen(
                ["sh", "-c", target[1:].strip()], stdin=subprocess.PIPE, text=True, encoding="utf-8"
            )
            self.out = cast("TextIO", self._process.stdin)
            return
        try:
            self.out = open(target, "w", encoding="utf-8", newline="\n")  # noqa: SIM115, PTH123  # closed by ``close``
        except OSError as error:
            raise PenstockError(
                "CLI-6131",
                f"cannot write {target}: {(error.strerror or str(error)).lower()}",
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            ) from error

    def close(self) -> int:
        """Close the file or end the command's input; return the exit code of the command, 0 of a file."""
        # A command such as head has read enough and left.
        with contextlib.suppress(BrokenPipeError):
            self.out.close()
        return 0 if self._process is None else self._process.wait()
