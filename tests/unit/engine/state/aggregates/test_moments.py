"""Variance, skewness, kurtosis and the aggregates of pairs by slot, against their definitions in plain
Python.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state.aggregates.moments import MomentsPart, PairPart, ShapePart
from tests.harness.aggregates import Reference, add_rows, follows_its_reference

ONE = np.zeros(1, np.int64)
PAIR = pa.struct([pa.field("y", pa.float64()), pa.field("x", pa.float64())])
SPREADS = {
    "var_samp": (statistics.variance, 2),
    "var_pop": (statistics.pvariance, 1),
    "stddev_samp": (statistics.stdev, 2),
    "stddev_pop": (statistics.pstdev, 1),
}
PAIRS = ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2")
PAIRS += ("regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy")


def read_spreads(part: MomentsPart, slots: np.ndarray) -> dict[str, pa.Array]:
    state = part.state(slots)
    return {
        name: (part.deviation if name.startswith("stddev") else part.variance)(
            state, sample=name.endswith("samp")
        )
        for name in SPREADS
    }


def spreads(values: list[float]) -> dict[str, float | None]:
    finite = all(map(math.isfinite, values))
    return {
        name: None if len(values) < least else function(list(map(float, values))) if finite else math.nan
        for name, (function, least) in SPREADS.items()
    }


def read_shapes(part: ShapePart, slots: np.ndarray) -> dict[str, pa.Array]:
    return {name: part.of(name, part.state(slots)) for name in ("skewness", "kurtosis")}


def shapes(values: list[float]) -> dict[str, float | None]:
    if not all(map(math.isfinite, values)):
        return {"skewness": math.nan, "kurtosis": math.nan}
    if len(set(values)) < 2:
        return {"skewness": None, "kurtosis": None}
    count, mean = len(values), math.fsum(values) / len(values)
    second, third, fourth = (math.fsum((value - mean) ** power for value in values) for power in (2, 3, 4))
    return {
        "skewness": math.sqrt(count) * third / second**1.5,
        "kurtosis": count * fourth / second**2 - 3,
    }


def read_pairs(part: PairPart, slots: np.ndarray) -> dict[str, pa.Array]:
    return {name: part.of(name, part.state(slots)) for name in PAIRS}


def pairs(values: list[dict[str, float]]) -> dict[str, float | None]:
    found: dict[str, float | None] = dict.fromkeys(PAIRS)
    ys, xs = ([value[name] for value in values] for name in "yx")
    if not values:
        return found
    if not all(map(math.isfinite, [*ys, *xs])):
        return dict.fromkeys(PAIRS, math.nan)
    count, y, x = len(values), statistics.fmean(ys), statistics.fmean(xs)
    syy, sxx = (math.fsum((v - mean) ** 2 for v in each) for each, mean in ((ys, y), (xs, x)))
    sxy = math.fsum((a - y) * (b - x) for a, b in zip(ys, xs, strict=True))
    found |= {"covar_pop": sxy / count, "regr_avgx": x, "regr_avgy": y}
    found |= {"regr_sxx": sxx, "regr_syy": syy, "regr_sxy": sxy}
    if count > 1:
        found["covar_samp"] = sxy / (count - 1)
    if len(set(xs)) > 1:
        found |= {"regr_slope": sxy / sxx, "regr_intercept": y - sxy / sxx * x, "regr_r2": 1.0}
        if len(set(ys)) > 1:
            found |= {"corr": sxy / math.sqrt(sxx * syy), "regr_r2": sxy * sxy / (sxx * syy)}
    return found


NUMBERS = [0.0, 1.5, -2.25, 7.0, 0.1, 3.0, 1e6]
REFERENCES = {
    "spreads": Reference(MomentsPart, pa.float64(), [*NUMBERS, math.inf, math.nan], read_spreads, spreads),
    "spreads of integers": Reference(MomentsPart, pa.int32(), [0, 1, -7, 2**31 - 1], read_spreads, spreads),
    "shapes": Reference(ShapePart, pa.float64(), [*NUMBERS, math.nan], read_shapes, shapes, retract=False),
    "pairs": Reference(
        PairPart,
        PAIR,
        [{"y": y, "x": x} for y in (0.0, 2.0, -3.5, 4.0) for x in (1.0, 2.5, -4.0, math.inf)]
        + [{"y": 1.0, "x": 1.0}] * 20,
        read_pairs,
        pairs,
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_moments_are_those_of_the_values(name: str) -> None:
    follows_its_reference(REFERENCES[name])


def added(part: Any, kind: pa.DataType, values: list[Any]) -> Any:
    part.reserve(1)
    add_rows(part, kind, [(0, value, 1) for value in values])
    return part


def test_variance_of_large_close_numbers_is_sound() -> None:
    part = added(MomentsPart(), pa.float64(), [1e9 + value for value in (4.0, 7.0, 13.0, 16.0)])
    assert part.variance(part.state(ONE), sample=False)[0].as_py() == pytest.approx(22.5)


def test_a_retracted_outlier_leaves_no_trace() -> None:
    """The squares of what is left are 1e-20 of the retracted one: 32 digits are enough for them."""
    part = added(MomentsPart(), pa.float64(), [1e10, 1.0, 2.0])
    add_rows(part, pa.float64(), [(0, 1e10, -1)])
    assert part.variance(part.state(ONE), sample=True)[0].as_py() == pytest.approx(0.5)


def test_numbers_on_a_line_correlate_by_one_and_no_more() -> None:
    values = [{"y": 0.1 * i, "x": 0.3 * i} for i in range(1, 50)]
    part = added(PairPart(), PAIR, values)
    (corr,) = part.of("corr", part.state(ONE)).to_pylist()
    assert corr == pytest.approx(1.0) and corr <= 1.0
