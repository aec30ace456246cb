"""Whether the tests named for a planted bug fail because of it: in a process of their own, as the bug
stays planted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.mutation.planted import Mutant

ROOT = Path(__file__).resolve().parents[2]
FAILED = 1  # pytest's exit code for failed tests; others mean that they have not been run
LONGEST_S = 300


def caught(mutant: Mutant) -> tuple[bool, str]:
    """Return whether a test has failed, and the line that says which."""
    line = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "tests.mutation.plugin",
        "-p",
        "no:cacheprovider",
        *mutant.caught_by,
    ]
    environment = {**os.environ, "PENSTOCK_MUTANT": mutant.name, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return False, f"not ended after {LONGEST_S} s"
    lines = done.stdout.splitlines()
    return done.returncode == FAILED, next(
        (line[:110] for line in lines if line.startswith(("FAILED", "ERROR"))),
        lines[-1][:110] if lines else "",
    )
