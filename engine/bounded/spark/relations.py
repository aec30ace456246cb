"""Relations as Spark's temporary views. Spark reads files itself where it can. All else is Arrow: in the plan
when small, else fetched by tasks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from penstock.catalog.connectors.spark import is_in_spark
from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import Services
from penstock.engine.bounded.connector_relations import own_batches, registered_table
from penstock.engine.bounded.file_relations import (
    EMPTY_MARK,
    FileGroup,
    FileRelation,
    empty_select,
    file_relation,
    position_name,
    typed_select,
)
from penstock.engine.bounded.spark.errors import spark_error, spark_failures
from penstock.engine.bounded.spark.sessions import NEWS
from penstock.engine.bounded.spark.tables import register_table
from penstock.engine.bounded.spark_results.served_rows import ServedRows
from penstock.planner.sql_generator.query import ScannedTable
from penstock.planner.sql_generator.spark.dialect import SparkFlavour

# a larger table would make the plan itself large; it goes with every task of the query
_HANDED_OVER_BYTES = 32 << 20
# characters of Hadoop's glob patterns
_PATTERN = re.compile(r"([*?\[\]{}\\])")


class SparkRelations:
    """Registers relations in one session. Spark gets a file path only for files it reads itself: its
    executors need not see our disks.
    """

    def __init__(
        self, session: Any, services: Services, served: ServedRows, came: Callable[[], None]
    ) -> None:
        """``came`` is called for each batch read here, because Spark is idle meanwhile."""
        self._session = session
        self._services = services
        self._served = served
        self._came = came

    def register(self, name: str, relation: ScannedTable) -> None:
        """Register a relation under a name."""
        # a table of Spark; files Spark opens; else rows of ours
        if is_in_spark(relation.table):
            register_table(self._session, name, relation)
            return
        files = _files_of(relation)
        if not isinstance(files, str) and self._opens(name, files):
            return
        table = registered_table(relation, self._services)
        batches = own_batches(relation, self._services) if table is None else iter(table.to_batches())
        self._register_rows(name, relation, batches)

    def _opens(self, name: str, files: FileRelation) -> bool:
        """Register files that Spark can open. If it lacks the jars or the rights for a store, penstock reads
        the files, since it could list them.
        """
        try:
            self._register_files(name, files)
        except spark_failures() as error:
            # a local file that our listing has seen: its error is the query's
            if files.local:
                raise
            NEWS.info(
                "Spark cannot open %s, so penstock reads it: %s",
                files.groups[0].paths[0],
                spark_error(error).message,
            )
            return False
        return True

    def _register_files(self, name: str, files: FileRelation) -> None:
        selects = []
        # layout to Spark's schema, so that its footers are read once for many partitions
        layouts: dict[int, Any] = {}
        # 007 is a text to begin with
        self._session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        for number, group in enumerate(files.groups):
            raw = f"{name}_{number}"
            frame = self._read(files, group, layouts.get(group.layout))
            if group.layout not in layouts and len(files.groups) > 1:
                layouts[group.layout] = frame.schema
            frame.createOrReplaceTempView(raw)
            selects.append(typed_select(files, group, raw, SparkFlavour()))
        select = " UNION ALL ".join(selects) or empty_select(files.relation, SparkFlavour())
        self._session.sql(select).createOrReplaceTempView(name)

    def _read(self, files: FileRelation, group: FileGroup, known: Any) -> Any:
        """Return a group's files as a frame. ``known``: the schema of another group of this layout, which
        saves Spark the inference.
        """
        paths = [hadoop_path(path) for path in group.paths]
        reader = self._session.read
        if group.base:
            # which is never a pattern
            reader = reader.option("basePath", f"file://{group.base}" if files.local else group.base)
        if files.format == "parquet":
            return (reader if known is None else reader.schema(known)).parquet(*paths)
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
        schema = ", ".join(f"{position_name(position)} STRING" for position in range(group.width))
        return reader.options(**options).schema(schema).csv(paths)

    def _heard(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # without this the watch would take reading a large file here for a hung Spark
        for batch in batches:
            self._came()
            yield batch

    def _register_rows(self, name: str, relation: ScannedTable, batches: Iterator[pa.RecordBatch]) -> None:
        """Register rows of ours: as literals of the plan while they are few, else as segments for its tasks
        to fetch.
        """
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        # the schema in wire types, as Spark's and back as Arrow's: createDataFrame wants exactly that
        schema = from_arrow_schema(
            wired(relation.schema.to_arrow().empty_table()).schema, prefer_timestamp_ntz=True
        )
        layout = to_arrow_schema(schema, timezone="UTC")
        ready = (
            part
            for batch in self._heard(batches)
            for part in wired(pa.Table.from_batches([batch])).cast(layout).to_batches()
        )
        # collect until it is too much for a plan; what was collected goes first then
        first: list[pa.RecordBatch] = []
        size = 0
        for batch in ready:
            first.append(batch)
            size += batch.nbytes
            if size > _HANDED_OVER_BYTES:
                frame = self._served.frame(self._session, itertools.chain(first, ready), schema)
                break
        else:
            frame = self._session.createDataFrame(pa.Table.from_batches(first, layout), schema)
        frame.createOrReplaceTempView(name)


def hadoop_path(path: str) -> str:
    """Return a local path or URL in Hadoop's form: not percent-encoded, because Hadoop does not decode, and
    with glob characters escaped.

    Spark's own option for literal paths, `__globPaths__`, reads each file once for every path with such a
    character.
    """
    return ("file://" if path.startswith("/") else "") + _PATTERN.sub(r"\\\1", path)


def reading_of(relation: ScannedTable) -> str:
    """Describe for EXPLAIN how Spark reads a relation. It lists the files as the query will."""
    if is_in_spark(relation.table):
        return "a table of Spark"
    try:
        files = _files_of(relation)
    except PenstockError as error:
        return f"{error.code} {error.message}"
    if isinstance(files, str):
        return f"read by penstock, handed over as Arrow: {files}"
    count = sum(len(group.paths) for group in files.groups)
    # base: Spark reads partition columns itself; values: we write them as constants
    by = ", partitions by the names of directories" if any(group.base for group in files.groups) else ""
    by = ", partitions as constants" if any(group.values for group in files.groups) else by
    where = "" if files.local else " where it can open them, else by penstock"
    return f"{count} file{'' if count == 1 else 's'} of {files.format} read by Spark{where}{by}"


def _files_of(relation: ScannedTable) -> FileRelation | str:
    """Return the files that Spark reads as we do, or the reason why it does not."""
    files = file_relation(relation, hadoop=True)
    return files if isinstance(files, str) else _other_reading(files) or files


def _other_reading(files: FileRelation) -> str | None:
    """Return the reason why Spark would read these files differently, else ``None``.

    It would read a quoted null literal as NULL. Where values may contain line ends, it would read a byte
    order mark as part of the first value. From a wheel it has no zstd. Hadoop reads the part of a name before
    a colon as a scheme.
    """
    dialect = files.dialect
    names = [
        path if files.local else path.partition("://")[2].partition("/")[2]
        for group in files.groups
        for path in group.paths
    ]
    if any(":" in name for name in names):
        return "a file's path has a colon"
    if any(name.endswith((".zst", ".zstd")) for name in names):
        return "zstd"
    if dialect.null_literal:
        return "'csv.null-literal'"
    return None if dialect.header or not dialect.multiline else "'csv.multiline' without a header"


def wired(table: pa.Table) -> pa.Table:
    """Return a table in Spark's wire types: intervals as counts, times of day as text
    (``SparkFlavour.from_wire`` reads them back).
    """
    for index, field in enumerate(table.schema):
        # INTERVAL DAY TO SECOND as microseconds; TIME as text, because Spark's Arrow has no type for it
        if pa.types.is_duration(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.int64()))
        elif pa.types.is_time(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.string()))
    return table
