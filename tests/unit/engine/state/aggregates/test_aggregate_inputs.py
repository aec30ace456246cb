"""Which rows of a batch an aggregate takes, with which values and weights: FILTER, NULL, several filters."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT
from penstock.engine.expressions import compiler
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.aggregate_inputs import (
    Evaluated,
    RowPartials,
    aggregate_input,
    reader,
)
from penstock.planner.expressions.nodes import AggregateCall, Call, Cast, Column, Expression, Literal

V, F, G = Column(INT, True, index=0), Column(BOOLEAN, True, index=1), Column(BOOLEAN, True, index=2)
ROWS: list[tuple[int | None, bool | None, bool | None]] = [
    (value, first, second)
    for value in (5, None, -1)
    for first in (True, None, False)
    for second in (False, True)
]
BATCH = pa.record_batch(
    [pa.array([row[i] for row in ROWS], kind) for i, kind in enumerate((pa.int32(), pa.bool_(), pa.bool_()))],
    names=["v", "f", "g"],
)
SLOTS = np.arange(len(ROWS)) * 10
WEIGHTS = np.arange(len(ROWS)) % 3 - 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("accept", [None, F])
def test_rows_that_the_filter_rejects_or_without_a_value_are_no_input(
    accept: Column | None, weighted: bool
) -> None:
    one = aggregate_input(AggregateCall("sum", (V,), BIGINT, filter=accept), [accept], "UTC")
    slots, values, weights = one.rows(SLOTS, BATCH, WEIGHTS if weighted else col.NO_WORDS, Evaluated())
    accepted = [i for i, row in enumerate(ROWS) if row[0] is not None and (accept is None or row[1] is True)]
    assert slots.tolist() == SLOTS[accepted].tolist()
    assert values is not None and values.to_pylist() == [ROWS[i][0] for i in accepted]
    assert weights.tolist() == (WEIGHTS[accepted].tolist() if weighted else []), "no weights: +1 each"


@pytest.mark.parametrize("weighted", [False, True])
def test_a_distinct_aggregate_has_a_row_of_weights_for_each_filter(weighted: bool) -> None:
    call = AggregateCall("count", (V,), BIGINT, False, True)
    one = aggregate_input(call, [F, G], "UTC")
    slots, values, weights = one.rows(SLOTS, BATCH, WEIGHTS if weighted else col.NO_WORDS, Evaluated())
    accepted = [i for i, row in enumerate(ROWS) if row[0] is not None and (row[1] is True or row[2] is True)]
    assert slots.tolist() == SLOTS[accepted].tolist()
    assert values is not None and values.to_pylist() == [ROWS[i][0] for i in accepted]
    assert weights.tolist() == [
        [(WEIGHTS[i] if weighted else 1) * (ROWS[i][k] is True) for i in accepted] for k in (1, 2)
    ]


def test_one_filter_among_all_rows_takes_all_rows() -> None:
    one = aggregate_input(AggregateCall("count", (V,), BIGINT, False, True), [F, None], "UTC")
    slots, _, weights = one.rows(SLOTS, BATCH, col.NO_WORDS, Evaluated())
    accepted = [i for i, row in enumerate(ROWS) if row[0] is not None]
    assert slots.tolist() == SLOTS[accepted].tolist()
    assert weights.tolist() == [[int(ROWS[i][1] is True) for i in accepted], [1] * len(accepted)]


def test_count_of_rows_takes_rows_without_a_value() -> None:
    slots, values, weights = aggregate_input(AggregateCall("count", (), BIGINT), [None], "UTC").rows(
        SLOTS, BATCH, WEIGHTS, Evaluated()
    )
    assert slots is SLOTS and values is None and weights is WEIGHTS, "nothing is copied"


def test_several_arguments_are_a_struct_of_which_each_must_have_a_value() -> None:
    call = AggregateCall("corr", (Cast(DOUBLE, True, arg=V), Cast(DOUBLE, True, arg=V)), DOUBLE)
    _, values, _ = aggregate_input(call, [None], "UTC").rows(SLOTS, BATCH, col.NO_WORDS, Evaluated())
    assert values is not None
    assert values.to_pylist() == [
        {"v0": float(row[0]), "v1": float(row[0])} for row in ROWS if row[0] is not None
    ]


def test_a_filter_of_several_aggregates_is_evaluated_once() -> None:
    inputs = [aggregate_input(AggregateCall(f, (V,), BIGINT, filter=F), [F], "UTC") for f in ("sum", "min")]
    evaluated = Evaluated()
    first, second = (one.rows(SLOTS, BATCH, col.NO_WORDS, evaluated)[0] for one in inputs)
    assert first.tolist() == second.tolist() and list(evaluated.masks) == [F]
    # the mask of the other aggregate is what counts, not another evaluation
    evaluated.masks[F] = np.zeros(len(ROWS), np.bool_)
    assert not inputs[0].rows(SLOTS, BATCH, col.NO_WORDS, evaluated)[0].size


def test_an_argument_of_several_aggregates_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Call(DOUBLE, True, "divide", (Cast(DOUBLE, True, arg=V), Literal(DOUBLE, False, value=2.0)))
    # equals the same with 0.0, which has other values
    below_zero = Call(
        DOUBLE, True, "multiply", (Cast(DOUBLE, True, arg=V), Literal(DOUBLE, False, value=-0.0))
    )
    calls = [AggregateCall(name, (arg,), DOUBLE) for arg in (half, below_zero) for name in ("sum", "max")]
    compiled = compiler.compile_expression
    evaluations: list[Expression] = []

    def counted(expression: Expression, context: EvaluationContext) -> object:
        run = compiled(expression, context)
        return lambda batch: evaluations.append(expression) or run(batch)

    monkeypatch.setattr(compiler, "compile_expression", counted)
    rows = BATCH.take(pa.array([0, 1, 2, 0]))
    for add in (Accumulators(calls, True), RowPartials(calls, "UTC")):
        evaluations.clear()
        for batches in (1, 2):
            if isinstance(add, RowPartials):
                add.columns(rows)
            else:
                add.reserve(4)
                add.add(np.arange(4), rows)
            assert evaluations.count(half) == batches and evaluations.count(below_zero) == 2 * batches


def test_a_bare_column_is_read_as_it_is() -> None:
    assert reader(V, "UTC")(BATCH).equals(BATCH.column(0))
    computed: Expression = Cast(BIGINT, True, arg=V)
    assert reader(computed, "UTC")(BATCH).equals(BATCH.column(0).cast(pa.int64()))


CALLS = (
    AggregateCall("count", (), BIGINT, False),
    AggregateCall("count", (V,), BIGINT, False, filter=F),
    AggregateCall("sum", (V,), BIGINT),
    AggregateCall("sum0", (V,), BIGINT, False, filter=F),
    AggregateCall("max", (V,), INT, filter=F),
    AggregateCall("bool_or", (F,), BOOLEAN),
    AggregateCall("bit_xor", (V,), INT),
)


def test_row_partials_are_aggregates_of_single_rows() -> None:
    random = Random(1)
    rows = BATCH.take(pa.array(random.choices(range(len(ROWS)), k=500)))
    accumulators = Accumulators(CALLS, True)
    accumulators.reserve(500)
    accumulators.add(np.arange(500), rows)
    found = RowPartials(CALLS, "UTC").columns(rows)
    for one, other in zip(found, accumulators.results(np.arange(500)), strict=True):
        assert one.equals(other)
    assert [len(column) for column in RowPartials(CALLS, "UTC").columns(rows.slice(0, 0))] == [0] * len(CALLS)
