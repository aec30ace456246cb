"""The sink of targets that store an epoch atomically with its rows: it stages rows in the checkpoint, and
commits them once that is complete.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.epoch_target import DELETED, EpochTarget, EpochWriter, StagedForm
from penstock.engine.api.operator import KeyedState
from penstock.engine.api.row_pieces import batches_of, take_rows
from penstock.engine.api.sink import Committable, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import group_numbers
from penstock.engine.changelog.row_kinds import change_rows, keyed_rows, with_op_column
from penstock.engine.connectors.staged_epochs import OPEN_EPOCH, StagedEpoch, StagedEpochs

BUFFERED_BYTES = 16 << 20
"""Rows are staged as soon as so many bytes are buffered, also between two checkpoints."""

# the first attempt and the retries of a call that may succeed later; after them the job restarts
TRIES = 3
NEWS = logging.getLogger("penstock.sinks")

Answer = TypeVar("Answer")


class EpochSink:
    """Writes one subtask's share to a target.

    After a crash the target says which epoch it has: later ones are committed from the restored checkpoint,
    the others are skipped. A refusal of the target fails the job; its rows stay in the checkpoint.
    """

    def __init__(self, request: SinkRequest, target: EpochTarget, tries: int = TRIES) -> None:
        assert request.table is not None, "an epoch sink has a table"
        self._request = request
        self._target = target
        self._tries = tries
        self._writer = EpochWriter(request.owner, request.operator_id, request.subtask)
        self._staged = StagedEpochs(request.key_group, self._is_mine)
        self._buffered: list[pa.RecordBatch] = []
        self._bytes = 0
        self._ended = False

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"staged": self._staged}

    def recover(self, pending: list[Committable]) -> None:
        """Fence off earlier attempts. STA-3505 when the target has rows of later checkpoints than the one the
        job resumes from.
        """
        origin = self._request.origin
        # every checkpoint names its writers, those without rows too
        former = {EpochWriter(item["owner"], item["operator_id"], item["subtask"]) for item in pending}
        # another job, from which this one was copied, may be running: it is not fenced off
        own = {w for w in former if w.owner == self._writer.owner and self._is_mine(w)} | {self._writer}
        writers = sorted(own, key=lambda writer: (writer.operator_id, writer.subtask))
        self._again(partial(self._target.fence, writers))
        for writer in writers if origin is not None else ():
            last = self._again(partial(self._target.last_committed, writer))
            if origin is not None and last > origin.checkpoint_id:
                raise _older_checkpoint(self._request, origin.checkpoint_id, last)

    def _is_mine(self, writer: EpochWriter) -> bool:
        # after a rescale one subtask replaces those with its remainder: it alone fences and commits for them
        return writer.subtask % self._request.parallelism == self._request.subtask

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        rows = self._in_form(batch)
        if not rows.num_rows:  # changes that cancel out
            return
        self._buffered.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= BUFFERED_BYTES:
            self._flush()

    def _in_form(self, batch: Batch) -> pa.RecordBatch:
        # without weights, or with copies: the sink operator has refused or repeated other weights
        if self._target.form is StagedForm.INSERTS:
            return batch.rows
        if self._target.form is StagedForm.CHANGES:
            return with_op_column(*change_rows(batch, self._request.upsert_key))
        # -D and -U delete the row of their key; the +U after a -U is the key's last change and wins
        rows, deleted = keyed_rows(batch, self._request.upsert_key, self._request.upserts)
        schema = pa.schema([pa.field(DELETED, pa.bool_()), *rows.schema])
        return pa.RecordBatch.from_arrays([array_of(deleted), *rows.columns], schema=schema)

    def _flush(self) -> None:
        """Stage what is buffered, for an epoch whose number is not known yet."""
        if self._buffered:
            table = self._last_of_each_key(pa.Table.from_batches(self._buffered))
            self._buffered, self._bytes = [], 0
            for rows in batches_of(table):
                self._staged.add(StagedEpoch(self._writer, OPEN_EPOCH), rows)

    def _last_of_each_key(self, table: pa.Table) -> pa.Table:
        if self._target.form is not StagedForm.UPSERTS:
            return table
        # column 0 is the deleted flag
        key = [position + 1 for position in self._request.upsert_key or ()]
        number, count = group_numbers(table.select(key))
        last = np.zeros(count, np.int64)
        last[number] = np.arange(len(number))
        return table if count == len(number) else take_rows(table, np.sort(last))

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        self._flush()
        batches = self._staged.close_epoch(self._writer, checkpoint_id)
        # an epoch without rows is an item too: a later attempt learns from it who has written
        return [
            {
                "owner": self._writer.owner,
                "operator_id": self._writer.operator_id,
                "subtask": self._writer.subtask,
                "epoch": checkpoint_id,
                "batches": batches,
            }
        ]

    def on_restored(self) -> None:
        """Commit what the restored checkpoint holds, as far as the target does not have it."""
        self._commit(None)

    def commit(self, items: list[Committable]) -> None:
        # a restored item's rows are restored after it: ``on_restored`` commits them
        self._commit(max((item["epoch"] for item in items), default=0))

    def _commit(self, up_to: int | None) -> None:
        for staged in self._staged.epochs(up_to):
            self._again(partial(self._commit_once, staged))
            self._staged.drop(staged)

    def _commit_once(self, staged: StagedEpoch) -> None:
        # asked before each attempt: one whose outcome is unknown may have succeeded
        if self._target.last_committed(staged.writer) >= staged.epoch:
            self._request.metrics.count("epochs_skipped")
            return
        batches = _CountedRows(partial(self._whole, staged))
        self._target.commit(staged.writer, staged.epoch, batches)
        self._request.metrics.count("rows_committed", batches.rows)
        self._request.metrics.count("epochs_committed")

    def _whole(self, staged: StagedEpoch) -> Iterable[pa.RecordBatch]:
        rows = list(self._staged.rows(staged)) if self._target.form is StagedForm.UPSERTS else None
        # a key may have changed before and after a flush
        if rows is not None and len(rows) > 1:
            return batches_of(self._last_of_each_key(pa.Table.from_batches(rows)))
        return self._staged.rows(staged) if rows is None else rows

    def completed(self, checkpoint_id: int) -> None:
        """Nothing: the target has the epoch."""

    def abort(self, items: list[Committable]) -> None:
        """Nothing: staged rows are part of a checkpoint, and go with it."""

    def ready(self) -> bool:
        return True

    def end(self) -> None:
        self._ended = True

    def close(self) -> None:
        if self._ended and not self._request.resumes:
            # the rows are there; that a note stays behind is no reason to fail
            with contextlib.suppress(PenstockError):
                self._again(partial(self._target.retire, self._writer))
        self._target.close()

    def _again(self, act: Callable[[], Answer]) -> Answer:
        """Call the target, again after an error that may pass."""
        for attempt in range(1, self._tries + 1):
            try:
                return act()
            except PenstockError as error:
                if not error.retriable or attempt == self._tries:
                    raise
                self._request.metrics.count("sink_retries")
                NEWS.warning("%s; attempt %d of %d", error, attempt + 1, self._tries)
        raise AssertionError("it is tried once at least")


class _CountedRows:
    """The rows of an epoch, read anew by each iteration. ``rows``: how many the last one has read."""

    def __init__(self, read: Callable[[], Iterable[pa.RecordBatch]]) -> None:
        self._read = read
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.rows = 0
        for batch in self._read():
            self.rows += batch.num_rows
            yield batch


def _older_checkpoint(request: SinkRequest, checkpoint_id: int, committed: int) -> PenstockError:
    assert request.table is not None, "an epoch sink has a table"
    return PenstockError(
        "STA-3505",
        f"table {request.table.name} has the rows of checkpoint {committed} of this job, which resumes from "
        f"checkpoint {checkpoint_id}: the rows between them would be written twice",
        hint=f"resume from checkpoint {committed}, or start the job under another name and empty the table",
        kind=Kind.USER,
        sqlstate="55000",
    )
