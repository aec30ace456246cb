"""Conditions and spellings that stand for others: what Spark gave when it was asked
(``recorded/conditions-UTC.arrow``).
"""

from __future__ import annotations

import pyarrow.feather as feather

from tests.unit.engine.expressions.against_spark import differences
from tests.unit.engine.expressions.condition_cases import COLUMNS, rows, texts
from tests.unit.engine.expressions.nested_cases import bound
from tests.unit.engine.expressions.record_conditions import RECORDING


def test_same_values_and_types_as_spark() -> None:
    table, batch = feather.read_table(RECORDING), rows()
    assert table.column_names == texts(), (
        "the cases have changed: python -m tests.unit.engine.expressions.record_conditions"
    )
    found = [
        line
        for text in texts()
        for line in differences(text, bound(text, COLUMNS), table.column(text), batch, "UTC")
    ]
    assert not found, "\n".join(found)
