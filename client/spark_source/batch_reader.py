"""Batch reads of committed files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from penstock.client.spark_source.file_batches import batches, packed
from penstock.client.spark_source.pushed_filters import Condition, expression, split
from penstock.client.spark_source.source_options import SourceOptions
from penstock.client.spark_source.spark_schema import arrow_schema


class CommittedReader(DataSourceReader):
    """Reads the commits of a directory up to the newest there is when the query is planned, or those asked
    for.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self._conditions: list[Condition] = []

    def partitions(self) -> Sequence[InputPartition]:
        log = self._options.log()
        last = log.last() if self._options.ending is None else self._options.ending
        return packed(log.files(self._options.starting, last))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema, expression(self._conditions, self._schema))


class PushingReader(CommittedReader):
    """Tests filters where the files are read.

    Only where it is asked for: Spark 4.3 keeps what was pushed with the relation, and a second use of one
    DataFrame or view, in the same query or in a later one, reads with the filters of the first.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._conditions, left = split(filters, self._schema)
        return left
