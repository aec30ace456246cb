"""Seeded choices that prefer what was chosen least so far."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Choices of one query. ``seen`` counts the features of all queries so far; ``features`` are those of
    this one, ``offered`` those it might have had.
    """

    def __init__(self, seed: int, seen: Counter[str]) -> None:
        self.random = random.Random(seed)
        self.seen = seen
        self.features: set[str] = set()
        self.offered: set[str] = set()
        self._aliases = 0

    def alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"

    def one(self, *options: T) -> T:
        return self.random.choice(options)

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        return self.random.sample(options, self.random.randint(least, min(most, len(options))))

    def chance(self, rate: float) -> bool:
        return self.random.random() < rate

    def feature(self, group: str, options: dict[str, Callable[[], T]]) -> T:
        """Choose among named ways to go on, those less used more often."""
        names = list(options)
        self.offered |= {f"{group}: {name}" for name in names}
        weights = [1 / (1 + self.seen[f"{group}: {name}"]) for name in names]
        (name,) = self.random.choices(names, weights)
        self.mark(f"{group}: {name}")
        return options[name]()

    def mark(self, feature: str) -> None:
        self.features.add(feature)
