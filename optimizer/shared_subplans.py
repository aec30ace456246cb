"""Bounded parts that several parts of a plan read are computed once and read by all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import reduce

from penstock.catalog.connectors.registry import SHARED, connector_of
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BOOLEAN
from penstock.optimizer.optimizer import optimize
from penstock.planner.expressions.nodes import Call, Column, Expression, inline
from penstock.planner.logical.node_digest import table_text
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, select_columns
from penstock.planner.logical.scan import BoundedInput, Scan
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.physical.plan_digest import PlanDigests

RULE = "share_bounded"


def reads_a_table_twice(plan: LogicalPlan) -> bool:
    """Return whether there can be something to share."""
    tables = Counter(table_text(node.table) for node in plan.walk() if isinstance(node, Scan))
    return any(count > 1 for count in tables.values())


def core_of(plan: LogicalPlan) -> LogicalPlan:
    """Return a subplan without the filters and projections at its top, which each reader may have its own
    of.
    """
    # Each reader may prune and filter on its own; the expensive part is below.
    while isinstance(plan, Project | Filter):
        plan = plan.input
    return plan


def _only_reads(core: LogicalPlan) -> bool:
    while isinstance(core, Project | WatermarkAssign):
        core = core.input
    return isinstance(core, Scan)


@dataclass
class SharedInputs:
    """The parts that are shared, by the name of the table that replaces each in the plan while its readers
    are optimized.

    As a table it has the columns its readers want pruned and their filters pushed into it, and is known as
    one part again afterwards.
    """

    disabled: Collection[str] = ()
    _parts: dict[str, LogicalPlan] = field(default_factory=dict)

    def marked(self, plan: LogicalPlan, largest: Sequence[LogicalPlan]) -> LogicalPlan:
        """Return a plan with a table in place of each core that is that of several of its ``largest``
        bounded subplans.
        """
        # Cores are compared by digest, so equal subqueries written twice are one.
        digests, cores = PlanDigests(), {id(part): core_of(part) for part in largest}
        names = {key: digests.of(core).identity(type(core).__name__) for key, core in cores.items()}
        often = {name for name, count in Counter(names.values()).items() if count > 1}
        standing: dict[int, LogicalPlan] = {}
        for key, core in cores.items():
            if names[key] in often:
                self._parts.setdefault(names[key], core)
                standing[id(core)] = _as_table(names[key], core)
        # By identity: an equal core inside a larger bounded subplan is computed with that one.
        return plan.transform(lambda node: standing.get(id(node), node))

    def settled(self, plan: LogicalPlan) -> LogicalPlan:
        """Return an optimized plan with the parts in place of their tables again."""
        readers: dict[str, list[Scan]] = {}
        for node in plan.walk():
            if isinstance(node, Scan) and node.table.name in self._parts:
                readers.setdefault(node.table.name, []).append(node)
        inputs = {name: self._input(self._parts[name], scans) for name, scans in readers.items()}
        return plan.transform(
            lambda node: (
                inputs[node.table.name].read_by(node)
                if isinstance(node, Scan) and node.table.name in inputs
                else node
            )
        )

    def _input(self, core: LogicalPlan, readers: Sequence[Scan]) -> _Input:
        """A table read with other filters by each is read by each: what a reader leaves out need not be
        read.
        """
        asked = [
            None if scan.predicate is None else inline(scan.predicate, _columns_of(core, scan))
            for scan in readers
        ]
        # Predicates over the core's columns, so those of readers with other columns compare.
        same = all(predicate == asked[0] for predicate in asked)
        # One reader is left after optimization, or each pushes its own filter into the source.
        if len(readers) < 2 or (_only_reads(core) and not same):
            return _Input(core, None)
        columns = tuple(sorted({column for scan in readers for column in scan.columns}))
        kept = [predicate for predicate in asked if predicate is not None]
        # The core is filtered by the OR of what its readers want, if each wants a part only.
        rows = (
            Filter(core, asked[0] if same else reduce(_either, kept))
            if len(kept) == len(asked) and asked[0] is not None
            else core
        )
        body = optimize(select_columns(rows, columns), runtime="batch", disabled=self.disabled)
        return _Input(BoundedInput(body, len(readers)), columns, same)


@dataclass(frozen=True)
class _Input:
    """The replacement of such a table: a part with those ``columns`` of it, or with all where ``columns`` is
    None.
    """

    part: LogicalPlan
    columns: tuple[int, ...] | None
    filtered: bool = False

    def read_by(self, scan: Scan) -> LogicalPlan:
        rows = self.part
        # A scan again: the filter is pushed into the source instead of being above it.
        if isinstance(rows, Scan) and connector_of(rows.table).pushes_filters:
            return Scan(rows.table, tuple(rows.columns[i] for i in scan.columns), scan.predicate)
        places = (
            scan.columns
            if self.columns is None
            else tuple(self.columns.index(column) for column in scan.columns)
        )
        # Other readers want other rows, so each filters once more.
        if scan.predicate is not None and not self.filtered:
            rows = Filter(rows, scan.predicate.remap(dict(enumerate(places))))
        return select_columns(rows, places, scan.schema.names)


def _columns_of(core: LogicalPlan, scan: Scan) -> tuple[Expression, ...]:
    fields = [core.schema[i] for i in scan.columns]
    return tuple(
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in zip(scan.columns, fields, strict=True)
    )


def _either(a: Expression, b: Expression) -> Expression:
    return Call(BOOLEAN, a.nullable or b.nullable, function="or", args=(a, b))


def _as_table(name: str, core: LogicalPlan) -> Scan:
    table = CatalogTable(name, core.schema, core.schema, {"connector": SHARED})
    return Scan(table, tuple(range(len(core.schema))))
