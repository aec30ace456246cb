"""How often each iteration derives a row, its first iteration, and what is left after a restore."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.state.groups.row_derivations import NEVER, RowDerivations


def _add(state: RowDerivations, values: list[int], weights: list[int], iteration: int) -> np.ndarray:
    return state.add([pa.array(values, pa.int64())], np.array(weights, np.int64), iteration)


def test_the_earliest_iteration_that_derives_a_row() -> None:
    state = RowDerivations([pa.int64()], 128)
    (row,) = _add(state, [7, 7], [1, 1], 5)
    _add(state, [7], [1], 2)
    assert state.earliest(np.array([row])).tolist() == [2]
    _add(state, [7], [-1], 2)
    assert state.earliest(np.array([row])).tolist() == [5]
    _add(state, [7], [-2], 5)
    assert state.earliest(np.array([row])).tolist() == [NEVER]
    state.forget(np.array([row]))
    assert len(state) == 0 and len(state.rows) == 0


def test_a_restored_row_is_in_its_first_iteration() -> None:
    state = RowDerivations([pa.int64()], 128)
    for iteration, values in ((3, [1, 2]), (1, [2]), (4, [1])):
        _add(state, values, [1] * len(values), iteration)
    restored = RowDerivations([pa.int64()], 128)
    table = state.snapshot()
    # in two parts: pairs of one row are in several key groups
    restored.restore(table.slice(0, 2))
    restored.restore(table.slice(2))
    rows = restored.rows.lookup([pa.array([1, 2, 3], pa.int64())])
    assert rows[2] == -1 and restored.first[rows[:2]].tolist() == [3, 1]
    assert restored.snapshot().equals(table)
