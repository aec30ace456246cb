"""The first 250 of five hundred seeds under all faults; in two files, so that two processes share them."""

from __future__ import annotations

from tests.simulation.seeds import MARGIN, run_seeds


def test_seeds_are_exact_and_repeatable() -> None:
    found = run_seeds(range(250))
    assert not found.wrong
    assert not found.missing(MARGIN)
