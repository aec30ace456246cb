"""Iceberg tables as Flink's upsert sink writes them, and their rows as our source reads them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.manifest import DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from penstock.catalog.types import BIGINT, STRING, DataType
from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog
from penstock.engine.connectors.iceberg.source import IcebergSource
from tests.unit.engine.connectors.delta.delta_files import read_from, request
from tests.unit.engine.connectors.iceberg.foreign_tables import Written, commit, next_file, positions_of
from tests.unit.engine.connectors.iceberg.iceberg_files import catalog_options, declared

COLUMNS: dict[str, DataType] = {"k": BIGINT, "g": STRING, "v": STRING}
SCHEMA = pa.schema([("k", pa.int64()), ("g", pa.string()), ("v", pa.string())])
EQUAL, AT = DataFileContent.EQUALITY_DELETES, DataFileContent.POSITION_DELETES
Key = tuple[int | None, str | None]
Change = tuple[Key, str | None]


def made(path: Path, *, partitioned: bool = False) -> Any:
    catalog = opened_catalog(catalog_options(path))
    catalog.create_namespace("db")
    fields = (
        NestedField(1, "k", LongType(), required=False),
        NestedField(2, "g", StringType(), required=False),
        NestedField(3, "v", StringType(), required=False),
    )
    table = catalog.create_table("db.t", Schema(*fields), properties={"format-version": "2"})
    if partitioned:
        with table.update_spec() as spec:
            spec.add_field("g", IdentityTransform(), "g")
    return table


def upsert(path: Path, changes: list[Change], *, partitioned: bool = False) -> int:
    """Commit changes as Flink does: of each partition the keys that older files lose, the new rows, and the
    positions of rows that the same commit replaces.
    """
    files: list[Written] = []
    for group in sorted({key[1] for key, _ in changes}, key=str) if partitioned else [None]:
        mine = [change for change in changes if not partitioned or change[0][1] == group]
        partition = (group,) if partitioned else ()
        keys = pa.table(list(zip(*(key for key, _ in mine), strict=True)), schema=pa.schema(list(SCHEMA)[:2]))
        files.append(Written(keys, EQUAL, (1, 2), partition))
        added = [(*key, value) for key, value in mine if value is not None]
        if not added:
            continue
        url = next_file(path, len(files))
        files.append(Written(pa.table(list(zip(*added, strict=True)), schema=SCHEMA), partition=partition))
        last = {key: at for at, (key, _) in enumerate(mine)}
        kept = [last[key] == at for at, (key, value) in enumerate(mine) if value is not None]
        if not all(kept):
            gone = positions_of(url, *(at for at, one in enumerate(kept) if not one))
            files.append(Written(gone, AT, None, partition))
    return commit(path, *files)


def read(path: Path, columns: dict[str, DataType] | None = None, **options: str) -> Counter[Any]:
    """Return the rows by their weights."""
    source = IcebergSource(request(declared(path, columns or COLUMNS, options=options)))
    return fold(read_from(source, *source.splits())[0])


def fold(rows: list[Any]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for weight, *values in rows:
        counts[tuple(values)] += weight
        # a row is not retracted before it is there
        assert counts[tuple(values)] >= 0, values
    return +counts
