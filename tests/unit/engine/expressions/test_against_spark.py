"""The same against a Spark that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.expressions.against_spark import RUNS, differences, on_spark, view
from tests.unit.engine.expressions.spark_cases import FAMILIES, rows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def sessions() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from penstock.engine.bounded.spark.sessions import SESSIONS

    yield SESSIONS


@pytest.mark.parametrize(("family", "zone"), RUNS)
def test_same_values_and_types_as_spark(family: str, zone: str, sessions: Any, tmp_path: Path) -> None:
    batch = rows()
    session = sessions.new(zone)
    view(session, batch, tmp_path)
    table = on_spark(session, family)
    cases = enumerate(FAMILIES[family]())
    found = [
        line
        for i, (text, expression) in cases
        for line in differences(text, expression, table.column(i), batch, zone)
    ]
    assert not found, "\n".join(found)
