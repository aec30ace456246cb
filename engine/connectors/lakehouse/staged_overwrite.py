"""INSERT OVERWRITE of a lakehouse table: rows wait in files until their job has ended, then one commit
replaces the old ones.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import to_arrow

# rows decoded at once
_BATCH_ROWS = 32_768
RowReader = Callable[[], Iterator[pa.RecordBatch]]
"""Reads all rows anew by each call."""


class ReplacedTable(Protocol):
    """A lakehouse table whose rows one commit replaces."""

    def overwrite(self, statement: str, rows: RowReader, partitions: pa.Table | None) -> None:
        """Replace all rows, or those of some partitions, a row of values for each. ``statement`` is a name
        that no other has: a commit whose outcome was not known is done once.
        """

    def close(self) -> None:
        """Close what is open."""


class StagedOverwrite:
    """The rows of an INSERT OVERWRITE in temporary Parquet files, which its job writes. ``publish`` commits.

    Without partitions all rows of the table are replaced. With partitions those are that the rows are of, and
    one that ``constants`` name whole also without rows. A process that dies before the commit leaves the
    table as it was. Its files are where the system keeps temporary ones.
    """

    def __init__(
        self, table: CatalogTable, constants: Mapping[str, str], opened: Callable[[], ReplacedTable]
    ) -> None:
        self._table, self._constants, self._opened = table, constants, opened
        self._schema = pa.schema(
            [pa.field(field.name, to_arrow(field.type)) for field in table.physical_fields]
        )
        try:
            self._path = Path(tempfile.mkdtemp(prefix="penstock-overwrite-"))
        except OSError as error:
            raise PenstockError(
                "DAT-4603",
                f"the new rows of {table.name} have no temporary directory: {error.strerror}",
                hint="set TMPDIR to a directory with space",
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            ) from error

    @property
    def table(self) -> CatalogTable:
        """The table of the temporary files."""
        options = {"connector": "filesystem", "path": str(self._path / "rows"), "format": "parquet"}
        return replace(self._table, options=options, partitioned_by=(), primary_key=())

    def publish(self) -> None:
        """Replace the old rows by those of the files, in one commit. DAT-53xx."""
        target = self._opened()
        try:
            target.overwrite(self._path.name, self._rows, self._partitions())
        finally:
            target.close()
            self.discard()

    def discard(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._path, ignore_errors=True)

    def _rows(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        place = self._path / "rows"
        schema = self._schema if columns is None else pa.schema([self._schema.field(c) for c in columns])
        if not place.exists():
            return
        # hidden files, such as the log of commits, are none of the data set's
        files = ds.dataset(place, schema=self._schema, format="parquet")
        for rows in files.to_batches(columns=schema.names, batch_size=_BATCH_ROWS):
            if rows.num_rows:
                yield rows.cast(schema)

    def _partitions(self) -> pa.Table | None:
        """Return the values of the partitions that are replaced, ``None`` for the whole table."""
        by_name = {name.lower(): name for name in self._schema.names}
        columns = [by_name[name.lower()] for name in self._table.partitioned_by]
        if not columns:
            return None
        schema = pa.schema([self._schema.field(column) for column in columns])
        if all(column.lower() in self._constants for column in columns):
            values = [pa.array([self._constants[column.lower()]]) for column in columns]
            return pa.table([v.cast(f.type) for v, f in zip(values, schema, strict=True)], schema=schema)
        found = schema.empty_table()
        for rows in self._rows(columns):
            several = pa.concat_tables([found, pa.Table.from_batches([rows])])
            found = several.group_by(columns, use_threads=False).aggregate([]).select(columns).cast(schema)
        return found
