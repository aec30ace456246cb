"""A WordIndex of any kind beside a dict: words and NULL to slots."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
import pytest

from penstock.engine.kernels.arrow_views import NO_BYTES
from penstock.engine.state.index import word_index
from penstock.engine.state.index.word_index import WordIndex
from penstock.engine.storage import reserved_memory

Word = int | None


def use_small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of any size grow in place, and return memory in the smallest pages there are."""
    for name, size in (("LEAST_BYTES", 1), ("GROWN_LEAST_BYTES", 1), ("_PAGE_BYTES", mmap.PAGESIZE)):
        monkeypatch.setattr(reserved_memory, name, size)
    monkeypatch.setattr(word_index, "_RELEASED_AGAIN", mmap.PAGESIZE // 8)


def arrays(words: Sequence[Word]) -> tuple[np.ndarray, np.ndarray]:
    valid = np.array([word is not None for word in words], np.uint8)
    return np.array([word or 0 for word in words], np.int64), valid


def insert(index: WordIndex, model: dict[Word, int], words: list[Word]) -> list[int]:
    """Look words up in both; return the slots of the new ones, in their order."""
    new = [word for word in dict.fromkeys(words) if word not in model]
    slots = index.lookup_or_insert(*arrays(words)).tolist()
    for word, slot in zip(words, slots, strict=True):
        assert model.setdefault(word, slot) == slot
    return [model[word] for word in new]


def insert_all(
    index: WordIndex, model: dict[Word, int], pieces: Sequence[Sequence[Word]], *, nulls: bool
) -> None:
    """Look pieces of words up in both, all at once."""
    steps = index.insert_all([arrays(words) if nulls else (arrays(words)[0], NO_BYTES) for words in pieces])
    while True:
        try:
            next(steps)
        except StopIteration as end:
            slots = end.value.tolist()
            break
    for word, slot in zip((word for words in pieces for word in words), slots, strict=True):
        assert model.setdefault(word, slot) == slot


def check(index: WordIndex, model: dict[Word, int], asked: list[Word]) -> None:
    """Hold everything the index says against the dict, of the words ``asked`` too."""
    assert len(index) == len(model) == len(set(model.values()))
    assert index.live_slots().tolist() == sorted(model.values())
    assert all(slot < index.capacity for slot in model.values())
    assert index.null_slot == model.get(None, -1)
    for word, slot in model.items():
        assert word is None or index.keys[slot] == word
    assert index.lookup(*arrays(asked)).tolist() == [model.get(word, -1) for word in asked]
