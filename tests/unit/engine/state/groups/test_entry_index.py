"""EntryIndex: an entry for each pane and key slot, in a grid of cells or by a hash."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from penstock.engine.kernels.index import pane_cells as kernel
from penstock.engine.kernels.index.word_index import STATE_WORDS
from penstock.engine.state.groups import entry_index
from penstock.engine.state.groups.entry_index import EntryIndex, key_slots_of, panes_of
from penstock.engine.state.index.word_index import slots_at_barrier


@pytest.mark.parametrize("cells", [0, 1_000, 1 << 20])
def test_entries_are_those_of_a_dict(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_index, "_CELLS_LEAST", cells)
    monkeypatch.setattr(entry_index, "_CELLS_PER_ENTRY", 2)
    for seed in range(20):
        random, index, model = Random(seed), EntryIndex(), dict[tuple[int, int], int]()
        capacity = 40
        for _ in range(20):
            panes = np.array(random.sample(range(random.choice([3, 12, 40])), 3), np.int64)
            count = random.choice([0, 1, 300])
            capacity = max(capacity, random.choice([40, 80, 200]))
            numbers = None if random.random() < 0.3 else np.array(random.choices(range(3), k=count), np.int64)
            key_slots = np.array(random.choices(range(capacity), k=count), np.int64)
            entries = index.entries(panes, numbers, key_slots, capacity)
            of_rows = np.full(count, panes[0]) if numbers is None else panes[numbers]
            pairs = list(zip(of_rows.tolist(), key_slots.tolist(), strict=True))
            # the new entries are those of new pairs, each once
            assert len(set(index.fresh.tolist())) == index.fresh.size
            assert {pairs[entries.tolist().index(one)] for one in index.fresh} == set(pairs) - set(model)
            for pair, entry in zip(pairs, entries.tolist(), strict=True):
                assert model.setdefault(pair, entry) == entry
            live = slots_at_barrier(index)(None)
            words = index.keys[live]
            read = zip(panes_of(words).tolist(), key_slots_of(words).tolist(), live.tolist(), strict=True)
            assert {(pane, slot): entry for pane, slot, entry in read} == model and len(index) == len(model)
            if random.random() < 0.5:
                over = random.choice([set(panes.tolist()), set(range(40))])
                gone = {pair: entry for pair, entry in model.items() if pair[0] in over}
                if gone:
                    index.remove(np.array(list(gone.values()), np.int64))
                model = {pair: entry for pair, entry in model.items() if pair not in gone}


def test_a_sparse_grid_is_given_up_and_made_again_by_an_empty_index() -> None:
    index, slots = EntryIndex(), np.array([3, 2**21])
    first = index.entries(np.array([0]), None, slots[:1], 40)
    both = index.entries(np.array([0]), None, slots, 2**22)
    assert both[0] == first[0] and not index._gridded and index._cells.size == 0
    index.remove(both)
    assert index.entries(np.array([7]), None, slots[:1], 40).size == 1 and index._gridded


def test_python_inserts_what_machine_code_does() -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        numbers = random.integers(0, 3, 50) if seed % 2 else np.zeros(0, np.int64)
        slots, bases, firsts = random.integers(0, 9, 50), np.array([0, 1, 1 << 34]), np.array([0, 9, 18])
        results = []
        for insert in (kernel.insert, kernel.insert.interpreted):
            cells, words, free = np.zeros(27, np.int32), np.zeros(5, np.int64), np.array([3, 1])
            state, out, fresh = (
                np.zeros(STATE_WORDS, np.int64),
                np.zeros(50, np.int64),
                np.zeros(50, np.int64),
            )
            state[:3] = 2, 4, 2
            done = insert(numbers, bases, firsts, slots, 0, 2, cells, words, free, state, out, fresh)
            results.append([done, *(a.tolist() for a in (cells, words, free, state, out, fresh))])
        assert results[0] == results[1] and 0 < results[0][0] < 50
