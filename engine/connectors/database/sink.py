"""The exactly-once sink into a database table. Rows are staged in the database; one transaction moves them
and records the move.
"""

from __future__ import annotations

import contextlib
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.api.operator import KeyedState
from penstock.engine.api.row_pieces import batches_of
from penstock.engine.api.sink import Committable, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import group_numbers
from penstock.engine.changelog.row_kinds import keyed_rows
from penstock.engine.connectors.database.connect import opened_for_writing, stored
from penstock.engine.connectors.database.refused_rows import STAGED_DELETED, RefusedRows
from penstock.engine.connectors.database.staged_transactions import StagedTransactions

# staged as soon as so much is buffered, also between two checkpoints
_BUFFERED_BYTES = 32 << 20


class DatabaseSink:
    """Writes one subtask's share. With a PRIMARY KEY, the last change of each key in an epoch replaces or
    deletes its row. Without one, rows are appended.

    Prepared rows are staged in the database itself, so any process can commit them. A commit that the
    database refuses permanently fails the job. A commit that may succeed later is retried as the same
    transaction.
    """

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a database sink has a table"
        self._request = request
        self._table = request.table
        # the first attempt and the retries
        self._tries = int(option(request.table, "sink.max-retries") or 0) + 1
        self._database = opened_for_writing(request.table)
        fields = stored(request.table, request.table.physical_fields, self._database)
        self._names = [field.name for field in fields]
        declared = {name.lower() for name in request.table.primary_key}
        # positions of the key's columns; () appends
        self._key = tuple(
            i for i, field in enumerate(request.table.physical_fields) if field.name.lower() in declared
        )
        self._upserts = request.upserts
        self._schema = pa.schema(
            [
                pa.field(name, kind)
                for name, kind in zip(self._names, request.schema.to_arrow().types, strict=True)
            ]
        )
        # rows wait in the database, not here: any process may commit them after a crash
        self._refusals = RefusedRows(request)
        self._transactions = StagedTransactions(self._database, request)
        self._buffered: list[pa.RecordBatch] = []
        self._bytes = 0
        self._prepared: list[Committable] = []
        self._ended = False

    def follow(self) -> None:
        """Write for the attempt that the database knows now."""
        self._again(self._transactions.follow)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {}

    def on_restored(self) -> None:
        """Nothing: restored items have been committed."""

    def recover(self, pending: list[Committable]) -> None:
        self._again(lambda: self._transactions.take_over(pending))

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        # without a key there are only inserts: the planner refuses other changes
        rows = self._changes(batch) if self._key else batch.rows
        if not rows.num_rows:  # changes that cancel out
            return
        self._buffered.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _BUFFERED_BYTES:
            self._stage()

    def _changes(self, batch: Batch) -> pa.RecordBatch:
        # -D and -U delete the row of their key; the +U after a -U is the key's last change and wins
        rows, deleted = keyed_rows(batch, self._key, self._upserts)
        columns = [array_of(deleted), *rows.columns]
        return pa.RecordBatch.from_arrays(columns, names=[STAGED_DELETED, *self._names])

    def _stage(self) -> None:
        """Stage the buffered changes; of each key only the last one."""
        if not self._buffered:
            return
        table = pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(batch.columns, names=self._staged_names) for batch in self._buffered]
        )
        if self._key:
            # the position of each key's last change; column 0 is the deleted flag
            number, count = group_numbers(table.select([i + 1 for i in self._key]))
            last = np.zeros(count, np.int64)
            last[number] = np.arange(len(number))
            table = table.take(array_of(np.sort(last)))
        self._buffered, self._bytes = [], 0
        for rows in batches_of(table):
            self._prepared.append(self._again(partial(self._transactions.stage, rows)))

    @property
    def _staged_names(self) -> list[str]:
        return [STAGED_DELETED, *self._names] if self._key else self._names

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        self._stage()
        items, self._prepared = self._prepared, []
        return [{**item, "checkpoint": checkpoint_id} for item in items]

    def commit(self, items: list[Committable]) -> None:
        if not items:
            return
        try:
            rows = self._again(partial(self._move_all, items))
        except PenstockError as error:
            raise self._refused(error, items) from error
        self._refusals.publish()
        self._request.metrics.count("rows_committed", rows)

    def completed(self, checkpoint_id: int) -> None:
        """Nothing: the database records which transactions are committed."""

    def _refused(self, error: PenstockError, items: list[Committable]) -> PenstockError:
        """Return why a commit failed. A permanent refusal fails the job: its rows stay staged, and no later
        rows are written.
        """
        # a lost connection, or a fenced-off attempt: neither is a refusal of rows
        if error.retriable or error.code.startswith("STA-"):
            return error
        message = (
            f"checkpoint {items[0]['checkpoint']} cannot be committed to table {self._table.name}: the "
            "database refuses its rows"
        )
        hint = "correct what it reports and start the job again: it resumes with these rows"
        return PenstockError(
            "DAT-4707", message, detail=error.detail, hint=hint, kind=Kind.USER, sqlstate="40000"
        )

    def _move_all(self, items: list[Committable]) -> int:
        # the same name when it is tried again, or by another process
        request = self._request
        writer = EpochWriter(request.owner, request.operator_id, request.subtask)
        self._refusals.begin(writer, items[0]["checkpoint"])
        return self._transactions.commit(items, self._move)

    def _move(self, rows: pa.RecordBatch) -> None:
        """Write staged rows to the table, inside a transaction."""
        self._refusals.write(self._database, rows, self._write)

    def _write(self, rows: pa.RecordBatch) -> None:
        name = self._table.options["table-name"]
        if not self._key:
            self._database.insert(name, pa.RecordBatch.from_arrays(rows.columns, schema=self._schema))
            return
        # column 0 is the deleted flag
        deleted, keys = rows.column(0), [self._names[i] for i in self._key]
        whole = pa.RecordBatch.from_arrays(rows.columns[1:], schema=self._schema)
        # a staged batch has each key once, so deletes and upserts may be done in any order
        gone, upserted = whole.filter(deleted).select(keys), whole.filter(pa.compute.invert(deleted))
        if gone.num_rows:
            self._database.delete(name, gone)
        if upserted.num_rows:
            self._database.replace(name, keys, upserted)

    def abort(self, items: list[Committable]) -> None:
        self._again(lambda: self._transactions.discard(items))

    def ready(self) -> bool:
        return True

    def end(self) -> None:
        """Mark the end of the input; the final checkpoint stages the buffered rows."""
        self._ended = True

    def close(self) -> None:
        if self._ended and not self._request.resumes:
            # the rows are there; that a note stays behind is no reason to fail
            with contextlib.suppress(PenstockError):
                self._again(self._transactions.retire)
        self._database.close()

    def _again(self, act):  # type: ignore[no-untyped-def]  # whatever it returns is returned
        """Run work that may fail transiently; each retry uses a new connection."""
        for attempt in range(1, self._tries + 1):
            try:
                return act()
            except PenstockError as error:
                # an unknown outcome is no danger: a commit that was done is recognised by its number
                if not error.retriable or attempt == self._tries:
                    raise
                self._request.metrics.count("database_retries")
                self._database.close()
                self._database = opened_for_writing(self._table)
                self._transactions.use(self._database)
        raise AssertionError("it is tried once at least")
