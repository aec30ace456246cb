"""Weighted rows as people and programs see them: as changes with an op, or only what is new."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import OP_FIELD, change_rows, with_op_column


def op_rows(batch: Batch, upsert_key: tuple[int, ...] | None) -> pa.RecordBatch:
    """Return the changes of a batch with a first column ``op``: a -1 and a +1 of one upsert key are ``-U``
    and ``+U``, side by side.
    """
    rows, ops = change_rows(batch, upsert_key)
    return with_op_column(rows, ops)


def change_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a changelog: ``op``, then the row."""
    return pa.schema([OP_FIELD, *schema])


def new_rows(batch: Batch) -> pa.RecordBatch:
    """Return the rows a batch adds, without those it takes back."""
    if batch.weights is None:
        return batch.rows
    return batch.rows.take(array_of(np.repeat(np.arange(batch.num_rows), np.maximum(batch.weights, 0))))
