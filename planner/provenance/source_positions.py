"""Scans with the positions of their rows: file and row, topic, partition and offset, or whatever else the
connector says of a row in its metadata.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.connectors.registry import metadata_keys
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, MetadataColumn
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import column_of
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.provenance.restrictions import Restrictions, moved, restrict

POSITION_KEYS: dict[str, tuple[str, ...]] = {
    "filesystem": ("file.path", "file.row"),
    "kafka": ("topic", "partition", "offset"),
    "redis": ("stream", "id"),
    "nats": ("subject", "sequence"),
    "datagen": ("row",),
    "postgres-cdc": ("lsn",),
}
"""Metadata that say where a row is, by connector. Of others nothing says it."""


_MARK = "$position."
"""Begins the names of position columns."""


@dataclass(frozen=True)
class LocatedRows:
    """Rows of one table: ``plan`` has the columns of the table, then those of their ``position``, which are
    few or none.
    """

    table: str
    plan: LogicalPlan
    width: int
    position: tuple[str, ...]


def located_rows(leaf: Scan | Values, restrictions: Restrictions) -> LocatedRows:
    """Return the rows of a leaf that meet the restrictions, with their positions."""
    width = len(leaf.schema)
    if isinstance(leaf, Values):
        return LocatedRows("VALUES", restrict(leaf, restrictions), width, ())
    keys = position_keys(leaf.table)
    # late rows, and those of a checkpoint, are found by positions: the scan has them already
    if len(without_positions(leaf.schema)) < width:
        return LocatedRows(leaf.table.name, restrict(leaf, restrictions), width - len(keys), keys)
    scan = with_positions(leaf)
    columns = tuple(column_of(scan, i) for i in range(width))
    rows = restrict(scan, moved(restrictions, columns, len(scan.schema)))
    return LocatedRows(leaf.table.name, rows, width, keys)


def position_keys(table: CatalogTable) -> tuple[str, ...]:
    """Return the metadata of a table's connector that say where a row is."""
    return POSITION_KEYS.get(table.connector, ())


def without_positions(schema: Schema) -> tuple[Field, ...]:
    """Return the fields of a scan that are none of its positions."""
    return tuple(field for field in schema if not field.name.startswith(_MARK))


def with_positions(scan: Scan) -> Scan:
    """Return a scan with the position of each row in columns behind its own."""
    table, keys = scan.table, position_keys(scan.table)
    if not keys:
        return scan
    types = metadata_keys(table.connector)
    # no column of a table has such a name, whatever the user has declared of the same metadata
    fields = tuple(Field(f"{_MARK}{key}", types[key]) for key in keys)
    metadata = tuple(
        MetadataColumn(field.name, key, virtual=True) for field, key in zip(fields, keys, strict=True)
    )
    first = len(table.source_schema)
    located = replace(
        table,
        source_schema=Schema((*table.source_schema, *fields)),
        metadata=(*table.metadata, *metadata),
    )
    return replace(scan, table=located, columns=(*scan.columns, *range(first, first + len(keys))))
