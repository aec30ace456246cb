"""Conversions between penstock's Arrow schemas and Spark's."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from penstock.catalog.errors import PenstockError


def spark_schema(schema: pa.Schema, columns: tuple[str, ...] | None) -> StructType:
    """Return all columns, or those named, as a Spark schema. DAT-4625 for an unknown column, DAT-4626 for a
    type that Spark does not have.
    """
    names = schema.names if columns is None else columns
    for name in names:
        if name not in schema.names:
            raise PenstockError(
                "DAT-4625",
                f"there is no column {name}",
                hint=f"there are {', '.join(schema.names)}",
                sqlstate="42703",
            )
        try:
            # column by column first, so that the error names the column
            from_arrow_schema(pa.schema([schema.field(name)]), prefer_timestamp_ntz=True)
        except PySparkTypeError as error:
            message = f"column {name} has type {schema.field(name).type}, which Spark has not"
            raise PenstockError(
                "DAT-4626", message, hint="cast it in the query that writes it", sqlstate="0A000"
            ) from error
    return from_arrow_schema(pa.schema([schema.field(name) for name in names]), prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow layout in which Spark takes rows of a schema."""
    return to_arrow_schema(schema, timezone="UTC")


def as_spark_takes_it(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch in exactly a layout."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
