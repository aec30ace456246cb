"""Removes the rows of some keys from an Iceberg table that has equality deletes, which the library does not
apply.

A data file with such a row is removed whole. The rows that its deletes and the keys leave are returned: they
are appended by the transaction that removes the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.connectors.iceberg.equality_deletes import DeletedKeys
from penstock.engine.connectors.iceberg.file_planning import plan_snapshot
from penstock.engine.connectors.iceberg.file_reader import PlannedFileReader


def remove_keys(
    found: Any, transaction: Any, keys: pa.Table, row_filter: Any, properties: dict[str, str], where: str
) -> list[pa.Table]:
    """Take the files that have rows of some keys out of a transaction's table; return their other rows.
    DAT-5305.

    ``row_filter``: the library's test of the keys, which leaves out files.
    """
    from pyiceberg.expressions import AlwaysTrue

    index = DeletedKeys([column.combine_chunks() for column in keys.columns])
    reader, removed, kept = PlannedFileReader(found, where), [], []
    for file in plan_snapshot(found, found.current_snapshot(), row_filter):
        batches = list(reader.rows(file, found.schema(), AlwaysTrue()))
        rows = pa.Table.from_batches(batches) if batches else None
        if rows is None:
            continue
        own = [rows.column(key.name).combine_chunks().cast(key.type) for key in keys.schema]
        others = index.find(own) < 0
        if not np.all(others):
            removed.append(file.task.file)
            kept.append(rows.filter(pa.array(others)))
    if removed:
        with transaction.update_snapshot(snapshot_properties=properties).overwrite() as overwrite:
            for data_file in removed:
                overwrite.delete_data_file(data_file)
    return kept
