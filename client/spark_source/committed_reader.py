"""Readers of committed files: the batch reader, a batch reader with pushed filters, and the stream reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.client.spark_source.committed_files import batches, packed
from penstock.client.spark_source.pushed_filters import Condition, expression, split
from penstock.client.spark_source.source_options import SourceOptions
from penstock.client.spark_source.spark_schema import arrow_schema


class CommittedReader(DataSourceReader):
    """Reads the commits of a directory: the requested ones, or all up to the newest at planning time."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self._conditions: list[Condition] = []

    def partitions(self) -> Sequence[InputPartition]:
        log = self._options.log()
        # read once: all tasks read the same commits, whatever is committed meanwhile
        last = log.last() if self._options.ending is None else self._options.ending
        return packed(log.files(self._options.starting, last))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema, expression(self._conditions, self._schema))


class PushingReader(CommittedReader):
    """A reader that applies filters where the files are read. Only on request: Spark 4.3 stores pushed
    filters with the relation. A second use of one DataFrame or view, in the same query or a later one, reads
    with the filters of the first.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        # what is returned is tested by Spark
        self._conditions, left = split(filters, self._schema)
        return left


class CommittedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams whole commits, at least one at a time. A batch ends before the commit that would exceed the
    requested rows.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self._log = options.log()
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        # an offset is the last commit that was read: -1 before the first
        return {"commit": self._log.last() if self._options.starting < 0 else self._options.starting - 1}

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._options.rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        # AvailableNow ends at the newest commit of now, also when a job goes on committing
        self._target = self._log.last()

    def reportLatestOffset(self) -> dict[str, int]:
        return {"commit": self._log.last()}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        last = self._log.last() if self._target is None else self._target
        if not isinstance(limit, ReadMaxRows):
            # an offset never goes back
            return {"commit": max(start["commit"], last)}
        end, rows = start["commit"], 0
        for commit in self._log.commits(end + 1, last):
            # the first commit is always included, so that the stream progresses
            if rows and rows + commit.rows > limit.max_rows:
                break
            end, rows = commit.number, rows + commit.rows
        return {"commit": end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        # Spark's ranges are (start, end]
        return packed(self._log.files(start["commit"] + 1, end["commit"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema, None)
