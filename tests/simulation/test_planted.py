"""Bugs planted in the running code are found by the simulation; without one nothing is, and what
at-least-once means is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.harness.length import of_length
from tests.simulation.jobs import answer, simulate
from tests.simulation.planted import PLANTED
from tests.simulation.seeds import garbage_collected_seldom
from tests.simulation.wires import Trouble

SEEDS = 120
HEALED_STEPS = 30_000
"""Without a bug jobs end within half of that. One that a bug keeps from its end takes all of it."""


def found(
    seeds: int, fixed: dict[str, Any], trouble: Trouble | None = None, first: Sequence[int] = ()
) -> bool:
    """Whether one of the seeds shows a wrong result, a job that does not end, or an error only a bug of
    ours can cause.
    """
    with garbage_collected_seldom():
        for seed in (*first, *range(seeds)):
            try:
                _, rows = simulate(
                    seed, steps=3_000, healed_steps=HEALED_STEPS, real=False, fixed=fixed, trouble=trouble
                )
            except Exception:  # noqa: BLE001 - whatever the bug brings about
                return True
            if rows != answer(seed, real=False):
                return True
    return False


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    bug = PLANTED[name]
    bug.plant(monkeypatch)
    assert found(SEEDS, bug.fixed, bug.trouble, bug.first)


@pytest.mark.longer
@pytest.mark.parametrize(
    "fixed", list({repr(bug.fixed): bug.fixed for bug in PLANTED.values()}.values()), ids=repr
)
def test_nothing_is_found_when_nothing_is_planted(fixed: dict[str, Any]) -> None:
    assert not found(of_length(3, 6), fixed)


@pytest.mark.longer
def test_bytes_that_are_checked_may_change_as_they_like() -> None:
    garbled = PLANTED["frames not checked"]
    assert not found(of_length(3, 6), garbled.fixed, garbled.trouble)


def test_at_least_once_counts_some_row_twice() -> None:
    assert found(SEEDS, {"exactly_once": False, "unaligned": False, "aligned_timeout_ms": 0})
