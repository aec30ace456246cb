"""What a plan gives must be what its sinks take."""

from __future__ import annotations

from catalog.connectors import takes_changes
from catalog.errors import PenstockError
from optimizer.properties import PlanFacts
from planner.logical import Aggregate, Join, LogicalPlan, Sink, TopN, WindowAggregate


def check_sinks(plan: LogicalPlan, facts: PlanFacts) -> None:
    """Raise SQL-1310 for a sink that only takes inserts over a plan that updates its results, naming who updates and the ways out."""
    for node in plan.walk():
        if isinstance(node, Sink) and node.table is not None and not facts.insert_only(node.input) and not takes_changes(node.table):
            raise PenstockError(
                "SQL-1310",
                f"table {node.table.name} ({node.table.connector}) takes inserts only, but the query updates its results",
                detail=culprit(node.input, facts),
                hint=_ways_out(node.input, facts),
            )


def _updating(plan: LogicalPlan, facts: PlanFacts) -> LogicalPlan:
    """The lowest node that turns inserts into updates."""
    for node in plan.walk():
        if not facts.insert_only(node) and all(facts.insert_only(child) for child in node.inputs):
            return node
    return plan


def culprit(plan: LogicalPlan, facts: PlanFacts) -> str:
    """Return who updates a plan's rows, in words."""
    node = _updating(plan, facts)
    match node:
        case Aggregate(keys=keys):
            names = ", ".join(node.input.schema[key].name for key in keys)
            return f"GROUP BY {names} replaces a row whenever its group changes" if keys else "the aggregate of all rows changes with every row"
        case Join(kind=kind):
            return f"the {kind.value.upper()} JOIN takes back a row that stood alone when its match comes"
        case WindowAggregate(emission=emission) if emission.corrects:
            return "EMIT CHANGES and WITH LATENESS take back what windows gave too early"
        case TopN():
            return "ORDER BY .. LIMIT takes back rows that fall out of the first"
    return f"{type(node).__name__} takes rows back"


def _ways_out(plan: LogicalPlan, facts: PlanFacts) -> str:
    own = {
        Aggregate: "group by window_start, window_end of a window function, so that each row is final",
        Join: "join a bounded table, or use an inner JOIN",
    }.get(type(_updating(plan, facts)))
    return "; or ".join(way for way in (own, "write to a table with a PRIMARY KEY whose connector takes updates, such as 'print'") if way)
