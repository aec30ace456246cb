"""COUNT, BOOL_AND, BOOL_OR, SUM, SUM0 and AVG by slot against exact sums in plain Python, and where a sum is
out of range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DOUBLE
from penstock.catalog.types import Decimal as DecimalType
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.sums import BooleanPart, CountPart, ExactSum, FloatSum, OutOfRange
from penstock.planner.expressions.nodes import AggregateCall, Column
from tests.harness.aggregates import Reference, add_rows, follows_its_reference

ONE = np.zeros(1, np.int64)
NARROW, WIDE = pa.decimal128(10, 2), pa.decimal128(38, 0)
BIG = 2**63 - 1


@pytest.fixture(scope="module", autouse=True)
def exact_decimals() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 60
        yield


def read_count(part: CountPart, slots: np.ndarray) -> dict[str, pa.Array]:
    return {"count": part.count(part.state(slots))}


def read_booleans(part: BooleanPart, slots: np.ndarray) -> dict[str, pa.Array]:
    state = part.state(slots)
    return {"bool_and": part.all_true(state), "bool_or": part.some_true(state)}


def read_sums(total: pa.DataType, mean: pa.DataType) -> Any:
    def read(part: ExactSum | FloatSum, slots: np.ndarray) -> dict[str, pa.Array]:
        state = part.state(slots)
        return {
            "sum": part.total(state, total, null_when_empty=True),
            "sum0": part.total(state, total, null_when_empty=False),
            "avg": part.mean(state, mean),
        }

    return read


def sums(values: list[Any]) -> dict[str, Any]:
    mean = sum(values) / len(values) if values else None
    if isinstance(mean, Decimal):
        mean = mean.quantize(Decimal("0.000001"), ROUND_HALF_UP)
    return {"sum": sum(values) if values else None, "sum0": sum(values), "avg": mean}


def float_sums(values: list[float]) -> dict[str, Any]:
    finite = all(map(math.isfinite, values))
    total = math.fsum(values) if finite else sum(values)
    some = total if values else None
    return {"sum": some, "sum0": total, "avg": total / len(values) if values else None}


def booleans(values: list[bool]) -> dict[str, bool | None]:
    return {
        "bool_and": all(values) if values else None,
        "bool_or": any(values) if values else None,
    }


REFERENCES = {
    "count": Reference(CountPart, pa.string(), ["", "a"], read_count, lambda values: {"count": len(values)}),
    "booleans": Reference(BooleanPart, pa.bool_(), [False, True], read_booleans, booleans),
    "integers": Reference(
        lambda: ExactSum(pa.int64()),
        pa.int64(),
        [0, 1, -7, 2**55, -(2**55)],
        read_sums(pa.int64(), pa.float64()),
        sums,
    ),
    "sums past one word": Reference(
        lambda: ExactSum(pa.int64()),
        pa.int64(),
        [BIG, -(2**63), 3],
        read_sums(pa.decimal128(38, 0), pa.float64()),
        sums,
    ),
    "narrow decimals": Reference(
        lambda: ExactSum(NARROW),
        NARROW,
        [Decimal("0.01"), Decimal("-3.50"), Decimal("99999999.99"), Decimal("-0.02")],
        read_sums(pa.decimal128(20, 2), pa.decimal128(14, 6)),
        sums,
    ),
    "wide decimals": Reference(
        lambda: ExactSum(WIDE),
        WIDE,
        [Decimal(2**64), Decimal(-(2**70)), Decimal(-1), Decimal(2**100)],
        read_sums(WIDE, pa.decimal128(38, 6)),
        sums,
    ),
    "floating-point numbers": Reference(
        FloatSum,
        pa.float64(),
        [0.0, 1.5, 1e9, -2.25, 0.1, -0.0, math.inf, -math.inf, math.nan],
        read_sums(pa.float64(), pa.float64()),
        float_sums,
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_sums_are_those_of_the_values(name: str) -> None:
    follows_its_reference(REFERENCES[name])


def test_a_sum_that_needs_no_count_has_no_column_for_it() -> None:
    """SUM0 alone is never NULL: its part is a word narrower, and sums the same."""
    part = ExactSum(pa.int64(), counted=False)
    part.reserve(2)
    add_rows(part, pa.int64(), [(0, BIG, 1), (0, 1, 1), (0, -5, 1)])
    assert part.width == 2
    totals = part.total(part.state(np.arange(2)), pa.int64(), null_when_empty=False)
    assert totals.to_pylist() == [BIG - 4, 0]


def test_a_decimal_mean_rounds_half_away_from_zero() -> None:
    part, kind = ExactSum(pa.decimal128(5, 0)), pa.decimal128(5, 0)
    part.reserve(2)
    add_rows(part, kind, [(0, Decimal(1), 1), (0, Decimal(0), 7), (1, Decimal(-1), 1), (1, Decimal(0), 7)])
    found = part.mean(part.state(np.arange(2)), pa.decimal128(7, 2)).to_pylist()
    assert found == [Decimal("0.13"), Decimal("-0.13")], "1 / 8 is 0.125"


def test_a_wide_sum_past_128_bits_is_out_of_range_until_it_is_back() -> None:
    part = ExactSum(WIDE)
    part.reserve(1)
    most = Decimal(10**38 - 1)
    add_rows(part, WIDE, [(0, most, 3)])
    with pytest.raises(OutOfRange):
        part.total(part.state(ONE), WIDE, null_when_empty=True)
    add_rows(part, WIDE, [(0, most, -2)])
    assert part.total(part.state(ONE), WIDE, null_when_empty=True).to_pylist() == [most]


def test_infinities_can_be_retracted() -> None:
    part = FloatSum()
    part.reserve(1)
    add_rows(part, pa.float64(), [(0, math.inf, 1), (0, math.nan, 1), (0, 2.5, 1)])
    add_rows(part, pa.float64(), [(0, math.inf, -1), (0, math.nan, -1)])
    assert part.total(part.state(ONE), pa.float64(), null_when_empty=True).to_pylist() == [2.5]


def summed(kind: Any, values: pa.Array, weights: np.ndarray | None = None) -> Accumulators:
    """SUM(x) of values in one slot."""
    accumulators = Accumulators([AggregateCall("sum", (Column(kind, True, index=0, name="x"),), kind)], False)
    accumulators.reserve(1)
    accumulators.add(np.zeros(len(values), np.int64), pa.record_batch([values], names=["x"]), weights)
    return accumulators


def test_bigint_sum_overflows_only_when_the_whole_does() -> None:
    assert summed(BIGINT, pa.array([BIG, BIG, -BIG])).results(ONE)[0].to_pylist() == [BIG]
    assert summed(BIGINT, pa.array([-(2**63), 5]), np.array([3, 1])).freeze(1)(None)(ONE)[
        "a0_1"
    ].to_pylist() != [0]
    with pytest.raises(PenstockError, match=r"sum\(x\) out of range for BIGINT") as error:
        summed(BIGINT, pa.array([BIG, 1])).results(ONE)
    assert (error.value.code, error.value.sqlstate) == ("RUN-2002", "22003")


def test_decimal_sum_of_38_digits_overflows() -> None:
    most = Decimal(10**38 - 1)
    values = pa.array([most, most, most, -most, -most], pa.decimal128(38, 0))
    assert summed(DecimalType(38, 0), values).results(ONE)[0].to_pylist() == [most]
    for rows in (2, 3):
        with pytest.raises(PenstockError, match="out of range"):
            summed(DecimalType(38, 0), values.slice(0, rows)).results(ONE)


def test_float_sums_do_not_depend_on_order() -> None:
    values = [1e16, 1.0, -1e16, 0.1] * 25
    forth = summed(DOUBLE, pa.array(values)).results(ONE)[0][0].as_py()
    assert forth == pytest.approx(math.fsum(values), rel=1e-15)
