"""Ends the servers of a test process when that has ended, in whatever manner: ``python -I -S reaper.py``.

It is told of each server on standard input, whose end is the end of the test process. It starts no process of
the project's and imports none of its code: it takes 5 MB and 10 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

_ENDS_S = 5.0
_LOOK_S = 0.01


def main() -> None:
    """Read lines of a process, the signal that ends it and its directory, or null; then end them all."""
    # a Ctrl-C is for the tests
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    servers: dict[int, tuple[str, int, str | None]] = {}
    for line in sys.stdin:
        pid, ends_with, directory = json.loads(line)
        servers[pid] = began(pid), ends_with, directory
    for pid, (then, ends_with, _) in servers.items():
        if then and began(pid) == then:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, ends_with)
    deadline = time.monotonic() + _ENDS_S
    for pid, (then, _, directory) in servers.items():
        while then and began(pid) == then:
            if time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_S)
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


def began(pid: int) -> str:
    """Return when a process began, which says that it is no other of the same number; "" where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        if os.path.exists("/proc/self/stat"):
            return ""
        words = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    # one that has ended stays until its parent has asked how
    return "" if fields[0] in "ZX" else fields[19]


if __name__ == "__main__":
    main()
