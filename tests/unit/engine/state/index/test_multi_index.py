"""MultiIndex against lists of rows by slot."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.state.index.multi_index import AppendOnlyMultiIndex, MultiIndex
from tests.harness.length import examples


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 5), max_size=10)), max_size=15),
    st.randoms(use_true_random=False),
)
def test_multi_index_like_lists(steps, random):
    index, lists, spare = MultiIndex(), {}, list(range(200))
    for link, slots in steps:
        if link:
            ids = [spare.pop(0) for _ in slots]
            index.link(np.array(slots, np.int64), np.array(ids, np.int64))
            for slot, row in zip(slots, ids, strict=True):
                lists.setdefault(slot, []).append(row)
        else:
            ids = random.sample(
                [row for rows in lists.values() for row in rows],
                k=min(len(slots), sum(map(len, lists.values()))),
            )
            empty = sorted(index.unlink(np.array(ids, np.int64)).tolist())
            touched = {slot for slot, rows in lists.items() if set(rows) & set(ids)}
            for slot in touched:
                lists[slot] = [row for row in lists[slot] if row not in ids]
            assert empty == sorted(slot for slot in touched if not lists[slot])
            spare += ids
        probe = [*random.choices(range(7), k=4), -1, 500]
        positions, ids = index.expand(np.array(probe, np.int64))
        assert list(zip(positions.tolist(), ids.tolist(), strict=True)) == [
            (i, row) for i, slot in enumerate(probe) for row in lists.get(slot, [])
        ]
        assert index.counts(np.array(probe, np.int64)).tolist() == [
            len(lists.get(slot, [])) for slot in probe
        ]
        assert len(index) == sum(map(len, lists.values()))


def test_a_row_that_is_linked_stays_where_it_is() -> None:
    index = MultiIndex()
    assert index.link(np.array([3, 3]), np.array([7, 9])).tolist() == [7, 9]
    assert index.link(np.array([4, 4, 4]), np.array([7, 8, 8])).tolist() == [8]
    assert index.owners(np.array([7, 8, 9])).tolist() == [3, 4, 3] and len(index) == 3


def test_a_row_that_was_unlinked_can_have_another_owner() -> None:
    index = MultiIndex()
    index.link(np.array([1, 2]), np.array([5, 6]))
    assert index.unlink(np.array([5])).tolist() == [1]
    assert index.link(np.array([2]), np.array([5])).tolist() == [5]
    assert index.expand(np.array([1, 2]))[1].tolist() == [6, 5]


def test_lists_grow_past_the_first_capacity() -> None:
    index, ids = MultiIndex(), np.arange(1_000)
    index.link(ids % 300, ids)
    assert index.counts(np.array([0, 99, 100, 299, 300, -1])).tolist() == [4, 4, 3, 3, 0, 0]
    assert index.expand(np.array([99]))[1].tolist() == [99, 399, 699, 999]


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.lists(st.integers(-1, 4), max_size=12), st.lists(st.integers(0, 3), max_size=25), st.integers(1, 7))
def test_pairs_in_pieces_are_all_pairs(asked: list[int], owners: list[int], most: int) -> None:
    index, slots = MultiIndex(), np.array(asked, np.int64)
    index.link(np.array(owners, np.int64), np.arange(len(owners)))
    pieces = list(index.pairs(slots, most))
    assert all(ids.size <= most for _, ids in pieces)
    whole = index.expand(slots)
    for k in (0, 1):
        assert np.concatenate([piece[k] for piece in pieces]).tolist() == whole[k].tolist()


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.integers(0, 200), max_size=10), max_size=15),
    st.integers(1, 7),
    st.randoms(use_true_random=False),
)
def test_append_only_like_lists(steps, most, random):
    index, lists, used = AppendOnlyMultiIndex(), {}, 0
    for slots in steps:
        index.link(np.array(slots, np.int64), np.arange(used, used + len(slots)))
        for slot in slots:
            lists.setdefault(slot, []).append(used)
            used += 1
        probe = np.array([*random.choices([*lists, 0], k=4), *range(3), -1, 500], np.int64)
        wanted = [(i, row) for i, slot in enumerate(probe.tolist()) for row in lists.get(slot, [])]
        assert list(zip(*(a.tolist() for a in index.expand(probe)), strict=True)) == wanted
        pieces = list(index.pairs(probe, most))
        assert all(positions.size <= most for positions, _ in pieces)
        assert [pair for piece in pieces for pair in zip(*(a.tolist() for a in piece), strict=True)] == wanted
        assert index.counts(probe).tolist() == [len(lists.get(slot, [])) for slot in probe.tolist()]
        assert len(index) == used


def test_rows_of_a_primary_key_take_a_word_a_slot() -> None:
    index = AppendOnlyMultiIndex()
    index.link(np.arange(1000), np.arange(1000))
    assert index._heads.size == 0, "the row of each slot has its number"
    assert index.expand(np.array([-1, 999, 1000, 3]))[1].tolist() == [999, 3]
    assert index.counts(np.array([-1, 999, 1000])).tolist() == [0, 1, 0]
    index.link(np.array([1001, 1000]), np.array([1000, 1001]))
    assert index._counts.size == index._nexts.size == 0
    assert index.expand(np.array([1000, 5, 1001, 1002]))[1].tolist() == [1001, 5, 1000]
    index.link(np.array([1500, 7, 1600]), np.array([1002, 1003, 1004]))
    assert index.expand(np.array([6, 7, 1500, 1600]))[1].tolist() == [6, 7, 1003, 1002, 1004]


def test_a_gap_in_rows_is_no_number_of_a_slot() -> None:
    index = AppendOnlyMultiIndex()
    index.link(np.arange(3), np.arange(3))
    index.link(np.array([4, 5]), np.array([4, 5]))
    assert index.expand(np.arange(6))[1].tolist() == [0, 1, 2, 4, 5]
    assert index.counts(np.arange(6)).tolist() == [1, 1, 1, 0, 1, 1]
