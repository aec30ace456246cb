"""Staged transactions of a sink: rows stay in the database until their checkpoint completes. An epoch fences
off earlier attempts.

``penstock_staged`` stores rows as Arrow IPC until they are moved. ``penstock_epochs`` stores per subtask of a
sink the attempt that may write and the last transaction that was moved. Both change in the transaction that
moves the rows, so a repeated commit detects that it was done. The column ``job`` of both stores the job's
owner, which is unique to a job; before format 1.4 it stored the job's id.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.sink import Committable, SinkRequest
from penstock.engine.connectors.database.database import WritableDatabase

# epoch: attempt that may write; staged: last number assigned; committed: last number moved
EPOCHS = (
    "CREATE TABLE IF NOT EXISTS penstock_epochs (job VARCHAR(200) NOT NULL, operator VARCHAR(64) "
    "NOT NULL, subtask INTEGER NOT NULL, "
    "epoch BIGINT NOT NULL, staged BIGINT NOT NULL, committed BIGINT NOT NULL, checkpoint_id BIGINT "
    "NOT NULL, PRIMARY KEY (job, operator, subtask))"
)
# payload: rows as an Arrow IPC stream
_STAGED = (
    "CREATE TABLE IF NOT EXISTS penstock_staged (job VARCHAR(200) NOT NULL, operator VARCHAR(64) "
    "NOT NULL, subtask INTEGER NOT NULL, "
    "number BIGINT NOT NULL, row_count BIGINT NOT NULL, payload {bytes} NOT NULL, PRIMARY KEY (job, "
    "operator, subtask, number))"
)
_OWN = "job = ? AND operator = ?"


class StagedTransactions:
    """The staged transactions of one subtask.

    A commit may also concern transactions of another subtask, or of the job from which this one was copied. A
    transaction's number is never reused.
    """

    def __init__(self, database: WritableDatabase, request: SinkRequest) -> None:
        self._database = database
        self._sink = (request.owner, request.operator_id)
        origin = request.origin
        self._former = self._sink if origin is None else (origin.owner, origin.operator_id)
        self._job, self._subtask, self._parallelism = request.job_id, request.subtask, request.parallelism
        self._epoch: int | None = None

    def use(self, database: WritableDatabase) -> None:
        """Continue on another connection."""
        self._database = database

    def take_over(self, pending: list[Committable]) -> None:
        """Fence off earlier attempts of the subtasks that this one replaces, and delete what they staged
        except ``pending``.

        An earlier query of the same job counts as an earlier attempt; another job does not.
        """
        # staged transactions of the restored checkpoint: they will be committed
        database, restored = (
            self._database,
            {(*self._sink_of(item), item["subtask"], item["number"]) for item in pending},
        )
        # the same owner: an earlier query of this job, whose attempts are fenced off too
        own = {self._sink, self._former} if self._former[0] == self._sink[0] else {self._sink}
        self._need_table("penstock_epochs", EPOCHS)
        self._need_table("penstock_staged", _STAGED.format(bytes=database.bytes_type))
        with database.transaction():
            # after a rescale one subtask replaces all those with its remainder
            mine = f"{_OWN} AND subtask % ? = ?"
            database.run(
                "INSERT INTO penstock_epochs VALUES (?, ?, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING",
                # epoch 0: nobody has written yet
                (*self._sink, self._subtask),
            )
            for sink in sorted(own):
                whose = (*sink, self._parallelism, self._subtask)
                # from here on an earlier attempt fails in _check_epoch
                database.run(f"UPDATE penstock_epochs SET epoch = epoch + 1 WHERE {mine}", whose)
                for subtask, number in database.run(
                    f"SELECT subtask, number FROM penstock_staged WHERE {mine}", whose
                ):
                    # staged after the restored checkpoint: its rows will be read and staged again
                    if (*sink, subtask, number) not in restored:
                        self._forget(sink, subtask, number)
            self._epoch = self._read_epoch_column("epoch")

    def follow(self) -> None:
        """Write for the attempt that the database knows now: the caller has taken over once more."""
        self._epoch = self._read_epoch_column("epoch")

    def _sink_of(self, item: Committable) -> tuple[str, str]:
        """Return the owner and operator that staged a transaction; items before format 1.4 name neither."""
        return str(item.get("owner", self._former[0])), str(item.get("operator", self._former[1]))

    def _need_table(self, name: str, text: str) -> None:
        if self._database.columns(name):
            return
        try:
            self._database.run(text)
        except PenstockError:
            # PostgreSQL refuses one of two subtasks that make it at one moment
            if not self._database.columns(name):
                raise

    def stage(self, rows: pa.RecordBatch) -> Committable:
        """Stage rows until they are committed or discarded."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
        ) as writer:
            writer.write_batch(rows)
        with self._database.transaction():
            self._check_epoch()
            # number and rows in one transaction: a crash leaves neither or both
            number = self._read_epoch_column("staged") + 1
            self._database.run(
                f"UPDATE penstock_epochs SET staged = ? WHERE {_OWN} AND subtask = ?",
                (number, *self._sink, self._subtask),
            )
            values = (*self._sink, self._subtask, number, rows.num_rows, sink.getvalue().to_pybytes())
            self._database.run("INSERT INTO penstock_staged VALUES (?, ?, ?, ?, ?, ?)", values)
            failpoint("S2")
        return {
            "owner": self._sink[0],
            "operator": self._sink[1],
            "subtask": self._subtask,
            "number": number,
            "rows": rows.num_rows,
        }

    def commit(self, items: list[Committable], move: Callable[[pa.RecordBatch], None]) -> int:
        """Move the rows of staged transactions within one database transaction and return how many were
        moved. Transactions that were moved before are skipped. Those of a subtask come in order: STA-3506.
        """
        moved = 0
        with self._database.transaction():
            self._check_epoch()
            for item in items:
                moved += self._commit(item, move)
                failpoint("S5")
        return moved

    def _commit(self, item: Committable, move: Callable[[pa.RecordBatch], None]) -> int:
        sink, subtask, number, database = self._sink_of(item), item["subtask"], item["number"], self._database
        committed = database.run(
            database.locked(f"SELECT committed FROM penstock_epochs WHERE {_OWN} AND subtask = ?"),
            (*sink, subtask),
        )
        staged = database.run(
            f"SELECT payload FROM penstock_staged WHERE {_OWN} AND subtask = ? AND number = ?",
            (*sink, subtask, number),
        )
        if committed and committed[0][0] >= number:
            # committed before: a repeated commit does nothing
            if not staged:
                return 0
            raise PenstockError(
                "STA-3506",
                f"the rows staged for checkpoint {item['checkpoint']} by subtask {subtask} are not "
                "committed, but later ones are",
                hint="the rows are in the table penstock_staged; report a defect with the log",
                kind=Kind.INTERNAL,
                sqlstate="XX000",
            )
        if not staged:
            message = (
                f"the rows staged for checkpoint {item['checkpoint']} are gone from penstock_staged; "
                "they cannot be committed"
            )
            hint = "somebody deleted them there, or the checkpoint is of another database"
            raise PenstockError("STA-3503", message, hint=hint, kind=Kind.EXTERNAL)
        with pa.ipc.open_stream(pa.py_buffer(bytes(staged[0][0]))) as reader:
            for rows in reader:
                move(rows)
        # in the transaction of the rows, so that both become durable or neither
        note = f"UPDATE penstock_epochs SET committed = ?, checkpoint_id = ? WHERE {_OWN} AND subtask = ?"
        database.run(note, (number, item["checkpoint"], *sink, subtask))
        self._forget(sink, subtask, number)
        return int(item["rows"])

    def discard(self, items: list[Committable]) -> None:
        """Delete staged transactions."""
        with self._database.transaction():
            for item in items:
                # those of the job this one was copied from belong to that job
                if self._sink_of(item) == self._sink:
                    self._forget(self._sink, item["subtask"], item["number"])

    def retire(self) -> None:
        """Delete the record of a subtask that has ended without a successor, if all it staged was moved.

        The record stays when there was an earlier attempt. That one may still run, and a new record would
        begin at its epoch.
        """
        whose = (*self._sink, self._subtask)
        with self._database.transaction():
            self._database.run(
                f"DELETE FROM penstock_epochs WHERE {_OWN} AND subtask = ? AND epoch = 1 AND staged "
                "= committed",
                whose,
            )

    def _forget(self, sink: tuple[str, str], subtask: int, number: int) -> None:
        self._database.run(
            f"DELETE FROM penstock_staged WHERE {_OWN} AND subtask = ? AND number = ?",
            (*sink, subtask, number),
        )

    def _read_epoch_column(self, column: str) -> int:
        rows = self._database.run(
            f"SELECT {column} FROM penstock_epochs WHERE {_OWN} AND subtask = ?", (*self._sink, self._subtask)
        )
        return int(rows[0][0]) if rows else -1

    def _check_epoch(self) -> None:
        """Refuse to write for an attempt that a later one has fenced off. Raises STA-3504."""
        text = self._database.locked(f"SELECT epoch FROM penstock_epochs WHERE {_OWN} AND subtask = ?")
        rows = self._database.run(text, (*self._sink, self._subtask))
        if not rows or rows[0][0] != self._epoch:
            message = f"job {self._job} is superseded: a later attempt writes to the table now"
            hint = "another process has taken the job over, and continues it"
            raise PenstockError("STA-3504", message, hint=hint, kind=Kind.EXTERNAL)
