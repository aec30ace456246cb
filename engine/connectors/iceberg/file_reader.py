"""Reads a planned data file of an Iceberg table: the rows that its deletes leave, or those of chosen
positions.

The library reads columns by their ids, older types and files of deleted positions. A delete may compare
columns that are not requested: they are read too, and dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.connectors.iceberg.file_planning import PlannedFile

# names of columns that are read for deletes only: the id follows
_KEY = "penstock.key."
# of files of deleted positions: reserved by Iceberg's specification
_PATH, _POSITION = 2147483546, 2147483545


class PlannedFileReader:
    """Reads data files of one table. It keeps the keys of deletes that it has read: a stream compares them
    with each snapshot.
    """

    def __init__(self, found: Any, where: str) -> None:
        self._found = found
        self._where = where
        self._keys: dict[str, pa.Table] = {}

    def keep_keys(self, paths: frozenset[str]) -> None:
        """Drop the keys of all files of deletes but these."""
        self._keys = {path: keys for path, keys in self._keys.items() if path in paths}

    def rows(self, file: PlannedFile, projection: Any, row_filter: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows that are not deleted and that the filter may match, in the order of the file.
        DAT-5305 for deletes that cannot be applied.
        """
        ids = {number for deletes in file.equality for number in deletes.ids}
        widened, names = self._with_keys(projection, ids)
        for batch in self._scan(file.task, widened, row_filter):
            kept = batch
            if ids:
                kept = batch.filter(pa.array(~self._equal(file, batch, names)))
            yield kept.select(list(range(len(projection.fields))))

    def rows_at(self, file: PlannedFile, projection: Any, positions: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Return the rows at ascending positions of the file, whatever is deleted."""
        if not len(positions):
            return
        first = 0
        for batch in self._scan(_without_deletes(file.task), projection, None):
            begin, end = np.searchsorted(positions, [first, first + batch.num_rows])
            if end > begin:
                yield batch.take(pa.array(positions[begin:end] - first))
            first += batch.num_rows

    def deleted_between(self, former: PlannedFile, newer: PlannedFile) -> np.ndarray:
        """Return the positions of rows of a file that only the newer deletes leave out, ascending."""
        ids = {number for deletes in (*former.equality, *newer.equality) for number in deletes.ids}
        left_out = []
        for file in (former, newer):
            mask = np.zeros(file.task.file.record_count, bool)
            positions = self._deleted_positions(file)
            mask[positions[positions < len(mask)]] = True
            left_out.append(mask)
        projection, names = self._with_keys(None, ids)
        first = 0
        for batch in self._scan(_without_deletes(newer.task), projection, None) if ids else ():
            rows = slice(first, first + batch.num_rows)
            left_out[0][rows] |= self._equal(former, batch, names)
            left_out[1][rows] |= self._equal(newer, batch, names)
            first += batch.num_rows
        return np.flatnonzero(left_out[1] & ~left_out[0])

    def _equal(self, file: PlannedFile, batch: pa.RecordBatch, names: dict[int, str]) -> np.ndarray:
        """Return which rows equality deletes leave out."""
        deleted = np.zeros(batch.num_rows, bool)
        for deletes in file.equality:
            columns = [batch.column(names[number]) for number in deletes.ids]
            deleted |= deletes.are_deleted(columns, file.sequence, self._read_keys)
        return deleted

    def _with_keys(self, projection: Any, ids: set[int]) -> tuple[Any, dict[int, str]]:
        """Return a projection with the columns of some ids, and the names by which they are read."""
        from pyiceberg.schema import Schema

        fields = [] if projection is None else list(projection.fields)
        names = {field.field_id: field.name for field in fields if field.field_id in ids}
        for number in sorted(ids - names.keys()):
            field = self._column(number)
            names[number] = f"{_KEY}{number}"
            fields.append(field.model_copy(update={"name": names[number], "required": False}))
        return Schema(*fields), names

    def _column(self, number: int) -> Any:
        """Return a column of the table by its id: of its newest schema, or of the one that had it last."""
        metadata = self._found.metadata
        for schema in (self._found.schema(), *reversed(metadata.schemas)):
            for field in schema.fields:
                if field.field_id == number and field.field_type.is_primitive:
                    return field
        raise PenstockError(
            "DAT-5305",
            f"{self._where} has equality deletes by column {number}, which is in a column of rows",
            hint="apply them: CALL system.rewrite_data_files in Spark, with 'delete-file-threshold' = '1'",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )

    def _read_keys(self, file: Any, ids: tuple[int, ...]) -> pa.Table:
        """Return the keys of a file of equality deletes."""
        from pyiceberg.table import FileScanTask

        known = self._keys.get(file.file_path)
        if known is not None:
            return known
        projection, names = self._with_keys(None, set(ids))
        batches = list(self._scan(FileScanTask(file), projection, None))
        if not batches:
            return pa.table({names[number]: pa.nulls(0) for number in ids})
        self._keys[file.file_path] = pa.Table.from_batches(batches).select([names[number] for number in ids])
        return self._keys[file.file_path]

    def _deleted_positions(self, file: PlannedFile) -> np.ndarray:
        """Return the positions that files of deletes name."""
        found = [self._positions_in(deletes, file.path) for deletes in file.task.delete_files]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _positions_in(self, deletes: Any, path: str) -> np.ndarray:
        from pyiceberg.manifest import FileFormat
        from pyiceberg.schema import Schema
        from pyiceberg.table import FileScanTask
        from pyiceberg.types import LongType, NestedField, StringType

        if deletes.file_format == FileFormat.PUFFIN:
            return self._vector_in(deletes.file_path, path)
        schema = Schema(
            NestedField(_PATH, "file_path", StringType(), required=True),
            NestedField(_POSITION, "pos", LongType(), required=True),
        )
        batches = self._scan(FileScanTask(deletes), schema, None)
        found = [batch.filter(pc.equal(batch.column(0), path)).column(1).to_numpy() for batch in batches]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _vector_in(self, vectors: str, path: str) -> np.ndarray:
        """Return the positions of a file of deletion vectors, of format version 3."""
        from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
        from pyiceberg.table.puffin import PuffinFile

        with self._found.io.new_input(vectors).open() as file:
            puffin = PuffinFile(file.read())
        found = [
            vector.to_vector().to_numpy()
            for vector in deletion_vectors_from_puffin_file(puffin)
            if vector.referenced_data_file == path
        ]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _scan(self, task: Any, projection: Any, row_filter: Any) -> Iterator[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        wanted = AlwaysTrue() if row_filter is None else row_filter
        scan = ArrowScan(self._found.metadata, self._found.io, projection, wanted)
        yield from scan.to_record_batches([task])


def _without_deletes(task: Any) -> Any:
    from pyiceberg.table import FileScanTask

    return FileScanTask(task.file)
