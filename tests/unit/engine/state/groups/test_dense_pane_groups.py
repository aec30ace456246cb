"""DensePaneGroups, alone and as PaneGroups uses it: every row of a slice and a word has one number, or none is
numbered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.kernels.index import pane_cells as kernel
from penstock.engine.state.groups import dense_pane_groups
from penstock.engine.state.groups.dense_pane_groups import DensePaneGroups
from penstock.engine.state.groups.pane_groups import PaneGroups
from tests.harness.length import examples

LEAST, MOST = -(2**63), 2**63 - 1
KEY = st.one_of(
    st.integers(0, 30), st.integers(0, 300), st.sampled_from([None, LEAST, LEAST + 1, MOST - 1, MOST])
)
ROW = st.tuples(KEY, st.sampled_from([0, 0, 1, 2, 3, 10**9]))


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(
    batches=st.lists(st.lists(ROW, min_size=1, max_size=60), max_size=8),
    clears=st.sets(st.integers(0, 7)),
    cells=st.sampled_from([0, 40, 1 << 12]),
    kind=st.sampled_from([pa.int64(), pa.timestamp("us")]),
)
def test_rows_of_dense_and_other_keys_are_numbered_alike(
    batches: list[list[Any]], clears: set[int], cells: int, kind: pa.DataType
) -> None:
    groups, numbered = PaneGroups([kind], 10), dict[Any, int]()
    for at, rows in enumerate(batches):
        with pytest.MonkeyPatch.context() as patch:
            # some batches fit only while there are few groups
            patch.setattr(dense_pane_groups, "_CELLS_LEAST", cells)
            if at % 3 == 2:
                rows = [(key, rows[0][1]) for key, _ in rows]
            ends = np.array([10 * end for _, end in rows], np.int64)
            # rows of one slice have one end
            its_ends = ends[:1] if at % 3 == 2 else ends
            keys = pa.array([key for key, _ in rows], pa.int64()).view(kind)
            found = groups.number([keys], len(rows), its_ends)
            if found is None:
                groups.clear()
                numbered.clear()
                found = groups.number([keys], len(rows), its_ends)
        if found is None:
            assert ends.max() - ends.min() > 10**9 and not len(groups)
            continue
        for (key, end), number in zip(rows, found.tolist(), strict=True):
            assert numbered.setdefault((key, 10 * end), number) == number
        (column,), slice_ends = groups.groups()
        pairs = zip(column.view(pa.int64()).to_pylist(), slice_ends.tolist(), strict=True)
        assert {pair: number for number, pair in enumerate(pairs)} == numbered and len(groups) == len(
            numbered
        )
        if at in clears:
            groups.clear()
            numbered.clear()


def test_rows_too_far_apart_change_nothing() -> None:
    groups, slice_ = DensePaneGroups(10), np.array([10])
    assert groups.number(np.array([MOST, LEAST]), slice_) is None
    near = groups.number(np.array([7, 9, 7]), slice_)
    assert near is not None and near.tolist() == [0, 1, 0]
    assert groups.number(np.array([10**6]), slice_) is None
    assert groups.number(np.array([7, 8]), np.array([10**12, 10])) is None
    assert groups.groups()[0].tolist() == [7, 9] and groups.groups()[1].tolist() == [10, 10]


def test_small_batches_of_ids_that_ascend_seldom_move_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[int] = []
    real = DensePaneGroups._mark_again
    monkeypatch.setattr(
        DensePaneGroups, "_mark_again", lambda self, width: (moves.append(width), real(self, width))
    )
    groups = DensePaneGroups(10)
    for first in range(0, 100_000, 100):
        slice_ = np.array([10 * (first // 20_000 + 1)])
        assert groups.number(np.arange(first, first + 100), slice_) is not None
    assert len(groups) == 100_000 and len(moves) < 40


def test_python_numbers_what_machine_code_does() -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        base = [0, LEAST, MOST - 20][seed % 3]
        words, ends = base + random.integers(0, 20, 50), 10 * random.integers(1, 4, 50)
        results = []
        for number in (kernel.number_dense, kernel.number_dense.interpreted):
            marks = np.zeros(60, np.int32)
            marks[:5] = np.arange(1, 6)
            into, firsts, cells = (np.zeros(50, np.int64) for _ in range(3))
            count = number(ends, words, 10, 10, base, 20, marks, 5, into, firsts, cells)
            results.append((count, into.tolist(), firsts.tolist(), cells.tolist(), marks.tolist()))
        assert results[0] == results[1]
