"""``python -m tests.mutation [NAME ..]``: plants each bug and runs the tests that must fail because of it.
Exit code 1 when one stays green.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from tests.mutation.caught import caught
from tests.mutation.planted import MUTANTS


def main(names: Sequence[str]) -> int:
    """Run the mutants named, or all, and print a line for each."""
    green = 0
    for mutant in MUTANTS:
        if names and mutant.name not in names:
            continue
        started = time.monotonic()
        found, told = caught(mutant)
        green += not found
        sys.stdout.write(
            f"{'caught' if found else 'GREEN':7} {mutant.name:42} {time.monotonic() - started:6.1f} s  {told}\n"
        )
        sys.stdout.flush()
    return 1 if green else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
