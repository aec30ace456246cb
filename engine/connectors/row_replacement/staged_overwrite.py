"""INSERT OVERWRITE: rows wait in files until their job has ended, then one commit replaces the old ones."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.changelog.consolidate import group_numbers
from penstock.engine.changelog.row_kinds import OP_FIELD, without_op_column
from penstock.engine.connectors.row_replacement.replaced_table import ReplacedTable, RowCounts, Version
from penstock.engine.storage.locked_directory import delete_abandoned, locked_directory

# rows decoded at once
_BATCH_ROWS = 32_768
# so many changes are looked at before the last one of each key is kept
_CHANGES = 1 << 20
_PREFIX = "penstock-overwrite-"


class StagedOverwrite:
    """The rows of an INSERT OVERWRITE in temporary Parquet files, which its job writes. ``publish`` commits.

    Without partitions all rows of the table are replaced. With partitions those are that the rows are of, and
    one that ``constants`` name whole also without rows. Of a table with a PRIMARY KEY the files have changes:
    the last one of each key is its row.

    ``reads``: the rows are computed from those of the table, so what others commit meanwhile is not lost:
    DAT-4618. ``rewrites``: they are the rows of the table, with some changes.

    A process that dies before the commit leaves the table as it was. Its files are in ``within``, or else
    where the system keeps temporary ones: the next INSERT OVERWRITE that uses the place deletes them.
    """

    def __init__(
        self,
        table: CatalogTable,
        constants: Mapping[str, str],
        opened: Callable[[], ReplacedTable],
        within: Path | None = None,
        *,
        reads: bool = False,
        rewrites: bool = False,
    ) -> None:
        self._table, self._constants, self._opened = table, constants, opened
        # before the job reads: a commit after this moment makes another version
        self._read = _version(opened, rewrites) if reads else None
        self._schema = pa.schema(
            [pa.field(field.name, to_arrow(field.type)) for field in table.physical_fields]
        )
        self._own_op = _own_op(self._schema.names) if table.primary_key else ""
        try:
            place = Path(tempfile.gettempdir()) if within is None else within
            place.mkdir(parents=True, exist_ok=True)
            delete_abandoned(place, _PREFIX)
            self._path, lock = locked_directory(place, _PREFIX)
        except OSError as error:
            raise PenstockError(
                "DAT-4603",
                f"the new rows of {table.name} have no temporary directory: {error.strerror}",
                hint="set TMPDIR to a directory with space",
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            ) from error
        self._lock: int | None = lock

    @property
    def table(self) -> CatalogTable:
        """The table of the temporary files."""
        options = {"connector": "filesystem", "path": str(self._path / "rows"), "format": "parquet"}
        if not self._table.primary_key:
            return replace(self._table, options=options, partitioned_by=())
        options["changelog.mode"] = "upsert"
        fields = (replace(field, name=self._name(field.name)) for field in self._table.source_schema)
        key = tuple(map(self._name, self._table.primary_key))
        source = Schema(tuple(fields))
        return replace(self._table, source_schema=source, options=options, primary_key=key, partitioned_by=())

    @property
    def state_dir(self) -> Path:
        """Where the job's state may lie until its end."""
        return self._path / "state"

    def publish(self) -> RowCounts | None:
        """Replace the old rows by those of the files, in one commit. DAT-4618, DAT-53xx."""
        try:
            self._replace(self._partitions())
        finally:
            self.discard()
        return None

    def _replace(self, partitions: pa.Table | None) -> None:
        target = self._opened()
        try:
            target.overwrite(self._path.name, self._rows, partitions, self._read)
        finally:
            target.close()

    def discard(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _rows(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        names = self._schema.names if columns is None else columns
        schema = pa.schema([self._schema.field(name) for name in names])
        if not self._table.primary_key:
            yield from self._stored(schema)
            return
        kept, first = self._last_changes(), 0
        stored = pa.schema([OP_FIELD, *(column.with_name(self._name(column.name)) for column in schema)])
        for rows in self._stored(stored):
            begin, end = np.searchsorted(kept, [first, first + rows.num_rows])
            last = rows.take(array_of(kept[begin:end] - first))
            first += rows.num_rows
            changes = without_op_column(last, names)
            assert changes.weights is not None
            there = changes.rows.filter(array_of(changes.weights > 0))
            if there.num_rows:
                yield there

    def _stored(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield columns of the files, in the order in which each subtask has written them."""
        place = self._path / "rows"
        # hidden files, such as the log of commits, are none of the rows; numbers may have more digits
        files = (path for path in place.glob("*.parquet") if not path.name.startswith("."))
        for path in sorted(files, key=lambda path: (len(path.name), path.name)):
            file = ds.dataset(path, schema=schema, format="parquet")
            for rows in file.to_batches(batch_size=_BATCH_ROWS):
                if rows.num_rows:
                    yield rows.cast(schema)

    def _name(self, name: str) -> str:
        """Return the name that a column has in the files."""
        return self._own_op if name == OP_FIELD.name else name

    def _last_changes(self) -> np.ndarray:
        """Return the positions of the last change of each key, in order. Keys are held, rows are not."""
        by_name = {name.lower(): name for name in self._schema.names}
        key = [self._schema.field(by_name[name.lower()]) for name in self._table.primary_key]
        schema = pa.schema([column.with_name(self._name(column.name)) for column in key])
        keys, places = schema.empty_table(), np.zeros(0, np.int64)
        waiting: list[pa.RecordBatch] = []
        read = count = 0
        for rows in self._stored(schema):
            waiting.append(rows)
            count += rows.num_rows
            # as many new ones as there are keys: each is looked at a few times in all
            if count >= max(_CHANGES, keys.num_rows):
                keys, places = _last_of_each(keys, places, waiting, read)
                read, count, waiting = read + count, 0, []
        return np.sort(_last_of_each(keys, places, waiting, read)[1])

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
            several = pa.concat_tables([found, pa.Table.from_batches([rows], schema)])
            found = several.group_by(columns, use_threads=False).aggregate([]).select(columns).cast(schema)
        return found


def _version(opened: Callable[[], ReplacedTable], rewrites: bool) -> Version:
    target = opened()
    try:
        return target.version(rewrites=rewrites)
    finally:
        target.close()


def _own_op(names: list[str]) -> str:
    """Return a name for a column ``op`` beside the op of a change."""
    name = f"{OP_FIELD.name}_"
    while name in names:
        name += "_"
    return name


def _last_of_each(
    keys: pa.Table, places: np.ndarray, more: list[pa.RecordBatch], first: int
) -> tuple[pa.Table, np.ndarray]:
    """Return each key once with the place of its last change; those of ``more`` begin at ``first``."""
    several = pa.concat_tables([keys, pa.Table.from_batches(more, keys.schema)])
    all_places = np.concatenate([places, first + np.arange(several.num_rows - len(places))])
    number, count = group_numbers(several)
    last = np.zeros(count, np.int64)
    # later places overwrite earlier ones
    last[number] = np.arange(len(number))
    return several.take(array_of(last)), all_places[last]
