"""Upserts and deletions beside a dictionary: however they are cut, what comes out folds to its rows, and
nothing is retracted that was not emitted; also after a restore by any number of subtasks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.changelog_normalize import ChangelogNormalizeOperator
from tests.harness.operator_specs import changelog_normalize_spec
from tests.harness.operators import Remembered, opened

SCHEMA = Schema((Field("v", STRING), Field("k", BIGINT)))
CHANGES = st.lists(st.tuples(st.integers(0, 6) | st.none(), st.sampled_from(["a", "b", None]), st.booleans()))


def operator() -> ChangelogNormalizeOperator:
    made = ChangelogNormalizeOperator(changelog_normalize_spec(SCHEMA, (1,)), JobOptions())
    opened(made)
    return made


def batch(changes: list[tuple[int | None, str | None, bool]]) -> Batch:
    rows = [{"k": k, "v": None if gone else v} for k, v, gone in changes]
    weights = np.array([-1 if gone else 1 for _, _, gone in changes], np.int64)
    return Batch(pa.RecordBatch.from_pylist(rows, SCHEMA.to_arrow()), weights)


def fold(out: Remembered) -> Counter[Any]:
    """Return what the changes add up to; at no moment is there less than nothing."""
    rows: Counter[Any] = Counter()
    for one in out.batches:
        weights = [1] * one.num_rows if one.weights is None else one.weights.tolist()
        for row, weight in zip(one.rows.to_pylist(), weights, strict=True):
            rows[row["k"], row["v"]] += weight
            assert 0 <= rows[row["k"], row["v"]] <= 1
    return +rows


@settings(max_examples=25, deadline=None)
@given(CHANGES, st.lists(st.integers(1, 6), min_size=1), st.integers(0, 40))
def test_the_last_change_of_each_key_counts(
    changes: list[tuple[int | None, str | None, bool]], sizes: list[int], stop: int
) -> None:
    made, out, expected = operator(), Remembered(), {}
    at = turn = 0
    restored = False
    while at < len(changes):
        if at >= stop and not restored:
            restored, state = True, made.keyed_states()["rows"].snapshot()
            made = operator()
            made.keyed_states()["rows"].restore(state)
        size = sizes[turn % len(sizes)]
        made.on_batch(batch(changes[at : at + size]), 0, out)
        at, turn = at + size, turn + 1
    for key, value, gone in changes:
        expected.pop(key, None) if gone else expected.update({key: value})
    assert fold(out) == Counter(expected.items())


def test_an_equal_row_changes_nothing() -> None:
    made, out = operator(), Remembered()
    made.on_batch(batch([(1, "a", False), (2, "b", False)]), 0, out)
    made.on_batch(batch([(1, "a", False), (3, "c", True)]), 0, out)
    assert len(out.batches) == 1
    made.on_batch(batch([(2, "c", False), (1, None, True)]), 0, out)
    last = out.batches[-1]
    assert last.weights is not None
    assert sorted(zip(last.rows.column("v").to_pylist(), last.weights.tolist(), strict=True)) == [
        ("a", -1),
        ("b", -1),
        ("c", 1),
    ]
