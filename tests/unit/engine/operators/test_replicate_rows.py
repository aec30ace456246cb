"""The last column of a row is how often the row is there: it becomes a factor of the row's weight."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.replicate_rows import ReplicateRowsOperator
from tests.harness.length import examples
from tests.harness.operator_specs import replicate_rows_spec
from tests.harness.operators import Remembered, opened
from tests.unit.engine.operators.changelogs import Change, batch_of, listed

COUNTED = Schema((Field("k", STRING), Field("n", BIGINT, False)))


def replicated(changes: list[Change], behind: list[int] | None = None) -> list[Batch]:
    operator, out = (
        ReplicateRowsOperator(replicate_rows_spec("r", "repeat", COUNTED), JobOptions()),
        Remembered(),
    )
    opened(operator)
    batch = batch_of(changes, COUNTED.to_arrow())
    if behind is not None:
        batch = Batch(batch.rows, batch.weights, np.array(behind))
    operator.on_batch(batch, 0, out)
    return out.batches


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.tuples(st.none() | st.sampled_from("ab"), st.integers(1, 2**40)),
            st.sampled_from([1, -1, 2, -3, 2**20]),
        ),
        max_size=12,
    )
)
def test_a_weight_is_multiplied_by_the_count_and_the_count_is_no_column(changes: list[Change]) -> None:
    (batch,) = replicated(changes)
    assert batch.rows.schema.names == ["k"]
    assert listed(batch) == [((key,), weight * count) for (key, count), weight in changes]


def test_rows_that_are_there_once_have_no_weights() -> None:
    (batch,) = replicated([(("a", 1), 1), ((None, 1), 1)])
    assert batch.weights is None and listed(batch) == [(("a",), 1), ((None,), 1)]
    (batch,) = replicated([(("a", 1), -1)])
    assert batch.weights is not None and batch.weights.tolist() == [-1]


def test_a_row_stays_behind_the_watermark_of_its_split() -> None:
    (batch,) = replicated([(("a", 2), 1), (("b", 1), 1)], [7, 9])
    assert batch.behind is not None and batch.behind.tolist() == [7, 9]
