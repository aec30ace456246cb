"""Upserts and deletions beside a dictionary: however they are cut, what comes out folds to its rows, and
nothing is retracted that was not emitted; also after a restore by any number of subtasks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, BINARY, STRING
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


MARKED = Schema((Field("k", BIGINT), Field("a", STRING), Field("b", STRING), Field("marks", BINARY)))
# a value, or None for one that an update leaves out
LEAVES_OUT = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["x", "y", None]),
        st.sampled_from(["long", "longer", None]),
        st.booleans(),
    )
)


def marked_batch(changes: list[tuple[int, str | None, str | None, bool, bool]]) -> Batch:
    """Return a batch. The first change of a key is whole, as an INSERT is."""
    rows = [
        {
            "k": key,
            "a": None if gone or (a is None and not first) else a or "",
            "b": None if gone or (b is None and not first) else b or "",
            # the marks have the bits 4 and 9
            "marks": None
            if gone or first or (a is not None and b is not None)
            else bytes([(a is None) << 4, (b is None) << 1]),
        }
        for key, a, b, gone, first in changes
    ]
    weights = np.array([-1 if gone else 1 for _, _, _, gone, _ in changes], np.int64)
    return Batch(pa.RecordBatch.from_pylist(rows, MARKED.to_arrow()), weights)


@settings(max_examples=25, deadline=None)
@given(LEAVES_OUT, st.lists(st.integers(1, 6), min_size=1))
def test_a_value_that_is_left_out_is_that_of_the_row_before(
    changes: list[tuple[int, str | None, str | None, bool]], sizes: list[int]
) -> None:
    made = ChangelogNormalizeOperator(changelog_normalize_spec(MARKED, (0,), 3, (-1, 4, 9, -1)), JobOptions())
    opened(made)
    out, expected, sent = Remembered(), {}, []
    for key, a, b, gone in changes:
        first = key not in expected
        sent.append((key, a, b, gone, first))
        if gone:
            expected.pop(key, None)
            continue
        before = expected.get(key, ("", ""))
        expected[key] = (before[0] if a is None else a, before[1] if b is None else b)
    at = turn = 0
    while at < len(sent):
        size = sizes[turn % len(sizes)]
        made.on_batch(marked_batch(sent[at : at + size]), 0, out)
        at, turn = at + size, turn + 1
    rows: Counter[Any] = Counter()
    for one in out.batches:
        weights = [1] * one.num_rows if one.weights is None else one.weights.tolist()
        for row, weight in zip(one.rows.to_pylist(), weights, strict=True):
            rows[row["k"], row["a"], row["b"], row["marks"]] += weight
    assert +rows == Counter((key, a, b, None) for key, (a, b) in expected.items())


def test_a_value_of_no_row_is_an_error() -> None:
    made = ChangelogNormalizeOperator(changelog_normalize_spec(MARKED, (0,), 3, (-1, 4, 9, -1)), JobOptions())
    opened(made)
    with pytest.raises(PenstockError) as raised:
        made.on_batch(marked_batch([(1, None, "b", False, False)]), 0, Remembered())
    assert raised.value.code == "DAT-5418"
