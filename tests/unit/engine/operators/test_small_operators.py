"""Window tables, union, limit, values."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, STRING, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.limit import LimitOperator, RetractLimitOperator
from penstock.engine.operators.source.values import ValuesOperator
from penstock.engine.operators.union import UnionOperator
from penstock.engine.operators.window.window_function import WindowFunctionOperator
from penstock.engine.state.rows.row_store import RowStore
from penstock.planner.logical.windows import CumulateWindow, HopWindow, TumbleWindow, Windowing, window_fields
from tests.harness.operator_specs import limit_spec, union_spec, values_spec, window_table_spec
from tests.harness.operators import Remembered, opened
from tests.unit.engine.expressions.calls import lit
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    fold,
    listed,
    restored,
    snapshots,
)

INPUT = Schema((Field("ts", TIMESTAMP, role=Role.EVENT_TIME), Field("n", BIGINT)))
NUMBERS = Schema((Field("n", BIGINT),))


def timed(times: list[int | None], behind: list[int] | None = None) -> Batch:
    columns = [pa.array(times, pa.int64()).view(pa.timestamp("us")), pa.array(range(len(times)), pa.int64())]
    rows = pa.RecordBatch.from_arrays(columns, schema=INPUT.to_arrow())
    return Batch(rows, np.arange(1, len(times) + 1), None if behind is None else np.array(behind))


def numbers(count: int, first: int = 0) -> Batch:
    return Batch(
        pa.RecordBatch.from_arrays(
            [pa.array(range(first, first + count), pa.int64())], schema=NUMBERS.to_arrow()
        )
    )


@pytest.mark.parametrize(
    ("windowing", "windows"),
    [
        (TumbleWindow(0, 10), [(0, 0, 10), (2, -10, 0)]),
        (HopWindow(0, 10, 5), [(0, 0, 10), (0, 5, 15), (2, -10, 0), (2, -5, 5)]),
        (CumulateWindow(0, 10, 5), [(0, 0, 10), (2, -10, 0)]),
    ],
)
def test_each_row_once_per_window(windowing: Windowing, windows: list[tuple[int, int, int]]) -> None:
    operator = WindowFunctionOperator(
        window_table_spec("id", "window", INPUT.concat(Schema(window_fields())), windowing), JobOptions()
    )
    context, out = opened(operator), Remembered()
    operator.on_batch(timed([7, None, -1], [1, 2, 3]), 0, out)
    (batch,) = out.batches
    columns = [batch.rows.column(i).cast(pa.int64()).to_pylist() for i in (1, 2, 3, 4)]
    assert list(zip(*columns[:3], strict=True)) == windows
    assert columns[3] == [end - 1000 for end in columns[2]]
    assert batch.weights is not None and batch.weights.tolist() == [n + 1 for n, _, _ in windows]
    assert batch.behind is not None and batch.behind.tolist() == [n + 1 for n, _, _ in windows]
    assert context.metrics.counters == {"null_time_rows": 1}


def test_rows_without_time_alone_give_nothing() -> None:
    operator = WindowFunctionOperator(
        window_table_spec("id", "window", INPUT.concat(Schema(window_fields())), TumbleWindow(0, 10)),
        JobOptions(),
    )
    opened(operator)
    out = Remembered()
    operator.on_batch(timed([None]), 0, out)
    assert not out.events


def test_union_names_columns_after_its_first_port() -> None:
    operator = UnionOperator(union_spec("id", "union", NUMBERS, 2), JobOptions())
    opened(operator)
    out = Remembered()
    operator.on_batch(numbers(1), 0, out)
    operator.on_batch(Batch(pa.RecordBatch.from_pydict({"other": [5]})), 1, out)
    assert out.rows() == [{"n": 0}, {"n": 5}]


def limited(limit: int | None, offset: int, counts: list[int]) -> list[int]:
    operator, out = (
        LimitOperator(limit_spec("id", "limit", NUMBERS, limit, offset), JobOptions()),
        Remembered(),
    )
    opened(operator)
    first = 0
    for count in counts:
        operator.on_batch(numbers(count, first), 0, out)
        first += count
    return [row["n"] for row in out.rows()]


@pytest.mark.parametrize("counts", [[10], [1] * 10, [3, 4, 3], [9, 1]])
def test_limit_and_offset_over_any_cut(counts: list[int]) -> None:
    assert limited(4, 3, counts) == [3, 4, 5, 6]
    assert limited(None, 8, counts) == [8, 9]
    assert limited(0, 0, counts) == []


def test_limit_counts_a_weight_as_so_many_rows_and_survives_a_restore() -> None:
    operator, out = LimitOperator(limit_spec("id", "limit", NUMBERS, 3, 0), JobOptions()), Remembered()
    opened(operator)
    operator.on_batch(Batch(numbers(2).rows, np.array([2, 5])), 0, out)
    operator.on_batch(Batch(numbers(0).rows, np.zeros(0, np.int64)), 0, out)
    assert [listed(batch) for batch in out.batches] == [[((0,), 2), ((1,), 1)]]
    again, more = LimitOperator(limit_spec("id", "limit", NUMBERS, 8, 0), JobOptions()), Remembered()
    opened(again)
    again.restore_items(operator.snapshot_items())
    again.on_batch(numbers(5), 0, more)
    assert more.rows() == [{"n": 0}]


@pytest.mark.parametrize("seed", range(24))
def test_limit_over_changes_emits_as_many_rows_as_there_may_be(seed: int) -> None:
    """After every batch, restores between them: rows of the input, so many of them, each emitted and
    retracted in that order.
    """
    dice = random.Random(seed)
    limit, offset = dice.choice([0, 1, 3, 6, None]), dice.choice([0, 0, 1, 4])
    spec = limit_spec("id", "limit", NUMBERS, limit, offset, insert_only=False)
    operator, out = RetractLimitOperator(spec, JobOptions()), Collected()
    operator.open(context())
    alive: list[tuple[int]] = []
    changes: list[Change] = []
    for _ in range(30):
        batch: list[Change] = []
        for _ in range(dice.randint(1, 5)):
            if alive and dice.random() < 0.5:
                batch.append((alive.pop(dice.randrange(len(alive))), -1))
            else:
                alive.append((dice.randrange(6),))
                batch.append((alive[-1], 1))
        operator.on_batch(batch_of(batch, NUMBERS.to_arrow()), 0, out)
        changes += batch
        there, emitted = fold(changes), fold(out.changes())
        assert not emitted - there and min(emitted.values(), default=1) > 0
        left = max(there.total() - offset, 0)
        assert emitted.total() == (left if limit is None else min(limit, left))
        if dice.random() < 0.2:
            operator = restored(RetractLimitOperator(spec, JobOptions()), context(), snapshots([operator]))  # type: ignore[assignment]
    for each in out.batches:
        assert each.weights is None or (np.diff((each.weights > 0).astype(int)) >= 0).all(), (
            "inserted before it is retracted"
        )


@pytest.mark.parametrize("offset", [0, 5])
def test_a_row_that_takes_another_s_place_is_found_without_a_look_at_all(
    offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, out = (
        RetractLimitOperator(limit_spec("id", "limit", NUMBERS, 10, offset, insert_only=False), JobOptions()),
        Collected(),
    )
    operator.open(context())
    operator.on_batch(numbers(5_000), 0, out)
    looked_at = []
    for name in ("_spare_of", "_emitted_of"):
        count = getattr(operator, name)
        monkeypatch.setattr(
            operator, name, lambda ids, count=count: (looked_at.append(ids.size), count(ids))[1]
        )
    monkeypatch.setattr(RowStore, "live_ids", lambda store: pytest.fail("all rows are looked at"))
    for taken in range(50):
        row = next(row for row, weight in out.folded().items() if weight > 0)
        operator.on_batch(batch_of([(row, -1)], NUMBERS.to_arrow()), 0, out)
        assert out.folded().total() == 10, taken
    assert 0 < sum(looked_at) < 50 * 200


def test_an_emitted_row_stays_while_it_is_there() -> None:
    operator, out = (
        RetractLimitOperator(limit_spec("id", "limit", NUMBERS, 2, 0, insert_only=False), JobOptions()),
        Collected(),
    )
    operator.open(context())
    for batch in ([((5,), 1), ((7,), 1), ((9,), 1)], [((1,), 1), ((9,), -1)], [((7,), -1), ((8,), 1)]):
        operator.on_batch(batch_of(batch, NUMBERS.to_arrow()), 0, out)
    assert out.changes() == [((5,), 1), ((7,), 1), ((7,), -1), ((8,), 1)]


def values(most: int = 2) -> ValuesOperator:
    schema = Schema((Field("n", BIGINT), Field("s", STRING)))
    rows = tuple((lit(i, BIGINT), lit(None if i == 1 else str(i), STRING)) for i in range(5))
    return ValuesOperator(values_spec("id", "values", schema, rows), JobOptions(batch_max_rows=most))


def test_values_come_once_from_the_first_subtask() -> None:
    operator, out = values(), Remembered()
    opened(operator, parallelism=2)
    while not operator.poll(out).ended:
        pass
    assert [batch.num_rows for batch in out.batches] == [2, 2, 1]
    assert out.rows()[1] == {"n": 1, "s": None}
    other = values()
    opened(other, subtask=1, parallelism=2)
    assert other.poll(Remembered()).ended and other.snapshot_items() == []


def test_values_go_on_where_they_were() -> None:
    operator, out = values(), Remembered()
    opened(operator)
    operator.poll(out)
    again, more = values(10), Remembered()
    opened(again)
    again.restore_items(operator.snapshot_items())
    again.poll(more)
    assert [row["n"] for row in more.rows()] == [2, 3, 4]
