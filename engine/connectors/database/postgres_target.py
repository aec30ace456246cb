"""Commits the rows of epochs to a PostgreSQL table: copied, or copied beside it and merged by PRIMARY KEY.

The row of a writer in ``penstock_epochs`` has the attempt that may write and the last epoch. One transaction
changes that row and the table. The table of epochs is the one of ``StagedTransactions``: an attempt of an
earlier version of penstock is fenced off by the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.epoch_target import DELETED, EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.connectors.database.connect import opened_for_writing, stored
from penstock.engine.connectors.database.database import (
    WritableDatabase,
    conflict_text,
    insert_text,
    quoted,
    quoted_table,
)
from penstock.engine.connectors.database.refused_rows import RefusedRows
from penstock.engine.connectors.database.staged_transactions import EPOCHS

# temporary tables are private to a connection, so one name is enough
_BESIDE = "penstock_epoch_rows"
_MINE = "job = ? AND operator = ? AND subtask = ?"

Answer = TypeVar("Answer")


class PostgresTarget:
    """An EpochTarget. A lost connection is opened again with the next call."""

    def __init__(self, table: CatalogTable, refused: RefusedRows | None = None) -> None:
        self._table = table
        # None: a refused row fails its epoch
        self._refused = None if refused is None or refused.fails else refused
        self._database: WritableDatabase | None = opened_for_writing(table)
        fields = stored(table, table.physical_fields, self._database)
        self._names = [field.name for field in fields]
        declared = {name.lower() for name in table.primary_key}
        self._key = [
            there.name
            for here, there in zip(table.physical_fields, fields, strict=True)
            if here.name.lower() in declared
        ]
        self.form = StagedForm.UPSERTS if self._key else StagedForm.INSERTS
        self._place = quoted_table(table.options["table-name"])
        self._attempts: dict[EpochWriter, int] = {}

    def fence(self, writers: list[EpochWriter]) -> None:
        """Give this attempt the next number."""
        self._with(lambda database: self._fence(database, writers))

    def _fence(self, database: WritableDatabase, writers: list[EpochWriter]) -> None:
        if not database.columns("penstock_epochs"):
            try:
                database.run(EPOCHS)
            except PenstockError:
                # the server refuses one of two subtasks that make it at one moment
                if not database.columns("penstock_epochs"):
                    raise
        with database.transaction():
            for writer in writers:
                who = _columns(writer)
                database.run(
                    "INSERT INTO penstock_epochs VALUES (?, ?, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING", who
                )
                text = f"UPDATE penstock_epochs SET epoch = epoch + 1 WHERE {_MINE} RETURNING epoch"
                self._attempts[writer] = int(database.run(text, who)[0][0])

    def last_committed(self, writer: EpochWriter) -> int:
        """Return the last epoch of a writer."""
        text = f"SELECT checkpoint_id FROM penstock_epochs WHERE {_MINE}"
        rows = self._with(lambda database: database.run(text, _columns(writer)))
        return int(rows[0][0]) if rows else 0

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write rows and their epoch. DAT-4707 when the database refuses the rows, STA-3504 for an attempt
        that was fenced off.
        """
        try:
            self._with(lambda database: self._commit(database, writer, epoch, rows))
        except PenstockError as error:
            # a lost connection, or a fenced-off attempt: neither is a refusal of rows
            if error.retriable or error.code.startswith("STA-"):
                raise
            raise PenstockError(
                "DAT-4707",
                f"checkpoint {epoch} cannot be committed to table {self._table.name}: the database refuses "
                "its rows",
                detail=error.detail,
                hint="correct what it reports and start the job again: it resumes with these rows",
                kind=Kind.USER,
                sqlstate="40000",
            ) from error
        if self._refused is not None:
            self._refused.publish()

    def _commit(
        self, database: WritableDatabase, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]
    ) -> None:
        with database.transaction():
            if not self._enter(database, writer, epoch):
                return
            if self._refused is not None:
                self._refused.begin(writer, epoch)
                for batch in rows:
                    self._refused.write(database, batch, partial(self._write, database))
            elif self._key:
                self._merge(database, rows)
            else:
                for batch in rows:
                    database.insert(
                        self._table.options["table-name"],
                        pa.RecordBatch.from_arrays(batch.columns, names=self._names),
                    )
            failpoint("S5")

    def _write(self, database: WritableDatabase, rows: pa.RecordBatch) -> None:
        """Write a part of an epoch by itself: it may be refused."""
        name = self._table.options["table-name"]
        if not self._key:
            database.insert(name, pa.RecordBatch.from_arrays(rows.columns, names=self._names))
            return
        named = pa.RecordBatch.from_arrays(rows.columns[1:], names=self._names)
        deleted = rows.column(0)
        gone, upserted = named.filter(deleted).select(self._key), named.filter(pa.compute.invert(deleted))
        if gone.num_rows:
            database.delete(name, gone)
        if upserted.num_rows:
            database.replace(name, self._key, upserted)

    def _enter(self, database: WritableDatabase, writer: EpochWriter, epoch: int) -> bool:
        """Record an epoch, and lock the row of its writer. Return False when it is recorded already. STA-3504
        for an attempt that was fenced off.
        """
        who, attempt = _columns(writer), self._attempts.get(writer)
        if attempt is None:
            # a writer of the job that this one was copied from: it may be running, and is not fenced off
            database.run(
                "INSERT INTO penstock_epochs VALUES (?, ?, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING", who
            )
        text = f"SELECT epoch, checkpoint_id FROM penstock_epochs WHERE {_MINE}"
        found = database.run(database.locked(text), who)
        if not found or attempt not in (None, found[0][0]):
            raise PenstockError(
                "STA-3504",
                f"the job is superseded: a later attempt writes to table {self._table.name} now",
                hint="another process has taken the job over, and continues it",
                kind=Kind.EXTERNAL,
            )
        if found[0][1] >= epoch:
            return False
        database.run(f"UPDATE penstock_epochs SET checkpoint_id = ? WHERE {_MINE}", (epoch, *who))
        return True

    def _merge(self, database: WritableDatabase, rows: Iterable[pa.RecordBatch]) -> None:
        """Delete and upsert the rows of an epoch, which has each key once."""
        names = ", ".join(map(quoted, self._names))
        database.run(
            f"CREATE TEMPORARY TABLE {_BESIDE} ON COMMIT DROP AS SELECT false AS {quoted(DELETED)}, {names} "
            f"FROM {self._place} LIMIT 0"
        )
        deletes = False
        for batch in rows:
            named = pa.RecordBatch.from_arrays(batch.columns, names=[DELETED, *self._names])
            deletes = deletes or bool(named.column(0).true_count)
            database.insert(_BESIDE, named)
        if deletes:
            same = " AND ".join(f"t.{name} = e.{name}" for name in map(quoted, self._key))
            database.run(
                f"DELETE FROM {self._place} AS t USING {_BESIDE} AS e WHERE e.{quoted(DELETED)} AND {same}"
            )
        source = f"SELECT {names} FROM {_BESIDE} WHERE NOT {quoted(DELETED)}"
        database.run(
            insert_text(self._place, list(map(quoted, self._names)), source)
            + conflict_text(list(map(quoted, self._names)), list(map(quoted, self._key)))
        )

    def retire(self, writer: EpochWriter) -> None:
        """Forget a writer, unless there was an earlier attempt: that one may still run, and a new row would
        begin at its number.
        """
        text = f"DELETE FROM penstock_epochs WHERE {_MINE} AND epoch = 1"
        self._with(lambda database: database.run(text, _columns(writer)))

    def close(self) -> None:
        """Close the connection."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _with(self, act: Callable[[WritableDatabase], Answer]) -> Answer:
        if self._database is None:
            self._database = opened_for_writing(self._table)
        try:
            return act(self._database)
        except PenstockError as error:
            if error.retriable:
                self.close()
            raise


def _columns(writer: EpochWriter) -> tuple[str, str, int]:
    return writer.owner, writer.operator_id, writer.subtask
