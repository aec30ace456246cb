"""What runtime filters keep is what a join would find: keys of all types, few and many, held against rows
and against statistics; and the operator that filters.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import JoinKeys, KeysKnown
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.scan_pruning import SKIPPED, Skipping
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.join import runtime_filter
from penstock.engine.operators.join.runtime_filter import (
    GIVEN_UP,
    PRUNED,
    RuntimeFilterOperator,
    mask_of,
    merge_keys,
    summarize_keys,
)
from penstock.engine.state.index.key_index import KeyIndex
from tests.harness.length import examples
from tests.harness.operator_specs import runtime_filter_spec
from tests.harness.operators import Remembered, opened

NAN = float("nan")
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-7, 0, 1, 5, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 0, 3, 2**63 - 1]),
    "string": (pa.string(), ["", "a", "ab", "é", "日本", "b"]),
    "double": (pa.float64(), [0.0, -0.0, NAN, 1.5, float("inf")]),
    "decimal": (pa.decimal128(20, 2), [Decimal("0.00"), Decimal("-1.50"), Decimal("99.99")]),
    "date": (pa.date32(), [date(1969, 1, 1), date(2026, 1, 1), date(2026, 1, 2)]),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(1970, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1), datetime(2026, 1, 1)],
    ),
    "boolean": (pa.bool_(), [True, False]),
}


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[pa.Array], list[pa.Array], list[int]]:
    """Key columns of both sides of a join, without and with NULLs, and where the first side is cut among
    subtasks.
    """
    kinds = [TYPES[name] for name in draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=2))]
    built, probed = draw(st.integers(0, 12)), draw(st.integers(1, 12))
    left = [pa.array([draw(st.sampled_from(values)) for _ in range(built)], kind) for kind, values in kinds]
    right = [
        pa.array([draw(st.sampled_from([*values, None])) for _ in range(probed)], kind)
        for kind, values in kinds
    ]
    return left, right, draw(st.lists(st.integers(0, 2), min_size=built, max_size=built))


def index_of(columns: list[pa.Array]) -> KeyIndex:
    index = KeyIndex([column.type for column in columns])
    index.lookup_or_insert(columns, len(columns[0]))
    return index


def told_by(columns: list[pa.Array], owners: list[int]) -> JoinKeys:
    at = np.array(owners, np.int64)
    return merge_keys(
        [
            summarize_keys(
                index_of([column.take(pa.array(np.flatnonzero(at == owner))) for column in columns])
            )
            for owner in range(3)
        ]
    )


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(sides=sides(), most=st.sampled_from([2, 10_000]))
def test_rows_with_a_partner_are_kept_and_of_few_keys_no_others(sides: Any, most: int) -> None:
    built, probed, owners = sides
    before, runtime_filter.KEYS_MOST = runtime_filter.KEYS_MOST, most
    try:
        told = told_by(built, owners)
    finally:
        runtime_filter.KEYS_MOST = before
    meets = index_of(built).lookup(probed, len(probed[0])) >= 0
    mask = mask_of(told)
    assert (mask is None) == (told.keys is None), "what has no order is not filtered by ranges"
    if mask is None:
        return
    kept = mask(probed)
    assert kept[meets].all(), "a row that has a partner is lost"
    if told.exact:
        assert not kept[~meets].any()
    skipping = Skipping(OperatorMetrics())
    skipping.learn(told, [str(i) for i in range(len(probed))])
    for row in np.flatnonzero(meets):
        values = {str(i): column[int(row)].as_py() for i, column in enumerate(probed)}
        assert skipping.wants({name: (value, value) for name, value in values.items()}, 1), (
            "a piece that has a partner is left out"
        )


def test_pieces_are_left_out_by_their_ends() -> None:
    metrics = OperatorMetrics()
    skipping = Skipping(metrics)
    assert skipping.wants({"k": (0, 9)}, 5)
    skipping.learn(JoinKeys(pa.record_batch({"0": [40, 10, 20]})), ["k"])
    ends = {(0, 9): False, (0, 10): True, (11, 19): False, (15, 25): True, (40, 41): True, (41, 50): False}
    assert {one: skipping.wants({"k": one}, 5) for one in ends} == ends
    assert metrics.counters == {SKIPPED: 15}
    assert skipping.wants({}, 5), "a piece without statistics is read"
    assert skipping.wants({"k": ("a", "b")}, 5), "one of another type too"
    skipping.learn(JoinKeys(pa.record_batch({"0": [15, 45]}), exact=False), ["j"])
    assert not skipping.wants({"k": (0, 50), "j": (46, 50)}, 5), "both columns must have something"


def test_without_keys_nothing_is_wanted() -> None:
    told = told_by([pa.array([], pa.float64())], [])
    mask = mask_of(told)
    assert mask is not None
    assert not mask([pa.array([1.0, None, NAN])]).any()
    skipping = Skipping(OperatorMetrics())
    skipping.learn(told, ["k"])
    assert not skipping.wants({}, 5)


def test_very_many_keys_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_filter, "RANGE_KEYS_MOST", 3)
    assert summarize_keys(index_of([pa.array([1, 2, 3, 4])])).keys is None
    assert merge_keys([summarize_keys(index_of([pa.array([1])])), JoinKeys(None)]).keys is None


def test_very_long_keys_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [pa.array(["a" * 40, "b" * 40, "c" * 40])]
    assert summarize_keys(index_of(long)).exact
    monkeypatch.setattr(LIMITS, "batch_bytes", 100)
    assert (ends := summarize_keys(index_of(long))).keys is not None
    assert not ends.exact and ends.keys.column(0).to_pylist() == ["a" * 40, "c" * 40]
    monkeypatch.setattr(LIMITS, "batch_bytes", 50)
    assert summarize_keys(index_of(long)).keys is None, "its least and greatest are too long as well"
    monkeypatch.setattr(LIMITS, "array_bytes", 100)
    assert summarize_keys(index_of(long)).keys is None, "no array holds them all"
    monkeypatch.setattr(LIMITS, "batch_bytes", 1_000)
    parts = [summarize_keys(index_of([pa.array([letter * 60])])) for letter in "abc"]
    assert all(part.exact for part in parts) and merge_keys(parts).keys is None


def test_what_several_subtasks_have_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_filter, "KEYS_MOST", 3)
    parts = [summarize_keys(index_of([pa.array([1, 2, 3])])) for _ in range(4)]
    assert merge_keys(parts).exact
    assert not merge_keys([*parts, summarize_keys(index_of([pa.array([4])]))]).exact


def test_a_filter_that_prunes_little_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_filter, "_TRIED_ROWS", 20)
    schema = Schema((Field("k", BIGINT),))
    for keys, given_up in ((range(9), True), (range(7), False)):
        operator, out = (
            RuntimeFilterOperator(runtime_filter_spec("f", "filter", schema, "j", (0,)), JobOptions()),
            Remembered(),
        )
        at = opened(operator)
        rows = Batch(pa.RecordBatch.from_arrays([pa.array(range(10))], schema=schema.to_arrow()))
        operator.on_batch(rows, 0, out)
        operator.on_keys(KeysKnown("another", JoinKeys(pa.record_batch({"0": pa.array([], pa.int64())}))))
        operator.on_keys(KeysKnown("j", JoinKeys(pa.record_batch({"0": pa.array(keys)}))))
        for _ in range(3):
            operator.on_batch(rows, 0, out)
        pruned = (10 - len(keys)) * (2 if given_up else 3)
        assert at.metrics.counters == {PRUNED: pruned} | ({GIVEN_UP: 1} if given_up else {})
        assert sum(batch.num_rows for batch in out.batches) == 40 - pruned


def test_before_the_keys_are_known_every_row_passes_and_then_those_that_may_match() -> None:
    """Rows keep their weights and what they are behind; where all pass, the batch itself does."""
    schema = Schema((Field("k", BIGINT),))
    operator = RuntimeFilterOperator(runtime_filter_spec("f", "filter", schema, "j", (0,)), JobOptions())
    opened(operator)
    column = pa.array([1, None, 2, 3], pa.int64())
    rows = pa.RecordBatch.from_arrays([column], schema=schema.to_arrow())
    batch, out = Batch(rows, np.array([1, 2, -1, 4]), np.array([7, 8, 9, 10])), Remembered()
    operator.on_batch(batch, 0, out)
    operator.on_keys(KeysKnown("j", JoinKeys(pa.record_batch({"0": [2, 3]}))))
    operator.on_batch(batch, 0, out)
    operator.on_keys(KeysKnown("j", JoinKeys(pa.record_batch({"0": [4]}))))
    operator.on_batch(batch, 0, out)
    whole, some = out.batches
    assert whole is batch
    assert some.rows.column(0).to_pylist() == [2, 3]
    assert some.weights is not None and some.weights.tolist() == [-1, 4]
    assert some.behind is not None and some.behind.tolist() == [9, 10]
