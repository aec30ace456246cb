"""HISTOGRAM_NUMERIC: the bins of a plain loop over sorted lists, whatever the order and the cuts of rows."""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import closing
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.kernels.functions import histogram_bins
from tests.harness.patience import PATIENCE_S

INF, NAN = math.inf, math.nan


def _binned(values: list[float], bins: int) -> list[list[float]]:
    """Merge the nearest neighbours, of several the leftmost, until few enough are left."""
    counts = Counter("nan" if math.isnan(value) else value + 0.0 for value in values)
    found = [[NAN if value == "nan" else float(value), float(n)] for value, n in counts.items()]
    found.sort(key=lambda one: (math.isnan(one[0]), one[0]))
    while len(found) > bins:
        gaps = [after[0] - before[0] for before, after in pairwise(found)]
        gaps = [INF if math.isnan(gap) else gap for gap in gaps]
        at = gaps.index(min(gaps))
        (one, n), (other, m) = found[at : at + 2]
        total = n + m
        whole = one * (n / total) + other * (m / total)
        mean = whole if math.isinf(other - one) else one + (other - one) * (m / total)
        found[at : at + 2] = [[mean, total]]
    return found


def _values(seed: int, count: int) -> list[float]:
    chance = random.Random(seed)
    kinds = (
        lambda: float(chance.randint(-50, 50)),
        lambda: chance.random() * 1e6,
        lambda: chance.gauss(0, 1),
        lambda: chance.choice([0.0, -0.0, 1e308, -1e308, 7.0]),
    )
    return [chance.choice(kinds)() for _ in range(count)]


@pytest.mark.parametrize("runtime", ["streaming", "automatic"])
def test_bins_are_those_of_a_plain_loop(runtime: str) -> None:
    values = _values(3, 900)
    keys = [i % 7 for i in range(len(values))]
    special = {10: [INF, -INF, NAN, 1.0, 2.0], 11: [NAN, NAN, INF], 12: [5.0]}
    for key, others in special.items():
        values += others
        keys += [key] * len(others)
    values, keys = [*values, None], [*keys, 13]
    with closing(Session({"execution.runtime-mode": runtime, "bounded.backend": "duckdb"})) as session:
        session.register("t", pa.table({"k": keys, "v": pa.array(values, pa.float64())}))
        for bins in (2, 3, 40, 5_000):
            query = f"SELECT k, histogram_numeric(v, {bins}) AS h FROM t GROUP BY k"
            found = {row["k"]: row["h"] for row in session.execute(query).final_rows(PATIENCE_S).to_pylist()}
            assert found.pop(13) is None
            for key, rows in found.items():
                expected = _binned([v for k, v in zip(keys, values, strict=True) if k == key], bins)
                assert str([[row["x"], row["y"]] for row in rows]) == str(expected), (key, bins)


def test_spark_documentation_has_these_bins() -> None:
    text = "SELECT to_json(histogram_numeric(col, 5)) AS h FROM (VALUES (0), (1), (2), (10)) AS tab(col)"
    with closing(Session()) as session:
        assert session.execute(text).final_rows(PATIENCE_S).to_pylist() == [
            {"h": '[{"x":0.0,"y":1.0},{"x":1.0,"y":1.0},{"x":2.0,"y":1.0},{"x":10.0,"y":1.0}]'}
        ]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("histogram_numeric(v, 1)", "constant of 2 or more"),
        ("histogram_numeric(v, v)", "constant of 2 or more"),
        ("histogram_numeric('a', 3)", "argument 1 is STRING, wanted a number"),
        ("histogram_bins(map('a', 1), 3)", "wanted a map of numbers and counts"),
        ("histogram_numeric(DISTINCT v, 3)", "no DISTINCT form"),
        ("histogram_bins(map(v, CAST(NULL AS INT)), 3)", "a count of a histogram is NULL"),
    ],
)
def test_what_has_no_bins_is_refused(call: str, words: str) -> None:
    with closing(Session({"execution.runtime-mode": "streaming"})) as session:
        session.register("t", pa.table({"v": [1, 2]}))
        with pytest.raises(PenstockError, match=words):
            session.execute(f"SELECT {call} FROM t").final_rows(PATIENCE_S)


def test_python_and_machine_code_merge_alike() -> None:
    lists = [sorted(set(_values(seed, 30))) for seed in range(4)] + [[], [1.0]]
    starts = np.cumsum([0, *map(len, lists)])
    values = np.array([value for one in lists for value in one])
    counts = np.arange(1.0, values.size + 1)
    found = []
    for run in (histogram_bins.merge_bins, histogram_bins.merge_bins.interpreted):
        out, ends = np.zeros((2, values.size)), np.zeros(len(lists), np.int64)
        used = run(starts, values, counts, 4, ends, out[0], out[1], np.zeros(4 * 30, np.int64))
        found.append((used, ends.tolist(), out[:, :used].tolist()))
    assert found[0] == found[1]
