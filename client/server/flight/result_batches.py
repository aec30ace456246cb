"""The rows of a result as messages of a stream: cut to size, and ended by whoever ends first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.client.results.result import Result
from penstock.client.results.result_stream import new_rows, op_rows
from penstock.client.server.flight.flight_errors import flight_error
from penstock.engine.api.stream_elements import Batch

LOOK_S = 0.1
"""How often a stream without rows looks whether its client is there. A killed client is to end its query in
0.5 s.
"""


class ReaderForm(Enum):
    """How a reader gets the rows. ROWS: final or new rows. CHANGES: a first column ``op``, for stock clients.
    WEIGHTED: rows as the engine has them, their weights as metadata, for our own client.
    """

    ROWS = "rows"
    CHANGES = "changes"
    WEIGHTED = "weighted"


Message = tuple[pa.RecordBatch, bytes]


class ResultBatches:
    """The messages of one result. Its generator runs in a thread of gRPC, which asks for a message when the
    one before is sent: a client that does not read stops the query by backpressure.

    ``is_gone``: whether the client has gone. ``end`` stops it with an error, which the client gets: a result
    that was stopped must not look like one that has ended.
    """

    def __init__(
        self,
        open_result: Callable[[Callable[[], bool]], Result],
        form: ReaderForm,
        is_gone: Callable[[], bool],
        message_bytes: int,
        on_end: Callable[[ResultBatches], None],
    ) -> None:
        self._open_result = open_result
        self._form = form
        self._is_gone = is_gone
        self._message_bytes = message_bytes
        self._on_end = on_end
        self._result: Result | None = None
        self._messages = self._read()
        self._ended = False
        self._reason: PenstockError | None = None

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        try:
            return next(self._messages)
        except StopIteration:
            self.close()
            raise
        # of any class: only errors of Flight travel without Python's traceback
        except Exception as error:
            self.close()
            raise flight_error(error) from error

    def end(self, reason: PenstockError) -> None:
        """Stop the query; its client gets ``reason``. Any thread may call it."""
        if not self._ended:
            self._reason = reason
            self.close()

    def close(self) -> None:
        """Stop the query. Any thread may call it, and repeatedly."""
        if not self._ended:
            self._ended = True
            if self._result is not None:
                self._result.close()
            self._on_end(self)

    def _read(self) -> Iterator[Message]:
        self._result = result = self._open_result(lambda: self._ended or self._is_gone())
        # closed by another thread in the meantime: nobody else would close what was opened now
        if self._ended:
            result.close()
        for batch in self._batches(result):
            for piece in pieces_of(batch, self._message_bytes):
                if self._form is ReaderForm.WEIGHTED:
                    yield piece.rows, b"" if piece.weights is None else piece.weights.tobytes()
                elif self._form is ReaderForm.ROWS:
                    yield new_rows(piece), b""
                else:
                    yield _changes(piece, result), b""

    def _batches(self, result: Result) -> Iterator[Batch]:
        """Yield the batches of a result until it ends or the reader does."""
        # rows may be retracted until the end, so that nothing is final before it
        fold = (
            result.new_fold()
            if self._form is ReaderForm.ROWS and result.shape.folds and result.shape.finite
            else None
        )
        while not self._is_gone():
            whole = fold is not None or self._form is ReaderForm.WEIGHTED
            batch = result.next_to_fold(LOOK_S) if whole else result.next(LOOK_S)
            if batch is not None and fold is not None:
                fold.add(batch)
                result.check_memory()
            elif batch is not None:
                yield batch
            elif result.ended:
                break
        # its rows have ended because somebody stopped it
        if self._reason is not None:
            raise self._reason
        if fold is not None and not self._is_gone():
            yield from map(Batch, result.in_order(fold.rows()).to_batches())


class DroppedStream:
    """The messages of a result for gRPC, which drops a stream without a call when its client goes. So nothing
    else refers to this object, and its end closes the result.
    """

    def __init__(self, batches: ResultBatches) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        return next(self._batches)

    def __del__(self) -> None:
        with suppress(PenstockError):
            self._batches.close()


def _changes(batch: Batch, result: Result) -> pa.RecordBatch:
    # SUBSCRIBE: the rows have their op column already
    return batch.rows if result.shape.subscribed else op_rows(batch, result.shape.update_key)


def pieces_of(batch: Batch, most_bytes: int) -> Iterator[Batch]:
    """Yield a batch in pieces of about ``most_bytes``: halves of halves, as rows differ in size. One row is
    never cut. Changes stay whole: a -U is to be beside its +U.
    """
    size = batch.rows.nbytes
    if size <= most_bytes or batch.num_rows < 2 or (batch.weights is not None and np.any(batch.weights < 0)):
        yield batch
        return
    # by the average row first, so that a table of a gigabyte is cut once
    rows = max(1, min(batch.num_rows // 2, batch.num_rows * most_bytes // size))
    for start in range(0, batch.num_rows, rows):
        weights = None if batch.weights is None else batch.weights[start : start + rows]
        yield from pieces_of(Batch(batch.rows.slice(start, rows), weights), most_bytes * 2)
