"""The card of the seeded simulation: many seeds, each twice with the same trace, every result exact; every
rare event must have happened.
"""

from __future__ import annotations

import argparse
import itertools
import sys

from tests.fault_injection.verdict import Verdict
from tests.simulation.jobs import HEALED_STEPS, answer, begun
from tests.simulation.seeds import RARE, STEPS, run_seeds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seeds", type=int, default=None, help="how many (default: 500, with --minutes without end)"
    )
    parser.add_argument("--minutes", type=float, default=None, help="no seed is begun after so long")
    parser.add_argument(
        "--from", type=int, default=None, dest="first", help="the first seed (default: 100,000 x --seed)"
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=STEPS,
        help="steps with faults; then all is healed and the job must finish",
    )
    parser.add_argument("--trace", action="store_true", help="run the first seed only, and print every step")
    parser.add_argument("--until", type=int, default=sys.maxsize, help="with --trace: the last step")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    first = 100_000 * arguments.seed if arguments.first is None else arguments.first
    if arguments.trace:
        _trace(first, arguments, verdict)
        return
    count = arguments.seeds or (500 if arguments.minutes is None else None)
    seeds = itertools.count(first) if count is None else range(first, first + count)
    found = run_seeds(
        seeds, arguments.steps, until_s=float("inf") if arguments.minutes is None else 60 * arguments.minutes
    )
    verdict.least = dict.fromkeys(RARE, 1)
    verdict.wrong += found.wrong
    verdict.coverage += found.coverage
    verdict.faults += [f"{name}: {count}" for name, count in sorted(found.coverage.items())]
    verdict.figures |= {
        "seeds": found.seeds,
        "steps": found.steps,
        "steps per second": round(found.steps / found.seconds),
    }


def _trace(seed: int, arguments: argparse.Namespace, verdict: Verdict) -> None:
    cluster, ledger = begun(seed)
    cluster.world.log = lambda line: print(line) if cluster.steps <= arguments.until else None
    state = cluster.run(arguments.steps, HEALED_STEPS)
    print(cluster.knobs)
    verdict.check(cluster.wrong is None, str(cluster.wrong))
    rows, truth = ledger.rows(), answer(seed)
    verdict.check(
        rows == truth, f"{state}: {(rows - truth).total()} rows too many, {(truth - rows).total()} missing"
    )
