"""Rows that are read and not fetched yet, as the tuples of PEP 249 and as the Arrow rows they come from."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError

Row = tuple[Any, ...]


class RowBuffer:
    """Rows in the order they came. Whoever takes some, as tuples or as Arrow, takes them from the front."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque()
        # what the tuples were made of: the last rows of these tables are those of _rows
        self._tables: deque[pa.Table] = deque()
        self._table_rows = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Append rows. CLI-6011 or CLI-6014 for a value that Python has no object for."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        self._rows.extend(tuples(table))
        self._tables.append(table)
        self._table_rows += table.num_rows

    def take(self, count: int) -> list[Row]:
        """Return up to ``count`` rows."""
        if count >= len(self._rows):
            taken = list(self._rows)
            self.clear()
            return taken
        taken = [self._rows.popleft() for _ in range(count)]
        # an endless result is never empty: its tables are dropped once all their rows are taken
        while self._table_rows - self._tables[0].num_rows >= len(self._rows):
            self._table_rows -= self._tables.popleft().num_rows
        return taken

    def take_arrow(self, limit: int | None = None) -> pa.Table | None:
        """Return the rows, or the first ``limit`` of them, as Arrow; None where there are none."""
        if not self._rows:
            return None
        rows = pa.concat_tables(self._tables).slice(self._table_rows - len(self._rows), limit)
        self.take(rows.num_rows)
        return rows

    def first(self, count: int) -> list[Row]:
        """Return up to ``count`` rows, which stay in the buffer."""
        return list(islice(self._rows, count))

    def clear(self) -> None:
        """Drop all rows."""
        self._rows.clear()
        self._tables.clear()
        self._table_rows = 0


def tuples(rows: pa.Table | pa.RecordBatch) -> list[Row]:
    """Return rows as Python tuples, as PEP 249 demands. CLI-6011 or CLI-6014 for a value that Python has no
    object for.
    """
    return list(
        zip(
            *(_values(field, column) for field, column in zip(rows.schema, rows.columns, strict=True)),
            strict=True,
        )
    )


def _values(field: pa.Field, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    try:
        # the whole column at once: Arrow converts it without a Python loop
        return column.to_pylist()
    except UnicodeDecodeError as error:
        message = f'column "{field.name}" holds a text that is no UTF-8'
        hint = "fetch_arrow_table() and batches() return its bytes; in Spark make_valid_utf8(column) mends it"
        raise PenstockError("CLI-6014", message, hint=hint, sqlstate="22021") from error
    except (OverflowError, ValueError) as error:
        message = f'column "{field.name}" holds a value beyond what Python has objects for (years 1 to 9999)'
        hint = "fetch_arrow_table() and batches() give it, or CAST the column to STRING"
        raise PenstockError("CLI-6011", message, hint=hint, sqlstate="22008") from error
