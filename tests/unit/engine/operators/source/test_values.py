"""VALUES as a source."""

from __future__ import annotations

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.operators.source.values import ValuesOperator
from tests.harness.operator_specs import values_spec
from tests.harness.operators import Remembered, opened
from tests.unit.engine.expressions.calls import lit


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
