"""UNION ALL."""

from __future__ import annotations

import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.union import UnionOperator
from tests.harness.operator_specs import union_spec
from tests.harness.operators import Remembered, opened

NUMBERS = Schema((Field("n", BIGINT),))


def numbers(count: int, first: int = 0) -> Batch:
    return Batch(
        pa.RecordBatch.from_arrays(
            [pa.array(range(first, first + count), pa.int64())], schema=NUMBERS.to_arrow()
        )
    )


def test_union_names_columns_after_its_first_port() -> None:
    operator = UnionOperator(union_spec("id", "union", NUMBERS, 2), JobOptions())
    opened(operator)
    out = Remembered()
    operator.on_batch(numbers(1), 0, out)
    operator.on_batch(Batch(pa.RecordBatch.from_pydict({"other": [5]})), 1, out)
    assert out.rows() == [{"n": 0}, {"n": 5}]
