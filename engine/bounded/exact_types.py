"""Result columns as a backend hands them over, turned into exactly the Arrow types of the plan."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Schema
from penstock.engine.formats.decoded_batch import empty_columns


class ExactBatches:
    """Casts batches of wire columns to a schema's types and names."""

    def __init__(self, schema: Schema) -> None:
        self._target = schema.to_arrow()

    def cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with exact types; a schema of no columns keeps only the number of rows.
        BND-5103 when a column does not fit.
        """
        # SELECT of no columns (COUNT(*) above it): the batch still says how many rows there are
        if not len(self._target):
            return empty_columns(batch.num_rows)
        columns = [_exact(column, field) for column, field in zip(batch.columns, self._target, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self._target)


def check_texts(batch: pa.RecordBatch) -> None:
    """Raise RUN-2012 for a text that is not UTF-8: Spark has such texts, and no reader here could decode
    them.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            message = f"column {field.name} came from Spark with a text that is no UTF-8"
            hint = "make_valid_utf8(column) in a view of Spark mends it; as BINARY it can be read as it is"
            raise PenstockError(
                "RUN-2012", message, detail=str(error)[:200], hint=hint, sqlstate="22021"
            ) from error


def _exact(column: pa.Array, field: pa.Field) -> pa.Array:
    kind = field.type
    if column.type == kind:
        return column
    try:
        if pa.types.is_null(kind):
            # a literal NULL without a type: backends return it as some type of theirs
            return pa.nulls(len(column))
        if pa.types.is_time(kind) and pa.types.is_string(column.type):
            # TIME came as text (Spark): read it as a moment of 1970-01-01, whose microseconds are those
            # of the day
            moments = pc.binary_join_element_wise("1970-01-01", column, " ").cast(pa.timestamp("us"))
            return moments.cast(pa.int64()).cast(kind)
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"column {field.name} came from the bounded backend as {column.type}, not {kind}"
        raise PenstockError("BND-5103", message, detail=str(error)[:200], kind=Kind.INTERNAL) from error
