"""Relations as Spark's temporary views: files by Spark's readers, everything else as Arrow or Parquet we write for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.spark_options import is_in_spark
from engine.bounded.file_relations import EMPTY_MARK, FileGroup, FileRelation, empty_select, file_relation, position_name, typed_select
from engine.bounded.own_reading import own_batches, registered_table
from engine.bounded.spark_tables import register_table
from engine.formats.file_task import CsvDialect
from engine.operator import Services
from planner.bounded_query import Relation
from planner.spark_sql import SparkFlavour

_HANDED_OVER_BYTES = 32 << 20


class SparkRelations:
    """Registers relations in one session, with files of their own in a directory that is removed after the query."""

    def __init__(self, session: Any, services: Services, scratch: Path) -> None:
        self._session = session
        self._services = services
        self._scratch = scratch

    def register(self, name: str, relation: Relation) -> None:
        """Make a relation readable under a name."""
        if is_in_spark(relation.table):
            register_table(self._session, name, relation)
            return
        files = file_relation(relation)
        if files is not None and _reads_alike(files.dialect):
            self._register_files(name, files)
            return
        table = registered_table(relation, self._services)
        if table is not None and table.nbytes <= _HANDED_OVER_BYTES:
            self._session.createDataFrame(wired(table)).createOrReplaceTempView(name)
            return
        self._register_copy(name, relation, table)

    def _register_files(self, name: str, files: FileRelation) -> None:
        selects = []
        for number, group in enumerate(files.groups):
            raw = f"{name}_{number}"
            self._read(files, self._readable(group)).createOrReplaceTempView(raw)
            selects.append(typed_select(files, group, raw, SparkFlavour()))
        select = " UNION ALL ".join(selects) or empty_select(files.relation, SparkFlavour())
        self._session.sql(select).createOrReplaceTempView(name)

    def _read(self, files: FileRelation, group: FileGroup) -> Any:
        paths = [Path(path).as_uri() for path in group.paths]
        if files.format == "parquet":
            return self._session.read.parquet(*paths)
        dialect = files.dialect
        options = {
            "mode": "FAILFAST",
            "columnPruning": "false",  # else values too many or too few in a record go unseen
            "emptyValue": EMPTY_MARK,  # a quoted empty text, which is no NULL
            "encoding": "ISO-8859-1",  # the bytes as they are: typed_select makes texts of them
            "sep": dialect.delimiter,
            "quote": dialect.quote,
            "escape": dialect.quote,
            "header": str(dialect.header).lower(),
            "nullValue": dialect.null_literal,
            "multiLine": str(dialect.multiline).lower(),
        }
        schema = ", ".join(f"{position_name(position)} STRING" for position in range(len(group.names)))
        return self._session.read.options(**options).schema(schema).csv(paths)

    def _readable(self, group: FileGroup) -> FileGroup:
        """The group with zstd files unpacked: Spark from a wheel has no codec for them."""
        paths = [self._unpacked(path) if path.endswith((".zst", ".zstd")) else path for path in group.paths]
        return FileGroup(tuple(paths), group.names)

    def _unpacked(self, path: str) -> str:
        target = self._scratch / f"{len(list(self._scratch.iterdir()))}-{Path(path).stem}"
        with pa.input_stream(path, compression="zstd") as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        return str(target)

    def _register_copy(self, name: str, relation: Relation, table: pa.Table | None) -> None:
        """Write a relation as a Parquet file, batch by batch, and let Spark read that."""
        batches = own_batches(relation, self._services) if table is None else iter(table.to_batches())
        arrow = wired(pa.Table.from_batches([], relation.schema.to_arrow())).schema
        target = self._scratch / f"{name}.parquet"
        with pq.ParquetWriter(target, arrow, compression="zstd", use_dictionary=True) as writer:
            for batch in batches:
                writer.write_table(wired(pa.Table.from_batches([batch])))
        self._session.read.parquet(target.as_uri()).createOrReplaceTempView(name)


def _reads_alike(dialect: CsvDialect) -> bool:
    """Whether Spark reads csv of a dialect as we do: it would take a quoted null literal for NULL, and a mark of byte order for a part of
    the first value where values may hold line ends."""
    return not dialect.null_literal and (dialect.header or not dialect.multiline)


def wired(table: pa.Table) -> pa.Table:
    """Return a table with the types Spark takes: intervals as counts, times of day as text (``SparkFlavour.from_wire`` reads them back)."""
    for index, field in enumerate(table.schema):
        if pa.types.is_duration(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.int64()))
        elif pa.types.is_time(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.string()))
    return table
