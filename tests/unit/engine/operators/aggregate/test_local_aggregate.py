"""The LOCAL phases: whatever they do with rows, what the GLOBAL phase makes of it is the same."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, INT, TIMESTAMP
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.aggregate.local_aggregate import ReductionMonitor
from penstock.engine.operators.factory import build_operator
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.aggregate import Phase
from penstock.planner.logical.windows import TumbleWindow, window_fields
from tests.harness.operator_specs import group_aggregate_spec, window_aggregate_spec
from tests.harness.state import OPTIONS, Folded, opened

SOURCE = Schema(
    (Field("t", TIMESTAMP, False, Role.EVENT_TIME), Field("k", BIGINT), Field("v", INT), Field("b", BOOLEAN))
)
V, B = Column(INT, True, index=2), Column(BOOLEAN, True, index=3)
CALLS = (
    AggregateCall("count", (), BIGINT, False),
    AggregateCall("count", (V,), BIGINT, False, filter=B),
    AggregateCall("sum", (V,), BIGINT),
    AggregateCall("sum0", (V,), BIGINT, False, filter=B),
    AggregateCall("max", (V,), INT, filter=B),
    AggregateCall("bool_or", (B,), BOOLEAN),
)
MERGES = ("sum0", "sum0", "sum", "sum0", "max", "bool_or")


def rows_of(keys, times):
    chance = np.random.default_rng(len(keys))
    values = pa.array(chance.integers(-9, 9, len(keys)), pa.int32(), mask=chance.random(len(keys)) < 0.2)
    flags = pa.array(chance.random(len(keys)) < 0.5, mask=chance.random(len(keys)) < 0.2)
    columns = [pa.array(times).view(pa.timestamp("us")), pa.array(keys), values, flags]
    return pa.RecordBatch.from_arrays(columns, schema=SOURCE.to_arrow())


def batches(keys, count=6, rows=2048):
    chance = np.random.default_rng(keys)
    return [
        Batch(rows_of(chance.integers(0, keys, rows), np.arange(i * rows, (i + 1) * rows)))
        for i in range(count)
    ]


def merging(width):
    return tuple(
        AggregateCall(f, (Column(c.type, c.nullable, index=width + i),), c.type)
        for i, (f, c) in enumerate(zip(MERGES, CALLS, strict=True))
    )


@pytest.mark.parametrize("keys", [5, 1500, 100_000])
def test_group_aggregate_in_two_phases(keys):
    fields = (SOURCE[1], *(Field(f"a{i}", c.type, c.nullable) for i, c in enumerate(CALLS)))
    options = replace(OPTIONS, batch_max_rows=2048)
    single = opened(
        build_operator(
            group_aggregate_spec("1", "g", Schema(fields), SOURCE, (1,), CALLS, Phase.SINGLE, True), options
        )
    )
    local = opened(
        build_operator(
            group_aggregate_spec("2", "g", Schema(fields), SOURCE, (1,), CALLS, Phase.LOCAL, True), options
        )
    )
    last = opened(
        build_operator(
            group_aggregate_spec(
                "3", "g", Schema(fields), Schema(fields), (0,), merging(1), Phase.GLOBAL, True
            ),
            options,
        )
    )
    whole, between, merged = Folded(), Folded(), Folded()
    for batch in batches(keys, 12):
        single.on_batch(batch, 0, whole)
        local.on_batch(batch, 0, between)
    local.before_barrier(1, between)
    single.on_end(whole)
    for batch in between.batches:
        last.on_batch(batch, 0, merged)
    last.on_end(merged)
    assert whole.rows == merged.rows


@pytest.mark.parametrize(("rows", "partials"), [(1000, 1000), (10_000, 5)])
def test_without_a_timeout_some_thousand_rows_are_aggregated_at_once(rows, partials):
    fields = (SOURCE[1], *(Field(f"a{i}", c.type, c.nullable) for i, c in enumerate(CALLS)))
    spec = group_aggregate_spec("1", "g", Schema(fields), SOURCE, (1,), CALLS, Phase.LOCAL, True)
    local, out = opened(build_operator(spec, replace(OPTIONS, buffer_timeout_ms=0))), Folded()
    local.on_batch(batches(5, 1, rows)[0], 0, out)
    assert sum(batch.num_rows for batch in out.batches) == partials


@pytest.mark.parametrize("keys", [5, 100_000])
@pytest.mark.parametrize("size", [3000, 100_000])
def test_window_aggregate_in_two_phases(keys, size):
    window = TumbleWindow(0, size)
    fields = (SOURCE[1], *(Field(f"a{i}", c.type, c.nullable) for i, c in enumerate(CALLS)))
    partial = Schema((*fields, Field("slice_end", TIMESTAMP, False, Role.EVENT_TIME)))
    result = Schema((*fields, *window_fields()))
    options = replace(OPTIONS, batch_max_rows=2048)
    sliced = replace(window, time_column=len(partial) - 1, sliced=True)
    single = opened(
        build_operator(
            window_aggregate_spec("1", "w", result, SOURCE, window, (1,), CALLS, Phase.SINGLE, True), options
        )
    )
    local = opened(
        build_operator(
            window_aggregate_spec("2", "w", partial, SOURCE, window, (1,), CALLS, Phase.LOCAL, True), options
        )
    )
    last = opened(
        build_operator(
            window_aggregate_spec("3", "w", result, partial, sliced, (0,), merging(1), Phase.GLOBAL, True),
            options,
        )
    )
    whole, between, merged = Folded(), Folded(), Folded()
    for i, batch in enumerate(batches(keys, 12)):
        single.on_batch(batch, 0, whole)
        local.on_batch(batch, 0, between)
        if i == 7:
            local.on_idle(between)
        for batch in between.batches:
            last.on_batch(batch, 0, merged)
        between.batches.clear()
        local.on_watermark((i + 1) * 2048 - 1, between)
        for operator, out in ((single, whole), (last, merged)):
            for batch in between.batches if operator is last else ():
                last.on_batch(batch, 0, merged)
            operator.on_watermark((i + 1) * 2048 - 1, out)
        between.batches.clear()
    local.on_watermark(2**63 - 1, between)
    for batch in between.batches:
        last.on_batch(batch, 0, merged)
    single.on_watermark(2**63 - 1, whole)
    last.on_watermark(2**63 - 1, merged)
    assert whole.rows == merged.rows
    assert not last.metrics.late_rows


def test_partials_are_held_until_the_first_slice_ends():
    window = TumbleWindow(0, 1000)
    fields = (
        SOURCE[1],
        *(Field(f"a{i}", c.type, c.nullable) for i, c in enumerate(CALLS)),
        Field("slice_end", TIMESTAMP, False, Role.EVENT_TIME),
    )
    local = opened(
        build_operator(
            window_aggregate_spec("2", "w", Schema(fields), SOURCE, window, (1,), CALLS, Phase.LOCAL, True),
            OPTIONS,
        )
    )
    out = Folded()
    (batch,) = batches(5, 1, 1500)
    local.on_batch(batch, 0, out)
    local.on_watermark(999, out)
    assert not out.batches
    local.on_watermark(1000, out)
    # those of the open slice go with them: nothing is left for a checkpoint
    assert [batch.num_rows for batch in out.batches] == [10]
    local.before_barrier(1, out)
    assert [batch.num_rows for batch in out.batches] == [10]


def sampled(reduction, keys):
    return reduction.pays([pa.array(keys)], len(keys))


@pytest.mark.parametrize("rows", [1 << 15, 1 << 17])
def test_keys_that_hardly_repeat_in_a_large_batch_are_a_failed_trial(rows):
    numbers = np.arange(rows)
    reduction = ReductionMonitor()
    assert not sampled(reduction, numbers)
    assert not sampled(reduction, numbers)
    assert [reduction.pays([], 0) for _ in range(129)] == [False] * 128 + [True]
    # what may be halved is tried: keys that come twice, side by side, far apart or without any order
    chance = np.random.default_rng(rows)
    halves = (numbers // 2, numbers % (rows // 2), numbers % (rows // 2 + 1), numbers * 7919 % (rows // 2))
    for keys in (*halves, chance.permutation(numbers // 2)):
        assert sampled(ReductionMonitor(), keys)
    # a stream that was reduced is not sampled, and neither are few rows
    proved = ReductionMonitor()
    proved.saw(rows, rows // 2)
    assert sampled(proved, numbers)
    assert sampled(ReductionMonitor(), numbers[:4096])


def test_reduction_rests_and_tries_again():
    reduction = ReductionMonitor()
    reduction.saw(2000, 1900)
    assert reduction.pays([], 2000)
    reduction.saw(2000, 1900)
    assert [reduction.pays([], 2000) for _ in range(129)] == [False] * 128 + [True]
    reduction.saw(2000, 1900)
    assert not reduction.pays([], 2000)
    again = ReductionMonitor()
    again.saw(2000, 1900)
    again.saw(2000, 10)
    again.saw(2000, 1900)
    again.saw(100, 100)
    assert again.pays([], 2000)
