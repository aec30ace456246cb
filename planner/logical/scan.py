"""Leaves of the logical plan: scans of tables, literal rows, and subplans of a bounded backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import cached_property

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness, emits_changes
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import Row
from penstock.planner.expressions.nodes import (
    Expression,
    Literal,
    columns_read,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import expression_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader
from penstock.planner.logical.plan import (
    NO_KEYS,
    ColumnPruner,
    Keys,
    LogicalPlan,
    Needed,
    Pruned,
    cheapest_column,
)
from penstock.planner.logical.windows import (
    demand,
)


@dataclass(frozen=True)
class SourceFacts(OperatorFacts):
    """``skips``: the runtime filters that apply to rows as they are read. Each has the id of its join and the
    positions of its keys in the scan's columns.
    """

    skips: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Scan(LogicalPlan):
    """Read a table's physical and metadata columns. Computed columns and watermarks are Project and
    WatermarkAssign nodes above it.

    ``columns`` are positions in ``table.source_schema``. ``predicate``, over the scan's own output, is the
    filter that the connector guarantees.
    """

    no_history = None

    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None = None

    @cached_property
    def schema(self) -> Schema:
        return self.table.source_schema.select(self.columns)

    def text(self) -> str:
        where = "" if self.predicate is None else f" where {expression_text(self.predicate, self.schema)}"
        return f"Scan {self.columns_text()}{where}"

    def columns_text(self) -> str:
        """Return the table and the columns read from it; a row column that is read in part has its fields
        listed.
        """
        # a row column that was narrowed has fewer fields than declared
        declared = {field.name: field.type for field in self.table.schema}
        texts = []
        for column in self.schema:
            if not isinstance(column.type, Row) or declared.get(column.name, column.type) == column.type:
                texts.append(column.name)
            else:
                texts.append(f"{column.name}({', '.join(name for name, _ in column.type.fields)})")
        return f"{self.table.name} [{', '.join(texts)}]"

    def operator_name(self) -> str:
        return f"source {self.table.name}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> SourceFacts:
        return SourceFacts()

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        table = texts.table(self.table)
        # columns are hashed by name: ALTER TABLE may move them
        source = self.table.source_schema
        # not which fields of a row are read: one more changes nothing of the others
        declared = {column.name: column.type for column in self.table.schema}
        read = [source[i] for i in self.columns]
        columns = tuple(
            hash_parts("column", table, one.name.lower(), texts.kind(declared.get(one.name, one.type)))
            for one in read
        )
        predicate = "" if self.predicate is None else texts.expression(self.predicate, columns)
        return Digest(hash_parts("scan", table, predicate), columns)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        source = self.table.source_schema
        positions = {source[column].name.lower(): i for i, column in enumerate(self.columns)}
        # None: a key column that the scan does not read
        key = [positions.get(name.lower()) for name in self.table.primary_key]
        return frozenset({frozenset(i for i in key if i is not None)}) if key and None not in key else NO_KEYS

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return not emits_changes(self.table)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self if self.predicate is None else self._changed(predicate=rewrite(self.predicate))

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        # COUNT(*) reads no column: the cheapest one carries the rows
        keep = sorted(needed | columns_read([self.predicate])) or [cheapest_column(self.schema)]
        positions = {old: new for new, old in enumerate(keep)}
        predicate = None if self.predicate is None else self.predicate.remap(positions)
        return replace(self, columns=tuple(self.columns[i] for i in keep), predicate=predicate), positions

    @property
    def is_row_wise(self) -> bool:
        return True

    def update_cause(self) -> str:
        return f"table {self.table.name} is one of changes: its rows are replaced and deleted"


@dataclass(frozen=True)
class Values(LogicalPlan):
    """Literal rows."""

    no_history = None

    rows: tuple[tuple[Literal, ...], ...]
    row_schema: Schema

    def __post_init__(self) -> None:
        demand(all(len(row) == len(self.row_schema) for row in self.rows), "VALUES rows of unequal width")

    @cached_property
    def schema(self) -> Schema:
        return self.row_schema

    def text(self) -> str:
        count = len(self.rows)
        return f"Values {count} row{'' if count == 1 else 's'} [{', '.join(self.schema.names)}]"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        # without columns: literals read none
        cells = (texts.expression(cell, ()) for row in self.rows for cell in row)
        rows = hash_parts("values", *cells, str(len(self.rows)))
        return Digest(rows, tuple(hash_parts(rows, str(i)) for i in range(len(self.schema))))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # at most one row: the empty key
        return frozenset({frozenset()}) if len(self.rows) <= 1 else NO_KEYS

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        # SELECT COUNT(*) FROM (VALUES ..)
        columns = sorted(needed) or ([cheapest_column(self.schema)] if len(self.schema) else [])
        rows = tuple(tuple(row[i] for i in columns) for row in self.rows)
        pruned = Values(rows, self.row_schema.select(tuple(columns)))
        return pruned, {old: new for new, old in enumerate(columns)}


@dataclass(frozen=True)
class BoundedInput(LogicalPlan):
    """A bounded subplan that a bounded backend computes; its rows enter the streaming plan as Arrow batches.
    ``penstock.optimizer.bounded_subplans`` inserts it.

    ``readers``: how many parts of the plan read the same subplan; it is computed once for all of them.
    """

    no_history = None

    plan: LogicalPlan
    readers: int = field(default=1, compare=False)

    @cached_property
    def schema(self) -> Schema:
        # the rows come at once and in any order, so no column is an event time
        return self.plan.schema.without_roles()

    def text(self) -> str:
        once = f", computed once for {self.readers} readers" if self.readers > 1 else ""
        return f"BoundedInput [{', '.join(self.schema.names)}]{once}"

    def operator_name(self) -> str:
        # sorted below: sets of texts have another order in each process
        tables = {node.table.name for node in self.plan.walk() if isinstance(node, Scan)}
        return f"bounded {', '.join(sorted(tables))}"

    @property
    def subplans(self) -> tuple[LogicalPlan, ...]:
        return (self.plan,)

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        # which backend computes it is not hashed
        return Digest(hash_parts("bounded", inputs[0].rows), inputs[0].columns)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return inputs[0]

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Several readers keep all columns: another reader may need others."""
        if self.readers > 1:
            return super().prune_columns(needed, pruner)
        pruned, positions = pruner.narrow(self.plan, needed)
        return BoundedInput(pruned), positions


@dataclass(frozen=True)
class HistoryScan(Scan):
    """A scan of exactly these splits, by their ids; later rows are not read."""

    splits: tuple[str, ...] = ()


def up_to(plan: LogicalPlan, splits: tuple[str, ...]) -> LogicalPlan:
    """Return a plan over one table whose scan ends with these splits."""

    def ended(node: LogicalPlan) -> LogicalPlan:
        return (
            HistoryScan(node.table, node.columns, node.predicate, splits) if isinstance(node, Scan) else node
        )

    return plan.transform(ended)


def scan_of(plan: LogicalPlan) -> Scan:
    """Return the one scan of a plan over one table."""
    # a second scan would be a defect of the caller
    (scan,) = [node for node in plan.walk() if isinstance(node, Scan)]
    return scan


def bounded(plan: LogicalPlan) -> bool:
    """Return whether all sources of a plan are bounded tables. A recording that is read as a
    stream is not.
    """
    return all(
        boundedness(node.table) is Boundedness.BOUNDED for node in plan.walk() if isinstance(node, Scan)
    )


def endless(plan: LogicalPlan) -> bool:
    """Return whether some source of a plan never ends."""
    return any(
        boundedness(node.table) is Boundedness.UNBOUNDED for node in plan.walk() if isinstance(node, Scan)
    )
