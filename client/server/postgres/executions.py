"""Statements as the wire runs them: parameters and columns before they start, and what a start gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from penstock.catalog.schema import Schema
from penstock.catalog.types import DataType
from penstock.client.cursor import Cursor
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import TableStream
from penstock.client.server.postgres.copy_options import CopyOptions
from penstock.client.server.postgres.row_output import RowEncoder
from penstock.client.server.postgres.row_reader import RowReader, Watch, refuse_updates
from penstock.planner.parser.token_stream import ROW_CHANGES

if TYPE_CHECKING:
    from penstock.client.execution.prepared_statement import PreparedStatement

WITH_COUNT = frozenset({"SELECT", "SUBSCRIBE", "FETCH", "COPY", "MOVE"})
"""Command tags that say a number of rows."""


@dataclass
class Execution:
    """A started statement. ``reader`` has its rows; without one ``tag`` is all there is. ``copies``: its rows
    are sent as a COPY. ``most`` rows are read, in ``timeout_s`` at most. ``notes`` are sent before it ends.
    """

    tag: str
    reader: RowReader | None = None
    copies: CopyOptions | None = None
    most: int | None = None
    timeout_s: float | None = None
    notes: list[str] = field(default_factory=list)
    sent: int = 0
    binary: bool = False
    discards: bool = False
    at_hand: bool = False
    """Whether its rows are there, so that reading and closing it wait for nothing."""

    @property
    def command_tag(self) -> str:
        """The tag of its end: SUBSCRIBE counts as SELECT, which clients know."""
        if self.reader is None:
            return self.tag
        word = "SELECT" if self.tag == "SUBSCRIBE" else self.tag
        return f"{word} {self.sent}" if self.tag in WITH_COUNT else word


class WireStatement(Protocol):
    """A statement that can be described and started."""

    @property
    def parameters(self) -> Sequence[DataType]:
        """The types of its parameters."""

    @property
    def schema(self) -> Schema | None:
        """Its result columns, None where it returns no rows."""

    def start(self, values: Sequence[object]) -> Execution:
        """Start it with the values of its parameters."""


@dataclass
class CommandStatement:
    """A statement that an action of the session does, and that returns no rows."""

    act: Callable[[], Execution]
    parameters: Sequence[DataType] = ()
    schema: Schema | None = None

    def start(self, values: Sequence[object]) -> Execution:
        return self.act()


def command(tag: str, *actions: Callable[[], None]) -> CommandStatement:
    """Return a statement that runs actions and returns its tag."""

    def act() -> Execution:
        for action in actions:
            action()
        return Execution(tag)

    return CommandStatement(act)


@dataclass
class TableStatement:
    """A statement whose rows are a table that exists already, such as SHOW and queries of pg_catalog."""

    schema: Schema
    compute: Callable[[Sequence[object]], pa.Table]
    watch: Watch
    tag: str = "SELECT"
    parameters: Sequence[DataType] = ()
    oids: Mapping[str, int] | None = None
    """Types of columns and of ``$1`` that have no like among ours, by name."""

    def start(self, values: Sequence[object]) -> Execution:
        rows = self.compute(values).cast(self.schema.to_arrow())
        return Execution(self.tag, RowReader(Result(Shape(self.schema), TableStream(rows)), self.watch))


class QueryStatement:
    """A statement of ours. ``hold`` is called with the cursor that runs it, so that it can be cancelled."""

    def __init__(self, prepared: PreparedStatement, new_cursor: Callable[[], Cursor], watch: Watch) -> None:
        self._prepared = prepared
        self._new_cursor = new_cursor
        self._watch = watch
        self.parameters = prepared.parameters
        self.schema = prepared.schema
        self._encoders: dict[tuple[tuple[int, ...], str], RowEncoder] = {}

    def start(self, values: Sequence[object]) -> Execution:
        cursor = self._new_cursor()
        cursor.run_prepared(self._prepared, values)
        return execution_of(cursor, self._prepared.kind, self._watch)

    @property
    def is_point_query(self) -> bool:
        """Whether ``start_now`` may start it."""
        return self._prepared.is_point_query

    def start_now(self, values: Sequence[object]) -> Execution | None:
        """Start a point query whose rows are at hand; None where ``start`` has to be called."""
        result = self._prepared.execute_now(list(values))
        if result is None:
            return None
        return Execution(self._prepared.kind, RowReader(result, self._watch), at_hand=True)

    @property
    def is_current(self) -> bool:
        """Whether it is what its text would be compiled to now."""
        return self._prepared.is_current

    def encoder(self, formats: tuple[int, ...], zone: str) -> RowEncoder:
        """Return the encoder of its rows, made once for formats and a time zone."""
        if (encoder := self._encoders.get((formats, zone))) is None:
            assert self.schema is not None
            encoder = self._encoders[formats, zone] = RowEncoder(self.schema, formats, zone)
        return encoder


@dataclass
class DirectStatement:
    """A statement of ours that is run at once, without being described before."""

    sql: str
    kind: str
    new_cursor: Callable[[], Cursor]
    watch: Watch
    parameters: Sequence[DataType] = ()
    schema: Schema | None = None

    def start(self, values: Sequence[object]) -> Execution:
        cursor = self.new_cursor()
        cursor.execute(self.sql)
        return execution_of(cursor, self.kind, self.watch)


def execution_of(cursor: Cursor, kind: str, watch: Watch) -> Execution:
    """Return the execution of what a cursor has run."""
    result = cursor.result
    if result.has_rows:
        refuse_updates(result)
        return Execution(kind, RowReader(result, watch))
    if kind in ROW_CHANGES:
        return Execution(f"{kind} {max(0, result.rowcount)}")
    if kind != "INSERT":
        return Execution(kind)
    # -1: a job that goes on, or one that was restarted and has lost count
    notes = [] if result.rowcount >= 0 or result.job is None else [_job_note(result)]
    return Execution(f"INSERT 0 {max(0, result.rowcount)}", notes=notes)


def _job_note(result: Result) -> str:
    assert result.job is not None
    return f"job {result.job.job_id} runs until it is stopped: its rows are not counted here"
