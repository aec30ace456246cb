"""Columns nobody reads are neither decoded, computed, sent nor kept."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.planner.logical.plan import LogicalPlan, Needed, Pruned, cheapest_column
from penstock.planner.logical.projection import select_columns
from penstock.planner.logical.sink import Sink, StatementSet


def prune_columns(plan: LogicalPlan) -> LogicalPlan:
    """Carry what each node needs of its inputs down to the scans, which read only that.

    Each node says in its ``prune_columns`` what it reads, and how it looks over fewer columns.
    """
    # A sink writes every column of its input.
    if isinstance(plan, StatementSet | Sink):
        return plan.with_inputs(tuple(prune_columns(child) for child in plan.inputs))
    return _Pruner().select(plan, list(range(len(plan.schema))), plan.schema.names)


class _Pruner:
    """The recursion over plans; see ``ColumnPruner``."""

    def prune(self, node: LogicalPlan, needed: Needed) -> Pruned:
        return node.prune_columns(needed, self)

    def narrow(self, node: LogicalPlan, needed: Iterable[int]) -> Pruned:
        # COUNT(*) needs the number of rows and no column: the cheapest one is read.
        columns = sorted(needed) or ([cheapest_column(node.schema)] if len(node.schema) else [])
        return self.select(node, columns), {old: new for new, old in enumerate(columns)}

    def select(self, node: LogicalPlan, columns: list[int], names: list[str] | None = None) -> LogicalPlan:
        """Return exactly these columns of a node, in this order."""
        pruned, positions = self.prune(node, frozenset(columns))
        return select_columns(pruned, [positions[i] for i in columns], names)
