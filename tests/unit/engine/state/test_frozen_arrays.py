"""Arrays as they were at a barrier: whatever their owner writes, removes and grows, and while it does so."""

from __future__ import annotations

from random import Random
from threading import Thread

import numpy as np
import pytest

from penstock.engine.state.frozen_arrays import FrozenArrays, FrozenViews
from penstock.engine.state.index.word_index import grown


class Owner:
    """Two arrays by slot, each row of them its slot at first."""

    def __init__(self, count: int) -> None:
        self.words = np.arange(count)
        self.rows = np.arange(2 * count).reshape(count, 2)
        self.views = FrozenViews()

    def arrays(self) -> list[np.ndarray]:
        return [self.words, self.rows[:, :1]]

    def change(self, slots: np.ndarray) -> None:
        self.views.save(slots)
        self.words[slots] -= 1
        self.rows[slots] += 5

    def grow(self, count: int) -> None:
        self.words, self.rows = grown(self.words, count), grown(self.rows, count)


@pytest.mark.parametrize("asked", [False, True])
def test_copies_are_what_was_there_at_the_barrier(asked: bool) -> None:
    for seed in range(30):
        random, owner, expected = Random(seed), Owner(20), []
        for _ in range(random.randint(1, 12)):
            count = len(owner.words)
            match random.randrange(3):
                case 0:
                    slots = np.array(sorted(random.sample(range(count), random.randrange(count))), np.int64)
                    taken = slots if asked else None
                    frozen = owner.views.freeze(owner.arrays(), count)
                    now = [array[slots].copy() if asked else array.copy() for array in owner.arrays()]
                    expected.append((frozen, taken, now))
                case 1:
                    owner.grow(count + random.randrange(9))
                case 2:
                    owner.change(np.array([random.randrange(count) for _ in range(9)]))
            if random.random() < 0.2 and expected:
                # copied before the end, and asked again then
                expected[0][0].copies(expected[0][1])
        for frozen, taken, now in expected:
            for copy, rows in zip(frozen.copies(taken), now, strict=True):
                assert copy.tolist() == rows.tolist()


def copy(frozen: FrozenArrays, slots: np.ndarray | None, into: list[list[np.ndarray]]) -> None:
    into.append(frozen.copies(slots))


def test_copies_are_right_while_the_owner_writes() -> None:
    count = 300_000
    owner, random = Owner(count), np.random.default_rng(1)
    words, rows = (array.copy() for array in owner.arrays())
    for asked in (None, np.arange(0, count, 3)):
        frozen = owner.views.freeze(owner.arrays(), count)
        found: list[list[np.ndarray]] = []
        reader = Thread(target=copy, args=(frozen, asked, found))
        owner.change(random.integers(0, count, 1000))
        reader.start()
        while reader.is_alive():
            owner.change(random.integers(0, count, 20_000))
        reader.join()
        at = slice(None) if asked is None else asked
        assert np.array_equal(found[0][0], words[at]) and np.array_equal(found[0][1], rows[at])
        words, rows = (array.copy() for array in owner.arrays())


def test_nothing_is_saved_for_a_snapshot_that_was_given_up() -> None:
    owner = Owner(4)
    frozen = owner.views.freeze(owner.arrays(), 4)
    owner.change(np.array([1, 1, 3]))
    assert [slots.tolist() for slots, _ in frozen._saved] == [[1, 1, 3]]
    owner.change(np.array([0, 1]))
    assert [slots.tolist() for slots, _ in frozen._saved] == [[1, 1, 3], [0]], "only its first change"
    del frozen
    assert list(owner.views._alive()) == []
