"""MIN, MAX and ANY_VALUE by slot against ``min`` and ``max``: one value by slot under inserts, the next best
under retraction.
"""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import STRING
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.min_max import BestString, LeastValue, RetractableBest, best_part
from penstock.planner.expressions.nodes import AggregateCall, Column
from tests.harness.aggregates import Reference, add_rows, follows_its_reference, order

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, -1, 7, 2**63 - 1, -(2**63)],
    pa.int8(): [0, -128, 127, 3],
    pa.bool_(): [False, True],
    pa.date32(): [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    pa.float64(): [0.0, 1.5, -2.25, math.inf, -math.inf, math.nan],
    pa.float32(): [0.0, 1.5, -2.25, math.nan],
    pa.decimal128(38, 0): [Decimal(2**70), Decimal(-(2**70)), Decimal(2**64 + 1), Decimal(-1), Decimal(0)],
    pa.string(): ["", "a", "ab", "b", "abcdefghijkl", "é", "Z", "x" * 40],
    pa.binary(): [b"", b"\x00", b"\x00\x00", b"\xff"],
}


def reference(kind: pa.DataType, greatest: bool, retract: bool) -> Reference:
    def read(part: Any, slots: np.ndarray) -> dict[str, pa.Array]:
        return {"best": part.best(slots if retract else part.state(slots))}

    def expected(values: list[Any]) -> dict[str, Any]:
        return {"best": (max if greatest else min)(values, key=order, default=None)}

    make = RetractableBest if retract else best_part
    return Reference(lambda: make(kind, greatest), kind, VALUES[kind], read, expected, retract)


@pytest.mark.parametrize("retract", [False, True], ids=["inserts", "retractions"])
@pytest.mark.parametrize("greatest", [False, True], ids=["min", "max"])
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_the_best_value_is_that_of_python(kind: pa.DataType, greatest: bool, retract: bool) -> None:
    follows_its_reference(reference(kind, greatest, retract), 60)


def test_a_type_has_the_cheap_part_that_can_hold_it() -> None:
    assert isinstance(best_part(pa.binary(), False), BestString)
    assert isinstance(best_part(pa.int64(), False), LeastValue)


def test_a_part_knows_whether_it_holds_a_value() -> None:
    for kind, values in ((pa.int64(), [3, 4]), (pa.string(), ["b", "c"])):
        part = best_part(kind, False)
        part.reserve(2)
        add_rows(part, kind, [(0, values[0], 1), (1, values[1], 1)])
        found = part.holds(np.array([0, 1]), pa.array([values[0], values[0]], kind))
        assert found.tolist() == [True, False]


def test_all_values_of_a_retracted_slot_are_forgotten() -> None:
    part = RetractableBest(pa.int64(), True)
    part.reserve(1)
    add_rows(part, pa.int64(), [(0, 5, 2), (0, 9, 1)])
    add_rows(part, pa.int64(), [(0, 9, -1)])
    assert part.best(np.zeros(1, np.int64)).to_pylist() == [5]
    add_rows(part, pa.int64(), [(0, 5, -2)])
    assert part.best(np.zeros(1, np.int64)).to_pylist() == [None] and len(part._counts) == 0


def test_a_retraction_before_its_row_is_no_value() -> None:
    part = RetractableBest(pa.int64(), True)
    part.reserve(1)
    add_rows(part, pa.int64(), [(0, 9, -1), (0, 5, 1)])
    assert part.best(np.zeros(1, np.int64)).to_pylist() == [5]
    add_rows(part, pa.int64(), [(0, 9, 1), (0, 5, -1)])
    assert part.best(np.zeros(1, np.int64)).to_pylist() == [None]


def test_best_strings_in_little_memory() -> None:
    call = AggregateCall("max", (Column(STRING, True, index=0, name="s"),), STRING)
    accumulators = Accumulators([call], True)
    accumulators.reserve(10)
    for i in range(200):
        accumulators.add(
            np.arange(10),
            pa.record_batch([pa.array([f"{i:04d}" + "x" * (i % 60) for _ in range(10)])], names=["s"]),
        )
    (part,) = accumulators._parts
    assert isinstance(part, BestString) and part._arena.size < 5_000
    assert accumulators.results(np.arange(10))[0].to_pylist() == ["0199" + "x" * 19] * 10
