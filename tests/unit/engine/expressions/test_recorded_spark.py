"""Every function gives what Spark gave when it was asked (``recorded/``): NULL, NaN, extremes, empty and
non-ASCII text included.
"""

from __future__ import annotations

import pyarrow.feather as feather
import pytest

from tests.unit.engine.expressions.against_spark import RUNS, differences, recording
from tests.unit.engine.expressions.spark_cases import FAMILIES, rows


@pytest.mark.parametrize(("family", "zone"), RUNS)
def test_same_values_and_types_as_spark(family: str, zone: str) -> None:
    table, batch = feather.read_table(recording(family, zone)), rows()
    cases = list(FAMILIES[family]())
    assert table.column_names == [text for text, _ in cases], (
        "the cases have changed: python -m tests.unit.engine.expressions.record_spark"
    )
    found = [
        line
        for i, (text, expression) in enumerate(cases)
        for line in differences(text, expression, table.column(i), batch, zone)
    ]
    assert not found, "\n".join(found)
