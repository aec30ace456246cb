"""SubtaskHints: how many subtasks a SELECT wants for its operators, by its hints PARALLELISM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.logical.aggregate import Aggregate, CountWindowAggregate, WindowAggregate
from penstock.planner.logical.distribution import SubtaskHint
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan, ParallelNode, UnaryNode
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.parser.syntax_nodes import (
    OptionEntry,
    ProcessTableCall,
    RowMatches,
    WindowTableFunction,
)

_EVERY, _JOIN, _GROUP, _OVER, _DISTINCT = "", "join", "group by", "over", "distinct"
# the clauses that a hint may name, with what a SELECT without one is told
CLAUSES = {
    _JOIN: "this SELECT has no join",
    _GROUP: "this SELECT has no GROUP BY of a window or of keys",
    _OVER: "this SELECT has no OVER",
    _DISTINCT: "this SELECT has no DISTINCT",
}
_NOTHING = "this SELECT has no join, groups, OVER or DISTINCT; PARALLELISM('t' = '4') is for reading table t"


@dataclass
class SubtaskHints:
    """Hints by clause in lower case: ``join``, ``join b`` for the join with table b, ``group by``, ``over``,
    ``distinct``; empty for all of these together.

    ``sources``: the plans of the tables and queries of FROM, which have hints of their own. ``unused``: the
    clauses whose hint no operator has yet.
    """

    by_clause: dict[str, SubtaskHint] = field(default_factory=dict)
    sources: list[LogicalPlan] = field(default_factory=list)
    unused: set[str] = field(default_factory=set)

    def add(self, clause: str, value: OptionEntry) -> None:
        """Record a hint of a clause; SQL-1602 for a value that is no number from 1 on."""
        clause = " ".join(clause.lower().split())
        number = _number(value.value, value.value_span)
        written = f"'{value.key}' = '{number}'" if clause else str(number)
        hint = SubtaskHint(number, f"PARALLELISM({written})", value.value_span.start)
        self.by_clause[clause] = hint
        self.unused.add(clause)

    def add_source(self, tree: exp.Expr, plan: LogicalPlan) -> None:
        """Record a table or query of FROM. The operator of MATCH_RECOGNIZE, of a process table function or of
        session windows is this SELECT's.
        """
        if not self.by_clause:
            return
        if isinstance(tree, RowMatches | ProcessTableCall | WindowTableFunction):
            while isinstance(plan, UnaryNode) and not isinstance(plan, ParallelNode):
                plan = plan.input
            self.sources += plan.inputs
        else:
            self.sources.append(plan)

    def on_join(self, plan: LogicalPlan, left: LogicalPlan, right: str | None) -> LogicalPlan:
        """Return the plan of a join of ``left`` with the table ``right``, with the hint of this join or of
        all joins.
        """
        own = f"{_JOIN} {(right or '').lower()}"
        clause = own if own in self.by_clause else _JOIN
        if clause not in self.by_clause:
            return plan
        # joins of the left side have had their turn
        return replace(self, sources=[*self.sources, left])._marked(plan, lambda _: clause)

    def on_distinct(self) -> SubtaskHint | None:
        """Return the hint of DISTINCT."""
        return self._use(_DISTINCT if _DISTINCT in self.by_clause else _EVERY)

    def on_select(self, plan: LogicalPlan) -> LogicalPlan:
        """Return the plan of a SELECT with the hints of its clauses. Operators that have a hint keep it."""
        return self._marked(plan, _clause) if self.by_clause else plan

    def notes(self) -> Iterator[str]:
        """Yield what is said of hints that no operator of the SELECT has."""
        for clause in sorted(self.unused):
            why = CLAUSES.get(clause, _NOTHING)
            yield f"the hint {self.by_clause[clause].text} has no effect: {why}"

    def _use(self, clause: str) -> SubtaskHint | None:
        self.unused.discard(clause)
        return self.by_clause.get(clause)

    def _marked(self, plan: LogicalPlan, clause_of: Callable[[LogicalPlan], str]) -> LogicalPlan:
        if any(plan is source for source in self.sources):
            return plan
        inputs = tuple(self._marked(child, clause_of) for child in plan.inputs)
        if any(new is not old for new, old in zip(inputs, plan.inputs, strict=True)):
            plan = plan.with_inputs(inputs)
        if not isinstance(plan, ParallelNode) or plan.subtasks is not None or _is_row_wise(plan):
            return plan
        clause = clause_of(plan)
        hint = self._use(clause if clause in self.by_clause else _EVERY)
        return plan if hint is None else replace(plan, subtasks=hint)


def _is_row_wise(node: LogicalPlan) -> bool:
    # TUMBLE gives each row its windows, where the row is
    return isinstance(node, WindowTable) and node.is_row_wise


def _clause(node: LogicalPlan) -> str:
    match node:
        case BinaryJoin() | TemporalJoin() | LookupJoin():
            return _JOIN
        case Aggregate() | WindowAggregate() | CountWindowAggregate():
            return _GROUP
        case Over() | PartitionTop():
            return _OVER
    return _EVERY


def _number(text: str, span: Span) -> int:
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise PenstockError(
        "SQL-1602",
        f"'{text}' is no number of subtasks",
        span=span,
        hint="write a whole number from 1 on: PARALLELISM(4)",
        sqlstate="22023",
    )
