"""Calc: filtered rows keep their weights and marks; pure reordering copies nothing."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, DATE
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.calc import CalcOperator
from penstock.planner.expressions.nodes import Column, Expression
from tests.harness.operator_specs import calc_spec
from tests.harness.operators import Remembered, opened
from tests.unit.engine.expressions.calls import call, cast, lit

ROWS = pa.RecordBatch.from_pydict({"a": [1, 2, 3, None], "b": [10, 20, 30, 40], "c": ["w", "x", "y", "z"]})
A, B = Column(BIGINT, True, index=0, name="a"), Column(BIGINT, True, index=1, name="b")


def calc(
    predicate: Expression | None,
    projections: tuple[Expression, ...] | None,
    batch: Batch,
    clock: ManualClock | None = None,
) -> Remembered:
    given = projections or tuple(Column(BIGINT, True, index=i) for i in range(3))
    names = [f"p{i}" for i in range(len(given))] if projections else ["a", "b", "c"]
    schema = Schema(tuple(Field(name, e.type) for name, e in zip(names, given, strict=True)))
    operator = CalcOperator(calc_spec("id", "calc", schema, predicate, projections), JobOptions())
    opened(operator, clock)
    out = Remembered()
    operator.on_batch(batch, 0, out)
    return out


def test_filter_and_projection_fused() -> None:
    out = calc(call("greater", B, lit(10, BIGINT)), (call("add", A, lit(1, BIGINT)),), Batch(ROWS))
    assert out.rows() == [{"p0": 3}, {"p0": 4}, {"p0": None}]


def test_null_predicates_keep_nothing() -> None:
    assert not calc(cast(lit(None, BOOLEAN), BOOLEAN), None, Batch(ROWS)).events


def test_weights_and_marks_follow_their_rows() -> None:
    batch = Batch(ROWS, np.array([1, -1, 2, 1]), np.array([0, 5, 6, 7]), origin=3)
    (kept,) = calc(call("greater", A, lit(1, BIGINT)), (B,), batch).batches
    assert kept.rows.column(0).to_pylist() == [20, 30]
    assert kept.weights is not None and kept.weights.tolist() == [-1, 2]
    assert kept.behind is not None and kept.behind.tolist() == [5, 6]
    assert kept.origin == 3


def test_reordering_copies_nothing() -> None:
    (moved,) = calc(None, (B, A), Batch(ROWS)).batches
    assert moved.rows.schema.names == ["p0", "p1"]
    assert moved.rows.column(0).buffers()[1].address == ROWS.column(1).buffers()[1].address


def test_a_constant_projection_of_no_columns_keeps_the_row_count() -> None:
    out = calc(call("greater", A, lit(1, BIGINT)), (lit(7, BIGINT),), Batch(ROWS))
    assert out.rows() == [{"p0": 7}, {"p0": 7}]


def test_the_current_time_is_the_clocks() -> None:
    out = calc(
        None, (call("unix_millis", call("now")),), Batch(ROWS.slice(0, 1)), ManualClock(1_700_000_000_123)
    )
    assert out.rows() == [{"p0": 1_700_000_000_123}]


class TickingClock(ManualClock):
    """A clock that is a day later at each look."""

    def wall_ms(self) -> int:
        self.advance(86_400_000)
        return super().wall_ms()


def test_the_current_time_is_one_in_a_row_and_a_later_one_in_the_next_batch() -> None:
    """CURRENT_DATE and the date of CURRENT_TIMESTAMP agree, also at midnight."""
    day = call("current_date")
    same = call("equal", day, cast(call("localtimestamp"), DATE))
    operator = CalcOperator(calc_spec("id", "calc", Schema((Field("p0", DATE),)), same, (day,)), JobOptions())
    opened(operator, TickingClock())
    out = Remembered()
    for _ in range(2):
        operator.on_batch(Batch(ROWS), 0, out)
    assert out.rows() == [{"p0": date(1970, 1, at)} for at in (2, 3) for _ in range(4)]


def test_faults_come_out_as_errors() -> None:
    with pytest.raises(PenstockError, match="division by zero"):
        calc(None, (call("div", A, call("subtract", A, A)),), Batch(ROWS))
