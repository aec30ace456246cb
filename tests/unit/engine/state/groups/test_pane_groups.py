"""PaneGroups: rows of one slice and key have one number, whatever batches they came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.state.groups import pane_groups
from penstock.engine.state.groups.pane_groups import PaneGroups
from tests.harness.length import examples

ROW = st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 3), st.integers(0, 6))


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(batches=st.lists(st.lists(ROW, max_size=100), max_size=6), clears=st.sets(st.integers(0, 5)))
def test_each_slice_and_key_has_one_number(batches: list[list[Any]], clears: set[int]) -> None:
    groups = PaneGroups([pa.string(), pa.int64()], 10)
    numbered: dict[Any, int] = {}
    for at, rows in enumerate(batches):
        columns = [pa.array([r[0] for r in rows], pa.string()), pa.array([r[1] for r in rows], pa.int64())]
        ends = np.array([10 * r[2] for r in rows], np.int64)
        found = groups.number(columns, len(rows), ends)
        # a slice before the first of the buffered ones does not fit until all are forgotten
        if found is None:
            groups.clear()
            numbered.clear()
            found = groups.number(columns, len(rows), ends)
        assert found is not None
        for (key, other, slice_), number in zip(rows, found.tolist(), strict=True):
            assert numbered.setdefault((key, other, 10 * slice_), number) == number
        assert len(groups) == len(numbered)
        (texts, numbers), slice_ends = groups.groups()
        listed = zip(texts.to_pylist(), numbers.to_pylist(), slice_ends.tolist(), strict=True)
        assert {pair: n for n, pair in enumerate(listed)} == numbered
        if at in clears:
            groups.clear()
            numbered.clear()


def test_keys_that_are_many_are_forgotten_and_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pane_groups, "_KEYS_MAX", 100)
    groups = PaneGroups([pa.int64()])
    for _ in range(3):
        found = groups.number([pa.array(range(1000))], 1000)
        assert found is not None and found.tolist() == list(range(1000))
        groups.clear()
        assert not len(groups) and len(groups._index) == 0


def test_slices_too_far_apart_have_no_groups() -> None:
    groups = PaneGroups([pa.int64()], 10)
    assert groups.number([pa.array([1, 2])], 2, np.array([10, 10**12])) is None
    assert not len(groups)


def test_keys_of_rows_that_do_not_fit_are_forgotten() -> None:
    groups = PaneGroups([pa.int64()], 10)
    far = np.where(np.arange(1000) % 2, 10, 10**12)
    for first in range(0, 100_000, 1000):
        keys = pa.array(np.arange(first, first + 1000))
        assert groups.number([keys], 1000, far) is None
    # of all the keys so far the grid of 100 slices would have too many cells
    near = 10 * (np.arange(1000) % 100)
    assert groups.number([keys], 1000, near) is not None
