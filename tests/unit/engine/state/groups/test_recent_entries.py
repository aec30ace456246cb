"""RecentEntries: windows find the same entries with and without it, whatever keys and slices come and go."""

from __future__ import annotations

import itertools
import math
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT
from penstock.engine.api.operator import KeyGroups
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.index import window_entries as kernel
from penstock.engine.state import mapped_arrays
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups import entry_index, window_state
from penstock.engine.state.groups.recent_entries import RecentEntries
from penstock.engine.state.groups.window_state import WindowState
from penstock.engine.state.index.direct_index import DirectIndex
from penstock.engine.storage.spill_files import SpillFiles
from penstock.engine.windowing.window_assigner import AssignedRows
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.windows import HopWindow, TumbleWindow, Windowing

CALLS = (AggregateCall("sum", (Column(BIGINT, True, index=0),), BIGINT), AggregateCall("count", (), BIGINT))
CELLS = [[0, 1 << 20], [100, 1_000, 1 << 20], [1 << 20]]
TUMBLE, HOP = TumbleWindow(1, 10), HopWindow(1, 30, 10)
NAN = float("nan")
KEYS: dict[str, tuple[list[pa.DataType], list[list[Any]]]] = {
    "numbers": ([pa.int64()], [[None, 0, 1, 2, -1, 2**63 - 1, -(2**63), *range(100, 160)]]),
    "doubles": ([pa.float64()], [[None, 0.0, -0.0, NAN, -NAN, 1.5, -math.inf, math.inf]]),
    "texts": ([pa.string()], [[None, "", "a", "b" * 1_000, *map(str, range(40))]]),
    "several": ([pa.string(), pa.float64(), pa.int64()], [[None, "a"], [None, NAN, 0.0, -0.0], [None, 1, 2]]),
    "none": ([], []),
}


def canonical(value: Any) -> Any:
    """Return a key as GROUP BY compares it: one NaN, and no -0.0."""
    if not isinstance(value, float):
        return value
    return "NaN" if math.isnan(value) else value + 0.0


def states(window: Windowing, kinds: list[pa.DataType], slots: int) -> list[WindowState]:
    """Return the states of all subtasks, which share 128 key groups."""
    bounds = [128 * slot // slots for slot in range(slots + 1)]
    return [
        WindowState(window, kinds, Accumulators(CALLS, True), KeyGroups(first, end, 128))
        for first, end in itertools.pairwise(bounds)
    ]


def read(made: list[WindowState]) -> dict[Any, tuple[int, int]]:
    found: dict[Any, tuple[int, int]] = {}
    for one in made:
        slices, ends, _ = one.slices()
        positions, entries = one.entries_of(slices)
        keys = [column.to_pylist() for column in one.keys.keys(one.key_slots(entries))]
        results = zip(*[column.to_pylist() for column in one.accumulators.results(entries)], strict=True)
        for at, (end, missed, result) in enumerate(
            zip(ends[positions].tolist(), one.missed(entries).tolist(), results, strict=True)
        ):
            mark = (tuple(canonical(column[at]) for column in keys), end, missed)
            assert mark not in found, "two entries of one key and slice"
            found[mark] = result
    return found


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("window", [TUMBLE, HOP], ids=["tumble", "hop"])
def test_entries_are_those_of_a_dict(
    window: Windowing, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1)
    kinds, choices = KEYS[kind]
    for seed in range(10):
        random = Random(seed)
        slots = random.choice([1, 2]) if kinds else 1
        made, model = states(window, kinds, slots), dict[Any, tuple[int, int]]()
        for _ in range(12):
            # entries are found by a hash where more slices come, or more entries are there, than these
            monkeypatch.setattr(window_state, "_SLICES_MOST", random.choice([2, 1_024]))
            monkeypatch.setattr(entry_index, "_SLOTS_MOST", random.choice([0, *[2**31 - 1] * 9]))
            # no grid of cells, one that becomes too large, or one that is large enough
            monkeypatch.setattr(entry_index, "_CELLS_LEAST", random.choice(CELLS[seed % 3]))
            count, one_slice = random.choice([1, 5, 200]), random.random() < 0.5
            latest = random.randrange(1, 6) * 10
            ends = [latest if one_slice or random.random() < 0.7 else 10 * random.randrange(1, 6)] * count
            if not one_slice:
                ends = [end if random.random() < 0.8 else 10 * random.randrange(1, 6) for end in ends]
            keys = [tuple(random.choice(values) for values in choices) for _ in range(count)]
            missed = [random.randrange(2) if window is HOP and random.random() < 0.2 else 0] * count
            add(made, kinds, keys, ends, missed, one_slice, model)
            if random.random() < 0.3:
                model = remove(made, model, 10 * random.randrange(1, 6))
            if random.random() < 0.2:
                for one in made:
                    one._entries.spill(SpillFiles(tmp_path))
                    one._entries._recent.spill(SpillFiles(tmp_path))
            if random.random() < 0.2:
                # restored at another parallelism
                tables = [one.snapshot() for one in made]
                made = states(window, kinds, random.choice([1, 2]) if kinds else 1)
                for table in tables:
                    restore(made, table)
            assert read(made) == model, f"seed {seed}"
            assert sum(map(len, made)) == len(model), f"seed {seed}: entries of panes without rows"


def add(
    made: list[WindowState],
    kinds: list[pa.DataType],
    keys: list[tuple[Any, ...]],
    ends: list[int],
    missed: list[int],
    one_slice: bool,
    model: dict[Any, tuple[int, int]],
) -> None:
    """Add a row of value 1, 2, 3, .. for each key; rows go to subtasks by their keys."""
    marks = [tuple(map(canonical, key)) for key in keys]
    for at, mark in enumerate(zip(marks, ends, missed, strict=True)):
        total, count = model.get(mark, (0, 0))
        model[mark] = (total + at, count + 1)
    for number, one in enumerate(made):
        rows = np.array([at for at, mark in enumerate(marks) if owner(mark, len(made)) == number], np.int64)
        columns = [pa.array([keys[at][k] for at in rows], kind) for k, kind in enumerate(kinds)]
        batch = Batch(pa.RecordBatch.from_arrays([pa.array(rows)], names=["v"]))
        of_rows = np.array(ends, np.int64)[rows]
        if one_slice and rows.size:
            # as the assigner makes it: one number, which is repeated
            of_rows = np.broadcast_to(of_rows[0], rows.size)
        late = np.array(missed, np.int64)[rows]
        if rows.size:
            assigned = AssignedRows(batch, of_rows, None, late if late.any() else None, one_slice)
            one.add(columns, assigned)


def owner(mark: tuple[Any, ...], slots: int) -> int:
    return sum(map(ord, repr(mark))) % slots


def remove(made: list[WindowState], model: dict[Any, tuple[int, int]], until: int) -> dict[Any, Any]:
    for one in made:
        slices, ends, _ = one.slices()
        one.remove(slices[ends <= until])
    return {mark: result for mark, result in model.items() if mark[1] > until}


def restore(made: list[WindowState], table: pa.Table) -> None:
    """Give each row of a snapshot to the subtask that ``add`` sends its key to."""
    names = [name for name in table.column_names if name.startswith("k") and name[1:].isdigit()]
    keys = [tuple(canonical(row[name]) for name in names) for row in table.select(names).to_pylist()]
    keys = keys or [()] * table.num_rows
    for number, one in enumerate(made):
        one.restore(table.filter(pa.array([owner(key, len(made)) == number for key in keys], pa.bool_())))


def test_only_rows_of_another_slice_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_index, "_CELLS_LEAST", 0)
    monkeypatch.setattr(entry_index, "_CELLS_PER_ENTRY", 0)
    looked_up, insert = [], DirectIndex.lookup_or_insert

    def counted(self: DirectIndex, words: np.ndarray, *valid: np.ndarray) -> np.ndarray:
        looked_up.append(words.size)
        return insert(self, words, *valid)

    (made,), keys = states(TUMBLE, [pa.int64()], 1), [(key,) for key in range(100)]
    add([made], [pa.int64()], keys, [10] * 100, [0] * 100, True, {})
    monkeypatch.setattr(made._entries, "lookup_or_insert", counted.__get__(made._entries))
    # rows of a key that follow one another are looked up once
    for ends, expected in (([10] * 100, []), ([20] * 100, [100]), ([10, 20] * 50, [50]), ([20] * 100, [50])):
        looked_up.clear()
        add([made], [pa.int64()], keys, ends, [0] * 100, False, {})
        assert looked_up == expected
    looked_up.clear()
    add([made], [pa.int64()], [(7,)] * 100, [30] * 50 + [40] * 50, [0] * 100, False, {})
    assert looked_up == [2]


def test_a_forgotten_key_is_looked_up_again() -> None:
    recent, words = RecentEntries(2), np.array([5, 9], np.int64)
    slots, panes = np.array([1, 2, 1]), (np.array([1], np.int64), None)
    found, missing = recent.find(panes, slots, 4, words)
    assert missing.tolist() == [5, 9] and found.tolist() == [-1, -2, -1]
    recent.settle(missing >> 2, np.array([0, 1]), found)
    assert found.tolist() == [0, 1, 0]
    # keys that had no slot yet are no reason to fail
    recent.forget(np.array([2, 10_000]))
    found, missing = recent.find(panes, slots, 4, words)
    assert missing.tolist() == [9] and found.tolist() == [0, -1, 0]


def test_kernels_find_the_same_interpreted() -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        slots, numbers = random.integers(0, 9, 50), random.integers(0, 3, 50)
        bases, words = np.arange(3), random.permutation(36).astype(np.int64)
        # some keys have an entry, whose word is right or not
        recent = random.integers(0, 37, 9).astype(np.int32)
        results = []
        for find, settle in (
            (kernel.find_recent, kernel.settle),
            (kernel.find_recent.interpreted, kernel.settle.interpreted),
        ):
            last, out, missing = recent.copy(), np.empty(50, np.int64), np.empty(50, np.int64)
            missed = missing[: find(numbers, bases, slots, 2, last, words, out, missing)]
            settle(missed >> 2, missed + 1_000, last, out)
            expected = bases[numbers] | slots << 2
            # an entry is 1,000 more than its word, or had the word before
            assert (np.where(out >= 1_000, out - 1_000, words[out % 36]) == expected).all()
            assert 0 < missed.size < 50
            results.append((last.tolist(), out.tolist(), missed.tolist()))
        assert results[0] == results[1]


def test_late_rows_without_keys_make_no_entry_of_panes_that_are_gone() -> None:
    (made,) = states(HOP, [], 1)
    for end in (10, 20, 30):
        add([made], [], [()] * 5, [end] * 5, [0] * 5, True, {})
    made.remove(made.slices()[0][:2])
    add([made], [], [()] * 5, [30] * 5, [1] * 5, False, {})
    assert len(made) == 2 and sorted(made.snapshot().column("missed").to_pylist()) == [0, 1]
