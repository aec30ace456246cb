"""What a process table function sees of many partitions at once, and does to their state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock
from tests.harness.operators import done
from tests.harness.state import Folded, opened
from tests.unit.engine.operators.process.test_process_table import operator, rows


def called(function: Any, *batches: Any) -> Folded:
    made, out = opened(operator(function)), Folded()
    for batch in batches:
        done(made.on_batch(batch, 0, out))
    return out


def test_rows_are_sorted_by_partition_in_order_of_arrival() -> None:
    seen: list[Any] = []

    @penstock.ptf({"n": "BIGINT"})
    class Seen:
        def process(self, ctx: Any) -> None:
            seen.append(
                (
                    ctx.input,
                    ctx.keys.to_pylist(),
                    ctx.offsets.tolist(),
                    ctx.partitions.tolist(),
                    ctx.rows.column("v").to_pylist(),
                    ctx.times_us.tolist(),
                    ctx.weights.tolist(),
                    ctx.watermark_us,
                    ctx.ended,
                )
            )

    called(Seen, rows(("b", 1, 10), ("a", 2, 20), ("b", 3, 30)))
    keys, offsets = [{"k": "b"}, {"k": "a"}], [0, 2, 3]
    times = [10, 30, 20]
    assert seen == [("input", keys, offsets, [0, 0, 1], [1, 3, 2], times, [1, 1, 1], None, False)]


def test_emitted_rows_have_the_keys_and_times_of_what_they_derive_from() -> None:
    @penstock.ptf({"n": "BIGINT", "s": "STRING"})
    class Shown:
        def process(self, ctx: Any) -> None:
            # by name in any order, one value for all rows, other integers
            ctx.emit({"s": "all", "n": np.array([7, 8], np.int32)}, rows=pa.array([2, 0]))
            ctx.emit(
                pa.record_batch({"n": [9], "s": [None]}, pa.schema([("n", pa.int64()), ("s", pa.string())])),
                rows=[1],
            )

    out = called(Shown, rows(("b", 1, 10), ("a", 2, 20), ("b", 3, 30)))
    found = [
        (r["k"], r["n"], r["s"], r["rowtime"].microsecond) for b in out.batches for r in b.rows.to_pylist()
    ]
    assert found == [("a", 7, "all", 20), ("b", 8, "all", 10), ("b", 9, None, 30)]


def test_lists_and_maps_of_many_partitions() -> None:
    @penstock.ptf({"text": "STRING"})
    class Kept:
        events = penstock.list_state("BIGINT")
        last = penstock.map_state("BIGINT", "STRING")

        def process(self, ctx: Any) -> None:
            values = ctx.rows.column("v")
            ctx.state.events.append(values, ctx.partitions)
            before = ctx.state.last.get(values, ctx.partitions)
            ctx.state.last.put(values, pc.cast(values, pa.string()), ctx.partitions)
            ctx.state.last.remove([1], [0])
            partitions, keys, _ = ctx.state.last.entries()
            lists = ctx.state.events.get().to_pylist()
            ctx.emit([pa.array([f"{one} {before.null_count}" for one in lists])], rows=ctx.offsets[:-1])
            ctx.emit([pc.cast(keys, pa.string())], rows=ctx.offsets[:-1][partitions])
            long = np.flatnonzero(pc.list_value_length(ctx.state.events.get()).to_numpy() > 2)
            ctx.state.events.clear(long)
            ctx.state.last.clear(long)

    batch = rows(("b", 1, 10), ("a", 2, 20), ("b", 3, 30))
    out = called(Kept, batch, batch)
    found = [sorted((r["k"], r["text"]) for r in b.rows.to_pylist()) for b in out.batches]
    assert found[:2] == [[("a", "[2] 3"), ("b", "[1, 3] 3")], [("a", "2"), ("b", "3")]]
    assert found[2] == [("a", "[2, 2] 1"), ("b", "[1, 3, 1, 3] 1")]


def test_replaced_lists_are_those_given() -> None:
    @penstock.ptf({"total": "BIGINT"})
    class Replaced:
        events = penstock.list_state("BIGINT")

        def process(self, ctx: Any) -> None:
            ctx.state.events.append(ctx.rows.column("v"), ctx.partitions)
            total = pc.list_flatten(ctx.state.events.get())
            ctx.state.events.replace([pc.sum(total).as_py()], [0])
            assert list(ctx.state) == ["events"]
            ctx.emit([pc.list_flatten(ctx.state.events.get())], rows=[0])

    out = called(Replaced, rows(("b", 1, 10), ("b", 4, 10)), rows(("b", 5, 10)))
    assert [r["total"] for b in out.batches for r in b.rows.to_pylist()] == [5, 10]
