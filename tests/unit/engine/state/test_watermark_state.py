"""How far event time has come, restored at another parallelism."""

from __future__ import annotations

import json

import numpy as np
import pytest

from penstock.engine.api.key_groups import key_group_range
from penstock.engine.api.stream_elements import MIN_WATERMARK_US
from penstock.engine.state.watermark_state import KeyGroupWatermarkState, OperatorWatermarkState

GROUPS = 12


def states(parallelism: int, times: list[int]) -> list[KeyGroupWatermarkState]:
    made = [
        KeyGroupWatermarkState(key_group_range(GROUPS, parallelism, subtask))
        for subtask in range(parallelism)
    ]
    for state, time_us in zip(made, times, strict=True):
        state.us = time_us
    return made


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("times", [[7], [7, 3], [7, 3, 9], [5, 5, 5, 1]], ids=str)
def test_each_key_group_has_the_watermark_of_the_subtask_that_owned_it(times: list[int], after: int) -> None:
    before = states(len(times), times)
    items = [item for state in before for item in state.snapshot_items()]
    by_group = [0] * GROUPS
    for subtask, time_us in enumerate(times):
        owned = key_group_range(GROUPS, len(times), subtask)
        by_group[owned.start : owned.end] = [time_us] * (owned.end - owned.start)
    for subtask, state in enumerate(states(after, [0] * after)):
        state.restore_items(json.loads(json.dumps(items)))
        assert state.of(np.arange(GROUPS)).tolist() == by_group
        owned = key_group_range(GROUPS, after, subtask)
        assert state.least_us(-1) == min(by_group[owned.start : owned.end])
        assert state.us == 0, "the operator declares its own"


def test_an_older_checkpoint_does_not_know_the_watermark() -> None:
    (state,) = states(1, [5])
    state.restore_items([])
    assert state.of(np.array([0, 3])).tolist() == [MIN_WATERMARK_US] * 2
    assert state.least_us(42) == 42


def test_groups_of_a_part_that_is_missing_are_at_the_start_of_time() -> None:
    before, (after,) = states(2, [7, 9]), states(1, [0])
    after.restore_items(before[0].snapshot_items())
    assert after.of(np.array([0, GROUPS - 1])).tolist() == [7, MIN_WATERMARK_US]


def test_an_operator_continues_at_the_latest_time_of_any_subtask() -> None:
    assert OperatorWatermarkState().snapshot_items() == [], "no time has been reached"
    parts = [OperatorWatermarkState() for _ in range(3)]
    parts[0].us, parts[2].us = 5, -3
    again = OperatorWatermarkState()
    again.restore_items([item for part in parts for item in part.snapshot_items()])
    assert again.us == 5
    again.restore_items([{"reached_us": 2}])
    assert again.us == 5, "time does not go back"
