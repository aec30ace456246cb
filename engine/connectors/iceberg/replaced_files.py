"""Replaces data files of an Iceberg table by new rows, in one snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.connectors.iceberg.file_planning import plan_snapshot

# of Arrow; a file of Parquet is a third to a tenth of it
_PIECE_BYTES = 256 << 20


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


class NewDataFiles:
    """The data files of a commit, written before it. They are written once for all tries of the commit, as
    long as the table's columns and partitioning stay.
    """

    def __init__(self) -> None:
        self.files: list[Any] = []
        self._io: Any = None
        self._written_for: tuple[int, int] | None = None
        self._may_be_committed = False

    def write(self, found: Any, rows: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write rows as they come: of a table in partitions a file for each of them that a piece of the rows
        has.
        """
        kind = (found.schema().schema_id, found.spec().spec_id)
        if kind == self._written_for:
            return
        self.delete_unless_committed()
        self._io = found.io
        for piece in _pieces(rows, schema):
            self._write_piece(found, piece)
        self._written_for = kind

    def _write_piece(self, found: Any, piece: pa.Table) -> None:
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        # the library names the files of each call anew
        self.files.extend(_dataframe_to_data_files(table_metadata=found.metadata, df=piece, io=found.io))

    def commit(self, transaction: Any) -> None:
        """Commit a transaction that adds the files."""
        self._may_be_committed = True
        try:
            transaction.commit_transaction()
        except Exception as error:
            # another commit came between: this one is not in the table. Of other errors nobody knows
            self._may_be_committed = type(error).__name__ != "CommitFailedException"
            raise

    def delete_unless_committed(self) -> None:
        """Delete the files where no snapshot can have them."""
        if self._may_be_committed:
            return
        for file in self.files:
            # a file that stays is in no snapshot: nobody reads it
            with contextlib.suppress(Exception):
                self._io.delete(file.file_path)
        self.files, self._written_for = [], None


def _pieces(rows: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield rows in tables of about ``_PIECE_BYTES``."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in rows:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= _PIECE_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, held_bytes = [], 0
    if held:
        yield pa.Table.from_batches(held, schema)


def replace_files(
    found: Any, transaction: Any, added: list[Any], row_filter: Any, marks: dict[str, str], where: str
) -> None:
    """Add files and take those out that a filter matches. DAT-5305 for a file of which it matches a part.

    Rows that deletes hide go with their file. The deletes stay, and match no file that is newer.
    """
    from pyiceberg.expressions import AlwaysTrue

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
    update = transaction.update_snapshot(snapshot_properties=marks)
    # a reader that follows the table takes a snapshot of the other kind for one that removes rows
    with update.overwrite() if files else update.fast_append() as snapshot_change:
        for task in files:
            snapshot_change.delete_data_file(task.file)
        for data_file in added:
            snapshot_change.append_data_file(data_file)
