"""Run expressions on Spark and here, and tell where they part."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.types import to_arrow
from penstock.planner.expressions.nodes import Expression
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.spark_cases import FAMILIES

ZONES = {
    family: ("UTC", "America/New_York") if family in ("times", "casts") else ("UTC",) for family in FAMILIES
}
RUNS = [(family, zone) for family, zones in ZONES.items() for zone in zones]
RECORDED = Path(__file__).parent / "recorded"


def recording(family: str, zone: str) -> Path:
    """Where Spark's answers are kept."""
    return RECORDED / f"{family}-{zone.replace('/', '-')}.arrow"


def view(session: Any, batch: pa.RecordBatch, directory: Path) -> None:
    """Make the rows a view named ``rows`` of a Spark session."""
    path = directory / "rows.parquet"
    pq.write_table(pa.Table.from_batches([batch]), path)
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    session.read.parquet(str(path)).createOrReplaceTempView("rows")


def on_spark(session: Any, family: str) -> pa.Table:
    """Compute a family's expressions over the view in one query; the columns are named by their texts."""
    texts = [text for text, _ in FAMILIES[family]()]
    table = session.sql(
        "SELECT " + ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts)) + " FROM rows"
    ).toArrow()
    return table.rename_columns(texts)


def differences(
    text: str, expression: Expression, theirs: pa.ChunkedArray, batch: pa.RecordBatch, zone: str
) -> list[str]:
    """Return what differs for one expression: the type, or the first rows that do."""
    ours = run(expression, batch, zone)
    found = []
    if _comparable(theirs.type) != _comparable(to_arrow(expression.type)):
        found.append(f"{text}: Spark's type is {theirs.type}, ours {expression.type}")
    pairs = zip(_plain(theirs.combine_chunks()), _plain(ours), strict=True)
    wrong = [(row, a, b) for row, (a, b) in enumerate(pairs) if not _same(a, b)]
    columns = sorted(expression.columns())
    for row, a, b in wrong[:3]:
        given = ", ".join(f"{batch.schema.names[i]} = {batch.column(i)[row]}" for i in columns)
        found.append(f"{text}: Spark {a!r}, ours {b!r} where {given} ({len(wrong)} rows)")
    return found


def _comparable(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind


def _plain(column: pa.Array) -> list[Any]:
    """Times as integers: Python's end at the year 9999."""
    return (
        column.cast(pa.int64())
        if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
        else column
    ).to_pylist()


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-13)
    return type(a) is type(b) and a == b
