"""Aggregates by key and slice, against a dict; a restore counts windows that were emitted as missed."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT
from penstock.engine.api.operator import KeyGroups
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.entry_index import EntryIndex
from penstock.engine.state.groups.window_state import WindowState
from penstock.engine.state.index.tagged_index import RowIndex
from penstock.engine.windowing.window_assigner import AssignedRows
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.windows import AttachedWindow, HopWindow, TumbleWindow, Windowing

CALLS = (AggregateCall("sum", (Column(BIGINT, True, index=0),), BIGINT), AggregateCall("count", (), BIGINT))
TUMBLE, HOP = TumbleWindow(1, 10), HopWindow(1, 30, 10)
ATTACHED = AttachedWindow(1, 2)
Key = int | None
Entry = tuple[Key, int, int, int]
"""Key, end and start of the slice, and how many of its first windows it has missed."""


def state(window: Windowing | AttachedWindow) -> WindowState:
    return WindowState(window, [pa.int64()], Accumulators(CALLS, True), KeyGroups(0, 128, 128))


def add(made: WindowState, rows: list[tuple[Entry, int]], *, starts: bool, missed: bool) -> None:
    entries, values = [entry for entry, _ in rows], [value for _, value in rows]
    columns = [np.array([entry[k] for entry in entries], np.int64) for k in (1, 2, 3)]
    batch = Batch(pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["v"]))
    assigned = AssignedRows(batch, columns[0], columns[1] if starts else None, columns[2] if missed else None)
    made.add([pa.array([entry[0] for entry in entries], pa.int64())], assigned)


def read(made: WindowState) -> dict[Entry, tuple[int, int]]:
    slices, ends, starts = made.slices()
    positions, entries = made.entries_of(slices)
    assert made.entry_counts(slices).tolist() == np.bincount(positions, minlength=slices.size).tolist()
    assert made.ends_of(entries).tolist() == ends[positions].tolist()
    keys = made.keys.keys(made.key_slots(entries))[0].to_pylist()
    marks = zip(
        keys, ends[positions].tolist(), starts[positions].tolist(), made.missed(entries).tolist(), strict=True
    )
    results = zip(*[column.to_pylist() for column in made.accumulators.results(entries)], strict=True)
    return dict(zip(marks, results, strict=True))


@pytest.mark.parametrize("window", [TUMBLE, HOP, ATTACHED], ids=["tumble", "hop", "attached"])
def test_entries_are_those_of_a_dict(window: Windowing | AttachedWindow) -> None:
    attached, fan = window is ATTACHED, 3 if window is HOP else 1
    for seed in range(25):
        random, made = Random(seed), state(window)
        model: dict[Entry, tuple[int, int]] = {}
        for _ in range(6):
            missed = fan > 1 and random.random() < 0.5
            rows: list[tuple[Entry, int]] = []
            for _ in range(random.randrange(1, 8)):
                end = random.randrange(1, 6) * 10
                start = end - random.choice((10, 20)) if attached else 0
                entry = (random.choice((None, 1, 2**62)), end, start, random.randrange(fan) if missed else 0)
                rows.append((entry, random.randrange(9)))
            if random.random() < 0.3 and not attached:  # rows that share a slice, which is looked up once
                rows = [((key, 20, 0, gone), value) for (key, _, _, gone), value in rows]
            add(made, rows, starts=attached, missed=missed)
            for entry, value in rows:
                total, count = model.get(entry, (0, 0))
                model[entry] = (total + value, count + 1)
            if random.random() < 0.4:
                slices, ends, starts = made.slices()
                assert list(zip(ends, starts, strict=True)) == sorted(zip(ends, starts, strict=True))
                gone = random.randint(0, slices.size)
                bounds = set(zip(ends[:gone].tolist(), starts[:gone].tolist(), strict=True))
                pairs = zip(ends.tolist(), starts.tolist(), strict=True)
                # a slice with late rows is several panes
                made.remove(slices[np.array([pair in bounds for pair in pairs], np.bool_)])
                model = {entry: value for entry, value in model.items() if entry[1:3] not in bounds}
            if random.random() < 0.4:
                table, made = made.snapshot(), state(window)
                made.restore(table.slice(0, 2))
                made.restore(table.slice(2))
            assert read(made) == model and len(made) == len(model), f"seed {seed}"
            assert len(made.keys) == len({entry[0] for entry in model}), "a key goes with its last entry"


@pytest.mark.parametrize(("closed_us", "missed"), [(MIN_WATERMARK_US, 0), (19, 0), (20, 1), (39, 2), (40, 3)])
def test_windows_that_were_emitted_are_missed_in_a_snapshot(closed_us: int, missed: int) -> None:
    """The slice that ends at 20 is part of the windows that end at 20, 30 and 40."""
    made = state(HOP)
    add(made, [((1, 20, 0, 0), 5)], starts=False, missed=False)
    made.closed.us = closed_us
    assert made.snapshot().column("missed").to_pylist() == [missed]
    if missed < 3:
        again = state(HOP)
        again.restore(made.snapshot())
        assert read(again) == {(1, 20, 0, missed): (5, 1)}


def test_entries_that_have_missed_the_same_are_one_after_a_restore() -> None:
    made = state(HOP)
    add(made, [((1, 20, 0, 0), 5), ((1, 20, 0, 1), 6), ((1, 20, 0, 2), 7)], starts=False, missed=True)
    assert made.some_missed and len(made) == 3
    made.closed.us = 20
    again = state(HOP)
    again.restore(made.snapshot())
    assert read(again) == {(1, 20, 0, 1): (11, 2), (1, 20, 0, 2): (7, 1)}


def test_the_watermark_of_a_key_group_decides_what_its_entries_have_missed() -> None:
    """Entries need not be written again when only time has advanced: a list state has it."""
    made, again = state(HOP), state(HOP)
    add(made, [((1, 20, 0, 0), 5)], starts=False, missed=False)
    table = made.snapshot()
    made.closed.us = 30
    again.closed.restore_items(made.closed.snapshot_items())
    again.restore(table)
    assert read(again) == {(1, 20, 0, 2): (5, 1)}


def test_changed_entries_are_frozen_alone() -> None:
    made = state(TUMBLE)
    add(made, [((key, 10 * key, 0, 0), key) for key in (1, 2, 3)], starts=False, missed=False)
    first = made.changes.seal()
    add(made, [((2, 20, 0, 0), 5)], starts=False, missed=False)
    made.remove(made.slices()[0][:1])
    changed = made.changes.since(first)
    assert changed is not None and changed.size == 2
    (table,) = made.freeze(changed)()
    assert table.column("k0").to_pylist() == [2] and table.column("slice_end").to_pylist() == [20]
    (none,) = made.freeze(np.array([10_000]))()
    assert none.num_rows == 0


def test_the_slices_of_a_batch_are_looked_up_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up, random = [], np.random.default_rng(3)
    insert = RowIndex.lookup_or_insert

    def counted(self: RowIndex, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        looked_up.append(len(rows))
        return insert(self, rows)

    monkeypatch.setattr(RowIndex, "lookup_or_insert", counted)
    ordered = np.repeat(np.arange(1, 40) * 10, 50)
    for ends, slices in (
        (ordered, 39),
        # each row belongs to one of two neighbours: two batches that overlap in time
        (ordered + 10 * random.integers(0, 2, ordered.size), 40),
        # too many, or in no order: each row is looked up
        (np.arange(1, 1_200) * 10, 1_199),
        (random.permutation(np.repeat(np.arange(1, 900) * 10, 4)), 3_596),
    ):
        for keys in ([pa.int64()], []):
            made = WindowState(TUMBLE, keys, Accumulators(CALLS, True), KeyGroups(0, 128, 128))
            values = random.integers(0, 9, ends.size)
            key = pa.array(values % 3)
            batch = Batch(pa.RecordBatch.from_arrays([pa.array(values)], names=["v"]))
            looked_up.clear()
            made.add([key] * len(keys), AssignedRows(batch, ends))
            assert looked_up == [slices]
            _, entries = made.entries_of(made.slices()[0])
            of_keys = made.keys.keys(made.key_slots(entries)) or [pa.nulls(entries.size)]
            sums = made.accumulators.results(entries)[0].to_pylist()
            found = dict(
                zip(zip(made.ends_of(entries), of_keys[0].to_pylist(), strict=True), sums, strict=True)
            )
            expected: dict[tuple[int, int | None], int] = {}
            for end, value in zip(ends.tolist(), values.tolist(), strict=True):
                at = (end, value % 3 if keys else None)
                expected[at] = expected.get(at, 0) + value
            assert found == expected


def test_a_row_costs_the_same_however_many_windows_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    entries = EntryIndex.entries

    def counted(self: EntryIndex, panes: np.ndarray, *others: Any) -> np.ndarray:
        asked.append(panes.size)
        return entries(self, panes, *others)

    monkeypatch.setattr(EntryIndex, "entries", counted)
    made = state(ATTACHED)
    add(made, [((key, 10 * key + 10, 10 * key, 0), 1) for key in range(1_000)], starts=True, missed=False)
    add(made, [((7, 80, 70, 0), 1)], starts=True, missed=False)
    assert len(made) == 1_000 and asked == [1_000, 1]
