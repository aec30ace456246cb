"""What tests of Iceberg tables share: a catalog of SQLite, a declared table, a target over it, rows, and the
rows that are there, read by the library itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING, DataType
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog
from penstock.engine.connectors.iceberg.target import IcebergTarget
from penstock.engine.metrics.operator_metrics import OperatorMetrics

pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")

COLUMNS: dict[str, DataType] = {"k": BIGINT, "v": STRING}
WRITER = EpochWriter("job", "s1", 0)


def catalog_options(path: Path) -> dict[str, str]:
    path.mkdir(exist_ok=True)
    return {
        "catalog-type": "sql",
        "uri": f"sqlite:///{path}/catalog.db",
        "warehouse": f"file://{path}/warehouse",
    }


def declared(
    path: Path,
    columns: dict[str, DataType] | None = None,
    *,
    name: str = "db.t",
    key: tuple[str, ...] = (),
    partitioned_by: tuple[str, ...] = (),
    options: dict[str, str] | None = None,
) -> CatalogTable:
    fields = tuple(Field(name, kind, name not in key) for name, kind in (columns or COLUMNS).items())
    return CatalogTable(
        "t",
        Schema(fields),
        Schema(fields),
        {"connector": "iceberg", "table-name": name, **catalog_options(path), **(options or {})},
        primary_key=key,
        partitioned_by=partitioned_by,
    )


def target(table: CatalogTable, *writers: EpochWriter) -> IcebergTarget:
    made = IcebergTarget(table, OperatorMetrics())
    made.fence(list(writers or (WRITER,)))
    return made


def loaded(path: Path, name: str = "db.t") -> Any:
    """Return the library's own table."""
    return opened_catalog(catalog_options(path)).load_table(name)


def there(path: Path, name: str = "db.t") -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in loaded(path, name).scan().to_arrow().to_pylist())
