"""The tables of a job's states."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.job.job_state import (
    TASKS_IN,
    TRANSITIONS,
    JobState,
    TasksPhase,
    check_tasks,
    check_transition,
)


def test_every_state_is_in_both_tables_and_can_end() -> None:
    assert set(TRANSITIONS) == set(TASKS_IN) == set(JobState)
    for state in JobState:
        reached = {state}
        while more := {following for one in reached for following in TRANSITIONS[one]} - reached:
            reached |= more
        assert any(one.terminal for one in reached), state


def test_what_the_tables_lack_is_refused() -> None:
    check_transition(JobState.RUNNING, JobState.STOPPING)
    check_tasks(JobState.RESTARTING, TasksPhase.RELEASING)
    with pytest.raises(PenstockError, match="INT-9010"):
        check_transition(JobState.FINISHED, JobState.RUNNING)
    for state in JobState:
        if state.terminal or state in (JobState.CREATED, JobState.RESTARTING):
            with pytest.raises(PenstockError, match="INT-9010"):
                check_tasks(state, TasksPhase.RUNNING)
