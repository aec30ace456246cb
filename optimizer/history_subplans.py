"""The history of a plan: the parts, over one table each, that a bounded backend computes up to a position.
Plans that have no history are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace

from penstock.catalog.connectors.filesystem import CHANGELOG_FORMATS
from penstock.catalog.connectors.registry import file_format, option
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.optimizer.optimizer import optimize
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.expression_properties import is_deterministic, reads_clock
from penstock.planner.expressions.nodes import Column, Expression
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import HistoryOption, Sink, StatementSet
from penstock.planner.logical.sort import TopN
from penstock.planner.logical.time_attributes import WatermarkAssign


@dataclass(frozen=True)
class HistoryPart:
    """A part of a plan whose rows up to a position a backend computes: ``live`` gives them row by row, and
    over one table.

    ``top``: the node right above that keeps the first rows only, if there is one: then no more of them are
    needed. ``timing``: event time alone, through a watermark assigner; None where nobody goes by time.
    """

    live: LogicalPlan
    top: PartitionTop | TopN | None
    timing: LogicalPlan | None

    @property
    def rows(self) -> LogicalPlan:
        """What the backend computes."""
        match self.top:
            # The backend emits no rank: the live operator computes it.
            case PartitionTop():
                return replace(self.top, input=self.live, rank_name=None)
            # Rows before the offset are rows of the state, too.
            case TopN(limit=limit, offset=offset):
                return replace(self.top, input=self.live, limit=limit + offset, offset=0)
        return self.live


def history_option(plan: LogicalPlan) -> HistoryOption | None:
    """Return the option WITH HISTORY of the INSERTs of a plan."""
    sinks = plan.sinks if isinstance(plan, StatementSet) else (plan,)
    return next((sink.history for sink in sinks if isinstance(sink, Sink) and sink.history is not None), None)


def history_parts(
    plan: LogicalPlan, facts: PlanFacts, history: HistoryOption, speaks: Callable[[LogicalPlan], bool]
) -> tuple[HistoryPart, ...]:
    """Return the parts of a plan with exchanges that are loaded as history, as large as the backend can
    express.

    Raises SQL-1715 for plans whose answer could be another than that of a replay.
    """
    _refuse(plan, history)
    # Without event time above nobody needs the times of the history.
    timed = any(node.history_needs_time for node in plan.walk())
    parts = tuple(_parts(plan, None, facts, speaks, history, timed))
    if not parts:
        raise no_stream(history)
    return parts


def _parts(
    node: LogicalPlan,
    above: LogicalPlan | None,
    facts: PlanFacts,
    speaks: Callable[[LogicalPlan], bool],
    history: HistoryOption,
    timed: bool,
) -> Iterator[HistoryPart]:
    # The largest linear part from above; when the backend cannot express it, its inputs are tried.
    if _is_linear(node):
        part = HistoryPart(node, _keeps_first(above, facts), _timing(node) if timed else None)
        if speaks(part.rows):
            yield part
            return
        # Below them is nothing that could be tried.
        if isinstance(node, WatermarkAssign | Scan):
            raise _refusal(
                history,
                "the backend has no words for the columns its time is made of",
                "leave WITH HISTORY out, or take the other backend",
            )
    # Exchanges move rows only: the node above one is still the node above.
    for child in node.inputs:
        yield from _parts(child, above if isinstance(node, Exchange) else node, facts, speaks, history, timed)


def _is_linear(node: LogicalPlan) -> bool:
    """Whether a node's rows come from one table, each or the partial aggregates of some, by themselves."""
    return node.is_row_wise and all(map(_is_linear, node.inputs))


def _keeps_first(above: LogicalPlan | None, facts: PlanFacts) -> PartitionTop | TopN | None:
    # A retraction may bring rows back that are not among the first, so the input must be append-only.
    if isinstance(above, PartitionTop) and above.window is None and facts.insert_only(_below(above)):
        return above
    return above if isinstance(above, TopN) and facts.insert_only(_below(above)) else None


def _below(node: LogicalPlan) -> LogicalPlan:
    (child,) = node.inputs
    return child.input if isinstance(child, Exchange) else child


def _timing(node: LogicalPlan) -> LogicalPlan | None:
    """Return the event times of a linear plan and nothing else, None when it has none."""
    for found in node.walk():
        if isinstance(found, WatermarkAssign):
            field = found.schema[found.time_column]
            time = Column(field.type, field.nullable, index=found.time_column, name=field.name)
            return optimize(Project(found, (time,), (field.name,)), runtime="streaming")
    return None


def _refuse(plan: LogicalPlan, history: HistoryOption) -> None:
    for node in plan.walk():
        arrival = isinstance(node, PartitionTop) and node.arrival
        what = "the order of arrival" if arrival else node.no_history
        if what is not None:
            raise _refusal(
                history,
                f"{what} has no history that a backend computes",
                "leave WITH HISTORY out: the query reads everything as a stream",
            )
        if isinstance(node, Scan):
            _refuse_table(node, history)
        for expression in _expressions(node):
            # A replay would compute other values than the backend does.
            if not is_deterministic(expression) or reads_clock(expression):
                hint = "leave WITH HISTORY out, or the function: its values would be others than a replay's"
                raise _refusal(history, f"{expression} has another value each time it is computed", hint)


def _refuse_table(scan: Scan, history: HistoryOption) -> None:
    table = scan.table
    if table.connector != "filesystem":
        message = (
            f"{table.name} has no positions up to which a backend can read it (connector {table.connector})"
        )
        raise _refusal(history, message, "tables of files have a history")
    # A backend reads files in any order.
    if file_format(table) in CHANGELOG_FORMATS:
        raise _refusal(
            history,
            f"{table.name} holds changes, which a backend would have to read in their order",
            "tables of csv, json, parquet or arrow files",
        )
    if option(table, "on-error") != "fail":
        message = f"{table.name} skips bad records, and a backend does not count them"
        raise _refusal(history, message, "declare the table with 'on-error' = 'fail'")


def _expressions(value: object) -> Iterator[Expression]:
    """Yield the expressions of a node, without those of the nodes below it."""
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            inner = getattr(value, field.name)
            if not isinstance(inner, LogicalPlan):
                yield from _expressions(inner)


def no_stream(history: HistoryOption) -> PenstockError:
    """Return the error for a plan over bounded tables only."""
    return _refusal(
        history,
        "the query reads no stream",
        "bounded tables are computed by the backend anyway: leave WITH HISTORY out",
    )


def _refusal(history: HistoryOption, message: str, hint: str) -> PenstockError:
    return PenstockError("SQL-1715", f"no history: {message}", span=history.span, hint=hint, sqlstate="0A000")
