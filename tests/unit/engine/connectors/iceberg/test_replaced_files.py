"""Files replaced in one snapshot: those that a filter matches whole; one that it matches in part is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT
from penstock.engine.connectors.iceberg.iceberg_table import opened, opened_catalog
from penstock.engine.connectors.iceberg.replaced_files import NewDataFiles, partition_filter, replace_files
from penstock.engine.connectors.iceberg.target import create_iceberg_table
from tests.unit.engine.connectors.iceberg.iceberg_files import declared


def test_a_file_that_is_matched_in_part_is_refused(tmp_path: Path) -> None:
    table = declared(tmp_path, {"k": BIGINT, "n": BIGINT}, partitioned_by=("k",))
    catalog = opened_catalog(table.options)
    create_iceberg_table(table, catalog)
    found = opened(table, catalog)
    rows = pa.table({"k": pa.array([1, 2, None]), "n": pa.array([1, 1, 2])}, schema=found.schema().as_arrow())
    found.append(rows)
    chosen = partition_filter(pa.table({"k": pa.array([2, None], pa.int64())}), ["k"])
    transaction, added = found.transaction(), NewDataFiles()
    added.write(found, iter(rows.slice(1, 1).to_batches()), rows.schema)
    replace_files(found, transaction, added.files, chosen, {"mark": "1"}, "t")
    transaction.commit_transaction()
    assert sorted(found.scan().to_arrow().column("k").to_pylist()) == [1, 2]
    operations = [snapshot.summary.operation.value for snapshot in found.metadata.snapshots]
    assert operations == ["append", "overwrite"]
    # n is no partition column: a file has rows of several values
    found.append(rows.slice(0, 1).set_column(1, rows.schema.field(1), pa.array([5])))
    several = pa.concat_tables([rows.slice(0, 1)] * 2)
    found.append(several.set_column(1, rows.schema.field(1), pa.array([5, 6])))
    other = partition_filter(pa.table({"n": pa.array([5], pa.int64())}), ["n"])
    with pytest.raises(PenstockError, match="DAT-5305"):
        replace_files(found, found.transaction(), [], other, {}, "t")
    catalog.close()
