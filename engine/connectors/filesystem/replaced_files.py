"""UPDATE, DELETE and MERGE of files: the new rows are written to a hidden directory, which then replaces that
of the table in a single step, also of a table in partitions.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from penstock.catalog.connectors.registry import file_format
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.filesystem.arrow_filesystems import resolve
from penstock.engine.connectors.filesystem.overwrite import ReplacementDirectory, files_version
from penstock.engine.connectors.filesystem.sink import FilesystemSink, table_directory
from penstock.engine.connectors.filesystem.source import csv_dialect
from penstock.engine.connectors.row_replacement.replaced_table import RowReader, Version

_BYTE_ORDER_MARK = "\ufeff"
_WITH_SCHEMA = {"parquet": "parquet", "arrow": "ipc"}


class ReplacedFiles:
    """The files of a table in a local directory, as a ``ReplacedTable``. One task writes the new ones."""

    def __init__(self, table: CatalogTable) -> None:
        self._table = table

    def version(self, *, rewrites: bool) -> Version:
        """Return what tells the files that there are from others. DAT-4101, DAT-4617 while a job
        writes to them.
        """
        path = self._table.options["path"]
        if not Path(resolve(path)[1]).exists():
            raise PenstockError(
                "DAT-4101",
                f"there is no file or directory {path}",
                hint="INSERT rows first, or correct the path",
                kind=Kind.EXTERNAL,
            )
        # looks for such a job, and finishes what another statement had begun
        ReplacementDirectory(self._table, {}, whole=True).discard()
        root = table_directory(self._table).resolve()
        if rewrites:
            self._refuse_undeclared(root)
        return files_version(root)

    def overwrite(
        self, statement: str, rows: RowReader, partitions: pa.Table | None, read: Version | None = None
    ) -> None:
        """Replace all files by those of new rows. DAT-4617, DAT-4618."""
        directory = ReplacementDirectory(self._table, {}, whole=True, read=read)
        try:
            self._write(directory.table, statement, rows())
        except BaseException:
            directory.discard()
            raise
        directory.publish()

    def close(self) -> None:
        """Nothing is open."""

    def _write(self, table: CatalogTable, statement: str, rows: Iterator[pa.RecordBatch]) -> None:
        schema = Schema(table.physical_fields)
        request = SinkRequest(table, schema, None, statement, statement, 0, 1, Services(), resumes=False)
        sink = FilesystemSink(request)
        try:
            sink.recover([])
            for batch in rows:
                sink.write(Batch(batch))
            sink.commit(sink.prepare(1))
            sink.completed(1)
        finally:
            sink.close()

    def _refuse_undeclared(self, root: Path) -> None:
        """Refuse files with columns that the table does not declare: they would be lost. DAT-4631."""
        declared = {field.name.lower() for field in self._table.physical_fields}
        for path, name in self._columns(root):
            if name.lower() not in declared:
                raise PenstockError(
                    "DAT-4631",
                    f"column {name} of {path} is not declared, and its values would be lost",
                    hint=f"declare {name} too: rows are read, and written again with their changes",
                    kind=Kind.EXTERNAL,
                    sqlstate="0A000",
                )

    def _columns(self, root: Path) -> Iterator[tuple[Path, str]]:
        """Yield the columns of each file."""
        kind = file_format(self._table) or ""
        for place, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(place) / name
                if name.startswith((".", "_")) or not path.stat().st_size:
                    continue
                if kind in _WITH_SCHEMA:
                    found = ds.dataset(path, format=_WITH_SCHEMA[kind]).schema.names
                else:
                    found = _keys(path) if kind == "json" else self._header(path)
                yield from ((path, column) for column in found)

    def _header(self, path: Path) -> list[str]:
        """Return the names in the first line of a csv file. Without a header its columns have the declared
        names, and those behind them numbers.
        """
        dialect = csv_dialect(self._table)
        with pa.input_stream(str(path)) as file, io.TextIOWrapper(file, dialect.encoding, newline="") as text:
            first = next(csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote), [])
        if dialect.header:
            return [name.removeprefix(_BYTE_ORDER_MARK) for name in first]
        partitions = {name.lower() for name in self._table.partitioned_by}
        stored = [field for field in self._table.physical_fields if field.name.lower() not in partitions]
        return [str(number + 1) for number in range(len(stored), len(first))]


def _keys(path: Path) -> list[str]:
    """Return the keys of the objects in a file of JSON, of all of them: any may have more."""
    import duckdb

    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT DISTINCT UNNEST(json_keys(json)) FROM read_json_objects(?, format = 'auto')",
            [str(path)],
        ).fetchall()
    return sorted(key for (key,) in rows)
