"""The datagen source: rows are numbered from 0 and distributed round robin over splits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.generated.column_generators import FieldPlan, plan_field
from penstock.engine.connectors.generated.split_reader import GeneratedReader
from penstock.engine.formats.decoded_batch import batch_of


class DatagenSource:
    """Split s of n has the rows s, s + n, s + 2n and so on. The number of splits affects only the order of
    rows.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        _check_columns(request.table)
        plans = {
            field.name: plan_field(request.table, field)
            for field in request.table.source_schema
            if not _is_row(request.table, field.name)
        }
        declared = option(request.table, "number-of-rows")
        ends = [plan.rows for plan in plans.values() if plan.rows is not None] + (
            [] if declared is None else [int(declared)]
        )
        # a sequence with an end bounds the table, as number-of-rows does
        self._rows = min(ends) if ends else None
        self._splits = int(option(request.table, "splits") or 1)
        self._fields = tuple(request.table.source_schema[index] for index in request.columns)
        self._plans = [plans.get(field.name) for field in self._fields]

    def splits(self) -> list[str]:
        return [f"{split:05d}/{self._splits}" for split in range(self._splits)]

    def recall(self, split_ids: list[str]) -> None:
        # rows are numbered by the number of splits: another number would repeat and lose rows
        if sorted(split_ids) != self.splits():
            message = f"table {self._request.table.name} had {len(split_ids)} splits, it has {self._splits}"
            raise PenstockError(
                "DAT-4107", message, hint="set 'splits' to its former value to resume from a checkpoint"
            )

    def open(self, split_id: str, position: Position | None) -> GeneratedReader:
        split = int(split_id.partition("/")[0])
        # how many of 0 .. rows - 1 are this split's; rounded up
        rows = None if self._rows is None else max(0, -(-(self._rows - split) // self._splits))
        clock = self._request.clock
        return GeneratedReader(
            lambda first, count: self.make(split, first, count, clock.wall_ms() * 1000),
            rows,
            position,
            sum(plan.width for plan in self._plans if plan is not None),
        )

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return int(option(self._request.table, "rows-per-second") or 0)

    def make(self, split: int, first: int, count: int, now_us: int) -> pa.RecordBatch:
        """Return rows first .. first + count of a split."""
        # row i of split s is row i * splits + s of the table
        numbers = np.arange(first, first + count, dtype=np.uint64) * np.uint64(self._splits) + np.uint64(
            split
        )
        return batch_of([_column(plan, numbers, now_us) for plan in self._plans], self._fields, count)


def _column(plan: FieldPlan | None, numbers: np.ndarray, now_us: int) -> pa.Array:
    return array_of(numbers.astype(np.int64)) if plan is None else plan.make(numbers, now_us)


def _is_row(table: CatalogTable, name: str) -> bool:
    return any(column.name == name and column.key == "row" for column in table.metadata)


def _check_columns(table: CatalogTable) -> None:
    """Refuse options of columns the table does not have. SQL-1510."""
    names = [name.lower() for name in table.source_schema.names]
    for key in table.options:
        if key.startswith("fields.") and (column := key[len("fields.") : key.rindex(".")]) not in names:
            raise PenstockError(
                "SQL-1510",
                f"option '{key}': {table.name} has no column {column}",
                hint=did_you_mean(column, names, others=True),
            )
