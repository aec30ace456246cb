"""WordIndex against a dict: words and NULL to dense slots, through growth, removal and spilling."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from penstock.engine.kernels.index import word_index as kernel
from penstock.engine.state import mapped_arrays
from penstock.engine.state.index import word_index
from penstock.engine.state.index.word_index import WordIndex, at_least, grown, pays_to_rebuild, slots_of
from penstock.engine.storage.spill_files import SpillFiles, pages_of
from tests.unit.engine.state.index import word_models
from tests.unit.engine.state.index.word_models import Word

WORDS = [0, 1, -1, 2**63 - 1, -(2**63), 1 << 32, *range(100, 400)]


def insert(index: WordIndex, model: dict[Word, int], words: list[Word]) -> None:
    new = word_models.insert(index, model, words)
    assert index.fresh.tolist() == new


def check(index: WordIndex, model: dict[Word, int]) -> None:
    word_models.check(index, model, [*WORDS, None, 77])


@pytest.mark.parametrize("gradual", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_like_a_dict(on_disk: bool, gradual: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1)
    if gradual:
        monkeypatch.setattr(word_index, "GRADUAL_BITS", 6)
        monkeypatch.setattr(word_index, "MIGRATED_LEAST", 1)
    for seed in range(10 if on_disk else 40):
        random, index = Random(seed), WordIndex()
        model: dict[Word, int] = {}
        for _ in range(8):
            if random.random() < 0.6:
                insert(index, model, random.choices([*WORDS, None], k=random.randrange(150)))
            elif model:
                gone = random.sample(list(model), random.randint(0, len(model)))
                index.remove(np.array([model.pop(word) for word in gone], np.int64))
            if on_disk and random.random() < 0.4:
                index.spill(SpillFiles(tmp_path))
                assert index.spillable_bytes() == 0
            check(index, model)


@pytest.mark.parametrize("in_pages", [False, True])
def test_a_large_index_grows_while_it_is_used(in_pages: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of each step are looked up, removed and inserted again while pairs are in both tables, of which
    one returns its memory page by page.
    """
    if in_pages:
        word_models.use_small_pages(monkeypatch)
    monkeypatch.setattr(word_index, "GRADUAL_BITS", 6)
    monkeypatch.setattr(word_index, "MIGRATED_LEAST", 1)
    random, index, model = Random(5), WordIndex(), dict[Word, int]()
    grows = 0
    for _ in range(6_000):
        insert(index, model, [random.randrange(20_000)])
        grows += index._old.size > 0
        if random.random() < 0.2:
            gone = random.choice(list(model))
            index.remove(np.array([model.pop(gone)], np.int64))
        if random.random() < 0.02:
            check(index, model)
    # a step of one row migrates four places of hundreds or thousands
    assert grows > 300
    # a batch larger than the index, which grows several times within it
    insert(index, model, [*range(20_000, 60_000)])
    check(index, model)


@pytest.mark.parametrize("repeated", [0, 5, 400])
@pytest.mark.parametrize("nulls", [False, True])
def test_words_that_are_all_known_are_inserted_at_once(
    repeated: int, nulls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitioned where few of them repeat and none is NULL, otherwise one piece after another."""
    monkeypatch.setattr(word_index, "PARTITIONED_LEAST", 1)
    monkeypatch.setattr(word_index, "_PARTITION_PLACES_BITS", 6)
    monkeypatch.setattr(word_index, "_PAIRS_PER_STEP", 100)
    for seed in range(5):
        random, index, model = Random(seed), WordIndex(), dict[Word, int]()
        distinct: list[Word] = [*WORDS, *(random.randrange(-(2**62), 2**62) for _ in range(300))]
        words = distinct + random.choices(distinct, k=repeated) + [None] * nulls
        random.shuffle(words)
        at = random.randrange(len(words))
        word_models.insert_all(index, model, [words[:at], [], words[at:]], nulls=nulls)
        check(index, model)
        partitioned = repeated < 100 and not nulls
        assert (index.allocated == len(words)) == (partitioned or len(model) == len(words))
        # what was built is an index like others, also one that words are added to at once again
        gone = random.sample(list(model), 100)
        index.remove(np.array([model.pop(word) for word in gone], np.int64))
        insert(index, model, [*gone[:50], *range(1_000, 1_400)])
        word_models.insert_all(index, model, [[*range(1_300, 1_500)]], nulls=False)
        check(index, model)


def test_the_last_run_of_a_partitioned_table_goes_on_at_its_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_index, "PARTITIONED_LEAST", 1)
    index, model = WordIndex(), dict[Word, int]()
    words = [*words_of_home(0xFFFF, 2_000).tolist(), *words_of_home(0, 2_000).tolist(), *range(4_000)]
    word_models.insert_all(index, model, [words], nulls=False)
    check(index, model)


def test_a_word_takes_the_slot_that_was_freed_last() -> None:
    index = WordIndex()
    slots = index.lookup_or_insert(np.arange(5))
    index.remove(slots[[1, 3]])
    assert index.lookup_or_insert(np.array([50, 51, 52])).tolist() == [1, 3, 5]


def test_five_eighths_of_the_table_are_filled_before_it_grows() -> None:
    assert slots_of(6) == 40
    index = WordIndex()
    index.lookup_or_insert(np.arange(40))
    assert index.capacity == 40
    index.lookup_or_insert(np.array([40]))
    assert index.capacity == slots_of(8), "a small table grows fourfold"
    assert index.lookup(np.arange(42)).tolist() == [*range(41), -1]


@pytest.mark.parametrize("keys", [40, 41, 160, 161, 40_960, 40_961, 100_000])
def test_an_index_that_was_emptied_grows_back_in_one_step(keys: int) -> None:
    """Up to where a table grows while it is used: one of more places would be cleared at once."""
    index, other, words = WordIndex(), WordIndex(), np.arange(keys) * 1_000_003
    slots = other.lookup_or_insert(words)
    for _ in range(3):
        index.remove(index.lookup_or_insert(words))
        assert not len(index) and index.capacity == slots_of(6)
        # nothing is reserved for an index that stays small
        index.remove(index.lookup_or_insert(words[:40]))
        assert index.capacity == slots_of(6)
        index.remove(index.lookup_or_insert(words))
        tables = []
        for first in range(0, keys, 10):
            slots[first : first + 10] = index.lookup_or_insert(words[first : first + 10])
            tables.append(index._bits)
        assert len(set(tables[: 40_960 // 10])) <= 2, "it grew again and again"
        assert (index.lookup(words) == slots).all() and slots.tolist() == [*range(keys)]
        index.remove(slots)


@pytest.mark.parametrize("removed", [1, 24, 26, 60, 100])
def test_few_and_many_removed_words_leave_the_same(removed: int) -> None:
    """Few are removed one by one, many by a rebuild of the table."""
    index = WordIndex()
    slots = index.lookup_or_insert(np.arange(100) * 7)
    index.remove(slots[:removed])
    assert pays_to_rebuild(removed, 100) == (removed > 25)
    found = index.lookup(np.arange(100) * 7)
    assert (found[:removed] == -1).all() and found[removed:].tolist() == slots[removed:].tolist()


def test_a_grown_array_has_zeros_behind_and_stays_on_disk(tmp_path: Path) -> None:
    array = np.arange(6).reshape(3, 2)
    for one in (array, SpillFiles(tmp_path).copied(array)):
        wider = grown(one, 5)
        assert wider.tolist() == [[0, 1], [2, 3], [4, 5], [0, 0], [0, 0]]
        assert (pages_of(wider) is None) == (pages_of(one) is None)


def words_of_home(place: int, count: int) -> np.ndarray:
    """Return words whose hashes begin with these 16 bits: the hash function, computed backwards."""
    wanted = (np.uint64(place) << np.uint64(48)) + np.arange(count, dtype=np.uint64)
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        # the inverse of x ^ (x >> shift), whose top bits are those of x
        unmixed = wanted
        for _ in range(64 // shift):
            unmixed = wanted ^ (unmixed >> np.uint64(shift))
        wanted = unmixed * np.uint64(pow(factor, -1, 1 << 64))
    return wanted.view(np.int64)


@pytest.mark.parametrize(("enough", "in_pages"), [(True, False), (True, True), (False, False)])
def test_a_run_that_goes_round_a_growing_index_loses_no_key(
    enough: bool, in_pages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All new keys have the last home of the table before: their run goes on over the places passed first.
    Where fewer places than keys are passed, it reaches others, and keys are lost.
    """
    if in_pages:
        word_models.use_small_pages(monkeypatch)
    if not enough:
        monkeypatch.setattr(word_index, "MIGRATED_LEAST", 1)
        monkeypatch.setattr(word_index, "MIGRATED_PER_ROW", 0)
    index = WordIndex()
    spread = np.concatenate([words_of_home(place, 1) for place in range(20_000, 60_960)])
    last, behind = words_of_home(0xFFFF, 5_000), words_of_home(2_000, 1)
    index.lookup_or_insert(spread)
    assert index.capacity == spread.size, "the next key makes it grow"
    slots = [index.lookup_or_insert(last[i : i + 1])[0] for i in range(1_000)]
    slots.extend(index.lookup_or_insert(last[1_000:]).tolist())
    assert (index._old.size > 0) or enough
    slots.extend(index.lookup_or_insert(behind).tolist())
    while index._old.size and enough:
        index.lookup_or_insert(spread[:1])
    words = np.concatenate([last, behind])
    if not enough:
        kernel.migrate(index._old, index._table, index._bits, index._state, 3_000)
    assert (index.lookup(words) == slots).all() == enough


def test_a_stack_of_freed_slots_is_as_long_as_it_was_needed() -> None:
    index = WordIndex()
    slots = index.lookup_or_insert(np.arange(100_000))
    assert not index._free.size, "nothing was freed: its array need not grow with the index"
    index.remove(slots[:3])
    index.remove(slots[3:5])
    assert index.free_slots().tolist() == slots[[2, 1, 0, 4, 3]].tolist()
    assert index._free.size == 6
    short = np.arange(4)
    assert at_least(short, 4) is short
    assert [at_least(short, size).size for size in (5, 8, 9)] == [8, 8, 9]
