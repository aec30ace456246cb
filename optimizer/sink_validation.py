"""What a plan gives must be what its sinks take."""

from __future__ import annotations

from penstock.catalog.connectors.registry import takes_changes, upserts_rows, written_changes
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.optimizer.properties.distribution import is_gathered_by
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.distribution import Partition
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.chaining import subtasks


def check_sinks(plan: LogicalPlan, facts: PlanFacts) -> None:
    """Refuse sinks that cannot write what the plan emits.

    Raises SQL-1310 for an append-only sink over a plan that retracts rows; the error names the node that
    does, and the alternatives. Raises SQL-1312 for an upsert sink whose key does not identify the rows of the
    plan. Raises SQL-1703 for an INSERT OVERWRITE that never ends.
    """
    for node in plan.walk():
        if isinstance(node, Sink) and node.overwrite is not None and not facts.finite(node.input):
            raise PenstockError(
                "SQL-1703",
                "INSERT OVERWRITE takes a query that ends: the old rows are replaced at its end",
                hint="write INSERT INTO, or read tables that end: 'number-of-rows', 'scan.bounded.mode'",
                span=node.span,
                sqlstate="0A000",
            )
        if isinstance(node, Sink) and node.table is not None and not facts.insert_only(node.input):
            if not takes_changes(node.table):
                raise PenstockError(
                    "SQL-1310",
                    f"table {node.table.name} ({node.table.connector}) takes inserts only, but the "
                    "query updates its results",
                    detail=culprit(node.input, facts),
                    hint=_ways_out(node.input, facts, node.table),
                    span=node.span,
                )
            _check_key(node, node.table, facts)


def _check_key(sink: Sink, table: CatalogTable, facts: PlanFacts) -> None:
    # A changelog writes both sides of an update: it needs no key.
    if written_changes(table) != "upsert":
        return
    declared = {name.lower() for name in table.primary_key}
    key = {i for i, field in enumerate(table.physical_fields) if field.name.lower() in declared}
    # Rows that a part of the primary key identifies are identified by the whole.
    if any(unique <= key for unique in facts.unique_keys(sink.input)):
        return
    names = ", ".join(table.primary_key)
    found = facts.upsert_key(sink.input)
    detail = (
        "no columns identify its rows"
        if found is None
        else f"its rows are identified by {', '.join(sink.schema.names[i] for i in found)}"
    )
    raise PenstockError(
        "SQL-1312",
        f"table {table.name} replaces rows by ({names}), which does not identify the rows of the query",
        detail=detail,
        hint=f"GROUP BY {names}; or {_FINAL}; or {_CHANGELOG}",
        span=sink.span,
    )


def check_order(laid: LogicalPlan, facts: PlanFacts, parallelism: int) -> None:
    """Raise SQL-1319 for a plan with edges that sends an upsert table the changes of one key from several
    subtasks, in no order among them.
    """
    for node in laid.walk():
        if (
            not isinstance(node, Sink)
            or node.table is None
            or written_changes(node.table) != "upsert"
            or facts.insert_only(node.input)
        ):
            continue
        # An exchange that sends changes of one key from several subtasks mixes their order.
        if (
            isinstance(node.input, Exchange)
            and isinstance(node.input.edge, Partition)
            and subtasks(node.input.input, parallelism) > 1
            and not is_gathered_by(node.input.input, node.input.edge.keys)
        ):
            names = ", ".join(node.table.primary_key)
            raise PenstockError(
                "SQL-1319",
                f"the changes of one {names} come from several subtasks, and an upsert table needs "
                "them in order",
                hint=f"SET 'parallelism.default' = '1'; or GROUP BY {names} last; or {_CHANGELOG}",
                span=node.span,
            )


def _updating(plan: LogicalPlan, facts: PlanFacts) -> LogicalPlan:
    """The lowest node that turns inserts into updates."""
    for node in plan.walk():
        # Inserts come in, updates go out.
        if not facts.insert_only(node) and all(facts.insert_only(child) for child in node.inputs):
            return node
    return plan


def culprit(plan: LogicalPlan, facts: PlanFacts) -> str:
    """Return who updates a plan's rows, in words."""
    return _updating(plan, facts).update_cause()


_FINAL = "group by a window and write EMIT ON WINDOW CLOSE, so that each row is final"
_CHANGELOG = "write to a changelog: 'format' = 'debezium-json', or connector 'print'"


def _ways_out(plan: LogicalPlan, facts: PlanFacts, table: CatalogTable) -> str:
    joined = (
        "join a bounded table, or use an inner JOIN"
        if isinstance(_updating(plan, facts), BinaryJoin)
        else None
    )
    keyed = (
        "give the table a PRIMARY KEY"
        if upserts_rows(table)
        else "give the table a PRIMARY KEY and 'changelog.mode' = 'upsert'"
    )
    return "; or ".join(way for way in (joined or _FINAL, keyed, _CHANGELOG) if way)
