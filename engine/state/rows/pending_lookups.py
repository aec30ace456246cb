"""PendingLookups: the rows of a lookup join whose answers are pending, as state.

They are stored whole, in order of arrival, under one key group of their subtask.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.row_pieces import batches_of
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import weights_of
from penstock.engine.state.state_snapshot import COPIES

# The least int64: no row is behind the start of all time.
_ON_TIME = -(2**63)


class PendingLookups:
    """The batches last passed to ``hold``, which snapshots store. Restored ones remain until ``take``."""

    def __init__(self, schema: pa.Schema, key_group: int) -> None:
        self._schema = schema
        self._group = key_group
        self._declared: list[Batch] = []
        self._restored: list[Batch] = []

    @property
    def has_restored(self) -> bool:
        """Whether ``take`` has not yet returned the restored rows."""
        return bool(self._restored)

    def hold(self, batches: list[Batch]) -> None:
        # References only: the operator declares the same batches again and again, and a snapshot copies.
        """Declare the pending batches; none of their weights is negative."""
        self._declared = batches

    def take(self) -> list[Batch]:
        """Return the restored rows, once."""
        restored, self._restored = self._restored, []
        return restored

    def snapshot(self) -> pa.Table:
        # Restored rows that nobody took yet are still pending: a snapshot before ``take`` must have them.
        batches = [*self._restored, *self._declared]
        rows = sum(batch.num_rows for batch in batches)
        behind = [
            np.full(batch.num_rows, _ON_TIME) if batch.behind is None else batch.behind for batch in batches
        ]
        # On disk: key_group, behind, c0 ..., and ``copies`` where one row means several equal ones.
        names = ["key_group", "behind", *[f"c{i}" for i in range(len(self._schema))]]
        table = pa.Table.from_batches([batch.rows for batch in batches], self._schema)
        group_and_watermark = [
            array_of(np.full(rows, self._group, np.uint16)),
            array_of(np.concatenate([*behind, np.zeros(0, np.int64)])),
        ]
        snapshot_table = pa.table([*group_and_watermark, *table.columns], names=names)
        if all(batch.weights is None for batch in batches):
            return snapshot_table
        return snapshot_table.append_column(
            COPIES, array_of(np.concatenate([weights_of(batch) for batch in batches]))
        )

    def restore(self, part: pa.Table) -> None:
        width, start = len(self._schema), 0
        behind = numbers_of(part.column("behind"))
        # Searched only behind the row's own columns: one of these may be called ``copies`` in an old file.
        weights = numbers_of(part.column(COPIES)) if COPIES in part.column_names[width + 2 :] else None
        for rows in batches_of(pa.Table.from_arrays(part.columns[2 : width + 2], schema=self._schema)):
            here = slice(start, start + rows.num_rows)
            start += rows.num_rows
            late = not (behind[here] == _ON_TIME).all()
            self._restored.append(
                Batch(rows, None if weights is None else weights[here], behind[here] if late else None)
            )
