from __future__ import annotations

import itertools

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.restart_strategy import ExponentialDelay, FixedDelay, NoRestart, RestartBudget
from penstock.engine.job.job_state import TRANSITIONS, JobState, check_transition


def delays(strategy, times) -> list[float | None]:
    budget = RestartBudget(strategy)
    return [budget.next_delay_ms(at, f"cause {at}") for at in times]


def test_no_restart() -> None:
    assert delays(NoRestart(), [0]) == [None]


def test_fixed_delay_gives_up_after_its_attempts() -> None:
    assert delays(FixedDelay(attempts=2, delay=7), [0, 1, 2]) == [7, 7, None]


def test_exponential_delay_doubles_to_its_ceiling_and_forgives_with_time() -> None:
    strategy = ExponentialDelay(attempts=4, window_ms=100, delay=10, max_delay=35)
    assert delays(strategy, [0, 1, 2, 3, 4, 500]) == [10, 20, 35, 35, None, 10]


@pytest.mark.parametrize(("old", "new"), list(itertools.product(JobState, JobState)))
def test_states_step_only_as_the_table_says(old: JobState, new: JobState) -> None:
    if new in TRANSITIONS[old]:
        check_transition(old, new)
    else:
        with pytest.raises(PenstockError, match=f"from {old} to {new}"):
            check_transition(old, new)
    assert JobState.FINISHED.terminal
    assert not JobState.RUNNING.terminal
