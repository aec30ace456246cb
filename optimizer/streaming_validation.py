"""What our own runtime cannot run is refused before anything starts, with what to write instead."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.nodes import Call, Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Sort


def check_streamable(plan: LogicalPlan, facts: PlanFacts) -> None:
    """Refuse an optimized streaming plan with a node that the runtime does not run.

    The binder refuses most of these earlier, with their position in the text.

    Raises SQL-1314 for an ORDER BY that is not the last clause, or of endless rows for a table. SQL-1733 is
    for two process table functions of one uid. Over rows that are retracted it raises SQL-1315 for the clock,
    SQL-1316 for MATCH_RECOGNIZE, SQL-1322 for a lookup join and SQL-1323 for a snapshot join. A process table
    function that takes no retractions is SQL-1324.
    """
    _check_uids(plan)
    last = [sink.input for sink in plan.walk() if isinstance(sink, Sink)]
    for node in plan.walk():
        for port, child in enumerate(node.inputs):
            if not facts.insert_only(child) and (error := node.refuse_updates(port)) is not None:
                raise error
        match node:
            # ORDER BY as the last clause: the client sorts the rows that are there, and a table does not.
            case Sink(input=Sort(input=inner), table=CatalogTable()) if not facts.finite(inner):
                raise _unsupported_order("an endless result has no order")
            # ORDER BY in a subquery.
            case Sort() if not any(node is known for known in last):
                raise _unsupported_order("an ORDER BY of a stream needs LIMIT, unless it is the last clause")
        # A retraction must compute what the insertion computed.
        if not all(facts.insert_only(node.inputs[port]) for port in node.reevaluating_ports):
            _check_steady(node)


def _check_uids(plan: LogicalPlan) -> None:
    """Refuse two different calls with one uid, SQL-1733: they would be one operator with one state."""
    calls: dict[str, ProcessTable] = {}
    for node in plan.walk():
        if not isinstance(node, ProcessTable) or node.uid is None:
            continue
        # one call that is read twice is the same operator
        if calls.setdefault(node.uid, node) != node:
            raise PenstockError(
                "SQL-1733",
                f"two calls of process table functions have the uid '{node.uid}'",
                span=node.span,
                hint="give each call a uid of its own",
                sqlstate="42710",
            )


def _check_steady(node: LogicalPlan) -> None:
    """Refuse functions that may have another value at a retraction: it must equal the row it retracts."""
    if node.unsteady_function is not None:
        raise _wavers(node.unsteady_function, None)

    def steady(expression: Expression) -> Expression:
        wavering = [
            part for part in expression.walk() if isinstance(part, Call) and not is_deterministic(part)
        ]
        if wavering:  # the last holds no other: parents come first
            raise _wavers(wavering[-1].function, wavering[-1].span)
        return expression

    node.map_expressions(steady)


def _wavers(function: str, span: Span | None) -> PenstockError:
    return PenstockError(
        "SQL-1315",
        f"{function} may return another value when a row is retracted, and the rows here are updated",
        span=span,
        hint="compute it on the rows as they come, before what updates them, or declare the function "
        "deterministic if it is",
        sqlstate="0A000",
    )


def _unsupported_order(message: str) -> PenstockError:
    return PenstockError(
        "SQL-1314",
        message,
        hint="add LIMIT n to keep the first rows up to date, or drop ORDER BY",
        sqlstate="0A000",
    )
