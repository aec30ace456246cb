"""A pager for results that do not fit the screen, such as ``less``."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping

# Leave at the end of a short text, keep colors, do not clear the screen, do not wrap lines.
_LESS = "-SRFX"
# The prompt stands below the rows.
_LINES_BELOW = 2


class Pager:
    """Shows texts by the program that ``PAGER`` names, else by ``less`` where that is installed."""

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        height: Callable[[], int] = lambda: shutil.get_terminal_size().lines,
    ) -> None:
        self._environ = environ
        self._height = height

    def show(self, text: str) -> bool:
        """Show a text; return False when it fits the screen or there is no pager, and nothing was shown."""
        command = self._command()
        if not command or text.count("\n") <= self._height() - _LINES_BELOW:
            return False
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env={"LESS": _LESS, **self._environ},
            )
        # PAGER names a program that is not there: the rows are more than its name.
        except OSError:
            return False
        assert process.stdin is not None, "asked for"
        with _without_interrupts():
            # Left before the end of the text.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(text)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()
        return True

    def _command(self) -> list[str]:
        # PAGER= is no pager, as for psql and git.
        default = "less" if shutil.which("less") else ""
        return shlex.split(self._environ.get("PAGER", default))


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to the pager, which shares the terminal."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
