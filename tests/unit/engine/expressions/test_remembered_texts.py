"""A function of texts gives the same results whether it remembers those of earlier batches or not."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.engine.expressions.text import remembered_texts
from penstock.engine.expressions.text.remembered_texts import RememberedTexts


class Counted:
    """Texts in capitals. ``seen``: how many texts each call had."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, column: pa.Array) -> pa.Array:
        self.seen.append(len(column))
        return pc.utf8_upper(column)


def test_each_text_is_computed_once() -> None:
    counted = Counted()
    remembered = RememberedTexts(counted)
    batch = pa.array(["a", None, "b", "a", "a", "b"], pa.string())
    for _ in range(3):
        assert remembered(batch).equals(pc.utf8_upper(batch))
    assert remembered(pa.array(["c", "a", "b", None])).to_pylist() == ["C", "A", "B", None]
    assert counted.seen == [2, 1]


def test_new_texts_are_computed_as_they_are_until_it_is_tried_again() -> None:
    counted = Counted()
    remembered = RememberedTexts(counted)
    for n in range(16):
        remembered(pa.array([f"{n} {i}" for i in range(10)]))
    assert counted.seen == [10] * 16
    few = pa.array(["a"] * 10)
    remembered(few)
    remembered(few)
    assert counted.seen[16:] == [1]


@pytest.mark.parametrize("most", [1, 7, 1 << 16])
def test_any_cuts_and_bounds_give_the_same_results(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(remembered_texts, "_MOST_TEXTS", most)
    seeded = random.Random(most)
    remembered = RememberedTexts(Counted())
    for _ in range(200):
        values = [
            seeded.choice([None, "", "ünï", *map(str, range(seeded.choice([2, 30])))])
            for _ in range(seeded.choice([0, 1, 3, 40]))
        ]
        batch = pa.array(values, pa.string())
        assert remembered(batch.slice(1)).equals(pc.utf8_upper(batch.slice(1)))
