"""Replaces data files of an Iceberg table by new rows, in one snapshot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.connectors.iceberg.file_planning import plan_snapshot


def partition_filter(partitions: pa.Table | None, columns: list[str]) -> Any:
    """Return the library's test of some partitions, of all rows for ``None``; ``columns``: their names in the
    table.
    """
    from pyiceberg import expressions

    # its terms are written for names, too
    library: Any = expressions
    if partitions is None:
        return library.AlwaysTrue()
    found = library.AlwaysFalse()
    # a row a partition: they are few
    for row in zip(*(column.to_pylist() for column in partitions.columns), strict=True):
        parts = library.AlwaysTrue()
        for name, value in zip(columns, row, strict=True):
            same = library.IsNull(name) if value is None else library.EqualTo(name, value)
            parts = library.And(parts, same)
        found = library.Or(found, parts)
    return found


def replace_files(
    found: Any, transaction: Any, rows: pa.Table, row_filter: Any, marks: dict[str, str], where: str
) -> None:
    """Add rows and take the files out that a filter matches. DAT-5305 for a file of which it matches a part.

    Rows that deletes hide go with their file. The deletes stay, and match no file that is newer.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    snapshot = found.current_snapshot()
    files = [] if snapshot is None else [file.task for file in plan_snapshot(found, snapshot, row_filter)]
    for task in files:
        if task.residual != AlwaysTrue():
            raise PenstockError(
                "DAT-5305",
                f"{task.file.file_path} of {where} has rows of several partitions: it is older than the "
                "table's partitioning",
                hint="rewrite the table's data files, or leave PARTITIONED BY out and overwrite all of it",
                kind=Kind.EXTERNAL,
                sqlstate="0A000",
            )
    if not files:
        transaction.append(rows, snapshot_properties=marks)
        return
    with transaction.update_snapshot(snapshot_properties=marks).overwrite() as snapshot_change:
        for task in files:
            snapshot_change.delete_data_file(task.file)
        # the library divides by the size of the rows
        if not rows.num_rows:
            return
        for data_file in _dataframe_to_data_files(
            table_metadata=transaction.table_metadata,
            write_uuid=snapshot_change.commit_uuid,
            df=rows,
            io=found.io,
        ):
            snapshot_change.append_data_file(data_file)
