"""State kernels alone, on one core: M rows/s of hashing, partitioning, key indexes, stored rows, accumulators
and aggregate operators.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

ROWS = 32_768
BATCHES = 60


def report() -> None:
    """Print one line per kernel: the best of three passes over the same batches."""
    print(f"{'kernel, batches of 32 k rows':58} {'M rows/s':>9}")
    for name, passes in _benches():
        print(f"{name:58} {max(_rate(once) for once in passes):9.1f}", flush=True)


def _rate(once: Callable[[], None]) -> float:
    start = time.thread_time()
    once()
    return ROWS * BATCHES / (time.thread_time() - start) / 1e6


def _benches() -> Iterator[tuple[str, list[Callable[[], None]]]]:
    yield from _hashing()
    yield from _indexing()
    yield from _storing()
    yield from _accumulating()
    yield from _operators()


def _numbers(keys: int) -> list[np.ndarray]:
    chance = np.random.default_rng(7)
    return [chance.integers(0, keys, ROWS) for _ in range(BATCHES)]


def _hashing() -> Iterator[tuple[str, list[Callable[[], None]]]]:
    from penstock.engine.kernels.partition import partition
    from penstock.engine.kernels.stable_hash import stable_hash

    numbers = pa.array(_numbers(1 << 40)[0])
    words = pa.array([f"key-{n % 5_000}" for n in numbers.to_pylist()])
    hashes = stable_hash([numbers])
    yield "stable_hash, int64", [lambda: [stable_hash([numbers]) for _ in range(BATCHES)][:0]] * 3
    yield "stable_hash, strings of 8 bytes", [lambda: [stable_hash([words]) for _ in range(BATCHES)][:0]] * 3
    yield "partition to 4 subtasks", [lambda: [partition(hashes, 4, 128) for _ in range(BATCHES)][:0]] * 3


def _indexing() -> Iterator[tuple[str, list[Callable[[], None]]]]:
    from penstock.engine.state.index.key_index import KeyIndex

    def passes(make: Callable[[np.ndarray], list[pa.Array]], keys: int) -> list[Callable[[], None]]:
        batches = [make(numbers) for numbers in _numbers(keys)]
        index = KeyIndex([column.type for column in batches[0]])

        def once() -> None:
            for columns in batches:
                index.lookup_or_insert(columns)

        return [once] * 3

    for keys in (1_000, 100_000, 2_000_000):
        yield f"KeyIndex, int64, {keys:,} keys", passes(lambda n: [pa.array(n)], keys)
    for keys in (1_000, 100_000):
        text = np.array([f"customer-{i}" for i in range(keys)], object)
        yield (
            f"KeyIndex, string, {keys:,} keys",
            passes(lambda n, text=text: [pa.array(text[n], pa.string())], keys),
        )
        yield (
            f"KeyIndex, (string, int64), {keys:,} keys",
            passes(lambda n, text=text: [pa.array(text[n], pa.string()), pa.array(n)], keys),
        )


def _storing() -> Iterator[tuple[str, list[Callable[[], None]]]]:
    from penstock.engine.state.rows.row_store import RowStore

    text = pa.array([f"{'some text ' * (i % 7)}{i}" for i in range(5_000)])
    batches = [
        pa.RecordBatch.from_arrays(
            [
                pa.array(numbers),
                pa.array(numbers * 3),
                text.take(pa.array(numbers)),
                text.take(pa.array(numbers)),
            ],
            names=["a", "b", "c", "d"],
        )
        for numbers in _numbers(5_000)
    ]
    stores = []

    def fill() -> None:
        store = RowStore(batches[0].schema)
        for batch in batches:
            store.append(batch)
        stores.append(store)

    yield "RowStore append, two numbers and two texts", [fill] * 3
    asked = _numbers(ROWS * BATCHES)

    def take(ids: list[np.ndarray]) -> Callable[[], None]:
        return lambda: [stores[-1].take(some) for some in ids][:0]

    yield "RowStore take at random of 2 M rows", [take(asked)] * 3
    yield "RowStore take of 2 M rows, in their order", [take([np.sort(ids) for ids in asked])] * 3


def _accumulating() -> Iterator[tuple[str, list[Callable[[], None]]]]:
    from penstock.catalog.types import BIGINT, DOUBLE, STRING
    from penstock.engine.state.aggregates.accumulators import Accumulators
    from penstock.planner.expressions.nodes import AggregateCall, Column

    whole, real, text = (
        Column(BIGINT, True, index=0),
        Column(DOUBLE, True, index=1),
        Column(STRING, True, index=2),
    )
    calls = {
        "count(*)": AggregateCall("count", (), BIGINT, False),
        "sum(BIGINT)": AggregateCall("sum", (whole,), BIGINT),
        "sum(DOUBLE)": AggregateCall("sum", (real,), DOUBLE),
        "max(BIGINT)": AggregateCall("max", (whole,), BIGINT),
        "max(STRING)": AggregateCall("max", (text,), STRING),
        "stddev(DOUBLE)": AggregateCall("stddev_samp", (real,), DOUBLE),
        "count(DISTINCT BIGINT)": AggregateCall("count", (whole,), BIGINT, False, True),
    }
    keys = 100_000
    slots = _numbers(keys)
    values = pa.array(slots[0] % 1_000)
    rows = pa.record_batch(
        [values, values.cast(pa.float64()), values.cast(pa.string())], names=["a", "b", "c"]
    )

    def passes(call: AggregateCall, insert_only: bool) -> list[Callable[[], None]]:
        accumulators = Accumulators([call], insert_only)
        accumulators.reserve(keys)

        def once() -> None:
            for batch in slots:
                accumulators.add(batch, rows)

        return [once] * 3

    for name, call in calls.items():
        yield f"accumulate {name}, 100,000 slots", passes(call, True)
    yield "accumulate max(BIGINT) retractably, 100,000 slots", passes(calls["max(BIGINT)"], False)


def _operators() -> Iterator[tuple[str, list[Callable[[], None]]]]:
    from penstock.catalog.schema import Field, Role, Schema
    from penstock.catalog.types import BIGINT, TIMESTAMP
    from penstock.engine.api.clock import ManualClock
    from penstock.engine.api.job_options import JobOptions
    from penstock.engine.api.operator import Context, KeyGroups, Services
    from penstock.engine.api.stream_elements import MAX_WATERMARK_US, Batch
    from penstock.engine.metrics.operator_metrics import OperatorMetrics
    from penstock.engine.operators.factory import build_operator
    from penstock.planner.expressions.nodes import AggregateCall, Column
    from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
    from penstock.planner.logical.operator_facts import OperatorFacts, PartitionFacts
    from penstock.planner.logical.windows import HopWindow, TumbleWindow, window_fields
    from penstock.planner.physical.operator_specs import InputSchema, OperatorSpec

    source = Schema(
        (Field("t", TIMESTAMP, False, Role.EVENT_TIME), Field("k", BIGINT, False), Field("v", BIGINT))
    )
    calls = (
        AggregateCall("count", (), BIGINT, False),
        AggregateCall("sum", (Column(BIGINT, True, index=2),), BIGINT),
    )
    names = ("n", "s")
    results = (source[1], Field("n", BIGINT, False), Field("s", BIGINT))
    times = np.arange(ROWS * BATCHES) * 100
    batches = [
        Batch(
            pa.record_batch(
                [
                    pa.array(times[i * ROWS : (i + 1) * ROWS]).view(pa.timestamp("us")),
                    pa.array(keys),
                    pa.array(keys),
                ],
                names=["t", "k", "v"],
            )
        )
        for i, keys in enumerate(_numbers(100_000))
    ]

    class Nowhere:
        def collect(self, batch: Batch) -> None:
            """Forget the batch."""

    def run(spec: object) -> None:
        operator, out = build_operator(spec, JobOptions()), Nowhere()
        operator.open(
            Context("id", "bench", 0, 1, KeyGroups(0, 128, 128), ManualClock(), OperatorMetrics(), Services())
        )
        for i, batch in enumerate(batches):
            operator.on_batch(batch, 0, out)
            operator.on_watermark(int(times[(i + 1) * ROWS - 1]), out)
        operator.on_watermark(MAX_WATERMARK_US, out)

    schema = Schema((*results, *window_fields()))
    windows = {
        "TUMBLE 60 s": TumbleWindow(0, 60_000_000),
        "TUMBLE 1 s": TumbleWindow(0, 1_000_000),
        "HOP 60 s by 10 s": HopWindow(0, 60_000_000, 10_000_000),
    }
    for name, window in windows.items():
        windowed = WindowAggregate(InputSchema(source), window, (1,), calls, names)
        spec = OperatorSpec("id", "window", schema, windowed, OperatorFacts((True,)))
        yield f"operator: count, sum by key, {name}, 100,000 keys", [lambda spec=spec: run(spec)] * 3
    grouped = Aggregate(InputSchema(source), (1,), calls, names)
    group = OperatorSpec("id", "group", Schema(results), grouped, PartitionFacts((True,)))
    yield "operator: count, sum by key, unbounded, 100,000 keys", [lambda: run(group)] * 3


if __name__ == "__main__":
    report()
