"""All values of a slot with their counts: lists, texts, percentiles, modes and histograms against sorted
lists.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state.aggregates.value_multiset import ValueBag
from penstock.planner.expressions.nodes import Direction
from tests.harness.aggregates import SLOTS, Reference, add_rows, follows_its_reference, order

ONE = np.zeros(1, np.int64)
MAP, LIST = pa.map_(pa.string(), pa.int64()), pa.list_(pa.string())


def read_texts(bag: ValueBag, slots: np.ndarray) -> dict[str, pa.Array]:
    values = bag.sorted(slots)
    return {
        "list": values.lists(LIST),
        "distinct list": values.once().lists(LIST),
        "joined": values.joined(", "),
        "histogram": values.histogram(MAP),
        "mode": values.mode(),
        "totals": pa.array(values.totals()),
        "bytes joined": pa.array(bag.sizes(slots, once=False, between=2)),
        "bytes of a distinct list": pa.array(bag.sizes(slots, once=True, between=0)),
        "median": values.ranked(0.5),
    }


def texts(values: list[str]) -> dict[str, Any]:
    values = sorted(values, key=order)
    once, counts = list(dict.fromkeys(values)), Counter(values)
    joined = ", ".join(values)
    return {
        "list": values,
        "distinct list": once,
        "joined": joined if values else None,
        "histogram": sorted(counts.items(), key=lambda item: order(item[0])) if values else None,
        "mode": max(once, key=lambda value: counts[value], default=None),
        "totals": len(values),
        "bytes joined": len(joined.encode()),
        "bytes of a distinct list": len("".join(once).encode()),
        "median": values[math.ceil(len(values) / 2) - 1] if values else None,
    }


SHARES = (0.0, 0.25, 0.5, 1.0)


def read_numbers(bag: ValueBag, slots: np.ndarray) -> dict[str, pa.Array]:
    values = bag.sorted(slots)
    return {
        **{f"percentile {share}": values.percentile(share) for share in SHARES},
        **{f"ranked {share}": values.ranked(share) for share in SHARES},
        **{name: values.shape(name) for name in ("skewness", "kurtosis")},
    }


NUMBERS = [f"{name} {share}" for name in ("percentile", "ranked") for share in SHARES]
NUMBERS += ["skewness", "kurtosis"]


def percentile(values: list[float], share: float) -> float:
    rank = share * (len(values) - 1)
    low, high = values[math.floor(rank)], values[math.ceil(rank)]
    # NaN of two numbers that are not finite; the mean by distance else
    return low if low == high else (math.ceil(rank) - rank) * low + (rank - math.floor(rank)) * high


def numbers(values: list[float]) -> dict[str, float | None]:
    values = sorted(values, key=order)
    if not values:
        return dict.fromkeys(NUMBERS)
    found: dict[str, float | None] = {}
    for share in SHARES:
        at = values[math.ceil(share * (len(values) - 1))]
        found[f"percentile {share}"] = percentile(values, share) if share * (len(values) - 1) % 1 else at
        found[f"ranked {share}"] = values[max(math.ceil(share * len(values)), 1) - 1]
    return found | shapes(values)


def shapes(values: list[float]) -> dict[str, float | None]:
    if not all(map(math.isfinite, values)):
        return dict.fromkeys(("skewness", "kurtosis"), math.nan)
    if len(set(values)) == 1:
        return dict.fromkeys(("skewness", "kurtosis"))
    count, mean = len(values), statistics.fmean(values)
    second, third, fourth = (math.fsum((v - mean) ** power for v in values) for power in (2, 3, 4))
    return {
        "skewness": math.sqrt(count) * third / second**1.5,
        "kurtosis": count * fourth / second**2 - 3,
    }


REFERENCES = {
    "texts": Reference(
        lambda: ValueBag(pa.string(), ()), pa.string(), ["", "a", "ab", "é", "b", "b"], read_texts, texts
    ),
    "numbers": Reference(
        lambda: ValueBag(pa.float64(), ()),
        pa.float64(),
        [0.0, 1.5, -2.25, 7.0, 0.1, 3.0, 1e6, math.nan],
        read_numbers,
        numbers,
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_bag_gives_what_the_sorted_list_of_its_values_gives(name: str) -> None:
    follows_its_reference(REFERENCES[name])


def test_an_order_by_other_columns_decides_before_the_values() -> None:
    kind = pa.struct([pa.field("v", pa.string()), pa.field("by", pa.int64())])
    bag = ValueBag(kind, [Direction(True, False)])
    bag.reserve(SLOTS)
    rows = [("a", 1), ("b", 2), ("c", None), ("a", 2), ("d", 3)]
    add_rows(bag, kind, [(0, {"v": value, "by": by}, 1) for value, by in rows])
    assert bag.sorted(ONE).lists(LIST).to_pylist() == [["d", "a", "b", "a", "c"]]
    offsets, columns = bag.sorted(ONE).rows()
    assert offsets.tolist() == [0, 5] and columns[1].to_pylist() == [3, 2, 2, 1, None]


def test_rows_repeat_a_value_as_often_as_it_is_there() -> None:
    bag = ValueBag(pa.int64(), ())
    bag.reserve(SLOTS)
    add_rows(bag, pa.int64(), [(0, 5, 2), (2, 5, 1), (2, 3, 3)])
    offsets, (values,) = bag.sorted(np.arange(SLOTS)).rows()
    assert offsets.tolist() == [0, 2, 2, 6] and values.to_pylist() == [5, 5, 3, 3, 3, 5]


def test_a_retraction_before_its_row_is_no_value_until_it_came() -> None:
    bag = ValueBag(pa.string(), ())
    bag.reserve(SLOTS)
    add_rows(bag, pa.string(), [(0, "gone", -1), (0, "here", 1)])
    assert bag.sorted(ONE).lists(LIST).to_pylist() == [["here"]]
    assert bag.sizes(ONE, once=False, between=1).tolist() == [4]
    add_rows(bag, pa.string(), [(0, "gone", 2)])
    assert bag.sorted(ONE).lists(LIST).to_pylist() == [["gone", "here"]]


def test_between_two_infinities_of_one_sign_is_that_infinity() -> None:
    bag = ValueBag(pa.float64(), ())
    bag.reserve(SLOTS)
    add_rows(bag, pa.float64(), [(0, math.inf, 2), (1, -math.inf, 1), (1, math.inf, 1)])
    found = bag.sorted(np.array([0, 1])).percentile(0.5).to_pylist()
    assert found[0] == math.inf and math.isnan(found[1])
