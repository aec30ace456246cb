"""80 seeds under all faults, some of them twice: each result is exact, each trace the same again, no rare
event is left out.
"""

from __future__ import annotations

from tests.simulation.seeds import MARGIN, run_seeds

TWICE_EVERY = 9
"""So that of each kind of job and window some go twice: jobs change with every fourth seed, windows with
every sixteenth.
"""


def test_seeds_are_exact_and_repeatable() -> None:
    found = run_seeds(range(80), twice_every=TWICE_EVERY)
    assert not found.wrong
    assert not found.missing(MARGIN)
