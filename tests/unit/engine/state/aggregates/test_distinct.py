"""Aggregates over the distinct values of a slot, each with its own filter, against sets."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state.aggregates.distinct import Distinct
from penstock.engine.state.aggregates.sums import CountPart, ExactSum
from tests.harness.aggregates import SLOTS

FILTERS = 2
VALUES = [0, 1, -5, 2**40]


def distinct() -> Distinct:
    """COUNT of the rows of the first filter, SUM of those of the second."""
    part = Distinct(pa.int64(), [CountPart(), ExactSum(pa.int64())])
    part.reserve(SLOTS)
    return part


def read(part: Distinct) -> list[tuple[int, int | None]]:
    counts, sums = part.parts
    assert isinstance(counts, CountPart) and isinstance(sums, ExactSum)
    slots = np.arange(SLOTS)
    found = sums.total(sums.state(slots), pa.int64(), null_when_empty=True).to_pylist()
    return list(zip(counts.count(counts.state(slots)).to_pylist(), found, strict=True))


Model = list[Counter[tuple[int, int]]]
"""(slot, value) to its count, by filter."""


def expected(model: Model) -> list[tuple[int, int | None]]:
    of = [
        [{value for (at, value), count in counts.items() if at == slot and count > 0} for counts in model]
        for slot in range(SLOTS)
    ]
    return [(len(first), sum(second) if second else None) for first, second in of]


def add(part: Distinct, model: Model, random: Random) -> None:
    count = random.randrange(1, 8)
    slots, values = random.choices(range(SLOTS), k=count), random.choices(VALUES, k=count)
    # 0: the filter does not accept the row
    weights = [random.choices((0, 1, 1, 2, -1), k=count) for _ in range(FILTERS)]
    for counts, of_filter in zip(model, weights, strict=True):
        for slot, value, weight in zip(slots, values, of_filter, strict=True):
            counts[slot, value] += weight
    part.add(np.array(slots), pa.array(values, pa.int64()), np.array(weights))


def test_each_value_counts_once_among_the_rows_of_its_filter() -> None:
    for seed in range(80):
        random, part = Random(seed), distinct()
        model: Model = [Counter() for _ in range(FILTERS)]
        for _ in range(6):
            match random.randrange(6):
                case 0:
                    slot = random.randrange(SLOTS)
                    part.clear(np.array([slot]))
                    model = [Counter({p: n for p, n in c.items() if p[0] != slot}) for c in model]
                case 1:
                    slots = np.array(random.sample(range(SLOTS), SLOTS))
                    columns, part = part.freeze(int(slots.max(initial=0)) + 1)(None)(slots), distinct()
                    part.restore(slots, columns)
                case 2:
                    other, values = distinct(), [Counter() for _ in range(FILTERS)]
                    add(other, values, random)
                    into = [random.randrange(SLOTS) for _ in range(SLOTS)]
                    part.merge(np.array(into), other, np.arange(SLOTS))
                    for counts, new in zip(model, values, strict=True):
                        for (slot, value), count in new.items():
                            counts[into[slot], value] += count
                case _:
                    add(part, model, random)
            assert read(part) == expected(model), f"seed {seed}"


@pytest.mark.parametrize("weight", [1, 3])
def test_a_value_is_gone_with_its_last_row(weight: int) -> None:
    part, one = distinct(), pa.array([7], pa.int64())
    part.add(np.zeros(1, np.int64), one, np.full((2, 1), weight))
    for left in range(weight - 1, -1, -1):
        part.add(np.zeros(1, np.int64), one, np.full((2, 1), -1))
        assert read(part)[0] == ((1, 7) if left else (0, None))
    assert len(part._counts) == 0
