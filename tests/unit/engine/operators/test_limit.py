"""LIMIT and OFFSET: append-only, and over changes."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.limit import LimitOperator, RetractLimitOperator
from penstock.engine.operators.source.values import ValuesOperator
from penstock.engine.state.rows.row_store import RowStore
from tests.harness.operator_specs import limit_spec, values_spec
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

NUMBERS = Schema((Field("n", BIGINT),))


def numbers(count: int, first: int = 0) -> Batch:
    return Batch(
        pa.RecordBatch.from_arrays(
            [pa.array(range(first, first + count), pa.int64())], schema=NUMBERS.to_arrow()
        )
    )


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
