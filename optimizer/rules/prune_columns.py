"""Columns nobody reads are neither decoded, computed, sent nor kept."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog.connectors.common_options import ALIGNMENT_DRIFT
from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan, Needed, Pruned, cheapest_column
from penstock.planner.logical.projection import select_columns
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign


def prune_columns(plan: LogicalPlan) -> LogicalPlan:
    """Carry what each node needs of its inputs down to the scans, which read only that.

    Each node says in its ``prune_columns`` what it reads, and how it looks over fewer columns. Columns that
    break ties of an order count as read.
    """
    return _pruned(plan, _Pruner())


def prune_tied_columns(plan: LogicalPlan) -> LogicalPlan:
    """Drop columns that only break ties of ROW_NUMBER, LAG and the like; those that are read break them.

    A rule of its own: the state of a job that was made without it is restored without it.
    """
    breaks_ties = any(isinstance(node, Over | PartitionTop) and node.breaks_ties for node in plan.walk())
    return _pruned(plan, _Pruner(keeps_ties=False)) if breaks_ties else plan


def drop_unread_watermarks(plan: LogicalPlan) -> LogicalPlan:
    """Drop the watermark of a table whose time column nobody reads, in a plan that no event time drives.
    Windows over PROCTIME() have the clock as their watermark.

    Decoding that column costs a query of few columns up to a third. Filters then go on into the scan. Such a
    job has no event time in its metrics. Like ``prune_tied_columns`` a rule of its own.
    """
    nodes = tuple(plan.walk())
    scans = [node.table for node in nodes if isinstance(node, Scan)]
    kept = (
        any((node.goes_by_time and _has_event_time(node)) or isinstance(node, Emit) for node in nodes)
        # readers of one table share its scan, if they agree about its watermark
        or len({table.name.lower() for table in scans}) < len(scans)
        or any(ALIGNMENT_DRIFT in table.options for table in scans)
    )
    if kept or not any(isinstance(node, WatermarkAssign) for node in nodes):
        return plan
    return _pruned(plan, _Pruner(keeps_watermarks=False))


def _has_event_time(node: LogicalPlan) -> bool:
    """Whether watermarks of rows arrive at a node: those below a processing time end there."""
    if isinstance(node, ProcessingTime):
        return False
    return isinstance(node, WatermarkAssign) or any(map(_has_event_time, node.inputs))


def _pruned(plan: LogicalPlan, pruner: _Pruner) -> LogicalPlan:
    # A sink writes every column of its input.
    if isinstance(plan, StatementSet | Sink):
        return plan.with_inputs(tuple(_pruned(child, pruner) for child in plan.inputs))
    return pruner.select(plan, list(range(len(plan.schema))), plan.schema.names)


@dataclass(frozen=True)
class _Pruner:
    """The recursion over plans; see ``ColumnPruner``."""

    keeps_ties: bool = True
    keeps_watermarks: bool = True

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
