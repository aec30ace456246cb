"""How long until something happens: import, help, prompt, first row; each a fresh process, median of some,
byte code and kernels warm.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_STREAM = (
    "CREATE TEMPORARY TABLE ticks (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector' = 'datagen', 'rows-per-second' = '100000', 'fields.k.min' = '0', 'fields.k.max' = '99'); "
)
COMMANDS = (
    ("import penstock", (sys.executable, "-c", "import penstock"), 0.4),
    ("penstock --help", (sys.executable, "-m", "penstock.repl.cli", "--help"), 0.4),
    (
        "first row, no state, command line",
        (sys.executable, "-m", "penstock.repl.cli", "-c", _STREAM + "SELECT k FROM ticks LIMIT 1"),
        1.0,
    ),
    ("first row, GROUP BY, API", (sys.executable, "-m", "bench.start.first_row"), 1.0),
    (
        "first row, GROUP BY, 2 workers, API",
        (sys.executable, "-m", "bench.start.first_row", "processes"),
        1.5,
    ),
    ("prompt of the shell", (sys.executable, "-m", "bench.start.prompt"), 0.6),
)

# on a machine that has no compiled kernels, and compiles those it cannot run without
_NEW_MACHINE = (
    "all rows, GROUP BY, no kernels, API",
    (sys.executable, "-m", "bench.start.first_group_by"),
    1.0,
)


def report(runs: int) -> None:
    """Print one line per command: the time that passed and, since that depends on who else is at work, the
    time the processor spent.
    """
    print(f"{'start-up':38} {'median s':>10} {'cpu s':>8} {'aim s':>8}   (median of {runs})")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        environment = _environment(Path(folder))
        for name, command, aim_s in COMMANDS:
            _timed(command, environment)
            _print(name, [_timed(command, environment) for _ in range(runs)], aim_s)
        name, command, aim_s = _NEW_MACHINE
        times = []
        for _ in range(runs):
            with tempfile.TemporaryDirectory(prefix="penstock-bench-") as kernels:
                times.append(_timed(command, environment | {"NUMBA_CACHE_DIR": kernels}))
        _print(name, times, aim_s)


def _print(name: str, times: list[tuple[float, float]], aim_s: float) -> None:
    wall_s, cpu_s = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{name:38} {wall_s:10.2f} {cpu_s:8.2f} {aim_s:8.1f}", flush=True)


def _environment(byte_code: Path) -> dict[str, str]:
    """Return the environment of an installed package: modules are compiled once, not at every start."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return (
        kept
        if "PYTHONDONTWRITEBYTECODE" not in os.environ
        else {**kept, "PYTHONPYCACHEPREFIX": str(byte_code)}
    )


def _timed(command: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
