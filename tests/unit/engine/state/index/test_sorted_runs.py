"""SortedRuns against sorted lists of entries."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from penstock.engine.state.index.sorted_runs import SortedRuns

ENDS = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)


def columns(entries: list[tuple[int, int, int]]) -> tuple[np.ndarray, ...]:
    return tuple(np.array([entry[i] for entry in entries], np.int64) for i in range(3))


@pytest.mark.parametrize("scale", [1, 1 << 60], ids=["near", "far apart"])
def test_runs_are_sorted_lists(scale: int) -> None:
    for seed in range(30):
        dice, runs, live = Random(seed), SortedRuns(), set()
        for step in range(25):
            fresh = [
                (dice.randrange(3), dice.choice((*ENDS, *(n * scale for n in range(-4, 5)))), step * 100 + n)
                for n in range(dice.randrange(12))
            ]
            runs.add(*columns(fresh))
            live |= set(fresh)
            gone = dice.sample(sorted(live), dice.randrange(len(live) + 1) // dice.choice((1, 3, 9)))
            runs.remove(*columns(gone))
            live -= set(gone)
            assert len(runs) == len(live)
            check(runs, live, dice)


def check(runs: SortedRuns, live: set[tuple[int, int, int]], dice: Random) -> None:
    asked = [(slot, dice.choice([*ENDS, 0, *(e[1] for e in live)])) for slot in (0, 1, 2, 7)]
    slots, words = (np.array([one[i] for one in asked], np.int64) for i in range(2))
    last, found = runs.last_until(slots, words)
    after, follows = runs.first_after(slots, words)
    for i, (slot, word) in enumerate(asked):
        mine = [e[1] for e in live if e[0] == slot]
        assert found[i] == any(one <= word for one in mine)
        assert not found[i] or last[i] == max(one for one in mine if one <= word)
        assert follows[i] == any(one > word for one in mine)
        assert not follows[i] or after[i] == min(one for one in mine if one > word)
    entries = list(
        zip(*(column.tolist() for column in runs.ids_between(slots, words, after, ~follows)), strict=True)
    )
    wanted = {
        e
        for i, (slot, word) in enumerate(asked)
        for e in live
        if e[0] == slot and e[1] >= word and (not follows[i] or e[1] < after[i])
    }
    assert sorted(entries) == sorted(wanted)
    pairs = sorted(set(asked))
    positions, ids = runs.at(*(np.array([one[i] for one in pairs], np.int64) for i in range(2)))
    found_ids = sorted((pairs[p], i) for p, i in zip(positions.tolist(), ids.tolist(), strict=True))
    assert found_ids == sorted(((e[0], e[1]), e[2]) for e in live if e[:2] in set(pairs))


def test_nothing_is_kept_of_what_is_removed() -> None:
    runs, entries = SortedRuns(), columns([(0, n, n) for n in range(1000)])
    for first in range(0, 1000, 50):
        runs.add(*(column[first : first + 50] for column in entries))
    assert len(runs._runs) <= 5, "runs are merged"
    runs.remove(*entries)
    assert len(runs) == 0 and runs.nbytes == 0


def test_a_long_gap_is_passed_at_once() -> None:
    """One entry after another goes: the next search does not walk through all of them."""
    runs, size = SortedRuns(), 2000
    runs.add(*columns([(0, n, n) for n in range(size)]))
    for n in range(size // 2 - 1, 0, -1):
        runs.remove(*columns([(0, n, n)]))
    last, found = runs.last_until(np.array([0]), np.array([size // 2 - 1]))
    assert (last[0], found[0]) == (0, True)


def test_renumbered_words_stay_in_order() -> None:
    dice, runs, live = Random(4), SortedRuns(), set()
    for step in range(12):
        fresh = [
            (dice.randrange(3), dice.randrange(-50, 50) * 2, step * 100 + n) for n in range(dice.randrange(9))
        ]
        runs.add(*columns(fresh))
        live |= set(fresh)
        gone = dice.sample(sorted(live), len(live) // 3)
        runs.remove(*columns(gone))
        live -= set(gone)
        runs.renumber(lambda words: words * 3 + 1)
        live = {(slot, word * 3 + 1, number) for slot, word, number in live}
        assert {word for _, word, _ in live} <= set(runs.words.tolist())
        check(runs, live, dice)
