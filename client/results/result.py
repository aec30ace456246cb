"""Results of statements: their columns, and their rows as they come, as changes, or folded at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.errors import PenstockError, out_of_memory
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import STRING, from_arrow
from penstock.client.results.result_stream import (
    BackendStream,
    FoldedStream,
    ResultStream,
    TableStream,
    change_schema,
    new_rows,
    op_rows,
    visible_rows,
)
from penstock.client.results.session_memory import SessionMemory
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold
from penstock.planner.expressions.nodes import SortKey

if TYPE_CHECKING:
    from penstock.engine.connectors.row_replacement.replaced_table import RowCounts
    from penstock.engine.job.job import Job

_SLICE_S = 0.25  # longest wait at once: a signal or the end of a job is seen at the latest after it


@dataclass(frozen=True)
class Shape:
    """The properties of a result that are known before its first row. They say whether it ends, whether rows
    may be retracted, the key of a row, and the final order.

    ``limit``: the number of rows after which an endless result ends. ``verbatim``: its one column has lines
    of text to be shown as they are. ``update_key``: the upsert key, where changes of one key come in order,
    so that a -U meets its +U. ``subscribed``: the rows are changes themselves, and their first column is
    ``op``. ``order_fields``: columns of the stream behind those of ``schema``; rows are sorted by them, and
    no reader sees them.
    """

    schema: Schema
    finite: bool = True
    insert_only: bool = True
    upsert_key: tuple[int, ...] | None = None
    order: tuple[SortKey, ...] = ()
    streamed: bool = False
    limit: int | None = None
    verbatim: bool = False
    update_key: tuple[int, ...] | None = None
    subscribed: bool = False
    order_fields: tuple[Field, ...] = ()

    @property
    def updating(self) -> bool:
        """Whether a row that was read may be replaced, or get another place: an endless result with an ORDER
        BY has an order of the rows so far.
        """
        return not self.insert_only or (bool(self.order) and not self.finite)

    @property
    def why_not_by_row(self) -> str | None:
        """Why rows that are read one by one would not be the result; None where they are."""
        if self.finite or not self.updating:
            return None
        if self.insert_only:
            return "rows that come later have their places between those of this endless result"
        return "rows of this endless result are updated later, and a row alone does not say what it replaces"

    @property
    def change_mode(self) -> str:
        """``append``, ``upsert`` (changes with a key) or ``retract``."""
        return "append" if self.insert_only else "retract" if self.upsert_key is None else "upsert"

    @property
    def folds(self) -> bool:
        """Whether final rows are known only at the end: rows may be retracted, or a stream has an ORDER
        BY.
        """
        return not self.insert_only or (self.streamed and bool(self.order))

    @property
    def nature(self) -> str:
        """Whether the result ends and whether its rows change, and how to read it, in a few words."""
        if self.finite:
            return "a result that ends"
        if not self.updating:
            return "an endless result: iterate over it, or fetch with timeout= or limit="
        if self.insert_only:
            return (
                "an endless result in an order: fetchall(timeout=) sorts the rows so far, changes() does not"
            )
        return "an endless result whose rows are updated: iterate over changes()"


@dataclass(repr=False)
class Result:
    """The result of one statement. Read its rows by one of ``batches`` (final rows), ``changes`` (with op) or
    ``next`` (weighted batches): all consume the same stream. One thread at a time may call a method; any may
    call ``cancel``. ``note``: what a statement without rows did. ``job``: the job it started. ``rowcount``:
    the rows an ended statement has written or changed, else -1. ``undo``: reverts what the statement did
    besides starting its job, when the job fails. ``publish``: what the statement does when its job has ended
    well, with the rows it has changed; it waits for that always. ``memory``: that of its session, which may
    have a limit.
    """

    shape: Shape
    stream: ResultStream
    job: Job | None = None
    note: str | None = None
    rowcount: int = -1
    clock: Clock = field(default_factory=SystemClock)
    locate: Callable[[PenstockError], PenstockError] = lambda error: error
    undo: Callable[[BaseException, Job | None], None] = lambda error, job: None
    publish: Callable[[], RowCounts | None] | None = None
    memory: SessionMemory = field(default_factory=SessionMemory)
    _fold: Fold | None = None

    def __post_init__(self) -> None:
        self._started_ms = self.clock.monotonic_ms()

    def __repr__(self) -> str:
        return f"<penstock.Result: {self.described}>"

    @property
    def described(self) -> str:
        """The columns and the nature of the result, or what the statement did."""
        if not self.has_rows:
            return self.note or "no rows"
        columns = ", ".join(f"{each.name} {each.type}" for each in self.shape.schema)
        return f"{columns}; {self.shape.nature}"

    @property
    def elapsed_s(self) -> float:
        """Seconds since the statement was started."""
        return (self.clock.monotonic_ms() - self._started_ms) / 1000

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.shape.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns of batches."""
        return self.shape.schema.to_arrow()

    @property
    def stream_schema(self) -> pa.Schema:
        """The columns of its stream: those of batches, and behind them those that rows are sorted by only."""
        return Schema((*self.shape.schema.fields, *self.shape.order_fields)).to_arrow()

    @property
    def has_rows(self) -> bool:
        """Whether the statement returns rows at all (no: DDL, SET, INSERT)."""
        return len(self.shape.schema) > 0

    @property
    def ended(self) -> bool:
        """Whether no more rows will come."""
        return self.stream.ended

    def next(self, timeout_s: float | None = None) -> Batch | None:
        """Return the next weighted batch, waiting up to ``timeout_s`` (None: for ever). None at the end or
        when the time is up. An error has its position in the statement's text.
        """
        return self._read(timeout_s, visible=True)

    def next_to_fold(self, timeout_s: float | None = None) -> Batch | None:
        """Return what ``next`` does, with the columns of ``stream_schema``, by which rows are sorted: for
        ``new_fold`` and ``in_order``.
        """
        return self._read(timeout_s, visible=False)

    def visible(self, batch: Batch) -> Batch:
        """Return a batch of ``next_to_fold`` as readers see it. A change that they do not see is none."""
        if not self.shape.order_fields:
            return batch
        return visible_rows(batch, self.arrow_schema)

    def _read(self, timeout_s: float | None, visible: bool) -> Batch | None:
        try:
            return self._next(timeout_s, visible)
        except PenstockError as error:
            raise self.locate(error) from error.__cause__
        # the result of the user's query did not fit: RUN-2024, not a traceback
        except MemoryError as error:
            raise self.locate(out_of_memory(error, "hold the rows of the result")) from error

    def _next(self, timeout_s: float | None, visible: bool) -> Batch | None:
        deadline = None if timeout_s is None else self.clock.monotonic_ms() + timeout_s * 1000
        while not self.stream.ended:
            # short waits, also without a deadline: Ctrl-C is handled between them
            left_s = (
                _SLICE_S if deadline is None else min(_SLICE_S, (deadline - self.clock.monotonic_ms()) / 1000)
            )
            batch = self.stream.next(max(0.0, left_s))
            if batch is not None and visible:
                batch = self.visible(batch)
            # a batch of no rows is no news for the caller
            if batch is not None and batch.num_rows:
                return batch
            if deadline is not None and self.clock.monotonic_ms() >= deadline:
                return None
        return self.stream.next(0)  # nothing but the error it ended with

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches. They are final if the result ends; an endless result that
        changes yields new versions of rows.
        """
        # a row may be retracted until the end, so nothing is final before it
        if self.shape.folds and self.shape.finite:
            yield from self.final_rows().to_batches()
            return
        while (batch := self.next()) is not None:
            # endless: the new versions of rows; what they replace is only in ``changes``
            yield new_rows(batch)

    def changes(self, timeout_s: float | None = None) -> Iterator[pa.RecordBatch]:
        """Yield every change in order, with a first column ``op``: +I, -U, +U or -D. It ends when nothing
        has come for ``timeout_s``.
        """
        while (batch := self.next(timeout_s)) is not None:
            # SUBSCRIBE: the rows have their op column already
            yield batch.rows if self.shape.subscribed else op_rows(batch, self.shape.update_key)

    @property
    def change_schema(self) -> pa.Schema:
        """The columns of ``changes``."""
        return self.arrow_schema if self.shape.subscribed else change_schema(self.arrow_schema)

    def final_rows(self, timeout_s: float | None = None, limit: int | None = None) -> pa.Table:
        """Return the folded rows in their final order. It reads to the end, to the timeout, or until there
        are ``limit`` rows (of an insert-only result). Raises CLI-6010 for an endless result without a
        timeout or limit. Rows of a later call may differ, where rows change.
        """
        # a LIMIT ends an endless insert-only query; the limit of the caller does not end one whose rows
        # change
        ends = self.shape.finite or self.shape.limit is not None
        if not ends and timeout_s is None and (limit is None or self.shape.folds):
            hint = "pass timeout=, use fetchmany(n, timeout=), iterate over the cursor, or read changes()"
            raise PenstockError(
                "CLI-6010",
                "this result never ends, so its rows cannot be fetched all",
                hint=hint,
                sqlstate="0A000",
            )
        fold = self._fold or self.new_fold()
        # the next call continues with these rows: a later change may retract one of them
        self._fold = fold if self.shape.folds else None
        deadline = None if timeout_s is None else self.clock.monotonic_ms() + timeout_s * 1000
        taken = 0
        # with retractions a limit counts folded rows, which are known only at the end or the timeout
        while limit is None or self.shape.folds or taken < limit:
            # the time left of all batches together, not of each
            left_s = None if deadline is None else max(0.0, (deadline - self.clock.monotonic_ms()) / 1000)
            batch = self.next_to_fold(left_s)
            if batch is None:
                break
            taken += batch.num_rows
            fold.add(batch)
            self.check_memory()
            # a stream that is quicker than its reader has a batch each time; 0 takes what is there
            if deadline is not None and timeout_s and self.clock.monotonic_ms() >= deadline:
                break
        rows = self.in_order(fold.rows())
        # the last batch may have brought more than were asked for
        return rows if limit is None else rows.slice(0, limit)

    def new_fold(self) -> Fold:
        """Return a fold of the batches of ``next_to_fold``, which counts as memory of the session."""
        fold = Fold(self.stream_schema)
        self.memory.add_fold(fold)
        return fold

    def check_memory(self) -> None:
        """Stop what computes the result, CLI-6205, when the session takes more memory than it may."""
        try:
            self.memory.check()
        except PenstockError as error:
            self.cancel()
            raise self.locate(error) from None

    def in_order(self, rows: pa.Table) -> pa.Table:
        """Return the rows of a fold by the ORDER BY of the statement, with the columns that readers see.
        Without an order, rows with an upsert key are sorted by that key.
        """
        # a bounded backend has sorted its rows itself
        if not self.shape.streamed or not (self.shape.order or self.shape.upsert_key):
            return rows
        # compiles expressions: only when there is an order
        from penstock.client.results.result_order import sort_by_columns, sort_by_keys

        if not self.shape.order:
            return sort_by_columns(rows, self.shape.upsert_key or ())
        ordered = sort_by_keys(rows, self.shape.order)
        return ordered.select(list(range(len(self.shape.schema)))) if self.shape.order_fields else ordered

    def as_bounded(self) -> Result:
        """Return this result with its final rows only, as a bounded backend returns them. It must end."""
        stream = FoldedStream(self.stream, self.stream_schema, self.in_order, self.memory)
        shape = replace(
            self.shape, insert_only=True, upsert_key=None, update_key=None, streamed=False, order_fields=()
        )
        return replace(self, shape=shape, stream=stream)

    def progress(self) -> str | None:
        """Return the progress of the bounded backend in a few words, None where nothing is known. Any
        thread may call it.
        """
        return self.stream.progress() if isinstance(self.stream, BackendStream) else None

    @property
    def backend(self) -> str | None:
        """The name of the bounded backend that computes the rows; None where a job or nothing does."""
        return self.stream.name if isinstance(self.stream, BackendStream) else None

    def cancel(self) -> None:
        """Stop what computes the result; a thread waiting for rows wakes up at once."""
        self.stream.close()

    close = cancel


def rows_result(rows: pa.Table, note: str | None = None) -> Result:
    """Return a result of rows that exist already."""
    # the SQL types of the Arrow types: DESCRIBE and the printer name them
    schema = Schema(tuple(Field(column.name, from_arrow(column.type)) for column in rows.schema))
    return Result(Shape(schema), TableStream(rows), note=note)


def text_rows(columns: list[str], rows: Sequence[tuple[str | None, ...]], note: str | None = None) -> Result:
    """Return a result of a few rows of strings, as for SHOW and DESCRIBE."""
    # zip of no rows gives no columns
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    table = pa.table([pa.array(column, pa.string()) for column in values], names=columns)
    schema = Schema(tuple(Field(name, STRING) for name in columns))
    return Result(Shape(schema), TableStream(table), note=note)


def verbatim_result(column: str, texts: Sequence[str]) -> Result:
    """Return a result of texts, one a row, to be shown as they are."""
    result = text_rows([column], [(text,) for text in texts])
    return replace(result, shape=replace(result.shape, verbatim=True))


def note_result(note: str, job: Job | None = None) -> Result:
    """Return the result of a statement that returns no rows."""
    return Result(Shape(Schema(())), TableStream(pa.table({})), job, note)
