"""The card of the seeded simulation: many seeds, each twice with the same trace, every result exact; every rare event must have happened."""

from __future__ import annotations

import argparse
import time

from tests.rel.verdict import Verdict
from tests.runtime.test_simulation import RARE, simulate, truths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--from", type=int, default=None, dest="first", help="the first seed (default: 1,000 x --seed)")
    parser.add_argument("--steps", type=int, default=600, help="steps with faults; then the job is healed and must finish")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    first = 1_000 * arguments.seed if arguments.first is None else arguments.first
    verdict.least = dict.fromkeys(RARE, 1)
    started, steps = time.monotonic(), 0
    expected = truths()
    for seed in range(first, first + arguments.seeds):
        try:
            simulation, rows = simulate(seed, real=True, steps=arguments.steps)
            again, _ = simulate(seed, real=True, steps=arguments.steps)
        except AssertionError as error:
            verdict.wrong.append(str(error))
            continue
        truth = expected[seed % len(expected)]
        verdict.check(rows == truth, f"seed {seed}: {sum((rows - truth).values())} rows too many, {sum((truth - rows).values())} missing")
        verdict.check(simulation.trace == again.trace, f"seed {seed} went two ways")
        verdict.coverage += simulation.coverage
        steps += 2 * simulation.steps
        verdict.faults.append(f"seed {seed}: {sum(simulation.coverage.values())}")
    verdict.figures["steps"] = steps
    verdict.figures["steps per second"] = round(steps / (time.monotonic() - started))
