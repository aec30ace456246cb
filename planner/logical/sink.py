"""Sinks of the logical plan: the tables that rows are written to, alone or as a set, and the history that is
loaded first.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from penstock.catalog.connectors.database import DATABASES
from penstock.catalog.connectors.registry import writes_to_stdout
from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BOOLEAN
from penstock.planner.logical.distribution import ANY, SINGLE, InputFacts, Requirement, by_keys
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader
from penstock.planner.logical.plan import LogicalPlan, PassThroughNode

FATE, ROW = "$fate", "$row"
"""Columns behind those of a table whose rows change: what becomes of a row, and by MERGE the number of the
target's row. Where the table has such a name, they have another."""
KEPT, UPDATED, DELETED, INSERTED, NO_ROW = range(5)
"""What becomes of a row. ``NO_ROW``: of a row of MERGE's source nothing is inserted."""


@dataclass(frozen=True)
class HistoryOption:
    """WITH HISTORY, or the hint BACKFILL. ``backend`` is None where the setting ``bounded.backend`` names it;
    ``span`` is the clause in the text.
    """

    backend: str | None
    span: Span


@dataclass(frozen=True)
class SinkFacts(OperatorFacts):
    """``upsert_key``: the columns that identify a row of a changelog; None when only the whole row does.
    ``upserts``: an update comes without the row before it.
    """

    upsert_key: tuple[int, ...] | None = None
    upserts: bool = False


@dataclass(frozen=True)
class RowChanges:
    """UPDATE, DELETE or MERGE, by ``kind``: the rows of the sink are those of ``table``, and the column
    behind them says what becomes of each.

    ``changes_keys``: two rows may have got one PRIMARY KEY. ``lone_delete``: the one action of a MERGE
    deletes without a condition, so several rows of its source may match a row. ``fate`` and ``row`` are the
    names of the columns of ``FATE`` and ``ROW``; ``row`` is empty but of MERGE.
    """

    kind: str
    table: CatalogTable
    changes_keys: bool = False
    lone_delete: bool = False
    fate: str = FATE
    row: str = ""

    @property
    def in_database(self) -> bool:
        """Whether the table's database changes the rows: the sink's input has the new values of SET."""
        return self.table.connector in DATABASES


@dataclass(frozen=True)
class Sink(PassThroughNode):
    """Write rows to a table, or collect them to the client when ``table`` is None. ``span`` is the table's
    name in INSERT; ``history`` is loaded first.

    ``overwrite``: the rows replace those of the table, or of its partitions; these are the constants of
    partition columns. None: rows are added. ``changes``: of UPDATE, DELETE and MERGE; ``table`` has more
    columns then. ``order_columns``: so many columns at the end are for the order of the client's rows only;
    it shows the others.
    """

    no_history = None

    table: CatalogTable | None
    span: Span | None = field(default=None, compare=False)
    history: HistoryOption | None = field(default=None, compare=False)
    overwrite: tuple[tuple[str, str], ...] | None = field(default=None, compare=False)
    changes: RowChanges | None = field(default=None, compare=False)
    order_columns: int = 0

    def text(self) -> str:
        replaces = "" if self.overwrite is None else " (overwrites)"
        if self.changes is not None:
            replaces = f" ({self.changes.kind})"
        return f"Sink {self._target()}{replaces} [{', '.join(self.schema.names)}]"

    def operator_name(self) -> str:
        return f"sink {self._target()}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> SinkFacts:
        """A table's primary key is the upsert key; without one it is the key of the plan."""
        # INSERT INTO t SELECT k, COUNT(*) .. GROUP BY k: (k)
        key = derived.upsert_key(self.input)
        if self.table is not None and self.table.primary_key:
            key = self.primary_key()
        return SinkFacts((derived.insert_only(self.input),), key, derived.emits_upserts(self.input))

    def primary_key(self) -> tuple[int, ...]:
        """Return the columns of the table's primary key; none where it has no key, or there is no table."""
        if self.table is None:
            return ()
        # positions in the table's physical columns
        declared = {name.lower() for name in self.table.primary_key}
        fields = enumerate(self.table.physical_fields)
        return tuple(i for i, column in fields if column.name.lower() in declared)

    def _target(self) -> str:
        return "to the client" if self.table is None else self.table.name

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        table = "" if self.table is None else texts.table(self.table)
        # with columns: a sink that writes other columns is another sink
        return Digest(hash_parts("sink", below.rows, *below.columns, table), below.columns)

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        """Changes of one row must arrive in order, so they need one subtask. The client sums weights and
        needs no order.
        """
        # rows of two writers would be mixed within a line
        if self.table is not None and writes_to_stdout(self.table):
            return (SINGLE,)
        # inserts may be written in any order
        if self.table is None or inputs[0].insert_only or not self.table.primary_key:
            return (ANY,)
        return (by_keys(self.primary_key()),)


@dataclass(frozen=True)
class StatementSet(LogicalPlan):
    """Several sinks that run as one job."""

    no_history = None

    sinks: tuple[Sink, ...]

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return self.sinks

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        # a rule may not replace a sink, only what is below it
        return StatementSet(tuple(node for node in inputs if isinstance(node, Sink)))

    @cached_property
    def schema(self) -> Schema:
        # a set has no rows for the client
        return Schema((Field("done", BOOLEAN, False),))

    def text(self) -> str:
        return f"StatementSet {len(self.sinks)} sinks"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        return Digest(hash_parts("set", *(sink.rows for sink in inputs)), ())
