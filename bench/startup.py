"""How long until something happens: import, help, prompt, first row; each a fresh process, median of some."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = (
    ("import penstock", (sys.executable, "-c", "import penstock"), 0.4),
    ("penstock --help", (sys.executable, "-m", "repl.cli", "--help"), 0.4),
    ("first row of a stream", (sys.executable, "-m", "bench.first_row"), 1.0),
    ("prompt of the shell", (sys.executable, "-m", "bench.prompt"), 0.6),
)


def report(runs: int) -> None:
    """Print one line per command."""
    print(f"{'start-up':38} {'median s':>10} {'aim s':>8}   (median of {runs})")
    for name, command, aim_s in COMMANDS:
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        print(f"{name:38} {statistics.median(times):10.2f} {aim_s:8.1f}", flush=True)
