"""Rows are kept out only when as many as the limit are ahead of them, by keys of every kind that has an
order of words.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, DOUBLE
from penstock.engine.state.aggregates.top_n_filter import BestKeys
from penstock.planner.expressions.nodes import Column, SortKey

INTEGERS = [None, -(2**63), 2**63 - 1, 0, 1, -1, 5]
DOUBLES = [None, math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -1.5]


def place(value: float | None, descending: bool, nulls_first: bool) -> tuple[float, ...]:
    if value is None:
        return (-1.0 if nulls_first else 1.0,)
    key = (1.0, 0.0) if math.isnan(value) else (0.0, value)
    return (0.0, *(tuple(-part for part in key) if descending else key))


@pytest.mark.parametrize("values", [INTEGERS, DOUBLES])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_no_row_is_kept_out_that_must_be_among_the_first(
    values: list[float | None], descending: bool, nulls_first: bool
) -> None:
    rng = np.random.Generator(np.random.PCG64(7))
    kind = BIGINT if values is INTEGERS else DOUBLE
    arrow = pa.int64() if values is INTEGERS else pa.float64()
    best = BestKeys(SortKey(Column(kind, True, index=0), descending, nulls_first), 2, "UTC")
    seen: list[list[tuple[float, ...]]] = [[], [], []]
    kept_out = 0
    for _ in range(40):
        chosen = [values[at] for at in rng.integers(0, len(values), 5)]
        slots = rng.integers(0, 3, 5)
        for slot, value in zip(slots, chosen, strict=True):
            seen[slot].append(place(value, descending, nulls_first))
        passed = set(best.passed(pa.record_batch([pa.array(chosen, arrow)], ["x"]), slots, 3).tolist())
        for row, (slot, value) in enumerate(zip(slots, chosen, strict=True)):
            if row not in passed:
                kept_out += 1
                assert sum(other < place(value, descending, nulls_first) for other in seen[slot]) >= 2
    assert kept_out > 100
    best.forget(np.array([0, 1, 2, 9]))
    assert best.passed(pa.record_batch([pa.array([values[-1]], arrow)], ["x"]), np.array([1]), 3).size == 1
