"""Rows that a database refuses, of a table with ``on-error``: found by halving, skipped, counted and stored
for ``<table>$errors``. The others are written.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.secrets import redact_url
from penstock.engine.api.epoch_target import DELETED, EpochWriter
from penstock.engine.api.sink import SinkRequest
from penstock.engine.connectors.database.database import WritableDatabase
from penstock.engine.connectors.in_process.bad_records import BadRecords, RejectedRecord
from penstock.engine.formats.json_text import json_lines

# constraint violations, and values that do not fit: of rows, not of the connection or the statement
_OF_ROWS = ("22", "23")
_SAVEPOINT = "penstock_rows"

STAGED_DELETED = "penstock_deleted"
"""The first column of rows that ``DatabaseSink`` stages of a table with a PRIMARY KEY."""

WriteRows = Callable[[pa.RecordBatch], None]


class RefusedRows:
    """What a sink does with single rows that its database refuses. It is used within one transaction at a
    time: ``begin``, ``write`` for each batch, ``publish`` once the transaction is committed.
    """

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a database sink has a table"
        self._request = request
        self._table = request.table
        declared = self._table.options.get("on-error")
        self._mode = "fail" if declared is None else str(option(self._table, "on-error"))
        self._split = ""
        self._position = 0
        self._refused: list[RejectedRecord] = []

    @property
    def fails(self) -> bool:
        """Whether a refused row fails its transaction."""
        return self._mode == "fail"

    def begin(self, writer: EpochWriter, epoch: int) -> None:
        """Begin the transaction of an epoch. A repeated one has the same rows: they are stored once."""
        self._split, self._position, self._refused = f"{writer.name}, epoch {epoch}", 0, []

    def write(self, database: WritableDatabase, rows: pa.RecordBatch, write: WriteRows) -> None:
        """Write rows by ``write``, without those that the database refuses."""
        if self.fails:
            write(rows)
            return
        self._write(database, rows, self._position, write)
        self._position += rows.num_rows

    def _write(
        self, database: WritableDatabase, rows: pa.RecordBatch, position: int, write: WriteRows
    ) -> None:
        # a row that is refused leaves nothing of its half: each is tried behind a savepoint
        database.run(f"SAVEPOINT {_SAVEPOINT}")
        try:
            write(rows)
        except PenstockError as error:
            if error.retriable or not error.sqlstate.startswith(_OF_ROWS):
                raise
            database.run(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            database.run(f"RELEASE SAVEPOINT {_SAVEPOINT}")
            if rows.num_rows == 1:
                self._refuse(rows, position, error)
                return
            half = rows.num_rows // 2
            self._write(database, rows.slice(0, half), position, write)
            self._write(database, rows.slice(half), position + half, write)
        else:
            database.run(f"RELEASE SAVEPOINT {_SAVEPOINT}")

    def _refuse(self, row: pa.RecordBatch, position: int, error: PenstockError) -> None:
        place = self._table.options.get("path") or redact_url(self._table.options.get("url", ""))
        # the mark of deletes is shown of deletes only: what is left is a row of the table
        if row.schema.names[0] in (DELETED, STAGED_DELETED) and not row.column(0)[0].as_py():
            row = row.select(row.schema.names[1:])
        raw = json_lines(row)[0].as_py().rstrip("\n")
        reason = error.detail or error.message
        self._refused.append(RejectedRecord(raw, place, self._split, position, None, reason))

    def publish(self) -> None:
        """The transaction is committed: count its refused rows, and store them for ``on-error`` = table."""
        refused, self._refused = self._refused, []
        if not refused:
            return
        self._request.metrics.count("rows_refused", len(refused))
        if self._mode == "table":
            self._request.services.get(BadRecords).add(self._table.name, refused)
