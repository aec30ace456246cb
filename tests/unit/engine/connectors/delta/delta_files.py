"""What tests of Delta tables share: a declared table, a target over it, rows, and the rows that are there,
read by the library itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING, DataType
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.epoch_target import DELETED, EpochWriter
from penstock.engine.api.operator import Services
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.delta.target import DeltaTarget
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.planner.expressions.nodes import Expression

deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")

COLUMNS: dict[str, DataType] = {"k": BIGINT, "v": STRING}
WRITER = EpochWriter("job", "s1", 0)


def declared(
    path: Path,
    columns: dict[str, DataType] | None = None,
    *,
    key: tuple[str, ...] = (),
    partitioned_by: tuple[str, ...] = (),
    **options: str,
) -> CatalogTable:
    fields = tuple(Field(name, kind, name not in key) for name, kind in (columns or COLUMNS).items())
    dotted = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    return CatalogTable(
        "t",
        Schema(fields),
        Schema(fields),
        {"connector": "delta", "table-path": str(path), **dotted},
        primary_key=key,
        partitioned_by=partitioned_by,
    )


def target(table: CatalogTable, *writers: EpochWriter) -> DeltaTarget:
    made = DeltaTarget(table, OperatorMetrics())
    made.fence(list(writers or (WRITER,)))
    return made


def rows(*keys: int, value: str = "v") -> list[pa.RecordBatch]:
    return [pa.record_batch({"k": pa.array(keys, pa.int64()), "v": [f"{value}{key}" for key in keys]})]


def upserts(**changes: str | None) -> list[pa.RecordBatch]:
    """Rows of UPSERTS: ``k1="new"`` sets the value of key 1, None deletes it."""
    keys = [int(name[1:]) for name in changes]
    return [
        pa.record_batch(
            {
                DELETED: [value is None for value in changes.values()],
                "k": pa.array(keys, pa.int64()),
                "v": pa.array(list(changes.values()), pa.string()),
            }
        )
    ]


def there(path: Path) -> list[tuple[Any, ...]]:
    table = pa.table(deltalake.DeltaTable(str(path)).scan())
    return sorted(tuple(row.values()) for row in table.to_pylist())


def versions(path: Path) -> int:
    return int(deltalake.DeltaTable(str(path)).version())


def request(
    table: CatalogTable, clock: ManualClock | None = None, predicate: Expression | None = None
) -> ScanRequest:
    columns = tuple(range(len(table.source_schema)))
    return ScanRequest(table, columns, predicate, 100, clock or ManualClock(), Services())


def read_from(source: Any, split: str, position: Position | None = None) -> tuple[list[Any], Position]:
    """Read a split until it has nothing: (weight, key, value) in their order, and the position."""
    reader = source.open(split, position)
    found: list[Any] = []
    while (batch := reader.poll(2)) is not None:
        weighted = batch if isinstance(batch, Batch) else Batch(batch)
        weights = [1] * batch.num_rows if weighted.weights is None else weighted.weights.tolist()
        found += [
            (weight, *row.values()) for weight, row in zip(weights, weighted.rows.to_pylist(), strict=True)
        ]
    at = reader.position()
    reader.close()
    return found, at


def with_options(table: CatalogTable, **options: str) -> CatalogTable:
    return replace(table, options={**table.options, **options})
