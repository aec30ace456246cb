"""UPDATE, DELETE and MERGE: all rows of a table wait in files with what becomes of them, then one commit
replaces those of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.changelog.consolidate import group_numbers
from penstock.engine.connectors.row_replacement.replaced_table import ReplacedTable, RowCounts
from penstock.engine.connectors.row_replacement.staged_overwrite import StagedOverwrite
from penstock.planner.logical.sink import DELETED, INSERTED, KEPT, UPDATED, RowChanges


class StagedRowChanges(StagedOverwrite):
    """The rows of a table and their fates in temporary Parquet files, which the job of an UPDATE, DELETE or
    MERGE writes. ``publish`` commits, and returns how many rows were changed.

    The table must be at its end what it was when the statement began: DAT-4618 otherwise. What breaks a rule
    is refused before the commit, and changes nothing. Where no row changes, nothing is committed.
    """

    def __init__(
        self,
        changes: RowChanges,
        staged: CatalogTable,
        opened: Callable[[], ReplacedTable],
        within: Path | None = None,
    ) -> None:
        self._changes = changes
        super().__init__(staged, {}, opened, within, reads=True, rewrites=True)
        self._kept = np.zeros(0, np.bool_)

    def publish(self) -> RowCounts:
        """Replace the rows of the table by those of the files. DAT-4618, DAT-4619, DAT-4630, DAT-53xx."""
        try:
            counts = self._counts()
            if counts.total:
                if self._changes.changes_keys:
                    self._refuse_equal_keys()
                self._replace(None)
            return counts
        finally:
            self.discard()

    def _counts(self) -> RowCounts:
        """Count what becomes of the rows, and decide which of them the table has afterwards."""
        fate, row = self._changes.fate, self._changes.row
        marks = [fate, row] if row else [fate]
        found, numbered = [np.zeros(0, np.int8)], [np.zeros(0, np.int64)]
        # a byte a row is held, and by MERGE the row's number
        for batch in self._stored(pa.schema([self._schema.field(name) for name in marks])):
            found.append(batch.column(fate).to_numpy().astype(np.int8))
            if row:
                numbered.append(batch.column(row).fill_null(0).to_numpy())
        fates = np.concatenate(found)
        self._kept = fates != DELETED
        if row:
            return self._merged(fates, np.concatenate(numbered))
        numbers = np.bincount(fates, minlength=INSERTED + 1)
        return RowCounts(int(numbers[UPDATED]), int(numbers[DELETED]), int(numbers[INSERTED]))

    def _merged(self, fates: np.ndarray, rows: np.ndarray) -> RowCounts:
        """Count what becomes of rows that several rows of the source may match. ``rows`` has the number of
        the target's row, from 1; 0 for a row of the source.
        """
        acts = (fates == UPDATED) | (fates == DELETED)
        changed, times = np.unique(rows[acts], return_counts=True)
        if not self._changes.lone_delete and (times > 1).any():
            raise PenstockError(
                "DAT-4619",
                f"{int((times > 1).sum()):,} rows of {self._changes.table.name} would be changed by several "
                "rows of the source of MERGE",
                hint="make the source one row for each: GROUP BY the columns of ON, or filter by ROW_NUMBER",
                kind=Kind.USER,
                sqlstate="21000",
            )
        # a row that several rows match, and none changes, is there once
        last = int(rows.max(initial=0)) + 1
        is_changed = np.zeros(last, np.bool_)
        is_changed[changed] = True
        stays = np.flatnonzero((fates == KEPT) & ~is_changed[rows])
        first = stays[np.unique(rows[stays], return_index=True)[1]]
        self._kept = (fates == UPDATED) | (fates == INSERTED)
        self._kept[first] = True
        deleted = len(np.unique(rows[fates == DELETED]))
        return RowCounts(int((fates == UPDATED).sum()), deleted, int((fates == INSERTED).sum()))

    def _rows(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        names = [field.name for field in self._changes.table.physical_fields] if columns is None else columns
        first = 0
        for rows in self._stored(pa.schema([self._schema.field(name) for name in names])):
            kept = self._kept[first : first + rows.num_rows]
            first += rows.num_rows
            there = rows if kept.all() else rows.filter(array_of(kept))
            if there.num_rows:
                yield there

    def _refuse_equal_keys(self) -> None:
        """Refuse rows of equal PRIMARY KEY: DAT-4630. Keys are held, rows are not."""
        table = self._changes.table
        by_name = {name.lower(): name for name in self._schema.names}
        columns = [by_name[name.lower()] for name in table.primary_key]
        schema = pa.schema([self._schema.field(column) for column in columns])
        keys = pa.Table.from_batches(self._rows(columns), schema)
        _, count = group_numbers(keys)
        if count == keys.num_rows:
            return
        raise PenstockError(
            "DAT-4630",
            f"rows of {table.name} would share a PRIMARY KEY: {keys.num_rows:,} rows, {count:,} keys",
            hint=f"give each row its own {', '.join(columns)}, or leave such rows out",
            kind=Kind.USER,
            sqlstate="23505",
        )
