"""The data source: ``spark.read.format("penstock")`` and ``spark.readStream.format("penstock")``."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from penstock.catalog.errors import PenstockError
from penstock.client.spark_source.committed_reader import CommittedReader, CommittedStream, PushingReader
from penstock.client.spark_source.materialized_view_reader import ViewReader, pinned_view
from penstock.client.spark_source.source_options import SourceOptions
from penstock.client.spark_source.spark_schema import spark_schema


class PenstockSource(DataSource):
    """Reads files that sinks have committed (option ``path``, a table's directory), or a materialized view
    from a checkpoint (``view``).
    """

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        options = SourceOptions.parse(self.options)
        # without endingCommit the columns of the newest commit
        whole = pinned_view(options).schema if options.view else options.log().schema(options.ending)
        return spark_schema(whole, options.columns)

    def reader(self, schema: StructType) -> CommittedReader | ViewReader:
        options = SourceOptions.parse(self.options, streaming=False)
        # a checkpoint has the view's rows, not its changes
        if options.view:
            return ViewReader(options, schema)
        return (PushingReader if options.push_filters else CommittedReader)(options, schema)

    def streamReader(self, schema: StructType) -> CommittedStream:
        options = SourceOptions.parse(self.options, streaming=True)
        if options.view:
            message = (
                f"materialized view {options.view} is not read as a stream: a job keeps only its newest "
                "states"
            )
            hint = (
                "INSERT the view's query INTO a filesystem table with 'changelog.mode' = 'retract', and "
                "stream that"
            )
            raise PenstockError("DAT-4624", message, hint=hint, sqlstate="0A000")
        return CommittedStream(options, schema)
