"""The card of memory: a join, or an aggregate, of many distinct keys under a budget keeps within it, its
indexes and groups included.
"""

from __future__ import annotations

import argparse

from bench.state.spill import QUERIES, measured
from tests.fault_injection.verdict import Verdict

_MB = 1 << 20
_INDEX_BYTES = {"join": 150, "groups": 70}
"""About what a row takes beside its text."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", choices=sorted(QUERIES), default="join", help="what is asked of the rows")
    parser.add_argument("--rows", type=int, default=300_000, help="rows, and distinct keys, of each side")
    parser.add_argument("--width", type=int, default=400, help="bytes of text in each row")
    parser.add_argument("--budget", type=int, default=128, help="MB of memory for state")
    parser.add_argument(
        "--beside",
        type=int,
        default=384,
        help="MB a process may grow beside its state: batches on their way, arrays being made larger",
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """With the budget, then as a negative control without it, which must take more."""
    state = (
        2
        * arguments.rows
        * ((arguments.width if arguments.query == "join" else 0) + _INDEX_BYTES[arguments.query])
    )
    verdict.least = {"looks at memory": 8, "bytes of state over the budget, MB": 1}
    verdict.coverage["bytes of state over the budget, MB"] = (state - arguments.budget * _MB) // _MB
    kept = measured(arguments.rows, arguments.width, arguments.budget, arguments.query)
    verdict.coverage["looks at memory"] = len(kept.memory)
    verdict.check(kept.code == 0, f"ended with {kept.code}: {kept.printed[-400:]}")
    allowed = (arguments.budget + arguments.beside) * _MB
    verdict.check(
        kept.grown() <= allowed,
        f"memory grew by {kept.grown() / _MB:,.0f} MB, allowed are {allowed / _MB:,.0f}",
    )
    free = measured(arguments.rows, arguments.width, 0, arguments.query)
    verdict.check(
        free.grown() > kept.grown(),
        "without a budget memory did not grow more, so the measure measures nothing",
    )
    verdict.figures |= {
        "rows per second": round(2 * arguments.rows / kept.seconds),
        "rows per second without a budget": round(2 * arguments.rows / free.seconds),
        "grown MB": kept.grown() // _MB,
        "grown MB without a budget": free.grown() // _MB,
    }
