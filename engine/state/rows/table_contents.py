"""Contents: the weighted rows of a whole table. Each subtask has the rows it received, whatever their
keys.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.operator import KeyedState
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold, weights_of

_GROUP, _WEIGHT = "key_group", "weight"
# Key of a field's metadata in the snapshot: the column's name in the table.
_NAME = b"name"


def column_name(field: pa.Field) -> str:
    """Return the name that a column of a snapshot has in the table. Old checkpoints stored no names: the
    column's position is the name then.
    """
    return (field.metadata or {}).get(_NAME, field.name.encode()).decode()


class Contents(KeyedState):
    """Snapshots hold key_group (always the subtask's first), weight and the columns: sums over subtasks are
    right whichever subtask restores a part.
    """

    def __init__(self, schema: pa.Schema, group: int) -> None:
        self._schema = schema
        self._group = group
        self._fold = Fold(schema)
        # Cached until rows are added: a table that does not change costs nothing at a checkpoint.
        self._snapshot: pa.Table | None = None

    def add(self, batch: Batch) -> None:
        """Add weighted rows."""
        self._fold.add(batch)
        self._snapshot = None

    def weighted(self) -> list[Batch]:
        """Return all rows with their weights."""
        return self._fold.weighted()

    def snapshot(self) -> pa.Table:
        if self._snapshot is None:
            named = [
                pa.field(f"c{i}", field.type, metadata={_NAME: field.name})
                # c0, c1, ... as in other snapshots: names in the table may repeat or be renamed.
                for i, field in enumerate(self._schema)
            ]
            schema = pa.schema([pa.field(_GROUP, pa.uint16()), pa.field(_WEIGHT, pa.int64()), *named])
            self._snapshot = pa.Table.from_batches(
                [self._marked(rows, schema) for rows in self._fold.weighted()], schema
            )
        return self._snapshot

    def _marked(self, rows: Batch, schema: pa.Schema) -> pa.RecordBatch:
        groups = array_of(np.full(rows.num_rows, self._group, np.uint16))
        return pa.RecordBatch.from_arrays(
            [groups, array_of(weights_of(rows)), *rows.rows.columns], schema=schema
        )

    def restore(self, part: pa.Table) -> None:
        # Behind key_group and weight.
        for piece in part.combine_chunks().to_batches():
            rows = pa.RecordBatch.from_arrays(piece.columns[2:], schema=self._schema)
            self.add(Batch(rows, numbers_of(piece.column(_WEIGHT))))
