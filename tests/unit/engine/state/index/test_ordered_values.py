"""OrderedValues against sorted lists of values, in whatever order these come."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state.index import ordered_values
from penstock.engine.state.index.ordered_values import OrderedValues, Renumber

TEXTS = [
    "",
    "a",
    "a\0",
    "aa",
    "ab",
    "b",
    "é",
    "中",
    "\U0001f600",
    "a" * 7,
    "a" * 8,
    "a" * 9,
    "a" * 8 + "b",
    "z" * 40,
]
DECIMALS = [Decimal(n).scaleb(power) for n in (-7, -1, 0, 1, 3) for power in (-2, 0, 17, 18, 19, 35)]
KINDS: list[tuple[pa.DataType, list[Any], Callable[[Any], Any]]] = [
    (pa.string(), TEXTS, lambda text: text.encode()),
    (pa.binary(), [text.encode() for text in TEXTS] + [b"\xff", b"\x80\0"], lambda data: data),
    (pa.decimal128(38, 2), DECIMALS, lambda number: number),
]


class Follower:
    """The words that were given for each value, kept up to date."""

    def __init__(self, ordered: OrderedValues) -> None:
        self.words: dict[Any, int] = {}
        self.renumbered = 0
        ordered.followers.append(self._renumber)

    def _renumber(self, renumber: Renumber) -> None:
        self.renumbered += 1
        found = renumber(np.array(list(self.words.values()), np.int64)).tolist()
        self.words = dict(zip(self.words, found, strict=True))

    def take(self, ordered: OrderedValues, values: list[Any], kind: pa.DataType) -> None:
        words = ordered.words(pa.array(values, kind)).tolist()
        for value, word in zip(values, words, strict=True):
            assert self.words.setdefault(value, word) == word
            assert word % 2 == 0

    def check(self, order: Callable[[Any], Any]) -> None:
        by_word = sorted(self.words, key=lambda value: self.words[value])
        assert by_word == sorted(self.words, key=order)
        assert len(set(self.words.values())) == len(self.words)


@pytest.mark.parametrize(("kind", "values", "order"), KINDS, ids=[str(kind[0]) for kind in KINDS])
def test_words_sort_as_the_values(kind: pa.DataType, values: list[Any], order: Callable[[Any], Any]) -> None:
    for seed in range(10):
        dice, ordered = Random(seed), OrderedValues()
        follower = Follower(ordered)
        for _ in range(12):
            follower.take(ordered, dice.choices(values, k=dice.randrange(1, 9)), kind)
            follower.check(order)
        assert len(ordered) == len(follower.words)


def upwards(n: int) -> str:
    return f"{n:08d}"


def downwards(n: int) -> str:
    return f"{10**8 - n:08d}"


def inwards(n: int) -> str:
    """Each between the two before it: the gap halves."""
    return f"a{n:08d}" if n % 2 else f"b{10**8 - n:08d}"


def in_groups(n: int) -> str:
    """The next of one of many groups."""
    return f"{n * 7 % 13:02d}-{n:08d}"


def anywhere(n: int) -> str:
    return f"{n * 2654435761 % 2**32:010d}"


@pytest.mark.parametrize("value", [upwards, downwards, inwards, in_groups, anywhere])
@pytest.mark.parametrize("step", [1 << 20, 4], ids=["wide steps", "narrow steps"])
def test_values_in_any_order(value: Callable[[int], str], step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_values, "_STEP", step)
    # so little room that all are numbered anew several times
    monkeypatch.setattr(ordered_values, "_LIMIT", 1 << 22 if step == 4 else 1 << 61)
    ordered = OrderedValues()
    follower = Follower(ordered)
    for first in range(0, 3_000, 60):
        follower.take(ordered, [value(n) for n in range(first, first + 60)], pa.string())
    follower.check(lambda text: text)
    assert len(ordered) == len(follower.words)
    assert follower.renumbered <= 20


def test_values_one_by_one_into_a_gap_that_halves() -> None:
    ordered = OrderedValues()
    follower = Follower(ordered)
    for n in range(400):
        follower.take(ordered, [inwards(n)], pa.string())
        follower.check(lambda text: text)
    assert follower.renumbered < 20


def test_unused_values_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_values, "_SPARE", 10)
    ordered = OrderedValues()
    words = ordered.words(pa.array([upwards(n) for n in range(100)]))
    asked: list[bool] = []

    def used() -> np.ndarray:
        asked.append(True)
        return words[40:60]

    ordered.release(45, used)
    assert len(ordered) == 100 and not asked
    ordered.release(44, used)
    assert len(ordered) == 20
    assert ordered.words(pa.array([upwards(n) for n in range(40, 60)])).tolist() == words[40:60].tolist()
    again = ordered.words(pa.array([upwards(n) for n in range(100)]))
    assert (np.diff(again) > 0).all() and again[40:60].tolist() == words[40:60].tolist()
