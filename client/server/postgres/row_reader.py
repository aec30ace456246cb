"""Rows of a result in pieces: as many as are asked for, when they come, until somebody cancels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.client.results.result import Result
from penstock.client.results.result_stream import new_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLICE_S = 0.25
"""The longest wait at once: a notice is sent, and a timeout seen, this late at most."""


class Watch(Protocol):
    """What a reader asks while it waits."""

    def monotonic_ms(self) -> float:
        """Return the time."""

    def check(self) -> None:
        """Raise the error of a statement that was cancelled."""

    def idle(self, reader: RowReader) -> None:
        """Called while an endless result is read, whether rows come or not."""


class RowReader:
    """Reads one result from front to end. ``take`` returns rows; ``ended`` says that none are left."""

    def __init__(self, result: Result, watch: Watch) -> None:
        self._result = result
        self._watch = watch
        self._pending: pa.RecordBatch | None = None
        self._final: Iterator[pa.RecordBatch] | None = None
        self._began_ms = watch.monotonic_ms()
        self.rows = 0

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._result.schema

    @property
    def is_endless(self) -> bool:
        """Whether the result never ends by itself."""
        return not self._result.shape.finite and self._result.shape.limit is None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first row was asked for."""
        return (self._watch.monotonic_ms() - self._began_ms) / 1000

    @property
    def ended(self) -> bool:
        """Whether every row was taken. Known at the latest by a ``take`` that returns None."""
        return self._pending is None and self._result.ended and self._final is None

    def take(self, most: int | None = None, timeout_s: float | None = None) -> pa.RecordBatch | None:
        """Return the next rows, ``most`` at most, waiting for the first; None at the end, and when the time
        is up.
        """
        deadline = None if timeout_s is None else self._watch.monotonic_ms() + timeout_s * 1000
        while self._pending is None:
            self._watch.check()
            batch = self._next(deadline)
            if batch is None and (self._result.ended or self._is_over(deadline)):
                # the error that ended it, or nothing
                self._watch.check()
                return None
            if batch is not None and batch.num_rows:
                self._pending = batch
        batch = self._pending
        head = batch if most is None else batch.slice(0, most)
        self._pending = None if head.num_rows == batch.num_rows else batch.slice(head.num_rows)
        self.rows += head.num_rows
        return head

    def cancel(self) -> None:
        """Stop what computes the rows; any thread may call it."""
        self._result.cancel()

    def _is_over(self, deadline: float | None) -> bool:
        return deadline is not None and self._watch.monotonic_ms() >= deadline

    def _next(self, deadline: float | None) -> pa.RecordBatch | None:
        # rows may be retracted until the end: nothing is final before it
        if self._result.shape.folds and self._result.shape.finite:
            if self._final is None:
                self._final = iter(self._result.final_rows().to_batches())
            batch = next(self._final, None)
            if batch is None:
                self._final = None
            return batch
        left_s = _SLICE_S if deadline is None else (deadline - self._watch.monotonic_ms()) / 1000
        weighted = self._result.next(max(0.0, min(_SLICE_S, left_s)))
        if self.is_endless:
            self._watch.idle(self)
        return None if weighted is None else new_rows(weighted)


def refuse_updates(result: Result) -> None:
    """Refuse an endless result whose rows are updated later. A row alone does not say what it replaces."""
    if (why := result.shape.why_not_by_row) is not None:
        result.cancel()
        raise PenstockError(
            "CLI-6224",
            why,
            hint="write SUBSCRIBE before the query to read its changes with their op, or CREATE MATERIALIZED "
            "VIEW and SELECT from that",
            sqlstate="0A000",
        )
