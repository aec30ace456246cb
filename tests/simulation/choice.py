"""The choice of seeds for ``test_seeds.py``: few that bring every rare event often enough.

``python -m tests.simulation.choice`` runs the seeds 0 to 159. It prints how often each rare event happened in
all of them and in those it chooses, then the chosen seeds in lines of five. The first of a line runs twice.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.harness.runtime.real_windows import WINDOWS
from tests.simulation.jobs import is_real, simulate
from tests.simulation.seeds import ENOUGH_EVENTS, RARE, STEPS, garbage_collected_seldom

SEEDS = range(160)
KINDS = set(range(len(WINDOWS)))
LINE = 5
"""Of so many seeds in turn the first runs twice."""


def choose(coverage: Mapping[int, Counter[str]], seconds: Mapping[int, float]) -> list[int]:
    """Return seeds that bring each rare event as often as is enough, or as often as all do.

    The next seed is always the one that brings most of what is missing at the least time. A seed that later
    ones made needless is left out. Each kind of window has a seed, the one with the most kinds of events.
    """
    total = _sum(coverage, coverage)
    wanted = {name: min(ENOUGH_EVENTS, total[name]) for name in RARE}
    chosen: list[int] = []
    while missing := _missing(wanted, _sum(coverage, chosen)):
        left = (seed for seed in coverage if seed not in chosen)
        chosen.append(max(left, key=lambda seed: _brought(coverage[seed], missing) / seconds[seed]))
    for seed in list(chosen):
        others = [each for each in chosen if each != seed]
        if not _missing(wanted, _sum(coverage, others)):
            chosen = others
    for kind in KINDS - {_kind(seed) for seed in chosen}:
        chosen.append(max((seed for seed in coverage if _kind(seed) == kind), key=lambda s: len(coverage[s])))
    return chosen


def in_lines(seeds: Sequence[int]) -> list[list[int]]:
    """Return the seeds in lines that begin with one of each kind of window, then with plain sums."""
    kinds = {_kind(seed): seed for seed in reversed(seeds)}
    plain = [seed for seed in seeds if not is_real(seed)]
    count = -(-len(seeds) // LINE)
    firsts = [*(kinds[kind] for kind in sorted(KINDS)), *plain][:count]
    others = [seed for seed in seeds if seed not in firsts]
    behind = LINE - 1
    return [[first, *others[i * behind : (i + 1) * behind]] for i, first in enumerate(firsts)]


def _kind(seed: int) -> int | None:
    """Return the kind of window of a seed, None for a plain sum."""
    return seed // 4 % len(KINDS) if is_real(seed) else None


def _sum(coverage: Mapping[int, Counter[str]], seeds: Mapping[int, object] | Sequence[int]) -> Counter[str]:
    return sum((coverage[seed] for seed in seeds), Counter[str]())


def _missing(wanted: Mapping[str, int], brought: Counter[str]) -> dict[str, int]:
    return {name: least - brought[name] for name, least in wanted.items() if brought[name] < least}


def _brought(coverage: Counter[str], missing: Mapping[str, int]) -> int:
    return sum(min(coverage[name], count) for name, count in missing.items())


def main() -> None:
    """Run the seeds, print the counters and the choice."""
    coverage, seconds = {}, {}
    with garbage_collected_seldom():
        for seed in SEEDS:
            started_s = time.process_time()
            coverage[seed] = simulate(seed, steps=STEPS)[0].coverage
            seconds[seed] = time.process_time() - started_s
            print(f"seed {seed}: {seconds[seed]:.2f} s", file=sys.stderr)
    chosen = choose(coverage, seconds)
    total, brought = _sum(coverage, coverage), _sum(coverage, chosen)
    for name in RARE:
        print(f"{total[name]:8,} {brought[name]:6,}  {name}")
    spent = sum(seconds[seed] for seed in chosen)
    print(f"{len(chosen)} seeds, {spent:.1f} s of processor time; all of them {sum(seconds.values()):.1f} s")
    for line in in_lines(chosen):
        print("    " + " ".join(f"{seed}," for seed in line))


if __name__ == "__main__":
    main()
