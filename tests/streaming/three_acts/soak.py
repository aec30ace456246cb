"""What takes too long for every change: ``python -m tests.streaming.three_acts.soak``, with ``--help`` for its parts.

``matrix``: the main job over the whole year with batches of 1 and 7 rows (hours). ``kills``: its process
killed many times, at moments drawn from a seed that is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

from tests.streaming.three_acts.main_job import rows_in, run
from tests.streaming.three_acts.oracle import FLIGHTS, assert_same
from tests.streaming.three_acts.test_kill import EVERY, ROWS_PER_SECOND, kill_and_finish
from tests.streaming.three_acts.victim import Victim

PARALLELISM = (1, 2, 3)
INTERVALS = ("0", "50 ms", "1 s")  # between checkpoints; 0: none is taken
KILLS_IN_A_ROW = 6  # more than the replay has time for would land after the end


def matrix(batches: Sequence[int], parallelism: Sequence[int], intervals: Sequence[str]) -> None:
    """Run every combination over the whole year and compare each with the oracle."""
    for max_rows, subtasks, interval in product(batches, parallelism, intervals):
        with tempfile.TemporaryDirectory() as made:
            root, started = Path(made), time.monotonic()
            settings = {
                "parallelism.default": str(subtasks),
                "execution.batch.max-rows": str(max_rows),
                "execution.checkpointing.interval": interval,
            }
            run(FLIGHTS, root / "out", settings, None if interval == "0" else root / "state")
            assert_same(rows_in(root / "out"), "flights")
            say(
                f"batches of {max_rows}, parallelism {subtasks}, checkpoints every {interval}: equal after {time.monotonic() - started:.0f} s"
            )


def kills(count: int, seed: int) -> None:
    """Kill runs until ``count`` kills have landed; each run is finished and compared with the oracle."""
    random, hit = Random(seed), Counter[str]()
    say(f"seed {seed}")
    while hit["killed"] < count:
        with tempfile.TemporaryDirectory() as made:
            victim = Victim(
                Path(made), EVERY * ROWS_PER_SECOND, interval=random.choice(("20 ms", "50 ms", "200 ms"))
            )
            try:
                hit += kill_and_finish(victim, random, min(KILLS_IN_A_ROW, count - hit["killed"]))
            finally:
                victim.reap()
        say(", ".join(f"{number} {what}" for what, number in hit.items()) + ": every result exact")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.streaming.three_acts.soak", description=__doc__)
    parser.add_argument("--only", choices=("kills", "matrix"), help="run one part (default: both)")
    parser.add_argument("--batches", type=int, nargs="+", default=[7, 1], metavar="ROWS")
    parser.add_argument("--parallelism", type=int, nargs="+", default=PARALLELISM, metavar="P")
    parser.add_argument("--intervals", nargs="+", default=INTERVALS, metavar="T")
    parser.add_argument("--kills", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    arguments = parser.parse_args(words)
    if arguments.only != "matrix":
        kills(arguments.kills, arguments.seed)
    if arguments.only != "kills":
        matrix(arguments.batches, arguments.parallelism, arguments.intervals)


if __name__ == "__main__":
    main()
