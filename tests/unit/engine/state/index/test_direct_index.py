"""DirectIndex against a dict: dense words and outliers to slots, through growth, removal and spilling."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from penstock.engine.state import mapped_arrays
from penstock.engine.state.index import direct_index, word_index
from penstock.engine.state.index.direct_index import PLACES_LEAST, DirectIndex
from penstock.engine.storage.spill_files import SpillFiles
from tests.unit.engine.state.index import word_models
from tests.unit.engine.state.index.word_models import Word, arrays

FAR = [2**63 - 1, -(2**63), 1 << 40, -1 - (1 << 40)]


def insert(index: DirectIndex, model: dict[Word, int], words: list[Word]) -> None:
    new = word_models.insert(index, model, words)
    assert sorted(index.fresh.tolist()) == sorted(new)


def remove(index: DirectIndex, model: dict[Word, int], words: list[Word]) -> None:
    index.remove(np.array([model.pop(word) for word in words], np.int64))


def check(index: DirectIndex, model: dict[Word, int]) -> None:
    word_models.check(index, model, [*model, *FAR, None, 77, -3, 10**6])


def dense(count: int = 500, first: int = 0) -> list[Word]:
    return [*range(first, first + count)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_index, "PLACES_LEAST", 64)
    monkeypatch.setattr(direct_index, "PLACES_PER_KEY", 4)
    monkeypatch.setattr(direct_index, "OUTLIERS_LEAST", 8)


@pytest.mark.parametrize("gradual", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_like_a_dict(on_disk: bool, gradual: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1)
    if gradual:
        monkeypatch.setattr(word_index, "GRADUAL_BITS", 6)
        monkeypatch.setattr(word_index, "MIGRATED_LEAST", 1)
    ways = set()
    for seed in range(30 if on_disk else 100):
        random, index, model = Random(seed), DirectIndex(), dict[Word, int]()
        # some begin with an array, and are widened before a batch
        monkeypatch.setattr(direct_index, "_EXPECTED_LEAST", random.choice([1_024, 100, 1]))
        first = random.choice([0, -200, -(2**63), 2**63 - 4_000])
        for _ in range(12):
            first = max(-(2**63), min(first + random.choice([0, 0, 100, 300, -100]), 2**63 - 400))
            words: list[Word] = [*range(first, first + random.choice([50, 400])), None]
            if random.random() < 0.4:
                words += [*FAR, *(random.randrange(-(2**63), 2**63) for _ in range(random.choice([1, 60])))]
            if random.random() < 0.3:
                index.expect([arrays(random.choices(words, k=random.randrange(300)))[0]])
            if random.random() < 0.7:
                insert(index, model, random.choices(words, k=random.randrange(300)))
            elif model:
                remove(index, model, random.sample(list(model), random.randint(0, len(model))))
            if on_disk and random.random() < 0.4:
                index.spill(SpillFiles(tmp_path))
                assert index.spillable_bytes() == 0
            ways.add((index._places.size > 0, index._outliers > 0))
            check(index, model)
    assert ways == {(False, False), (True, False), (True, True)}


def test_dense_words_have_an_array() -> None:
    index, model = DirectIndex(), dict[Word, int]()
    insert(index, model, dense())
    insert(index, model, dense())
    assert index._places.size == 500
    check(index, model)


def test_expected_words_have_an_array_at_once() -> None:
    index, model = DirectIndex(), dict[Word, int]()
    for first in (0, 10_000, -(2**63)):
        index.expect([arrays(dense(first=first))[0]])
        insert(index, model, dense(first=first))
        assert index._places.size == 500
        check(index, model)
        # a key that is known is kept
        index.expect([arrays(dense(first=5_000))[0]])
        check(index, model)
        remove(index, model, [*model])
    index.expect([arrays([0, 10**6])[0]])
    assert index._places.size == 0


def test_an_index_that_is_emptied_begins_with_the_slots_it_had() -> None:
    index, model = DirectIndex(), dict[Word, int]()
    insert(index, model, dense())
    remove(index, model, [*model])
    index.expect([arrays(dense())[0]])
    keys = index.keys
    insert(index, model, dense())
    assert index.keys is keys, "its slots grew"
    check(index, model)


def test_an_array_has_places_for_all_the_pieces_that_are_expected() -> None:
    index, model = DirectIndex(), dict[Word, int]()
    pieces = [dense(first=first) for first in (500, 1_000, 0)]
    index.expect([arrays([])[0], *(arrays(piece)[0] for piece in pieces)])
    places = index._places
    assert places.size == 1_500
    for piece in pieces:
        insert(index, model, piece)
        assert index._places is places, "it was widened"
    check(index, model)


def test_words_that_are_not_dense_stay_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_index, "PLACES_LEAST", PLACES_LEAST)
    index, model = DirectIndex(), dict[Word, int]()
    for _ in range(3):
        insert(index, model, [1_000 * word for word in range(500)])
    assert index._places.size == 0
    check(index, model)


def test_ids_that_ascend_widen_the_array_beside_an_outlier() -> None:
    index, model = DirectIndex(), dict[Word, int]()
    insert(index, model, dense())
    for first in range(0, 5_000, 100):
        insert(index, model, [-(2**63), *dense(first=first)])
    assert index._outliers == 1
    assert 5_400 <= index._places.size < 16 * 5_400
    check(index, model)


@pytest.mark.parametrize("first", [0, -700, -(2**63), 2**63 - 1_201])
def test_many_words_at_once_begin_with_an_array_and_widen_it_before_they_come(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_index, "_EXPECTED_LEAST", 100)
    outliers: list[int] = []
    monkeypatch.setattr(DirectIndex, "_insert_outliers", counted(DirectIndex._insert_outliers, outliers))
    for last, before in ((399, True), (400, True), (799, True), (800, False), (1_200, False)):
        index, model = DirectIndex(), dict[Word, int]()
        words: list[Word] = [*dense(100, first)]
        # 100 words may have 400 places: not one more
        insert(index, model, [*words[:99], first + 400])
        assert index._places.size == 0
        remove(index, model, [*model])
        insert(index, model, [*words[:99], first + 399])
        assert index._places.size == 400
        # and 200 words, 800; 299 keys may have 1,196, but they are known only behind the batch
        insert(index, model, [*dense(199, first + 99), first + last])
        assert outliers == [1][before:]
        assert (index._places.size > last) == (last < 1_196)
        check(index, model)
        insert(index, model, dense(100, max(first - 30, -(2**63))))
        remove(index, model, [word for word in model if word is not None and word % 3])
        check(index, model)
        outliers.clear()


def counted(run: Any, sizes: list[int]) -> Any:
    def insert_counted(self: DirectIndex, words: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        sizes.append(words.size)
        return run(self, words, fresh)

    return insert_counted


def test_the_array_is_not_widened_for_words_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their greatest is not looked for, unless new ones came last."""
    monkeypatch.setattr(direct_index, "_EXPECTED_LEAST", 100)
    lasts, widen = [], DirectIndex._widen_to

    def noted(self: DirectIndex, last: int, rows: int) -> bool:
        lasts.append(last)
        return widen(self, last, rows)

    monkeypatch.setattr(DirectIndex, "_widen_to", noted)
    index, model = DirectIndex(), dict[Word, int]()
    for words, expected in (
        (dense(), []),
        (dense(), [499]),
        (dense(), []),
        (dense(first=5), [504]),
        (dense(), [499]),
    ):
        lasts.clear()
        insert(index, model, words)
        assert lasts == expected
    check(index, model)


@pytest.mark.parametrize("nulls", [False, True])
def test_words_of_both_ends_are_no_reason_to_widen(nulls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array of all words between them would be 2**64 places; NULL's word counts for nothing."""
    monkeypatch.setattr(direct_index, "_EXPECTED_LEAST", 100)
    for ends in ([2**63 - 1, -(2**63)], [-(2**63), -1, 0, 2**63 - 1], [2**63 - 1], [-(2**63)]):
        index, model = DirectIndex(), dict[Word, int]()
        none: list[Word] = [None] * nulls
        insert(index, model, [*ends, *dense(), *none])
        insert(index, model, [*dense(first=2**63 - 500), *ends, *none])
        insert(index, model, [*none, *dense(first=-(2**63)), *ends])
        check(index, model)
        remove(index, model, [*model])
        insert(index, model, [*dense(first=2**63 - 500), *none])
        insert(index, model, [*dense(first=-(2**63)), *dense(first=2**63 - 600), *none])
        check(index, model)


def test_the_array_follows_a_range_that_moves() -> None:
    """Old ids are removed as new ones come: places of removed ids are freed."""
    index, model = DirectIndex(), dict[Word, int]()
    for first in range(0, 20_000, 100):
        insert(index, model, dense(first=first))
        remove(index, model, [word for word in model if word is not None and word < first])
        check(index, model)
    assert 0 < index._places.size < 10_000


def test_too_many_outliers_are_hashed_with_all_others() -> None:
    index, model = DirectIndex(), dict[Word, int]()
    insert(index, model, dense())
    insert(index, model, dense())
    assert index._places.size
    insert(index, model, [(1 << 40) + 1_000 * word for word in range(600)])
    assert not index._places.size
    check(index, model)


def test_a_large_index_keeps_its_array_and_hashes_outliers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is moved in one step there."""
    index, model = DirectIndex(), dict[Word, int]()
    insert(index, model, dense())
    insert(index, model, dense())
    monkeypatch.setattr(direct_index, "CONVERTED_KEYS", 400)
    insert(index, model, [(1 << 40) + 1_000 * word for word in range(600)])
    insert(index, model, dense(first=-100))
    assert index._places.size == 500 and index._outliers == 700
    check(index, model)
    remove(index, model, [word for word in model if word is not None and word % 3 == 0])
    check(index, model)


@pytest.mark.parametrize("spread", [1, 3, 1_000])
@pytest.mark.parametrize("nulls", [False, True])
def test_words_that_are_all_known_are_inserted_at_once(
    spread: int, nulls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dense ones into an array of just their range."""
    monkeypatch.setattr(word_index, "PARTITIONED_LEAST", 1)
    index, model = DirectIndex(), dict[Word, int]()
    words: list[Word] = [5 + spread * i for i in range(500)]
    Random(1).shuffle(words)
    word_models.insert_all(index, model, [words[:200], words[200:] + [None] * nulls], nulls=nulls)
    assert index._places.size in ({0} if spread > 4 else {spread * 499 + 1, spread * 499 + 6})
    check(index, model)
    insert(index, model, [*dense(300, -100), *FAR])
    check(index, model)


def test_known_outliers_are_found_in_few_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of known keys fill a table that is almost full only after very many of them."""
    monkeypatch.setattr(direct_index, "OUTLIERS_LEAST", 1_000)
    index, model = DirectIndex(), dict[Word, int]()
    insert(index, model, dense())
    far = [1_000_000 * word for word in range(1, 320)]
    insert(index, model, far)
    pieces: list[int] = []
    monkeypatch.setattr(DirectIndex, "_insert_hashed", counted(DirectIndex._insert_hashed, pieces))
    insert(index, model, far * 40)
    assert sum(pieces) == len(far) * 40 and len(pieces) <= 2 * direct_index._PIECES_MOST
    insert(index, model, [1_000_000 * word for word in range(1, 700)])
    check(index, model)
