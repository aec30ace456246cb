"""What checkpoints store of a plan besides operator ids, so that state can be restored into wider types:
alike digests, carried columns, declared tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from penstock.catalog.connectors.registry import emits_changes, emits_upserts
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.node_digest import ALIKE, REACHED, hash_parts, table_text
from penstock.planner.logical.over import Over
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.scan import BoundedInput, Scan
from penstock.planner.logical.set_operations import Union
from penstock.planner.physical.plan_digest import PlanDigests

# hex digits, as operator ids
_LENGTH = 16

Origins = frozenset[tuple[str, str]]
_COMPUTED: Origins = frozenset()


@dataclass(frozen=True)
class CarriedColumn:
    """A column of the rows that reach an operator. ``text`` is its digest without the width of types.

    ``origins``: the table keys and columns it is an unchanged copy of; none when it is computed.
    """

    text: str
    name: str
    type: str
    origins: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class StateCompatibility:
    """``alike``: the digest of an operator without the width of types and without carried columns. ``ports``:
    the columns of each input. ``reached``: its exact digest, however its tables are reached; empty in
    checkpoints that do not have it.
    """

    alike: str
    ports: tuple[tuple[CarriedColumn, ...], ...]
    reached: str = ""


@dataclass(frozen=True)
class DeclaredColumn:
    """A column of a table. ``read``: the plan reads it. ``optional``: rows may lack it, and it
    is NULL then.
    """

    name: str
    type: str
    read: bool
    optional: bool


@dataclass(frozen=True)
class DeclaredTable:
    """A table that the plan reads; ``key`` is the one that ``origins`` of columns use."""

    key: str
    name: str
    columns: tuple[DeclaredColumn, ...]


@dataclass(frozen=True)
class PlanCompatibility:
    """The compatibility of a plan's operators, by id, and its tables."""

    operators: Mapping[str, StateCompatibility] = field(default_factory=dict, hash=False)
    tables: tuple[DeclaredTable, ...] = ()


def derive_compatibility(
    nodes: Mapping[str, LogicalPlan], details: Mapping[str, tuple[str, ...]]
) -> PlanCompatibility:
    """Return what checkpoints store of a plan, from its operators' nodes and further details, by id."""
    alike = _Alike()
    return PlanCompatibility(
        {known: alike.state(node, details[known]) for known, node in nodes.items()}, _tables(nodes.values())
    )


class _Alike:
    """Digests without the width of types, and the origins of columns, each derived once."""

    def __init__(self) -> None:
        self._digests = PlanDigests(ALIKE)
        self._reached = PlanDigests(REACHED)
        self._known: dict[int, tuple[Origins, ...]] = {}

    def state(self, node: LogicalPlan, details: tuple[str, ...]) -> StateCompatibility:
        """Return the compatibility of one operator."""
        # the same details as the operator id: LIMIT over updates is not LIMIT over inserts
        alike = hash_parts("alike", self._digests.of(node).rows, *self._own_columns(node), *details)[:_LENGTH]
        # the state of a process table function has no rows of its tables
        inputs = (node,) if isinstance(node, Scan) else () if isinstance(node, ProcessTable) else node.inputs
        return StateCompatibility(
            alike, tuple(self._carried(one) for one in inputs), self._reached.of(node).identity(*details)
        )

    def _own_columns(self, node: LogicalPlan) -> tuple[str, ...]:
        """Return the digests of the columns that an operator computes, where they are part of its state;
        carried columns are not among them.
        """
        columns = self._digests.of(node).columns
        if isinstance(node, Over):
            return columns[len(node.input.schema) :]
        return columns if isinstance(node, Aggregate | WindowAggregate | MatchRecognize) else ()

    def _carried(self, node: LogicalPlan) -> tuple[CarriedColumn, ...]:
        columns = zip(node.schema, self._digests.of(node).columns, self._origins(node), strict=True)
        return tuple(
            CarriedColumn(text[:_LENGTH], column.name, str(column.type), tuple(sorted(origins)))
            for column, text, origins in columns
        )

    def _origins(self, node: LogicalPlan) -> tuple[Origins, ...]:
        """Return the origins of each column."""
        if id(node) not in self._known:
            self._known[id(node)] = self._traced(node)
        return self._known[id(node)]

    def _traced(self, node: LogicalPlan) -> tuple[Origins, ...]:
        origins = [self._origins(one) for one in node.inputs]
        match node:
            # a scanned column is a copy of itself
            case Scan(table=table, columns=columns):
                return tuple(frozenset({(_key(table), table.source_schema[i].name.lower())}) for i in columns)
            # a column of UNION ALL is a copy if it is one in every branch
            case Union():
                return tuple(
                    frozenset().union(*column) if all(column) else _COMPUTED
                    for column in zip(*origins, strict=True)
                )
            # left columns, then right columns
            case BinaryJoin() | TemporalJoin():
                # SEMI and ANTI have the left columns only
                return sum(origins, ())[: len(node.schema)]
            # columns from the looked-up table count as computed
            case LookupJoin():
                return origins[0] + (_COMPUTED,) * (len(node.schema) - len(origins[0]))
        if len(origins) != 1:
            return (_COMPUTED,) * len(node.schema)
        # other nodes: a column with the digest of an input column is that column
        passed = dict(zip(self._digests.of(node.inputs[0]).columns, origins[0], strict=True))
        return tuple(passed.get(text, _COMPUTED) for text in self._digests.of(node).columns)


def _tables(nodes: Iterable[LogicalPlan]) -> tuple[DeclaredTable, ...]:
    read: dict[str, tuple[CatalogTable, set[str]]] = {}
    for node in nodes:
        # tables of a subplan of the backend count too
        for part in node.plan.walk() if isinstance(node, BoundedInput) else (node,):
            scan = part.scan if isinstance(part, LookupJoin) else part
            if isinstance(scan, Scan):
                names = read.setdefault(_key(scan.table), (scan.table, set()))[1]
                names.update(scan.table.source_schema[i].name for i in scan.columns)
    return tuple(_declared(key, table, names) for key, (table, names) in read.items())


def _declared(key: str, table: CatalogTable, read: set[str]) -> DeclaredTable:
    """Columns that the connector fills in are never missing. Neither is any column of a changelog table: a
    retraction carries the value read at that moment. Of upserts a retraction has the value that was stored.
    """
    declared = {field.name: field.type for field in table.schema}
    filled = (
        {f.name for f in table.source_schema}
        if emits_changes(table) and not emits_upserts(table)
        else {column.name for column in table.metadata}
    )
    columns = (
        DeclaredColumn(
            f.name.lower(),
            str(declared.get(f.name, f.type)),
            f.name in read,
            f.nullable and f.name not in filled,
        )
        for f in table.source_schema
        # without marks of the connector, which are no column of the table
        if f.name in declared
    )
    return DeclaredTable(key, table.name, tuple(columns))


def _key(table: CatalogTable) -> str:
    return table_text(table)[:_LENGTH]
